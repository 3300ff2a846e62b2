"""Processes of Python as a reader's is: nothing of regard is loaded, only libraries it needs."""

import io
import itertools
import linecache
import multiprocessing
import sys
import traceback
from contextlib import contextmanager, redirect_stdout

# A server forks them, so that the libraries are loaded once.
_CONTEXT = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload(["__main__", "torch", "numba", __name__])


class FreshPython:
    """A process that runs pieces of code one after the other, as a notebook does."""

    def __init__(self, connection):
        self._connection = connection

    def run(self, source, name):
        """Run a piece of code of the file ``name``, and return what it prints."""
        self._connection.send((source, name))
        output, error = self._connection.recv()
        assert not error, error
        return output


@contextmanager
def process():
    """Start a process in the current folder, and end it."""
    ours, theirs = _CONTEXT.Pipe()
    started = _CONTEXT.Process(target=_run_pieces, args=(theirs,), daemon=True)
    started.start()
    theirs.close()
    try:
        yield FreshPython(ours)
    finally:
        ours.close()
        started.join()


def _run_pieces(connection):
    assert not any(name.split(".")[0] == "regard" for name in sys.modules)
    names: dict[str, object] = {"__name__": "__main__"}
    for number in itertools.count():
        try:
            source, name = connection.recv()
        except EOFError:
            return
        name = f"<{name} {number}>"
        lines = source.splitlines(keepends=True)
        linecache.cache[name] = (len(source), None, lines, name)  # as a notebook does
        out, error = io.StringIO(), ""
        try:
            with redirect_stdout(out):
                exec(compile(source, name, "exec"), names)
        except BaseException:
            error = traceback.format_exc()
        connection.send((out.getvalue(), error))
