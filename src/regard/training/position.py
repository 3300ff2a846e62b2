"""How far training has come, and what a checkpoint holds of that."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NotRequired, TypedDict, cast

from torch import Tensor

from regard.fields import Natural, Weight
from regard.runs import Checkpoint, DamageError
from regard.training.settings import TrainingConfig


@dataclass
class Position:
    """How far training has come; with weights and optimizer, all that resuming needs."""

    update: Natural = 0
    epoch: Natural = 0
    cursor: Natural = 0
    seconds: Weight = 0.0
    tokens: Natural = 0
    best: float | None = None
    best_update: Natural = 0
    stale: Natural = 0
    validated: Natural = 0
    loss: float = 0.0
    terms: Natural = 0

    def share(self, config: TrainingConfig, num_samples: int) -> float:
        """How much of training is behind us, 0 to 1, by the nearest of the config's limits."""
        shares = [0.0]
        if config.updates is not None:
            shares.append(self.update / config.updates)
        if config.epochs is not None:
            epochs = (self.epoch + self.cursor / num_samples) / config.epochs
            least = config.least_updates
            shares.append(min(epochs, self.update / least) if least else epochs)
        if config.minutes is not None:
            shares.append(self.seconds / (60 * config.minutes))
        return min(1.0, max(shares))


class TrainerState(TypedDict):
    """Training state of a checkpoint; ``position`` has a Position's fields."""

    position: Mapping[str, object]
    optimizer: dict[str, object]
    random: Tensor
    ema: dict[str, Tensor] | None
    device: NotRequired["DeviceState"]


class DeviceState(TypedDict):
    """Further state of a training on a GPU."""

    random: dict[str, Tensor]
    loss_scale: dict[str, int | float]


def is_validated(saved: Checkpoint) -> bool:
    """Whether a checkpoint was saved by a validation; one that cannot be read counts as such."""
    try:
        position = cast(object, saved.load_entry("position"))
    except DamageError:
        return True
    return not isinstance(position, dict) or bool(position.get("validated") == saved.step)
