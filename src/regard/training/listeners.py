"""Everyone who is told of a training: none of them can stop it by failing to write.

TensorBoard is one, where it is installed: it shows the figures as curves.
"""

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from regard.runs import RunWarning
from regard.training.progress import Reporter, TrainingSummary

if TYPE_CHECKING:
    from torch.utils.tensorboard import SummaryWriter

# Updates between two points of a curve, once there are as many.
_EVERY = 50


class Listeners:
    """A reporter that tells others.

    One that the system lets write no more is told no more, with a RunWarning.

    Args:
        reporter: The user's own; what else goes wrong in it is an error.
        watchers: Ours, which are let go whatever goes wrong in them.
    """

    def __init__(self, reporter: Reporter, *watchers: Reporter) -> None:
        self._listeners: list[tuple[Reporter, tuple[type[Exception], ...]]]
        self._listeners = [(reporter, (OSError,))]
        self._listeners += [(watcher, (Exception,)) for watcher in watchers]

    def add(self, listener: Reporter) -> None:
        """Tell one more from now on, whose errors are all the user's to see."""
        self._listeners.append((listener, ()))

    def started(self, facts: Sequence[str], *, counted: str, valid: str) -> None:
        """Text and model are ready."""
        self._tell(lambda each: each.started(facts, counted=counted, valid=valid))

    @contextmanager
    def training(self, share: Callable[[], float]) -> Iterator[None]:
        """A context around the loop."""
        with ExitStack() as stack:
            for listener, _ in self._listeners:
                stack.enter_context(listener.training(share))
            yield

    def updated(self, update: int, epoch: int, tokens: int, figures: Mapping[str, float]) -> None:
        """After each update."""
        self._tell(lambda each: each.updated(update, epoch, tokens, figures))

    def validated(
        self, update: int, figures: Mapping[str, float], *, is_best: bool, samples: Sequence[str]
    ) -> None:
        """After each validation."""
        self._tell(lambda each: each.validated(update, figures, is_best=is_best, samples=samples))

    def resumed(self, update: int) -> None:
        """Training goes on from a checkpoint."""
        self._tell(lambda each: each.resumed(update))

    def interrupted(self, path: Path, update: int) -> None:
        """Training ends early, and has saved."""
        self._tell(lambda each: each.interrupted(path, update))

    def finished(self, path: Path, summary: TrainingSummary, seconds: float) -> None:
        """The final weights are written."""
        self._tell(lambda each: each.finished(path, summary, seconds))

    def _tell(self, tell: Callable[[Reporter], None]) -> None:
        for each in list(self._listeners):
            listener, bearable = each
            try:
                tell(listener)
            except bearable as error:
                self._listeners.remove(each)
                with suppress(OSError):  # the warning may go where that went
                    warnings.warn(
                        f"{type(listener).__name__} must be able to write; got: {error}. "
                        "Training goes on without it.",
                        RunWarning,
                        stacklevel=2,
                    )


def has_tensorboard() -> bool:
    """Whether there is TensorBoard: pip install 'regard[tensorboard]'."""
    return find_spec("tensorboard") is not None


class TensorBoardReporter:
    """Writes curves into the folder ``tensorboard`` of a run: ``tensorboard --logdir RUN``.

    Training that goes on from a checkpoint goes on with the curves from there.

    Args:
        run: The run folder.
    """

    def __init__(self, run: Path) -> None:
        self._folder = run / "tensorboard"
        self._writer: SummaryWriter | None = None
        self._begin: int | None = None
        self._loss, self._tokens = 0.0, 0

    def started(self, facts: Sequence[str], *, counted: str, valid: str) -> None:
        """Nothing to draw."""

    @contextmanager
    def training(self, share: Callable[[], float]) -> Iterator[None]:
        """Curves inside the block."""
        try:
            yield
        finally:
            if self._writer is not None:
                with suppress(Exception):
                    self._writer.close()

    def resumed(self, update: int) -> None:
        """Points after this update are of a training that was stopped: they are not shown."""
        self._begin = update + 1

    def updated(self, update: int, epoch: int, tokens: int, figures: Mapping[str, float]) -> None:
        """A point of each curve now and then: the mean loss since the one before."""
        self._loss, self._tokens = self._loss + figures["loss"] * tokens, self._tokens + tokens
        if update < _EVERY or update % _EVERY == 0:
            self._add("train", update, {**figures, "loss": self._loss / self._tokens})
            self._loss, self._tokens = 0.0, 0

    def validated(
        self, update: int, figures: Mapping[str, float], *, is_best: bool, samples: Sequence[str]
    ) -> None:
        """A point of each figure of validation, and the samples."""
        writer = self._add("valid", update, figures)
        writer.add_text("samples", "\n\n".join(samples), update)
        writer.flush()

    def interrupted(self, path: Path, update: int) -> None:
        """Nothing to draw."""

    def finished(self, path: Path, summary: TrainingSummary, seconds: float) -> None:
        """Nothing to draw."""

    def _add(self, split: str, update: int, figures: Mapping[str, float]) -> "SummaryWriter":
        if self._writer is None:
            from torch.utils.tensorboard import SummaryWriter

            self._writer = SummaryWriter(str(self._folder), purge_step=self._begin)
        for name, value in figures.items():
            self._writer.add_scalar(f"{split}/{name}", value, update)
        return self._writer
