"""The standard streams of a process: each may be closed, full, or without anyone at its end."""

import io
import os
import sys
from typing import TextIO

_MODES = {"stdin": "r", "stdout": "w", "stderr": "w"}


def hold_streams() -> None:
    """Make each standard stream one to read from or write to, whatever the shell did to it.

    A closed one would lend its number to the next file that is opened, and get that written into.
    It is held by one that refuses to be used, as results must not get lost; reports may, so that
    what stderr cannot take is dropped.
    """
    for name, mode in _MODES.items():
        if getattr(sys, name) is None:
            wrong = os.O_WRONLY if mode == "r" else os.O_RDONLY
            descriptor = os.open(os.devnull, wrong)  # the lowest that is free: the stream's own
            setattr(sys, name, open(descriptor, mode, closefd=False))  # noqa: SIM115
    if isinstance(sys.stdout, io.TextIOWrapper):
        # Names of files are written back as they were read.
        sys.stdout.reconfigure(encoding="utf-8", errors="surrogateescape")
    sys.stderr = _dropping(sys.stderr)


def drop_output() -> None:
    """Let what is left of the results go nowhere: the end of the process would try once more."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


def _dropping(stream: TextIO) -> TextIO:
    """Wrap a stream so that what cannot be written is dropped."""
    return io.TextIOWrapper(
        io.BufferedWriter(_Dropping(stream.fileno())),
        encoding="utf-8",
        errors="backslashreplace",
        line_buffering=True,
    )


class _Dropping(io.RawIOBase):
    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._descriptor

    def isatty(self) -> bool:
        return os.isatty(self._descriptor)

    def write(self, content: "io.ReadableBuffer") -> int:  # type: ignore[name-defined]
        try:
            return os.write(self._descriptor, content)
        except OSError:
            return memoryview(content).nbytes
