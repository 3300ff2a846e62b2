"""Figures of chapter 6: convolution, recurrence and self-attention over five tokens; their cost."""

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

import regard as rg
from tools.figures.drawing import (
    BLUE,
    GREY,
    ORANGE,
    RED,
    TEAL,
    Data,
    Say,
    arrow,
    box,
    picture,
    plain,
)  # fmt: skip

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


@picture("self-projections", 6.2, 2.5)
def projections(figure: Figure, data: Data, say: Say) -> None:
    """Queries, keys and values are three linear maps of the same words."""
    axes = plain(figure.add_subplot(), 9.4, 3.6)
    box(axes, 0.7, 1.8, "X", width=0.8, height=1.2)
    axes.text(0.7, 0.9, say("a word a row", "一行一个词"), ha="center", color=GREY, fontsize=7)
    for y, name, color in ((3.1, "Q", BLUE), (1.8, "K", BLUE), (0.5, "V", TEAL)):
        box(axes, 2.5, y, f"$W^{name}$", width=0.8)
        box(axes, 4.2, y, name, width=0.8, color=color, ink="white")
        arrow(axes, (1.12, 1.8), (2.08, y))
        arrow(axes, (2.92, y), (3.78, y))
    box(axes, 6.2, 2.45, "softmax(QKᵀ/√d)", width=1.9, color="#fff3e0")
    for y in (3.1, 1.8):
        arrow(axes, (4.62, y), (5.22, 2.45))
    box(axes, 8.5, 1.5, "Z", width=0.8, height=1.2, color=ORANGE, ink="white")
    arrow(axes, (7.17, 2.45), (8.08, 1.75))
    arrow(axes, (4.62, 0.5), (8.08, 1.25), color=TEAL)


# Words, each with three numbers by hand: how much of an animal, of food, of an action is in it.
_WORDS = (
    ("the", "小", (0, 0, 0)),
    ("cat", "猫", (3, 0, 0)),
    ("drank", "喝", (1, 1, 2)),
    ("milk", "奶", (0, 3, 0)),
    ("it", "它", (3, 0, 0)),
    ("purrs", "打呼", (2, 0, 2)),
)


def _by_word() -> Data:
    words = torch.tensor([numbers for *_, numbers in _WORDS], dtype=torch.float)
    return {"weights": rg.weights(words, words, mask=rg.causal()).numpy()}


@picture("self-words", 4.6, 2.4, _by_word)
def by_word(figure: Figure, data: Data, say: Say) -> None:
    """Each word in turn, in red, and how much it looks at those before it."""
    axes = plain(figure.add_subplot(), 6.6, 3.6)
    words = [say(*each) for *each, _ in _WORDS]
    for row, weights in enumerate(data["weights"]):
        y = 3.2 - 0.58 * row
        for place, word in enumerate(words[: row + 1]):
            corner = (0.1 + 1.08 * place, y - 0.22)
            shade = BLUE if place < row else "white"
            alpha = min(1.0, 1.6 * float(weights[place])) if place < row else 1.0
            axes.add_patch(Rectangle(corner, 1.0, 0.44, facecolor=shade, alpha=alpha))
            ink = RED if place == row else "white" if alpha > 0.5 else "black"
            axes.text(0.6 + 1.08 * place, y, word, ha="center", va="center", color=ink)


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
