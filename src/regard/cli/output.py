"""Where commands write: results to stdout, everything about them to stderr."""

import io
import os
import re
import shutil
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
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

from regard.checks import counted
from regard.errors import SettingError, printable
from regard.files import check_writable, new_file
from regard.progress import displaying

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

# Seconds that work may take before it has a bar.
_MOMENT = 0.5
# Endings of files in folders of runs and of Hugging Face models, and files that mark such folders.
_OF_MODELS = {"", ".json", ".jsonl", ".toml", ".safetensors", ".model", ".bin"}
_CARDS = ("run.json", "config.json")
# Unknown characters or words that are named.
_MOST_UNKNOWN = 20


def say(text: str = "", *, end: str = "\n") -> None:
    """Write a line of the result, or with another end a part of one."""
    sys.stdout.write(printable(text, is_data=not sys.stdout.isatty()) + end)


def program() -> str:
    """Return the program of the command line: ``regard``, or a file that registers parts."""
    name = Path(sys.argv[0]).name
    is_file = name.endswith(".py") and not name.startswith("__")
    return f"python {sys.argv[0]}" if is_file else "regard"


def note(text: str, *, is_command: bool = False) -> None:
    """Write a line about the work to stderr; a failing stderr is ignored.

    A terminal's lines break between words, but for a command, which is there to be copied.
    """
    if sys.stderr is not None:
        with suppress(OSError, ValueError):
            if sys.stderr.isatty() and not is_command:
                text = wrapped(text, shutil.get_terminal_size().columns)
            sys.stderr.write(printable(text) + "\n")
            sys.stderr.flush()


def end_interrupted_line() -> None:
    """End the terminal's line of ``^C``, so that the prompt of the shell stands below it."""
    if sys.stderr is not None and sys.stderr.isatty():
        note("")


def note_unknown(pieces: Iterable[str]) -> None:
    """Warn of characters or words that are not in the vocabulary, if there are any."""
    named = list(dict.fromkeys(pieces))
    more = f" and {len(named) - _MOST_UNKNOWN:,} more" if len(named) > _MOST_UNKNOWN else ""
    if named:
        note(f"warning: not in the vocabulary: {' '.join(named[:_MOST_UNKNOWN])}{more}")


def wrapped(text: str, width: int) -> str:
    """Break a text between words into lines of a terminal, where a Chinese character takes two.

    Example:
        >>> print(wrapped("not UTF-8: 我爱中国 is in GB18030", 20))
        not UTF-8: 我爱中国
        is in GB18030
    """
    from rich.cells import cell_len

    if cell_len(text) <= width:
        return text
    lines = [""]
    for word in text.split():
        line = f"{lines[-1]} {word}" if lines[-1] else word
        if lines[-1] and cell_len(line) > width:
            lines.append(word)
        else:
            lines[-1] = line
    return "\n".join(lines)


def as_typed_paths(text: str, names: Iterable[str]) -> str:
    """A text in which files are called as they were typed, and others from the current folder."""
    for name in names:
        if name and "\0" not in name and not Path(name).is_absolute():
            whole = re.escape(os.path.realpath(name))
            typed = name.replace("\\", r"\\")
            text = re.sub(rf"(?<![\w/]){whole}(?![\w.-])", typed, text)
    return text


def is_given(value: object) -> bool:
    """Whether an option is on the command line, be it with the value that it has without."""
    return value is not None and value is not False and value != ()


def refuse(options: Mapping[str, object], where: str) -> None:
    """Raise SettingError if any of these options, by name, is given where it has no effect."""
    for name, value in options.items():
        if is_given(value):
            raise SettingError(f"{name} must be left out {where}.")


def require(options: Mapping[str, object], companion: str) -> None:
    """Raise SettingError if any of these options, by name, is given without another."""
    for name, value in options.items():
        if is_given(value):
            raise SettingError(f"{name} must go with {companion}; got it without.")


def check_output(path: Path, inputs: Iterable[str | Path], *, option: str = "--output") -> None:
    """Raise unless results can be written into a file that is none of ``inputs``, nor a model's."""
    if path.is_file() and any(_belongs_to(path, source) for source in inputs):
        raise SettingError(f"{option} must be another file than those that are read; got {path}.")
    check_writable(path)


