"""Figures of chapter 10: four kinds of head, and weights beside what leaving a word out does."""

import numpy as np
import torch
from matplotlib.figure import Figure

import regard as rg
from tools.figures.drawing import GREY, ORANGE, TEAL, Data, Say, matrix, picture

PLACES = 12
KINDS = (
    ("previous token", "前一个词"),
    ("first token", "第一个词"),
    ("itself", "自己"),
    ("everything", "一视同仁"),
)


def heads() -> torch.Tensor:
    """Scores (4, N, N) of four heads: previous token, first token, itself, everything."""
    row, column = torch.meshgrid(torch.arange(PLACES), torch.arange(PLACES), indexing="ij")
    patterns = (column == row - 1, column == 0, column == row, torch.zeros_like(row) == 1)
    return torch.stack([6.0 * pattern for pattern in patterns])


def _maps() -> Data:
    blank = torch.zeros(4, PLACES, 1)
    scores, mask = heads(), rg.causal()
    summary = rg.summarize(blank, blank, bias=scores, mask=mask)
    return {
        "weights": rg.weights(blank, blank, bias=scores, mask=mask).numpy(),
        "effective": summary.effective_keys.mean(-1).numpy(),
        "distance": summary.distance.mean(-1).numpy(),
    }


@picture("looking-heads", 7, 2.3, _maps)
def kinds(figure: Figure, data: Data, say: Say) -> None:
    """Four heads by what they do, with two numbers that tell them apart."""
    for head, (axes, words) in enumerate(zip(figure.subplots(1, 4), KINDS, strict=True)):
        matrix(figure, axes, data["weights"][head], x="", y="")
        axes.set_title(say(*words), fontsize=9)
        keys, far = data["effective"][head], data["distance"][head]
        axes.set_xlabel(
            say(f"keys {keys:.1f}, distance {far:.1f}", f"键数 {keys:.1f}，距离 {far:.1f}")
        )


def _effects() -> Data:
    weights = np.array([0.55, 0.15, 0.2, 0.1])
    values = np.array([0.0, 1.4, -1.0, 0.3])
    output = weights @ values
    without = [(output - w * v) / (1 - w) for w, v in zip(weights, values, strict=True)]
    return {"weights": weights, "effects": output - np.array(without)}


@picture("looking-effects", 4.4, 2.2, _effects)
def effects(figure: Figure, data: Data, say: Say) -> None:
    """The word with most weight need not be the one that decides."""
    axes, places = figure.add_subplot(), np.arange(4)
    axes.bar(places - 0.2, data["weights"], 0.4, color=TEAL, label=say("weight", "权重"))
    axes.bar(
        places + 0.2, data["effects"], 0.4, color=ORANGE, label=say("left out", "去掉后的变化")
    )
    axes.axhline(0, color=GREY, linewidth=0.6)
    words = (("the", "的"), ("good", "好"), ("not", "不"), ("very", "很"))
    axes.set_xticks(places, [say(*word) for word in words])
    axes.legend(frameon=False)
