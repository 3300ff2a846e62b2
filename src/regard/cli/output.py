"""Where commands write: results to stdout, everything about them to stderr."""

import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import (
    AbstractContextManager,
    contextmanager,
    nullcontext,
    redirect_stdout,
    suppress,
)
from pathlib import Path
from threading import Lock, Timer
from typing import TYPE_CHECKING

from regard.errors import RunError, SettingError, printable
from regard.progress import displaying, is_displayed, progress

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

# Seconds that work may take before it has a bar.
_MOMENT = 0.5


def say(text: str = "", *, end: str = "\n") -> None:
    """Write a line of the result, or with another end a part of one."""
    sys.stdout.write(printable(text, is_data=not sys.stdout.isatty()) + end)


def note(text: str, *, is_command: bool = False) -> None:
    """A line about the work, which goes on where nobody can be told.

    On a terminal it is broken between words, but for a command, which is there to be copied.
    """
    if sys.stderr is not None:
        with suppress(OSError, ValueError):
            if sys.stderr.isatty() and not is_command:
                text = wrapped(text, shutil.get_terminal_size().columns)
            sys.stderr.write(printable(text) + "\n")
            sys.stderr.flush()


def wrapped(text: str, width: int) -> str:
    """Break a text between words into lines of at most so many columns of a terminal.

    A Chinese character takes two. A word longer than a line stays whole.

    Example:
        >>> print(wrapped("not UTF-8: 我爱中国 is in GB18030", 20))
        not UTF-8: 我爱中国
        is in GB18030
    """
    from rich.cells import cell_len

    lines = [""]
    for word in text.split():
        line = f"{lines[-1]} {word}" if lines[-1] else word
        if lines[-1] and cell_len(line) > width:
            lines.append(word)
        else:
            lines[-1] = line
    return "\n".join(lines)


def refuse(given: Mapping[str, object], where: str) -> None:
    """Raise SettingError if any of these options is given, by name, where it says nothing.

    Example:
        >>> refuse({"--target": None, "--n-best": 3}, "with --score; nothing is searched for")
        Traceback (most recent call last):
        regard.errors.SettingError: --n-best must be left out with --score; nothing is searched for.
    """
    for name, value in given.items():
        if value not in (None, (), "") and value is not False:
            raise SettingError(f"{name} must be left out {where}.")


def write_file(path: Path, text: str) -> None:
    """Write a result into a file, making its folder if need be.

    Raises:
        RunError: The system refuses.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise RunError(
            f"{path} must be a file that can be written; got: {error.strerror}. "
            "Choose another with --out."
        ) from error


@contextmanager
def writing_to(path: Path | None, *, apart_from: Sequence[Path] = ()) -> Iterator[None]:
    """Let results be written into a file, made with its folder; None leaves them where they go.

    Args:
        path: The file.
        apart_from: What is read meanwhile.

    Raises:
        SettingError: It is one of what is read.
        RunError: The system refuses.
    """
    if path is None:
        yield
        return
    if os.path.realpath(path) in {os.path.realpath(other) for other in apart_from}:
        raise SettingError(f"--output must be another file than those that are read; got {path}.")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        file = path.open("w", encoding="utf-8", errors="surrogateescape", newline="\n")
    except OSError as error:
        raise RunError(
            f"{path} must be a file that can be written; got: {error.strerror}. "
            "Choose another with --output."
        ) from error
    with file, redirect_stdout(file):
        yield
    note(f"wrote {path}")


def progress_bar(
    work: str, total: Callable[[], int | None], *, beside_results: bool = False
) -> AbstractContextManager[Callable[[float], None]]:
    """The progress of work that results may be printed beside; there it has no bar on a terminal.

    Args:
        work: The work.
        total: Counts its items, None where that is unknown; called only if there is a bar.
        beside_results: Whether results are printed meanwhile.
    """
    if not is_displayed() or (beside_results and sys.stdout.isatty()):
        return nullcontext(lambda count: None)
    return progress(work, total())


def _progress() -> "Progress":
    """Progress on stderr, in columns; each task of it has a field ``rate``, which may be empty."""
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        Progress,
        TaskProgressColumn,
        TextColumn,
        TimeRemainingColumn,
    )

    return Progress(
        TextColumn("{task.description}", markup=False),  # names of files may hold brackets
        BarColumn(),
        TaskProgressColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[rate]}"),
        console=Console(stderr=True),
        transient=True,
        # Otherwise rich would move results from their file to its console.
        redirect_stdout=sys.stdout.isatty(),
    )


class Bars:
    """Bars of long work, one for each, with its rate and the time left.

    Work that takes no longer than a moment has none; work of unknown length has a bar that moves to
    and fro.
    """

    def __init__(self) -> None:
        self._bar: Progress | None = None
        self._lock = Lock()
        self._working = 0

    @contextmanager
    def __call__(self, name: str, total: float | None) -> Iterator[Callable[[float], None]]:
        """A bar for some work, and the function that advances it."""
        tasks: list[TaskID] = []
        is_over = False
        began, done = time.perf_counter(), 0.0

        def show() -> None:
            with self._lock:
                if not is_over:
                    bar = self._started()
                    tasks.append(bar.add_task(name, total=total, rate=""))
                    bar.update(tasks[0], completed=done)

        def advance(count: float) -> None:
            nonlocal done
            done += count
            if tasks and self._bar is not None:
                rate = done / max(time.perf_counter() - began, 1e-9)
                text = "" if total == 1 else f"{rate:,.1f} a second"
                self._bar.update(tasks[0], completed=done, rate=text)

        waiting = Timer(_MOMENT, show)
        waiting.daemon = True
        self._working += 1
        waiting.start()
        try:
            yield advance
        finally:
            waiting.cancel()
            with self._lock:
                is_over = True
                self._working -= 1
                self._end(tasks)

    def _started(self) -> "Progress":
        if self._bar is None:
            self._bar = _progress()
            self._bar.start()
        return self._bar

    def _end(self, tasks: "Sequence[TaskID]") -> None:
        if self._bar is None:
            return
        for task in tasks:
            self._bar.remove_task(task)
        if not self._working:
            self._bar.stop()
            self._bar = None


def bars() -> AbstractContextManager[None]:
    """A context in which long work has bars, if stderr is a terminal."""
    if sys.stderr is None or not sys.stderr.isatty():
        return nullcontext()
    return displaying(Bars())
