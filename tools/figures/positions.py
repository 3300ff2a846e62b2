"""Figures of chapter 7: sines and cosines, binary numbers, and a shift that is a rotation."""

import numpy as np
import torch
from matplotlib.figure import Figure

from regard.layers import sinusoidal
from tools.figures.drawing import BLUE, GREY, ORANGE, RED, TEAL, Data, Say, arrow, matrix, picture


def _waves() -> Data:
    return {"waves": sinusoidal(torch.arange(60), 32).numpy()}


@picture("positions-curves", 5.4, 2.4, _waves)
def curves(figure: Figure, data: Data, say: Say) -> None:
    """Columns 6 to 9: the further to the right, the slower."""
    axes = figure.add_subplot(xlabel=say("position i", "位置 i"))
    for column, color in zip(range(6, 10), (TEAL, ORANGE, BLUE, RED), strict=True):
        label = say(f"column {column}", f"第 {column} 列")
        axes.plot(data["waves"][:, column], color=color, label=label)
    axes.legend(frameon=False, loc="center left", bbox_to_anchor=(1, 0.5))


@picture("positions-matrix", 5, 3, _waves)
def encoding(figure: Figure, data: Data, say: Say) -> None:
    """The whole encoding: a position a row, a column a wave."""
    axes = figure.add_subplot(xlabel=say("column", "列"), ylabel=say("position", "位置"))
    image = axes.imshow(data["waves"], aspect="auto", cmap="RdBu", vmin=-1, vmax=1)
    figure.colorbar(image, ax=axes)


def _bits() -> Data:
    numbers = np.arange(8)
    return {"bits": (numbers[:, None] >> np.array([2, 1, 0])) & 1}


@picture("positions-binary", 2.8, 2.8, _bits)
def binary(figure: Figure, data: Data, say: Say) -> None:
    """The numbers 0 to 7 in binary: the last place changes fastest."""
    x, y = say("place", "位"), say("number", "数")
    columns = ["4", "2", "1"]
    matrix(figure, figure.add_subplot(), data["bits"].astype(float), x=x, y=y, columns=columns)


SHIFT, FREQUENCY = 3, 0.25


def _turned() -> Data:
    angles = FREQUENCY * np.array([2.0, 2.0 + SHIFT, 8.0, 8.0 + SHIFT])
    return {"points": np.stack([np.sin(angles), np.cos(angles)], axis=-1)}


@picture("positions-rotation", 3, 3, _turned)
def rotation(figure: Figure, data: Data, say: Say) -> None:
    """Two positions and both three further on: turned by one angle."""
    axes = figure.add_subplot(xlabel="sin(iω)", ylabel="cos(iω)", aspect="equal")
    circle = np.linspace(0, 2 * np.pi, 100)
    axes.plot(np.cos(circle), np.sin(circle), color=GREY, linewidth=0.6)
    names = ("i = 2", "i = 5", "i = 8", "i = 11")
    for (x, y), name, color in zip(
        data["points"], names, (TEAL, TEAL, ORANGE, ORANGE), strict=True
    ):
        arrow(axes, (0, 0), (x, y), color=color)
        axes.text(1.15 * x, 1.15 * y, name, ha="center", va="center", color=color)
    axes.set_xlim(-1.4, 1.4)
    axes.set_ylim(-1.4, 1.4)
