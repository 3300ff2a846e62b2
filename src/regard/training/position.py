"""How far training has come, what a checkpoint holds of that, and which weights it ends with."""

from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass
from typing import NotRequired, TypedDict, cast

from torch import Tensor, nn

from regard.fields import Natural, Weight
from regard.runs import Checkpoint, DamageError, Run, average
from regard.training.optimization import MovingAverage
from regard.training.settings import TrainingConfig


@dataclass
class Position:
    """How far training has come; with weights and optimizer, all that resuming needs."""

    update: Natural = 0  # optimizer steps made
    epoch: Natural = 0  # under way, from 0
    cursor: Natural = 0  # samples of it that are used up
    seconds: Weight = 0.0  # spent in updates
    tokens: Natural = 0  # terms of the loss so far
    best: float | None = None  # validation figure, by the metric chosen
    best_update: Natural = 0
    stale: Natural = 0  # validations since then
    validated: Natural = 0  # update of the last validation
    loss: float = 0.0  # summed since the last line of figures
    terms: Natural = 0  # of that sum

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
    random: Tensor  # of the CPU
    ema: dict[str, Tensor] | None
    device: NotRequired["DeviceState"]


class DeviceState(TypedDict):
    """Further state of a training on a GPU."""

    random: dict[str, Tensor]  # by the kind of device
    loss_scale: dict[str, int | float]


def is_validated(saved: Checkpoint) -> bool:
    """Whether a checkpoint was saved by a validation; one that cannot be read counts as such."""
    try:
        position = cast(object, saved.load_entry("position"))
    except DamageError:
        return True
    return not isinstance(position, dict) or bool(position.get("validated") == saved.step)


def candidate_weights(
    run: Run, model: nn.Module, ema: MovingAverage | None, *, keep: int, best_update: int
) -> dict[str, Callable[[], dict[str, Tensor]]]:
    """Where final weights may come from: last, best, an average of the last, the EMA."""
    *others, last = run.checkpoints()
    candidates: dict[str, Callable[[], dict[str, Tensor]]] = {"last": last.load_model}
    for checkpoint in others:
        if checkpoint.step == best_update:
            candidates["best"] = checkpoint.load_model
    newest = run.newest_checkpoints(keep)
    if len(newest) > 1:
        candidates[f"average of {len(newest)}"] = lambda: average(newest)
    if ema is not None:
        with ema.installed(model):
            smooth = deepcopy(model.state_dict())  # tied weights stay tied
        candidates["moving average"] = lambda: smooth
    return candidates
