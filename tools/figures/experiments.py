"""Figures of what the scripts of ``examples/experiments`` measure, in the course's languages."""

from typing import Any

import numpy as np
from examples.experiments import architectures as layers
from examples.experiments import gradients, norms
from matplotlib.figure import Figure

from tools.figures.drawing import BLUE, GREY, ORANGE, RED, TEAL, Data, Say, picture

LENGTHS = (64, 128, 256, 512, 1024)
SPREADS = (0, 8, 16, 31)
# The scripts are examples, and carry no types.
_layers: Any = layers
_gradients: Any = gradients
_norms: Any = norms


def _by_distance() -> Data:
    return {name: _gradients.norms(make).numpy() for name, make in _gradients.MODELS.items()}


@picture("sequences-gradients", 4.6, 2.8, _by_distance, is_learned=True)
def by_distance(figure: Figure, data: Data, say: Say) -> None:
    """How much of a gradient arrives, against the distance it has come."""
    axes = figure.add_subplot(xlabel=say("distance", "距离"), ylabel=say("gradient", "梯度的大小"))
    names = {
        "RNN, radius 0.5": say("RNN, radius 0.5", "RNN，谱半径 0.5"),
        "RNN, radius 1.5": say("RNN, radius 1.5", "RNN，谱半径 1.5"),
        "LSTM, forget bias 1": say("LSTM, forget bias 1", "LSTM，遗忘门偏置 1"),
        "self-attention": say("self-attention", "自注意力"),
    }
    for (name, words), color in zip(names.items(), (GREY, RED, BLUE, ORANGE), strict=True):
        axes.semilogy(data[name], color=color, label=words)
    axes.legend(frameon=False, fontsize=8)


def _memory() -> Data:
    return {
        name: np.array([_layers.measure(layer, length)[1] for length in LENGTHS]) / 2**20
        for name, layer in _layers.LAYERS.items()
    }


@picture("self-memory", 4.6, 2.8, _memory, is_learned=True)
def memory(figure: Figure, data: Data, say: Say) -> None:
    """Memory of a training step, against the length."""
    axes = figure.add_subplot(xlabel="n", ylabel="MiB")
    names = (
        say("convolution", "卷积"),
        say("recurrence", "循环"),
        say("self-attention, as written", "自注意力，照公式写"),
        say("self-attention by attend", "自注意力，rg.attend"),
    )
    for sizes, words, color in zip(data.values(), names, (TEAL, BLUE, GREY, ORANGE), strict=True):
        axes.loglog(LENGTHS, sizes, ".-", color=color, label=words)
    axes.set_xticks(LENGTHS, [str(length) for length in LENGTHS])
    axes.legend(frameon=False, fontsize=8)


def _jitter() -> Data:
    each = [_norms.jitter(spread) for spread in SPREADS]
    return {name: np.array([one[name] for one in each]) for name in each[0]}


@picture("transformer-jitter", 4.6, 2.4, _jitter, is_learned=True)
def jitter(figure: Figure, data: Data, say: Say) -> None:
    """How far a sentence's states move with the rest of its batch."""
    axes = figure.add_subplot(ylabel=say("spread", "波动"))
    axes.set_xlabel(say("lengths, 32 ± this many", "句长：32 ± 这么多"))
    names = (
        say("layer norm", "层归一化"),
        say("batch norm", "批量归一化"),
        say("batch norm, padding counted", "批量归一化，算上补齐"),
    )
    for moved, words, color in zip(data.values(), names, (TEAL, BLUE, ORANGE), strict=True):
        axes.plot(SPREADS, moved, ".-", color=color, label=words)
    axes.legend(frameon=False, fontsize=8)
