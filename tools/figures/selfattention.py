"""Figures of chapter 6: convolution, recurrence and self-attention over five tokens; their cost."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tools.figures.drawing import (
    BLUE,
    GREY,
    ORANGE,
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


# The layer of section 6.1, whose numbers can be worked out by hand.
WORDS = ("我", "爱", "中国")
COLOURS = (TEAL, ORANGE, BLUE)
EMBEDDINGS = ((1, 0, 1, 0), (0, 1, 0, 1), (1, 1, 0, 0))
W_QUERY = ((2, 0, 2, 0), (0, 0, 1, 1), (0, 0, 0, 2), (0, 1, 2, 2))
W_KEY = ((2, 0, 0, 0), (1, 0, 0, 2), (0, 1, 2, 0), (0, 2, 1, 0))
W_VALUE = ((1, 0, 1, 0), (0, 0, 0, 1), (0, 1, 0, 0), (0, 1, 1, 0))


def _numbers() -> Data:
    embeddings = np.array(EMBEDDINGS, float)
    query, key, value = (embeddings @ np.array(w, float) for w in (W_QUERY, W_KEY, W_VALUE))
    scores = query @ key.T / 2
    weights = np.exp(scores) / np.exp(scores).sum(1, keepdims=True)
    return {
        "embeddings": embeddings,
        "query": query,
        "key": key,
        "value": value,
        "scores": scores,
        "weights": weights,
        "output": weights @ value,
    }


@picture("self-numbers", 7, 3.4, _numbers)
def numbers(figure: Figure, data: Data, say: Say) -> None:
    """Every number of a layer, in tables; a word has its colour in all of them."""
    axes = plain(figure.add_subplot(), 15.6, 7.6)
    names = {
        "embeddings": (say("embedding", "词向量"), 0.9, 4.2),
        "query": (say("query", "查询"), 5.2, 6.4),
        "key": (say("key", "键"), 5.2, 4.2),
        "value": (say("value", "值"), 5.2, 2.0),
        "scores": (say("scores", "分数"), 9.2, 5.3),
        "weights": (say("weights", "权重"), 12.2, 5.3),
        "output": (say("output", "输出"), 11.4, 2.0),
    }
    for name, (title, left, top) in names.items():
        table = data[name]
        is_square = table.shape[1] == len(WORDS)
        axes.text(left - 0.1, top + 0.5, title, fontsize=8, color=GREY)
        for row, (numbers_, color) in enumerate(zip(table, COLOURS, strict=True)):
            if name == "embeddings":
                axes.text(
                    left - 0.3, top - 0.5 * row, WORDS[row], ha="right", va="center", color=color
                )
            for column, number in enumerate(numbers_):
                text = f"{number:.2f}" if name in ("weights", "output") else f"{number:g}"
                x = left + (0.85 if is_square or name == "output" else 0.6) * column
                depth = number if name == "weights" else 0.12
                box(
                    axes,
                    x + 0.25,
                    top - 0.5 * row,
                    text,
                    width=0.8 if is_square or name == "output" else 0.56,
                    height=0.42,
                    color=color,
                    alpha=float(0.15 + 0.5 * depth),
                    ink="black",
                )
    for start, end in (
        ((3.6, 4.0), (4.9, 5.9)), ((3.6, 3.7), (4.9, 3.7)), ((3.6, 3.4), (4.9, 1.6)),
        ((7.8, 5.9), (8.9, 5.0)), ((7.8, 3.9), (8.9, 4.6)), ((11.3, 4.8), (11.9, 4.8)),
        ((7.8, 1.5), (11.0, 1.5)), ((13.2, 3.8), (13.0, 2.6)),
    ):  # fmt: skip
        arrow(axes, start, end)


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


def _operations() -> Data:
    n, d = LENGTHS.astype(float), float(WIDTH)
    return {
        "convolution": 3 * n * d**2,
        "recurrence": n * d**2,
        "self-attention": 2 * n**2 * d,
        "restricted": 2 * np.minimum(n, 2 * 64 + 1) * n * d,
    }


@picture("self-cost", 4.6, 2.8, _operations)
def cost(figure: Figure, data: Data, say: Say) -> None:
    """Operations of a layer against the length: self-attention is cheap up to d / 2."""
    axes = figure.add_subplot(xlabel="n", ylabel=say("multiplications", "乘法次数"))
    labels = {
        "convolution": say("convolution, k = 3", "卷积，k = 3"),
        "recurrence": say("recurrence", "循环"),
        "self-attention": say("self-attention", "自注意力"),
        "restricted": say("restricted, r = 64", "限制，r = 64"),
    }
    for (name, label), color in zip(labels.items(), (TEAL, BLUE, ORANGE, "#ffb74d"), strict=True):
        axes.loglog(LENGTHS, data[name], color=color, label=label)
    axes.axvline(WIDTH / 2, color=GREY, linewidth=0.6, linestyle=":")
    axes.text(WIDTH / 2 * 1.1, data["restricted"][0], "n = d / 2", color=GREY)
    axes.legend(frameon=False, fontsize=8)
