"""Final weights of a training: chosen by validation, calibrated, and beside baselines."""

from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import asdict, dataclass
from typing import cast

from torch import Tensor, nn

from regard.progress import progress
from regard.runs import Run, average
from regard.training.calibration import Scales
from regard.training.callbacks import TrainingSummary
from regard.training.optimization import MovingAverage
from regard.training.position import Position, TrainerState
from regard.training.task_training import AnyTraining


@dataclass(frozen=True, slots=True)
class FinalWeights:
    """The candidate that a training ends with, which the model has."""

    name: str
    measured: dict[str, dict[str, float]]
    figures: dict[str, float]
    calibration: float | Scales | None
    beside: str | None

    @classmethod
    def choose(
        cls,
        candidates: Mapping[str, Callable[[], dict[str, Tensor]]],
        model: nn.Module,
        task: AnyTraining,
        metric: str,
    ) -> "FinalWeights":
        """Measure all candidates and load the best by a metric, and of equals by the loss."""
        measured, sign = dict[str, dict[str, float]](), task.metrics[metric]
        with progress("choosing the weights", len(candidates)) as advance:
            for name, weights in candidates.items():
                model.load_state_dict(weights())
                measured[name] = task.validate(model.eval())
                advance(1)
        chosen = max(measured, key=lambda n: (sign * measured[n][metric], -measured[n]["loss"]))
        model.load_state_dict(candidates[chosen]())
        with progress("calibrating"):
            calibration = task.calibrate(model)
            figures = measured[chosen] if calibration is None else task.validate(model)
        with progress("baselines"):
            beside = task.beside_baselines(figures)
        return cls(chosen, measured, figures, calibration, beside)

    def summary(self, position: Position, valid: str | None) -> TrainingSummary:
        """The summary of the training, which ends at a position."""
        summary: TrainingSummary = {
            "updates": position.update,
            "epochs": position.epoch,
            "target_tokens": position.tokens,
            "weights": self.name,
            "validation": self.figures,
            "candidates": self.measured,
        }
        if valid is not None:
            summary["valid"] = valid
        if isinstance(self.calibration, Scales):
            summary["scales"] = asdict(self.calibration)
        elif self.calibration is not None:
            summary["temperature"] = self.calibration
        if self.beside is not None:
            summary["beside"] = self.beside
        return summary


def candidate_weights(
    run: Run, model: nn.Module, ema: MovingAverage | None, keep: int, best_update: int
) -> dict[str, Callable[[], dict[str, Tensor]]]:
    """Candidates for the final weights: last, best, an average of the last, the EMA, its best."""
    *earlier, last = run.checkpoints()
    candidates: dict[str, Callable[[], dict[str, Tensor]]] = {"last": last.load_model}
    best_average: Mapping[str, Tensor] | None = None
    for checkpoint in earlier:
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
