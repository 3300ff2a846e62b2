"""Figures of chapter 3: a score, a softmax, a weighted sum; masks; what scaling is for."""

import numpy as np
import torch
from matplotlib.figure import Figure

import regard as rg
from tools.figures.drawing import (
    BLUE,
    GREY,
    ORANGE,
    PALE,
    TEAL,
    Data,
    Say,
    arrow,
    box,
    matrix,
    picture,
    plain,
)  # fmt: skip


@picture("scores-diagram", 6.4, 2.6)
def diagram(figure: Figure, data: Data, say: Say) -> None:
    """Keys and a query are scored, scores become weights, weights mix values."""
    axes = plain(figure.add_subplot(), 9, 3.6)
    box(axes, 0.8, 0.5, say("query q", "查询 q"), width=1.2, color=BLUE, ink="white")
    for place in range(3):
        y = 3.0 - 0.8 * place
        name = "₁₂ₘ"[place]
        box(axes, 0.8, y, say(f"key k{name}", f"键 k{name}"), width=1.2)
        box(axes, 2.9, y, f"a(q, k{name})", width=1.2, color="#e8eaf6")
        box(axes, 5.9, y, f"α{name}", width=0.6, color="#fff3e0")
        box(axes, 7.3, y, say(f"value v{name}", f"值 v{name}"), width=1.2, color=TEAL, ink="white")
        arrow(axes, (1.45, y), (2.25, y))
        arrow(axes, (1.45, 0.55), (2.25, y - 0.12), color=BLUE, width=0.7)
        arrow(axes, (3.55, y), (4.05, y))
        arrow(axes, (5.05, y), (5.55, y))
        arrow(axes, (6.25, y), (6.65, y), color=ORANGE)
        arrow(axes, (7.95, y), (8.4, 2.25), color=ORANGE)
    box(axes, 4.55, 2.2, "softmax", width=0.9, height=2.2, color=PALE)
    box(axes, 8.65, 2.2, "Σ", width=0.4, color=ORANGE, ink="white")
    for x, words in (
        (2.9, ("scores", "分数")),
        (5.9, ("weights", "权重")),
        (8.6, ("output", "输出")),
    ):
        axes.text(x, 0.75, say(*words), ha="center", color=GREY)


@picture("scores-scaled-dot", 3.2, 3.4)
def scaled_dot(figure: Figure, data: Data, say: Say) -> None:
    """The scaled dot product step by step: products, scale, mask, softmax, products with values."""
    axes = plain(figure.add_subplot(), 5, 5.4)
    steps = (
        (say("product Q Kᵀ", "乘积 Q Kᵀ"), PALE),
        (say("divide by √d", "除以 √d"), PALE),
        (say("mask", "掩码"), "#fff3e0"),
        ("softmax", PALE),
        (say("product with V", "与 V 相乘"), ORANGE),
    )
    for place, (words, color) in enumerate(steps):
        ink = "white" if color == ORANGE else "black"
        box(axes, 1.9, 1.3 + 0.85 * place, words, width=2, color=color, ink=ink)
        if place:
            arrow(axes, (1.9, 0.73 + 0.85 * place), (1.9, 1.02 + 0.85 * place))
    for x, name in ((1.3, "Q"), (2.5, "K")):
        box(axes, x, 0.35, name, width=0.7, color=BLUE, ink="white")
        arrow(axes, (x, 0.63), (x, 1.02))
    box(axes, 4.1, 0.35, "V", width=0.7, color=TEAL, ink="white")
    axes.plot([4.1, 4.1], [0.63, 4.7], color=TEAL, linewidth=1)
    arrow(axes, (4.1, 4.7), (2.93, 4.7), color=TEAL)
    arrow(axes, (1.9, 4.98), (1.9, 5.35))


def _masked() -> Data:
    random = torch.Generator().manual_seed(0)
    scores = torch.randn(2, 2, 4, generator=random)
    return {"weights": rg.masked_softmax(scores, rg.lengths([2, 3])).numpy()}


@picture("scores-masked", 6, 1.9, _masked)
def masked(figure: Figure, data: Data, say: Say) -> None:
    """Softmax of rows of which two or three places count."""
    for axes, weights, length in zip(figure.subplots(1, 2), data["weights"], (2, 3), strict=True):
        matrix(figure, axes, weights, x=say("key", "键"), y=say("query", "查询"), numbers=True)
        axes.set_title(say(f"valid length {length}", f"有效长度 {length}"), fontsize=9)
        axes.set_xticks(range(4))
        axes.set_yticks(range(2))


def _two_scores() -> Data:
    random = torch.Generator().manual_seed(1)
    queries, keys = torch.randn(6, 16, generator=random), torch.randn(10, 16, generator=random)
    additive = rg.Additive(torch.randn(16, generator=random))
    mask = rg.lengths(8)
    return {
        "additive": rg.weights(queries, keys, score=additive, mask=mask).numpy(),
        "scaled dot": rg.weights(queries, keys, mask=mask).numpy(),
    }


@picture("scores-two", 6.4, 2.4, _two_scores)
def two_scores(figure: Figure, data: Data, say: Say) -> None:
    """The weights that the additive and the scaled dot score give, two keys hidden."""
    names = (say("additive", "加性"), say("scaled dot product", "缩放点积"))
    for axes, weights, name in zip(figure.subplots(1, 2), data.values(), names, strict=True):
        matrix(
            figure,
            axes,
            weights,
            x=say("key", "键"),
            y=say("query", "查询"),
            bar=say("weight", "权重"),
        )
        axes.set_title(name, fontsize=9)


WIDTHS = (1, 4, 16, 64, 256, 1024)


def _by_width() -> Data:
    columns = []
    for width in WIDTHS:
        random = torch.Generator().manual_seed(0)
        queries = torch.randn(512, width, generator=random)
        keys = torch.randn(32, width, generator=random)
        entropies = [
            torch.special.entr(rg.weights(queries, keys, score=score)).sum(-1).mean().item()
            for score in (rg.Dot(), rg.ScaledDot())
        ]
        columns.append([(queries @ keys.T).var().item(), *entropies])
    variance, dot, scaled = np.array(columns).T
    return {"variance": variance, "dot": dot, "scaled": scaled}


@picture("scores-width", 6.4, 2.4, _by_width)
def by_width(figure: Figure, data: Data, say: Say) -> None:
    """Variance of a dot product, and entropy of its softmax, against the width of vectors."""
    left, right = figure.subplots(1, 2)
    left.loglog(WIDTHS, data["variance"], ".-", color=TEAL)
    left.set_ylabel(say("variance of q·k", "q·k 的方差"))
    right.semilogx(WIDTHS, data["dot"], ".-", color=GREY, label=say("dot", "点积"))
    right.semilogx(WIDTHS, data["scaled"], ".-", color=ORANGE, label=say("scaled", "缩放点积"))
    right.axhline(np.log(32), color=BLUE, linewidth=0.8, linestyle=":", label="ln 32")
    right.set_ylabel(say("entropy (nats)", "熵（奈特）"))
    right.legend(frameon=False)
    for axes in (left, right):
        axes.set_xlabel("d")
