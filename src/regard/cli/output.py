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
from regard.watching import watching

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

# Seconds that work may take before it has a bar.
_MOMENT = 0.5


def say(text: str = "", *, end: str = "\n") -> None:
    """Write a line of the result, or with another end a part of one."""
    sys.stdout.write(printable(text) + end)


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
        if value:
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


@contextmanager
def progress_bar(
    work: str, total: Callable[[], int | None], *, beside_results: bool = False
) -> Iterator[Callable[[int], None]]:
    """A bar on stderr, where people see that; gives what moves it on, by a count.

    Args:
        work: What is going on.
        total: What the counts add up to, None if nobody knows; asked only if there is a bar.
        beside_results: Whether results are printed meanwhile; if people see those, there is no bar.
    """
    if not sys.stderr.isatty() or (beside_results and sys.stdout.isatty()):
        yield lambda count: None
        return
    bar = _progress()
    with bar, watching(WorkBars(bar)):
        task = bar.add_task(work, total=total(), rate="")
        began, done = time.perf_counter(), 0

        def advance(count: int) -> None:
            nonlocal done
            done += count
            rate = done / max(time.perf_counter() - began, 1e-9)
            bar.update(task, advance=count, rate=f"{rate:,.1f} a second")

        yield advance


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


def preparing_bar(work: str, total: int | None) -> AbstractContextManager[Callable[[int], None]]:
    """Shows how a text that does not fit into memory is read and encoded."""
    note(work if total is None else f"{work}: {total:,} lines; what is done is kept")
    return progress_bar(work, lambda: total)


class WorkBars:
    """Bars of long work on stderr, where people see that: one for each, with the time left.

    What takes no longer than a moment has none, and what does not say how far it is has a bar that
    moves to and fro.

    Args:
        bar: Where they are drawn; None draws them by themselves.
    """

    def __init__(self, bar: "Progress | None" = None) -> None:
        self._bar, self._is_given = bar, bar is not None
        self._lock = Lock()
        self._working = 0

    @contextmanager
    def __call__(self, name: str) -> Iterator[Callable[[float], None]]:
        """A context around some work, which gives what is told the share of it that is done."""
        shown: list[TaskID] = []
        is_over = False

        def show() -> None:
            with self._lock:
                if not is_over:
                    shown.append(self._started().add_task(name, total=None, rate=""))

        def tell(share: float) -> None:
            if shown and self._bar is not None:
                self._bar.update(shown[0], total=1.0, completed=share)

        waiting = Timer(_MOMENT, show)
        waiting.daemon = True
        self._working += 1
        waiting.start()
        try:
            yield tell
        finally:
            waiting.cancel()
            with self._lock:
                is_over = True
                self._working -= 1
                self._end(shown)

    def _started(self) -> "Progress":
        if self._bar is None:
            self._bar = _progress()
            self._bar.start()
        return self._bar

    def _end(self, shown: "Sequence[TaskID]") -> None:
        if self._bar is None:
            return
        for task in shown:
            self._bar.remove_task(task)
        if not self._working and not self._is_given:
            self._bar.stop()
            self._bar = None


def work_bars() -> AbstractContextManager[None]:
    """A context in which long work has bars, if people see stderr."""
    if sys.stderr is None or not sys.stderr.isatty():
        return nullcontext()
    return watching(WorkBars())
