"""Curves of a training for TensorBoard, where that is installed."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from regard.training.callbacks import Callback, Update, Validation

if TYPE_CHECKING:
    from torch.utils.tensorboard import SummaryWriter

# Updates between two points of a curve, once there are as many.
_EVERY = 50


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
        """Curves inside the block."""
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
        """Add a point to each curve now and then: the mean loss since the one before."""
        number, tokens = update.number, update.tokens
        self._loss, self._tokens = (
            self._loss + update.figures["loss"] * tokens,
            self._tokens + tokens,
        )
        if number < _EVERY or number % _EVERY == 0:
            self._add("train", number, {**update.figures, "loss": self._loss / self._tokens})
            self._loss, self._tokens = 0.0, 0

    def on_validation(self, validation: Validation, /) -> None:
        """Add a point of each figure of validation, and the samples."""
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
