"""How far training has come, what a checkpoint holds of that, and what it ends with."""

import math
from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass
from typing import NotRequired, TypedDict, cast

from torch import Tensor, nn

from regard.config import build
from regard.fields import Natural, Weight
from regard.runs import Checkpoint, DamageError, Run, average
from regard.training.callbacks import TrainingSummary
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

    def add_validation(self, score: float) -> None:
        """Note the figure of a validation, of which less is better; one that is NaN is no best."""
        self.validated, self.stale = self.update, self.stale + 1
        if score < (math.inf if self.best is None else self.best):
            self.best, self.best_update, self.stale = score, self.update, 0

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
    return not isinstance(position, dict) or bool(position.get("validated") == saved.step)


def candidate_weights(
    run: Run, model: nn.Module, ema: MovingAverage | None, *, keep: int, best_update: int
) -> dict[str, Callable[[], dict[str, Tensor]]]:
    """Where final weights may come from: last, best, an average of the last, the EMA, its best."""
    *others, last = run.checkpoints()
    candidates: dict[str, Callable[[], dict[str, Tensor]]] = {"last": last.load_model}
    best_average: Mapping[str, Tensor] | None = None
    for checkpoint in others:
        if checkpoint.step == best_update:
            candidates["best"] = checkpoint.load_model
            best_average = cast(TrainerState, checkpoint.load_trainer())["ema"]
    newest = run.newest_checkpoints(keep)
    if len(newest) > 1:
        candidates[f"average of {len(newest)}"] = lambda: average(newest)
    if ema is not None:
        smooth = _smoothed(model, ema)
        candidates["moving average"] = lambda: smooth
        if best_average is not None:  # which the validations measured, and not the best weights
            best = MovingAverage(model, ema.decay)
            best.load(best_average)
            best_smooth = _smoothed(model, best)
            candidates["best moving average"] = lambda: best_smooth
    return candidates


def _smoothed(model: nn.Module, average: MovingAverage) -> dict[str, Tensor]:
    with average.installed(model):
        return deepcopy(model.state_dict())  # tied weights stay tied


def summarize(
    position: Position, chosen: str, measured: dict[str, dict[str, float]], valid: str | None
) -> TrainingSummary:
    """The summary of a training that ends with the chosen weights."""
    summary: TrainingSummary = {
        "updates": position.update,
        "epochs": position.epoch,
        "target_tokens": position.tokens,
        "weights": chosen,
        "validation": measured[chosen],
        "candidates": measured,
    }
    return summary if valid is None else {**summary, "valid": valid}
