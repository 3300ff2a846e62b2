"""Interface between the training loop and tasks."""

from collections.abc import Iterator, Mapping
from typing import Protocol, TypeVar, runtime_checkable

from torch import Tensor, nn

from regard.training.distributed.world import WHOLE_BATCH, BatchShard

BatchT = TypeVar("BatchT")  # what a task makes of examples


@runtime_checkable
class Trainable(Protocol[BatchT]):
    """Interface of a task in the training loop."""

    @property
    def model_dim(self) -> int:
        """The width that the paper's learning rate depends on."""

    @property
    def num_samples(self) -> int:
        """Samples in an epoch."""

    @property
    def metrics(self) -> Mapping[str, int]:
        """Metrics that ``training.metric`` may name: 1 where more is better, -1 where less is."""

    def begin_epoch(self, epoch: int) -> None:
        """Called before the first batch of an epoch."""

    def batches(
        self, epoch: int, cursor: int, share: BatchShard = WHOLE_BATCH
    ) -> Iterator[tuple[BatchT | None, int]]:
        """The rest of an epoch's batches or shards (None if empty), each with the next cursor."""

    def backward(
        self, model: nn.Module, batch: BatchT, *, smoothing: float, scale: float
    ) -> tuple[Tensor, int]:
        """Add the gradient of the summed loss, times ``scale``; that loss, and its terms."""

    def validate(self, model: nn.Module) -> dict[str, float]:
        """Figures on the validation set; ``loss`` is always among them."""

    def samples(self, model: nn.Module) -> list[str]:
        """A few outputs for people to read."""
