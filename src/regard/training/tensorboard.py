"""The figures of a training as TensorBoard shows them, where it is installed."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from regard.training.progress import TrainingSummary

if TYPE_CHECKING:
    from torch.utils.tensorboard import SummaryWriter

# Updates between two points of a curve, once there are as many.
_EVERY = 50


def is_installed() -> bool:
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

    def started(self, facts: Sequence[str], *, counted: str) -> None:
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
