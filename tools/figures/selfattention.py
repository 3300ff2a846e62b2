"""Figures of chapter 6: convolution, recurrence and self-attention over five tokens; their cost."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tools.figures.drawing import BLUE, GREY, ORANGE, TEAL, Data, Say, arrow, picture, plain

COUNT = 5
LENGTHS = 2 ** np.arange(4, 16)
WIDTH = 512


def _row(axes: Axes, y: float, color: str) -> None:
    axes.plot(range(COUNT), [y] * COUNT, "o", markersize=11, color=color, zorder=3)


def _link(axes: Axes, start: tuple[int, float], end: tuple[int, float], color: str = GREY) -> None:
    arrow(axes, (start[0], start[1] + 0.17), (end[0], end[1] - 0.17), color=color, width=0.8)


@picture("self-architectures", 7, 2.3)
def architectures(figure: Figure, data: Data, say: Say) -> None:
    """How far the first token is from the last output."""
    convolution, recurrence, attention = (
        plain(axes, COUNT - 0.2, 2.9) for axes in figure.subplots(1, 3)
    )
    for axes in (convolution, recurrence, attention):
        axes.set_xlim(-0.6, COUNT - 0.4)
        _row(axes, 0.3, GREY)
    for layer in (0, 1):
        _row(convolution, 1.3 + layer, TEAL)
        for end in range(COUNT):
            for start in range(max(0, end - 1), min(COUNT, end + 2)):
                _link(convolution, (start, 0.3 + layer), (end, 1.3 + layer))
    _row(recurrence, 1.8, BLUE)
    _row(attention, 1.8, ORANGE)
    for place in range(COUNT):
        _link(recurrence, (place, 0.3), (place, 1.8))
        if place:
            arrow(recurrence, (place - 0.83, 1.8), (place - 0.17, 1.8), color=BLUE)
        for start in range(COUNT):
            _link(attention, (start, 0.3), (place, 1.8))
    names = [("convolution", "卷积"), ("recurrence", "循环"), ("self-attention", "自注意力")]
    for axes, words in zip((convolution, recurrence, attention), names, strict=True):
        axes.set_title(say(*words), fontsize=9)


def _operations() -> Data:
    n, d = LENGTHS.astype(float), float(WIDTH)
    return {
        "convolution": 3 * n * d**2,
        "recurrence": n * d**2,
        "self-attention": n**2 * d,
        "restricted": np.minimum(n, 64) * n * d,
    }


@picture("self-cost", 4.6, 2.8, _operations)
def cost(figure: Figure, data: Data, say: Say) -> None:
    """Operations of a layer against the length: self-attention is cheap up to n = d."""
    axes = figure.add_subplot(xlabel="n", ylabel=say("multiplications", "乘法次数"))
    labels = {
        "convolution": say("convolution, k = 3", "卷积，k = 3"),
        "recurrence": say("recurrence", "循环"),
        "self-attention": say("self-attention", "自注意力"),
        "restricted": say("restricted, r = 64", "限制，r = 64"),
    }
    for (name, label), color in zip(labels.items(), (TEAL, BLUE, ORANGE, "#ffb74d"), strict=True):
        axes.loglog(LENGTHS, data[name], color=color, label=label)
    axes.axvline(WIDTH, color=GREY, linewidth=0.6, linestyle=":")
    axes.text(WIDTH * 1.1, data["restricted"][0], "n = d", color=GREY)
    axes.legend(frameon=False, fontsize=8)
