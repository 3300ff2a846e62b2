"""Figures of chapter 1: what is looked at without and with a will; queries, keys and values."""

import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Circle, Polygon, Rectangle

import regard as rg
from tools.figures.drawing import (
    BLUE,
    GREY,
    ORANGE,
    PALE,
    RED,
    TEAL,
    Data,
    Say,
    arrow,
    box,
    picture,
    plain,
)  # fmt: skip

# How much a thing stands out, and how much there is to read in it.
THINGS = (
    ("newspaper", "报纸", 0.1, 0.6),
    ("paper", "论文", 0.1, 0.5),
    ("coffee", "咖啡", 1.0, 0.0),
    ("notebook", "笔记本", 0.1, 0.4),
    ("book", "书", 0.1, 1.0),
)


def _weights(*query: float) -> Data:
    keys = torch.tensor([thing[2:] for thing in THINGS])
    return {"weights": rg.weights(torch.tensor([query]), keys, score=rg.Dot())[0].numpy()}


def _draw_cup(axes: Axes, x: float) -> None:
    corners = [(x - 0.28, 1.6), (x + 0.22, 1.6), (x + 0.14, 0.95), (x - 0.2, 0.95)]
    axes.add_patch(Polygon(corners, facecolor=RED, edgecolor=RED))
    axes.add_patch(Circle((x + 0.26, 1.33), 0.13, fill=False, edgecolor=RED, linewidth=2.5))


def _draw_pages(axes: Axes, x: float, name: str) -> None:
    wide, high = {"newspaper": (0.8, 0.62), "book": (0.52, 0.72)}.get(name, (0.5, 0.66))
    left, low = x - wide / 2, 1.3 - high / 2
    axes.add_patch(Rectangle((left, low), wide, high, facecolor="white", edgecolor="black"))
    if name == "book":
        axes.add_patch(Rectangle((left, low), 0.09, high, facecolor="black"))
    for row in range(4):
        start = left + (0.16 if name == "book" else 0.08)
        axes.plot([start, x + wide / 2 - 0.08], [low + 0.12 + 0.13 * row] * 2, color=GREY, lw=1)


def _desk(figure: Figure, data: Data, say: Say, will: str) -> None:
    axes = plain(figure.add_subplot(), 7.6, 2.5)
    for place, ((*names, stands_out, _), weight) in enumerate(
        zip(THINGS, data["weights"], strict=True)
    ):
        x = 0.8 + 1.5 * place
        axes.add_patch(Circle((x, 1.3), 0.7, color=ORANGE, alpha=0.5 * float(weight)))
        _draw_cup(axes, x) if stands_out == 1.0 else _draw_pages(axes, x, names[0])
        axes.text(x, 0.48, say(*names), ha="center", fontsize=8)
        axes.text(x, 0.1, f"{weight:.2f}", ha="center", color=ORANGE, fontweight="bold")
    axes.text(3.8, 2.3, will, ha="center", color=BLUE)


@picture("cues-involuntary", 6, 2, lambda: _weights(8.0, 0.0))
def involuntary(figure: Figure, data: Data, say: Say) -> None:
    """The red cup, which nobody meant to look at."""
    _desk(figure, data, say, say("no will: what stands out", "没有意愿：谁显眼看谁"))


@picture("cues-voluntary", 6, 2, lambda: _weights(0.0, 8.0))
def voluntary(figure: Figure, data: Data, say: Say) -> None:
    """The book, which one means to read."""
    _desk(figure, data, say, say("“I want to read”", "“我想看书”"))


@picture("query-key-value", 6, 3, lambda: _weights(3.0, 3.0))
def query_key_value(figure: Figure, data: Data, say: Say) -> None:
    """A query meets keys; the better they match, the more of the value is taken."""
    axes = plain(figure.add_subplot(), 7.8, 4)
    box(axes, 0.9, 0.5, say("query", "查询"), color=BLUE, ink="white")
    axes.text(0.9, 0.05, say("the will", "自主提示"), ha="center", color=GREY)
    for place, ((*names, _, _), weight) in enumerate(zip(THINGS, data["weights"], strict=True)):
        x = 2.4 + 1.05 * place
        box(axes, x, 1.5, say("key", "键"), width=0.8, color=PALE)
        box(axes, x, 3.0, say(*names), width=0.95, color=TEAL, ink="white")
        arrow(axes, (1.5, 0.6), (x, 1.2), color=BLUE, width=0.8)
        arrow(axes, (x, 1.8), (x, 2.7), color=ORANGE, width=1 + 6 * float(weight), style="-")
        axes.text(x + 0.08, 2.2, f"{weight:.2f}", color=ORANGE)
    axes.text(
        0.9, 1.5, say("what stands out:\nthe keys", "非自主提示：\n键"), ha="center", va="center"
    )
    axes.text(0.9, 2.2, say("weights", "权重"), ha="center", color=ORANGE)
    axes.text(
        0.9, 3.0, say("what is there:\nthe values", "感官输入：\n值"), ha="center", va="center"
    )
    axes.text(4.5, 3.75, say("output: Σ weight · value", "输出：Σ 权重 · 值"), ha="center")
