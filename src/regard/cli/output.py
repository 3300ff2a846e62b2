"""Where commands write: results to stdout, everything about them to stderr."""

import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path

from regard.errors import RunError, SettingError


def say(text: str = "") -> None:
    """A line of the result."""
    sys.stdout.write(f"{text}\n")


def note(text: str) -> None:
    """A line about the work, which goes on where nobody can be told."""
    if sys.stderr is not None:
        with suppress(OSError, ValueError):
            sys.stderr.write(f"{text}\n")
            sys.stderr.flush()


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
    from rich.console import Console
    from rich.progress import Progress, TextColumn

    # Without being told, rich would move stdout to its console: results would miss their file.
    console, to_screen = Console(stderr=True), sys.stdout.isatty()
    columns = (*Progress.get_default_columns(), TextColumn("{task.fields[rate]}"))
    with Progress(*columns, console=console, transient=True, redirect_stdout=to_screen) as bar:
        task = bar.add_task(work, total=total(), rate="")
        began, done = time.perf_counter(), 0

        def advance(count: int) -> None:
            nonlocal done
            done += count
            rate = done / max(time.perf_counter() - began, 1e-9)
            bar.update(task, advance=count, rate=f"{rate:,.1f} a second")

        yield advance


def preparing_bar(work: str, total: int | None) -> AbstractContextManager[Callable[[int], None]]:
    """Shows how a text that does not fit into memory is read and encoded."""
    note(work if total is None else f"{work}: {total:,} lines; what is done is kept")
    return progress_bar(work, lambda: total)
