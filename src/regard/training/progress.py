"""Progress of a training: a bar on a terminal, plain lines elsewhere."""

import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import NotRequired, Protocol, TextIO, TypedDict, cast, runtime_checkable

from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    TaskID,
    TaskProgressColumn,
    TextColumn,
    TimeRemainingColumn,
)

from regard.errors import printable
from regard.progress import displaying

# Seconds between two plain lines.
_LINE_EVERY = 10.0
# How figures begin that say which share of its time a process waits for others: its rank follows.
WAITING = "waiting_"
# Processes whose waiting is shown one by one.
_SHOWN = 8


class TrainingSummary(TypedDict):
    """Summary of a finished training.

    Attributes:
        updates: Made in all.
        epochs: That are complete.
        target_tokens: Terms of the loss: target tokens, or whatever a task predicts.
        weights: Which weights were taken: the last ones, the best, an average.
        validation: Their figures.
        valid: What those are of: ``48 texts``; not of runs of before.
        candidates: And those of the others.
    """

    updates: int
    epochs: int
    target_tokens: int
    weights: str
    validation: dict[str, float]
    candidates: dict[str, dict[str, float]]
    valid: NotRequired[str]


@runtime_checkable
class Reporter(Protocol):
    """Interface of the listeners of a training.

    Example:
        >>> class Best(Reporter):
        ...     update: int | None = None
        ...     def training(self, share):
        ...         return nullcontext()
        ...     def validated(self, update, figures, *, is_best, samples):
        ...         self.update = update if is_best else self.update
        >>> best = Best()
        >>> for update, is_best in ((40, True), (80, False)):
        ...     best.validated(update, {"loss": 1.5}, is_best=is_best, samples=[])
        >>> isinstance(best, Reporter), best.update
        (True, 40)
    """

    def started(self, facts: Sequence[str], *, counted: str, valid: str) -> None:
        """Text and model are ready.

        Args:
            facts: What is about to be trained, in lines for people.
            counted: What ``updated`` counts, in the plural.
            valid: What is validated on: ``48 texts``.
        """

    def training(self, share: Callable[[], float]) -> AbstractContextManager[object]:
        """A context around the loop; ``share`` says how much is behind us."""

    def updated(self, update: int, epoch: int, tokens: int, figures: Mapping[str, float]) -> None:
        """After each update; of a task that learns no tokens, those are what its loss counts."""

    def validated(
        self, update: int, figures: Mapping[str, float], *, is_best: bool, samples: Sequence[str]
    ) -> None:
        """After each validation."""

    def resumed(self, update: int) -> None:
        """Training goes on from a checkpoint."""

    def interrupted(self, path: Path, update: int) -> None:
        """Training was asked to stop, and has saved."""

    def finished(self, path: Path, summary: TrainingSummary, seconds: float) -> None:
        """The final weights are written."""


