"""The figure of eight runs of one recipe: the mean and the spread of each weight of 我爱中国."""

import json
from functools import cache
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from regard.viewer.spread import WeightSpread
from tools.figures.drawing import ORANGE, TEAL, Data, Say, picture

DATA = Path(__file__).parents[2] / "docs" / "figures" / "course" / "seeds.json"


@cache
def spread() -> WeightSpread:
    """The weights that the command stored: ``examples/experiments/seeds.py --data``."""
    stored = json.loads(DATA.read_text("utf-8"))
    texts = {name: tuple(stored[name]) for name in ("source_tokens", "output_tokens", "answers")}
    weights = tuple(stored["weights"])
    return WeightSpread(stored["source"], stored["output"], weights=weights, **texts)


def _weights() -> Data:
    return {"weights": np.array(spread().weights)}


@picture("seeds-weights", 6.4, 3.4, _weights)
def weights(figure: Figure, data: Data, say: Say) -> None:
    """A bar for each mean, a line for its deviation, a dot for each run; a row for each word."""
    runs, rows, columns = data["weights"].shape
    grid = figure.subplots(rows, 1, sharex=True, squeeze=False)[:, 0]
    for row, axes in enumerate(grid):
        cells = data["weights"][:, row]
        is_fact = [spread().is_fact(row, column) for column in range(columns)]
        colors = [ORANGE if each else TEAL for each in is_fact]
        axes.bar(range(columns), cells.mean(0), width=0.5, color=colors, alpha=0.35)
        axes.errorbar(
            range(columns), cells.mean(0), cells.std(0, ddof=1), fmt="none", color="black"
        )
        for column in range(columns):
            spots = column + np.linspace(-0.18, 0.18, runs)
            axes.plot(spots, cells[:, column], ".", color=colors[column], markersize=4)
        axes.set_ylim(0, 1.05)
        axes.set_yticks([0, 1])
        axes.set_ylabel(spread().output_tokens[row], rotation=0, ha="right", va="center")
    axes.set_xticks(range(columns), spread().source_tokens)
    axes.set_xlabel(
        say("orange: every run looks most here", "橙色：每次训练都最看重这里"), fontsize=8
    )
