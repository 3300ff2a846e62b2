"""Reporters of a training: a bar on a terminal, plain lines elsewhere, curves for TensorBoard."""

import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, TextIO, cast

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
from regard.progress import Lossy, displaying
from regard.training.callbacks import WAITING, Callback, TrainingSummary, Update, Validation

if TYPE_CHECKING:
    from torch.utils.tensorboard import SummaryWriter

# Seconds between two plain lines; updates between two points of a curve, once there are as many.
_LINE_EVERY, _POINT_EVERY = 10.0, 50
# Processes whose waiting is shown one by one.
_MOST_LISTED = 8


class ConsoleReporter(Callback):
    """Reports to a console.

    Args:
        console: Where to; a bar is drawn if it is a terminal. None is stderr, and lines that it
            does not take, since its reader has gone or its disk is full, are lost without a word.
        quiet: Whether samples and notes are left out.

    Example:
        >>> import io
        >>> reporter = ConsoleReporter(Console(file=io.StringIO()), quiet=True)
        >>> reporter.on_start(["100 pairs to train on"], valid="48 pairs")
        >>> reporter.on_interrupt(Path("run"), 40)
        >>> print(reporter.console.file.getvalue().rstrip())
        100 pairs to train on
        stopped at update 40, saved in run; run the same command to go on
    """

    def __init__(self, console: Console | None = None, *, quiet: bool = False) -> None:
        # A process may have been started without stderr.
        stderr = None if sys.stderr is None else cast(TextIO, Lossy(sys.stderr))
        self.console = console or Console(file=stderr, stderr=True)
        self.quiet = quiet
        self._share: Callable[[], float] = lambda: 0.0
        self._bar: Progress | None = None
        self._bar_task: TaskID | None = None
        self._speed, self._loss_unit, self._valid = 0.0, "tokens", ""
        self._waiting: list[float] = []
        self._clock = self._last_line = time.perf_counter()
        self._started_at = (0.0, 0.0)

    def on_start(self, lines: Sequence[str], *, loss_unit: str = "tokens", valid: str = "") -> None:
        self._loss_unit, self._valid = loss_unit, f" of {valid}" if valid else ""
        for line in lines:
            self._print(line)

    @contextmanager
    def training(self, share: Callable[[], float]) -> Iterator[None]:
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
            redirect_stdout=sys.stdout.isatty(),  # redirected output goes to its file
        )
        self._bar_task = self._bar.add_task("training", total=1.0, figures="")
        try:
            with displaying(None), self._bar:  # one bar at a time
                yield
        finally:
            self._bar = None

    def on_update(self, update: Update, /) -> None:
        now, figures = time.perf_counter(), update.figures
        latest = update.tokens / max(now - self._clock, 1e-9)
        self._speed = latest if self._speed == 0 else 0.95 * self._speed + 0.05 * latest
        self._clock = now
        speed = f"{self._speed:,.0f} {self._loss_unit}/s"
        text = f"update {update.number}  loss {figures['loss']:.3f}  {speed}"
        text += self._format_waiting(figures)
        if self._bar is not None and self._bar_task is not None:
            self._bar.update(
                self._bar_task,
                completed=self._share(),
                description=f"epoch {update.epoch + 1}",
                figures=text,
            )
        elif now - self._last_line >= _LINE_EVERY:
            self._last_line = now
            self._print(
                f"epoch {update.epoch + 1}  {text}  {self._share():.0%}  {self._time_left()} left"
            )

    def on_validation(self, validation: Validation, /) -> None:
        figures = "  ".join(f"{name} {value:.4g}" for name, value in validation.figures.items())
        best = "  (best so far)" if validation.is_best else ""
        self._print(f"validation{self._valid} at update {validation.update}: {figures}{best}")
        if not self.quiet:
            for sample in validation.samples:
                self._print(f"  {sample}")

    def on_resume(self, update: int) -> None:
        self._print(f"going on from update {update}")

    def on_interrupt(self, path: Path, update: int) -> None:
        self._print(f"stopped at update {update}, saved in {path}; run the same command to go on")

    def on_finish(self, path: Path, summary: TrainingSummary, seconds: float) -> None:
        figures = "  ".join(f"{k} {v:.4g}" for k, v in summary["validation"].items())
        valid = f" of {summary['valid']}" if "valid" in summary else ""
        self._print(
            f"done: {summary['updates']} updates in {_clock(seconds)}; weights: "
            f"{summary['weights']}; validation{valid}: {figures}; in {path}"
        )
        if (beside := summary.get("beside")) is not None:
            self._print(beside)

    def _format_waiting(self, figures: Mapping[str, float]) -> str:
        """Fraction of its time that each process waits, smoothed; of many, the extremes."""
        latest = [fraction for name, fraction in figures.items() if name.startswith(WAITING)]
        before = self._waiting or latest
        self._waiting = [0.95 * old + 0.05 * new for old, new in zip(before, latest, strict=True)]
        if not latest:
            return ""
        fractions = [f"{fraction:.0%}" for fraction in self._waiting]
        if len(fractions) > _MOST_LISTED:
            fractions = [f"{min(self._waiting):.0%} to {max(self._waiting):.0%}"]
        return f"  waiting {' '.join(fractions)}"

    def _time_left(self) -> str:
        started_at, share = self._started_at
        done = self._share() - share
        if done <= 0:
            return "?"
        return _clock((time.perf_counter() - started_at) * (1 - self._share()) / done)

    def _print(self, text: str) -> None:
        is_log = not self.console.is_terminal  # whose lines stay whole
        self.console.print(printable(text), highlight=False, markup=False, soft_wrap=is_log)


def _clock(seconds: float) -> str:
    minutes, remainder = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{remainder:02}" if hours else f"{minutes}:{remainder:02}"


def has_tensorboard() -> bool:
    """Whether there is TensorBoard: pip install 'regard[tensorboard]'."""
    return find_spec("tensorboard") is not None


class TensorBoardReporter(Callback):
    """Writes curves into the folder ``tensorboard`` of a run: ``tensorboard --logdir RUN``."""

    def __init__(self, run: Path) -> None:
        self._folder = run / "tensorboard"
        self._writer: SummaryWriter | None = None
        self._begin: int | None = None
        self._loss, self._tokens = 0.0, 0

    @contextmanager
    def training(self, share: Callable[[], float]) -> Iterator[None]:
        try:
            yield
        finally:
            if self._writer is not None:
                with suppress(Exception):
                    self._writer.close()

    def on_resume(self, update: int) -> None:
        """Points after this update are of a training that was stopped: they are not shown."""
        self._begin = update + 1

    def on_update(self, update: Update, /) -> None:
        number, tokens = update.number, update.tokens
        self._loss, self._tokens = (
            self._loss + update.figures["loss"] * tokens,
            self._tokens + tokens,
        )
        if number < _POINT_EVERY or number % _POINT_EVERY == 0:
            self._add("train", number, {**update.figures, "loss": self._loss / self._tokens})
            self._loss, self._tokens = 0.0, 0

    def on_validation(self, validation: Validation, /) -> None:
        writer = self._add("valid", validation.update, validation.figures)
        writer.add_text("samples", "\n\n".join(validation.samples), validation.update)
        writer.flush()

    def _add(self, split: str, update: int, figures: Mapping[str, float]) -> "SummaryWriter":
        if self._writer is None:
            from torch.utils.tensorboard import SummaryWriter

            self._writer = SummaryWriter(str(self._folder), purge_step=self._begin)
        for name, value in figures.items():
            self._writer.add_scalar(f"{split}/{name}", value, update)
        return self._writer