class ConsoleReporter:
    """Reports to a console.

    Args:
        console: Where to; a bar is drawn if it is a terminal. None is stderr, and what that does
            not take, since its reader has gone or its disk is full, is lost without a word.
        quiet: Whether samples and notes are left out.

    Example:
        >>> import io
        >>> reporter = ConsoleReporter(Console(file=io.StringIO()), quiet=True)
        >>> reporter.started(["100 pairs to train on"], valid="48 pairs")
        >>> reporter.validated(40, {"loss": 1.25, "bleu": 20.5}, is_best=True, samples=["a → b"])
        >>> print(reporter.console.file.getvalue().rstrip())
        100 pairs to train on
        validation of 48 pairs at update 40: loss 1.25  bleu 20.5  (best so far)
    """

    def __init__(self, console: Console | None = None, *, quiet: bool = False) -> None:
        self.console = console or Console(file=cast(TextIO | None, _stderr()), stderr=True)
        self.quiet = quiet
        self._share: Callable[[], float] = lambda: 0.0
        self._bar: Progress | None = None
        self._bar_task: TaskID | None = None
        self._speed, self._counted, self._valid = 0.0, "tokens", ""
        self._waiting: list[float] = []
        self._clock = self._last_line = time.perf_counter()
        self._started_at = (0.0, 0.0)

    def started(self, facts: Sequence[str], *, counted: str = "tokens", valid: str = "") -> None:
        """Say what is being trained."""
        self._counted, self._valid = counted, f" of {valid}" if valid else ""
        for fact in facts:
            self._print(fact)

    @contextmanager
    def training(self, share: Callable[[], float]) -> Iterator[None]:
        """Draw the bar, or print lines, inside the block."""
        self._share = share
        self._clock = self._last_line = time.perf_counter()
        self._started_at = (self._clock, share())
        if not self.console.is_terminal:
            yield
            return
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TaskProgressColumn(),
            TextColumn("{task.fields[figures]}"),
            TimeRemainingColumn(),
            console=self.console,
            redirect_stdout=sys.stdout.isatty(),  # what goes to a file is to get there
        )
        self._bar_task = self._bar.add_task("training", total=1.0, figures="")
        try:
            with displaying(None), self._bar:  # one bar at a time
                yield
        finally:
            self._bar = None

    def updated(self, update: int, epoch: int, tokens: int, figures: Mapping[str, float]) -> None:
        """Move the bar, or print a line now and then."""
        now = time.perf_counter()
        latest = tokens / max(now - self._clock, 1e-9)
        self._speed = latest if self._speed == 0 else 0.95 * self._speed + 0.05 * latest
        self._clock = now
        text = f"update {update}  loss {figures['loss']:.3f}  {self._speed:,.0f} {self._counted}/s"
        text += self._told_waiting(figures)
        if self._bar is not None and self._bar_task is not None:
            self._bar.update(
                self._bar_task,
                completed=self._share(),
                description=f"epoch {epoch + 1}",
                figures=text,
            )
        elif now - self._last_line >= _LINE_EVERY:
            self._last_line = now
            self._print(f"epoch {epoch + 1}  {text}  {self._share():.0%}  {self._time_left()} left")

    def validated(
        self, update: int, figures: Mapping[str, float], *, is_best: bool, samples: Sequence[str]
    ) -> None:
        """Print the figures, and sample outputs."""
        said = "  ".join(f"{name} {value:.4g}" for name, value in figures.items())
        best = "  (best so far)" if is_best else ""
        self._print(f"validation{self._valid} at update {update}: {said}{best}")
        if not self.quiet:
            for sample in samples:
                self._print(f"  {sample}")

    def resumed(self, update: int) -> None:
        """Say where training goes on."""
        self._print(f"going on from update {update}")

    def interrupted(self, path: Path, update: int) -> None:
        """Say how to go on."""
        self._print(f"stopped at update {update}, saved in {path}; run the same command to go on")

    def finished(self, path: Path, summary: TrainingSummary, seconds: float) -> None:
        """Say what was made."""
        figures = "  ".join(f"{k} {v:.4g}" for k, v in summary["validation"].items())
        self._print(
            f"done: {summary['updates']} updates in {_clock(seconds)}; weights: "
            f"{summary['weights']}; validation{self._valid}: {figures}; in {path}"
        )

    def _told_waiting(self, figures: Mapping[str, float]) -> str:
        """Fraction of the time that each process waits for others; of many, the least and the most.

        Averaged as the speed is.
        """
        latest = [share for name, share in figures.items() if name.startswith(WAITING)]
        before = self._waiting or latest
        self._waiting = [0.95 * old + 0.05 * new for old, new in zip(before, latest, strict=True)]
        if not latest:
            return ""
        shown = [f"{share:.0%}" for share in self._waiting]
        if len(shown) > _SHOWN:
            shown = [f"{min(self._waiting):.0%} to {max(self._waiting):.0%}"]
        return f"  waiting {' '.join(shown)}"

    def _time_left(self) -> str:
        begun, share = self._started_at
        done = self._share() - share
        if done <= 0:
            return "?"
        return _clock((time.perf_counter() - begun) * (1 - self._share()) / done)

    def _print(self, text: str) -> None:
        is_log = not self.console.is_terminal  # whose lines stay whole
        self.console.print(printable(text), highlight=False, markup=False, soft_wrap=is_log)


class _Silent:
    """Tells nobody anything."""

    def started(self, facts: Sequence[str], *, counted: str, valid: str) -> None:
        """Nothing."""

    def training(self, share: Callable[[], float]) -> AbstractContextManager[None]:
        """Nothing around the loop."""
        return nullcontext()

    def updated(self, update: int, epoch: int, tokens: int, figures: Mapping[str, float]) -> None:
        """Nothing."""

    def validated(
        self, update: int, figures: Mapping[str, float], *, is_best: bool, samples: Sequence[str]
    ) -> None:
        """Nothing."""

    def resumed(self, update: int) -> None:
        """Nothing."""

    def interrupted(self, path: Path, update: int) -> None:
        """Nothing."""

    def finished(self, path: Path, summary: TrainingSummary, seconds: float) -> None:
        """Nothing."""


SILENT: Reporter = _Silent()


@runtime_checkable
class _Stream(Protocol):
    def write(self, text: str, /) -> object: ...

    def flush(self) -> object: ...


class _Lossy:
    """A stream for people: nothing ends because they no longer read it."""

    def __init__(self, stream: _Stream) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """Write what the system takes."""
        with suppress(OSError, ValueError):
            self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        """Push it on, if it can be."""
        with suppress(OSError, ValueError):
            self._stream.flush()

    def __getattr__(self, name: str) -> object:
        return getattr(self._stream, name)


def _stderr() -> _Lossy | None:
    """This process's stderr, which it may have been started without."""
    return None if sys.stderr is None else _Lossy(sys.stderr)


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
