"""The position of a training, its form in a checkpoint, and its end."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NotRequired, TypedDict, cast

from torch import Tensor

from regard.config import build
from regard.fields import Natural, Weight
from regard.runs import Checkpoint, DamageError, Run
from regard.training.settings import TrainingConfig

# Validations of a training at least, and at most, unless a recipe sets the updates between them.
_LEAST_VALIDATIONS, _MOST_VALIDATIONS = 5, 100


@dataclass
class Position:
    """The progress of a training; with weights and optimizer, all that resuming needs."""

    update: Natural = 0  # optimizer steps made
    epoch: Natural = 0  # under way, from 0
    cursor: Natural = 0  # samples of it that are used up
    seconds: Weight = 0.0  # spent in updates
    tokens: Natural = 0  # terms of the loss so far
    best: float | None = None  # validation figure, by the metric chosen; less is better
    best_loss: float | None = None  # and the loss then
    best_update: Natural = 0
    stale: Natural = 0  # validations since then
    validated: Natural = 0  # update of the last validation
    validated_share: Weight = 0.0  # of training, then
    saved: Natural | None = None  # update of the last one that was saved; of older runs, the last
    loss: float = 0.0  # summed since the last line of figures
    terms: Natural = 0  # of that sum

    def share(self, config: TrainingConfig, num_samples: int) -> float:
        """The fraction of training done, 0 to 1, by the nearest of the config's limits."""
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

    def is_due(self, config: TrainingConfig, num_samples: int) -> bool:
        """Whether a validation is due by ``validate_every``."""
        if config.validate_every != "auto":
            return self.update % config.validate_every == 0
        share, least = self.share(config, num_samples), 1 / _LEAST_VALIDATIONS
        is_epoch = self.cursor == 0 and self.has_passed(_MOST_VALIDATIONS, share)
        has_just_been = 0 <= share - self.validated_share < least / 2  # which puts it off
        return is_epoch or (self.has_passed(_LEAST_VALIDATIONS, share) and not has_just_been)

    def has_passed(self, parts: int, share: float) -> bool:
        """Whether one of so many equal parts of training has ended since the last validation."""
        # A run that goes on for longer than it was to has a smaller share than then.
        return int(share * parts + 1e-6) != int(self.validated_share * parts + 1e-6)

    def add_validation(self, score: float, loss: float, share: float) -> None:
        """Note the figures of a validation, of which less is better; one that is NaN is no best."""
        self.validated, self.validated_share, self.stale = self.update, share, self.stale + 1
        best = (math.inf if figure is None else figure for figure in (self.best, self.best_loss))
        if (score, loss) < tuple(best):
            self.best, self.best_loss = score, loss
            self.best_update, self.stale = self.update, 0

    def is_stale(self, config: TrainingConfig) -> bool:
        """Whether validation has not improved for as long as the config has patience."""
        return config.patience is not None and self.stale >= config.patience


class TrainerState(TypedDict):
    """Training state of a checkpoint; ``position`` has a Position's fields."""

    position: Mapping[str, object]
    optimizer: dict[str, object]
    random: Tensor  # of the CPU
    ema: dict[str, Tensor] | None
    device: NotRequired["DeviceState"]


class DeviceState(TypedDict):
    """Further state of a training on a GPU."""

    random: dict[str, Tensor]  # by the kind of device
    loss_scale: dict[str, int | float]


def restored_position(saved: Checkpoint, state: TrainerState, num_samples: int) -> Position:
    """The position of a checkpoint; ValueError if it is that of another training."""
    position = build(Position, state["position"], where="position")
    is_behind = max(position.validated, position.best_update) <= saved.step
    if position.update != saved.step or position.cursor > num_samples or not is_behind:
        raise ValueError(f"position is that of another training: {state['position']}")
    return position


def drop_unvalidated(run: Run, update: int) -> None:
    """Delete older checkpoints of the clock or an interruption: they would be averaged."""
    for saved in run.checkpoints():
        if saved.step < update and not _is_validated(saved):
            saved.delete()


def _is_validated(saved: Checkpoint) -> bool:
    """Whether a checkpoint was saved by a validation; one that cannot be read counts as such."""
    try:
        position = cast(object, saved.load_entry("position"))
    except DamageError:
        return True
    if not isinstance(position, dict):
        return True
    return bool(position.get("saved", position.get("validated")) == saved.step)
