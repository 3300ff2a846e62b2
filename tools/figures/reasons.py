"""Figures of weights beside reasons, drawn from the record of a fine-tuned classifier."""

import json
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from tools.figures.drawing import BLUE, GREY, ORANGE, RED, TEAL, Data, Say, picture

RECORD = Path(__file__).parents[2] / "benchmarks" / "records" / "reasons.json"
NAMES = {
    "attention": ("attention of the query", "查询的注意力"),
    "attention of the last layer": ("and of the last layer", "乘上最后一层的注意力"),
    "rollout": ("and rollout", "乘上 rollout"),
    "attention_gradient": ("attention × gradient", "注意力 × 梯度"),
    "gradient_times_input": ("gradient × input", "梯度 × 输入"),
    "integrated_gradients": ("integrated gradients", "积分梯度"),
    "leave_one_out": ("leave one out", "逐个去掉"),
    "random": ("random order", "随机顺序"),
}
DRAWN = {
    "random": (GREY, ":"),
    "attention": (ORANGE, "-"),
    "rollout": ("#ffb74d", "-"),
    "attention_gradient": (RED, "-"),
    "integrated_gradients": (BLUE, "-"),
    "leave_one_out": (TEAL, "-"),
}


@cache
def runs() -> list[dict[str, Any]]:
    """Findings of the benchmark with each seed: ``python -m benchmarks.reasons``."""
    details = json.loads(RECORD.read_text("utf-8"))["details"]
    return [each["part"] for each in details.values()]


def _curves() -> Data:
    return {
        f"{way} {name}": np.mean([run[way][name] for run in runs()], axis=0)
        for way in ("deleted", "kept")
        for name in DRAWN
    }


@picture("reasons-curves", 7, 3.3, _curves)
def curves(figure: Figure, data: Data, say: Say) -> None:
    """The label's probability as the words that count most are masked, or alone are kept."""
    titles = {
        "deleted": ("masked, the first first", "从最重要的开始遮住"),
        "kept": ("alone kept", "只保留最重要的"),
    }
    for axes, (way, words) in zip(figure.subplots(1, 2, sharey=True), titles.items(), strict=True):
        for name, (color, line) in DRAWN.items():
            shares = 100 * np.array(runs()[0]["shares"])
            axes.plot(shares, data[f"{way} {name}"], line, color=color, label=say(*NAMES[name]))
        axes.set_title(say(*words), fontsize=9)
        axes.set_xlabel(say("% of the words", "词的百分比"))
        if way == "deleted":
            axes.set_ylabel(say("probability of the label", "标签的概率"))
            figure.legend(loc="outside lower center", ncols=3, frameon=False)


def _correlations() -> Data:
    names = [name for name in NAMES if name != "random"]
    table = np.eye(len(names))
    for run in runs():
        for row, one in enumerate(names):
            for column, other in enumerate(names[row + 1 :], row + 1):
                mean = run["correlation"][f"{one} & {other}"]["mean"] / len(runs())
                table[row, column] += mean
                table[column, row] += mean
    return {"correlation": table}


@picture("reasons-correlation", 4.9, 3.6, _correlations)
def correlations(figure: Figure, data: Data, say: Say) -> None:
    """Rank correlations of the methods, two by two."""
    axes, table = figure.add_subplot(), data["correlation"]
    names = [say(*words) for name, words in NAMES.items() if name != "random"]
    axes.imshow(table, vmin=0, vmax=1)
    axes.set_xticks(range(len(names)), names, rotation=35, ha="right", fontsize=7)
    axes.set_yticks(range(len(names)), names, fontsize=7)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    for place, value in np.ndenumerate(table):
        ink = "white" if value > 0.6 else "black"
        axes.text(
            place[1], place[0], f"{value:.2f}", ha="center", va="center", color=ink, fontsize=7
        )


def example() -> dict[str, Any]:
    """The first of the benchmark's own sentences, as the first run read it."""
    found: dict[str, Any] = runs()[0]["examples"][0]
    return found


def _effects() -> Data:
    counts = example()["counts"]
    return {"weights": np.array(counts["attention"]), "effects": np.array(counts["leave_one_out"])}


@picture("looking-effects", 5.4, 2.7, _effects)
def effects(figure: Figure, data: Data, say: Say) -> None:
    """Weights of a classifier's query, and how the label's score falls without each word."""
    panels = (
        ("weights", TEAL, say("weight", "权重")),
        ("effects", ORANGE, say("change of the score\nwhen masked", "遮住后\n分数的变化")),
    )
    places = np.arange(len(data["weights"]))
    for axes, (name, color, label) in zip(figure.subplots(2, 1, sharex=True), panels, strict=True):
        axes.bar(places, data[name], 0.7, color=color)
        axes.axhline(0, color=GREY, linewidth=0.6)
        axes.set_ylabel(label, fontsize=7)
        axes.tick_params(axis="x", length=0)
    axes.set_xticks(places, example()["pieces"], rotation=30, ha="right")