def _belongs_to(path: Path, given: str | Path) -> bool:
    """Whether a file is the one that was given, or one that a model's folder was saved with."""
    file, source = Path(os.path.realpath(path)), Path(os.path.realpath(given))
    is_inside = file.suffix in _OF_MODELS and file.is_relative_to(source)
    return file == source or (is_inside and any((source / card).is_file() for card in _CARDS))


@contextmanager
def writing_to(path: Path | None, *, inputs: Sequence[Path] = ()) -> Iterator[None]:
    """Write results into a file that is none of ``inputs``; None leaves them on stdout.

    The file appears when the block ends well; else one that is there stays as it is. Of a block
    that is interrupted, flushed output is kept beside it, under the same name and ``.part``.
    """
    if path is None:
        yield
        return
    check_output(path, inputs)
    with new_file(path) as temporary:
        file, flushed = _FlushedFile(temporary), 0
        try:
            with file, redirect_stdout(file):
                try:
                    yield
                except KeyboardInterrupt:
                    flushed = file.flushed  # before it is closed, and half a line flushed
                    raise
        except KeyboardInterrupt:
            if flushed and temporary != path:  # which is a device or a pipe
                _keep_part(temporary, flushed, path)
            raise
    note(f"wrote {path}")


class _FlushedFile(io.TextIOWrapper):
    """A file of results that knows how many of its bytes were there when it was flushed last."""

    def __init__(self, path: Path) -> None:
        self._binary = path.open("wb")
        super().__init__(self._binary, "utf-8", errors="surrogateescape", newline="\n")
        self.flushed = 0

    def flush(self) -> None:
        super().flush()
        self.flushed = self._binary.tell() if self.seekable() else 0


def _keep_part(file: Path, size: int, path: Path) -> None:
    """Keep so many bytes of an interrupted file beside its place, and say how to go on."""
    part = path.with_name(f"{path.name}.part")
    os.truncate(file, size)
    file.replace(part)
    with part.open("rb") as lines:
        count = counted(sum(1 for _ in lines), "lines")
    note(
        f"stopped; the answers so far, {count}, are in {part}. Of text split into files, "
        "--input FILES --output FOLDER keeps each that is answered, and goes on with the others."
    )


def bars() -> AbstractContextManager[None]:
    """A context in which long work has bars, if stderr is a terminal."""
    if sys.stderr is None or not sys.stderr.isatty():
        return nullcontext()
    return displaying(Bars())


class Bars:
    """Progress bars of work that takes longer than a moment, with its rate and the time left."""

    def __init__(self) -> None:
        self._progress: Progress | None = None
        self._lock = Lock()
        self._works = 0

    @contextmanager
    def __call__(self, name: str, total: float | None) -> Iterator[Callable[[float], None]]:
        """A bar for some work, and the function that advances it."""
        task: TaskID | None = None
        is_over = False
        began, done = time.perf_counter(), 0.0

        def show() -> None:
            nonlocal task
            with self._lock:
                if not is_over:
                    progress = self._progress = self._progress or _started_progress()
                    task = progress.add_task(name, total=total, rate="")
                    progress.update(task, completed=done)

        def advance(count: float) -> None:
            nonlocal done
            done += count
            if task is not None and self._progress is not None:
                rate = done / max(time.perf_counter() - began, 1e-9)
                text = "" if total == 1 else f"{rate:,.1f} a second"
                self._progress.update(task, completed=done, rate=text)

        waiting = Timer(_MOMENT, show)
        waiting.daemon = True
        self._works += 1
        waiting.start()
        try:
            yield advance
        finally:
            waiting.cancel()
            with self._lock:
                is_over = True
                self._works -= 1
                if self._progress is not None and task is not None:
                    self._progress.remove_task(task)
                if self._progress is not None and not self._works:
                    self._progress.stop()
                    self._progress = None


def _started_progress() -> "Progress":
    """Progress on stderr, in columns; each task of it has a field ``rate``, which may be empty."""
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        Progress,
        TaskProgressColumn,
        TextColumn,
        TimeRemainingColumn,
    )

    progress = Progress(
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
    progress.start()
    return progress
