"""A kernel regression as a picture: its fits, what each guess is made of, the loss."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

import numpy as np
import torch
from jaxtyping import Float
from torch import nn

from regard.config import JsonValue
from regard.inference.loss_plot import TRAIN, VALID, draw_loss
from regard.models import KernelRegression, KernelRegressionConfig
from regard.tasks.regression import PointBatch, Regression
from regard.text.points import Point

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

T = TypeVar("T")

# Points of a curve, and rows and columns of a heat map; of more, some are drawn.
_MOST, _MOST_POINTS = 200, 2000


@torch.no_grad()
def draw_regression(
    figure: "Figure",
    model: nn.Module,
    task: Regression,
    examples: Sequence[Point],
    history: Sequence[Mapping[str, JsonValue]],
) -> None:
    """Average pooling, the bandwidth as it began and as it was learned; two weight maps; the loss.

    With one input the fits are curves over the training points; with more, guesses against what is
    right.

    Args:
        figure: Where to.
        model: Trained.
        task: The one it was trained for.
        examples: Where to guess.
        history: What training recorded.
    """
    models = _models(model, task)
    chosen = _spread(sorted(examples, key=lambda point: point.inputs), _MOST)
    batch = task.collate(task.encode(chosen))
    figure.set_size_inches(13, 8)
    above, below = figure.subplots(2, 3)
    guesses = [task.guesses(each, batch)[:, 0].numpy() for each in models.values()]
    every = [task.seen[:, 0].numpy(), batch.targets[:, 0].numpy(), *guesses]
    low, high = (pick(float(pick(each)) for each in every) for pick in (min, max))
    for axes, name, guessed in zip(above, models, guesses, strict=True):
        draw = _draw_curve if len(task.names) == 1 else _draw_against
        draw(axes, task, batch, guessed)
        axes.set_title(name)
        margin = 0.05 * (high - low)
        axes.set_ylim(low - margin, high + margin)
    for axes, (name, each) in zip(below, list(models.items())[1:], strict=False):
        image = axes.imshow(_weights(each, task, batch), aspect="auto", cmap="cividis", vmin=0)
        axes.set_title(f"Weights, {name[0].lower()}{name[1:]}")
        axes.set_xlabel("training points, in order")
        axes.set_ylabel("guesses, in order")
        figure.colorbar(image)
    draw_loss(below[2], history)


def _models(model: nn.Module, task: Regression) -> dict[str, KernelRegression]:
    config, dim = task.recipe.settings(KernelRegressionConfig), len(task.names)
    assert isinstance(model, KernelRegression)
    learned = ", ".join(f"{width:.3g}" for width in model.bandwidth.tolist()[:3])
    more = " …" if len(model.bandwidth) > 3 else ""
    pooling = replace(config, bandwidth=float("inf"), is_learned=False)
    return {
        "Average pooling": KernelRegression(pooling, dim=dim),
        f"Bandwidth {config.bandwidth:g}, not learned": KernelRegression(config, dim=dim),
        f"Learned bandwidth {learned}{more}": model,
    }


def _draw_curve(
    axes: "Axes", task: Regression, batch: PointBatch, guessed: Float[np.ndarray, " N"]
) -> None:
    places, asked = (
        (each * task.step + task.origin)[:, 0].tolist() for each in (task.places, batch.asked)
    )
    seen = list(zip(places, task.seen[:, 0].tolist(), strict=True))
    axes.plot(*zip(*_spread(seen, _MOST_POINTS), strict=True), "o", color="#999999", ms=4)
    axes.plot(asked, batch.targets[:, 0].tolist(), "--", color=VALID, label="right")
    axes.plot(asked, guessed, color=TRAIN, label="guessed")
    axes.set_xlabel(task.names[0])
    axes.legend()


def _draw_against(
    axes: "Axes", task: Regression, batch: PointBatch, guessed: Float[np.ndarray, " N"]
) -> None:
    right = batch.targets[:, 0].tolist()
    axes.axline((right[0], right[0]), slope=1, color="#999999", ls="--")
    axes.plot(right, guessed, "o", color=TRAIN, ms=4)
    axes.set_xlabel("right")
    axes.set_ylabel("guessed")


def _weights(
    model: KernelRegression, task: Regression, batch: PointBatch
) -> Float[np.ndarray, "N M"]:
    order = task.places[:, 0].argsort()
    found = model.weights(batch.asked, task.places[order])
    return found[:, _spread(range(len(order)), _MOST)].numpy()


def _spread(things: Sequence[T], most: int) -> list[T]:
    """At most so many, evenly."""
    return [things[place] for place in range(0, len(things), -(-len(things) // most))]
