"""Figures of chapter 8: the Transformer, and what a layer norm and a batch norm look at."""

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from torch.nn import functional as F

from regard.training.optimization import peak_rate, rate_at
from regard.training.settings import TrainingConfig
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
    picture,
    plain,
)  # fmt: skip

NORM = ("add, normalise", "相加，归一化")
FEED = ("feed-forward", "前馈网络")


def _stack(axes: Axes, x: float, parts: list[tuple[str, str]], say: Say) -> list[float]:
    """Draw sublayers one above the other, each with its residual; where each is."""
    heights = [2.2 + 1.5 * place for place in range(len(parts))]
    for y, words in zip(heights, parts, strict=True):
        color = TEAL if words == FEED else ORANGE
        box(axes, x, y, say(*words), width=2.4, color=color, ink="white")
        box(axes, x, y + 0.7, say(*NORM), width=2.4)
        arrow(axes, (x, y - 0.52), (x, y - 0.28))
        arrow(axes, (x, y + 0.28), (x, y + 0.42), width=0.7)
        side = x - 1.5 if x < 3 else x + 1.5
        axes.plot([x, side, side], [y - 0.48, y - 0.48, y + 0.7], color=GREY, linewidth=0.8)
        arrow(axes, (side, y + 0.7), (x - 1.22 if x < 3 else x + 1.22, y + 0.7), width=0.8)
    return heights


@picture("transformer-architecture", 5, 5.2)
def architecture(figure: Figure, data: Data, say: Say) -> None:
    """Encoder on the left, decoder on the right."""
    axes = plain(figure.add_subplot(), 8, 8.2)
    left, right = 2.0, 5.9
    own = ("self-attention", "自注意力")
    encoder = _stack(axes, left, [own, FEED], say)
    masked = ("masked self-attention", "掩蔽自注意力")
    decoder = _stack(
        axes, right, [masked, ("attention to the source", "编码器–解码器注意力"), FEED], say
    )
    for x, words in ((left, ("source", "源句")), (right, ("target so far", "已写出的译文"))):
        box(axes, x, 0.4, say(*words), width=1.9, color=BLUE, ink="white")
        box(axes, x, 1.2, say("embedding + position", "嵌入 + 位置"), width=2.4)
        arrow(axes, (x, 0.68), (x, 0.92))
    top = encoder[-1] + 0.98
    axes.plot([left, left, 3.9, 3.9], [top, top + 0.35, top + 0.35, decoder[1]], color=ORANGE)
    arrow(axes, (3.9, decoder[1]), (right - 1.22, decoder[1]), color=ORANGE)
    axes.text(left - 0.9, top + 0.45, say("N layers", "N 层"), color=GREY)
    box(axes, right, 7.6, say("linear, softmax", "线性，softmax"), width=2.4, color=PALE)
    arrow(axes, (right, decoder[-1] + 0.98), (right, 7.32))


@picture("transformer-cross", 4.4, 2.6)
def cross(figure: Figure, data: Data, say: Say) -> None:
    """The decoder asks, the encoder's output answers."""
    axes = plain(figure.add_subplot(), 7.4, 4)
    xs = (0.7, 1.7, 2.7)
    for x, word in zip(xs, ("我", "爱", "中国"), strict=True):
        box(axes, x, 0.7, word, width=0.8, color=TEAL, ink="white")
    axes.text(1.7, 0.15, say("output of the encoder", "编码器的输出"), ha="center", color=GREY)
    box(axes, 5.9, 0.7, "love", width=0.9, color=BLUE, ink="white")
    axes.text(5.9, 0.15, say("state of the decoder", "解码器的状态"), ha="center", color=GREY)
    box(axes, 3.9, 2.5, say("attention", "注意力"), width=1.6, color=ORANGE, ink="white")
    for x in xs:
        arrow(axes, (x, 0.98), (3.3, 2.2), color=TEAL)
    arrow(axes, (5.8, 0.98), (4.5, 2.2), color=BLUE)
    axes.text(5.5, 1.7, say("query", "查询"), color=BLUE)
    axes.text(0.7, 1.7, say("keys, values", "键和值"), color=TEAL)
    arrow(axes, (3.9, 2.78), (3.9, 3.3), color=ORANGE)
    axes.text(
        3.9,
        3.5,
        say("a weighted mean of what the encoder says", "编码器输出的加权平均"),
        ha="center",
    )


@picture("transformer-recurrence", 5.6, 2.4)
def recurrence(figure: Figure, data: Data, say: Say) -> None:
    """Sources of the past: the step before, or attention to all positions."""
    left, right = (plain(axes, 5, 3.6) for axes in figure.subplots(1, 2))
    left.set_title(say("recurrence", "循环网络"), fontsize=9)
    right.set_title(say("Transformer", "Transformer"), fontsize=9)
    mlp = say("network", "网络")
    box(
        right, 2.5, 1.6, say("attention to all", "看所有位置"), width=4.4, color=ORANGE, ink="white"
    )
    for x in (0.8, 2.5, 4.2):
        box(left, x, 1.9, mlp, width=1.1, color=TEAL, ink="white")
        box(right, x, 2.6, mlp, width=1.1, color=TEAL, ink="white")
        for axes, y in ((left, 1.9), (right, 2.6)):
            axes.plot(x, 0.4, "o", color=GREY)
            axes.plot(x, 3.4, "o", color=BLUE)
            arrow(axes, (x, y + 0.28), (x, 3.25))
        arrow(left, (x, 0.55), (x, 1.62))
        arrow(right, (x, 0.55), (x, 1.32))
        arrow(right, (x, 1.88), (x, 2.32))
    for x in (1.38, 3.08):
        arrow(left, (x, 1.9), (x + 0.54, 1.9), color=ORANGE, width=1.6)


@picture("transformer-norms", 5.6, 2.8)
def norms(figure: Figure, data: Data, say: Say) -> None:
    """Sentences of unlike lengths, by position and feature: cells that share mean and variance."""
    shape = (4, 5, 4)  # sentences, positions, features
    lengths = np.array([5, 2, 4, 3])  # what is missing is padding
    is_real = np.broadcast_to((np.arange(5) < lengths[:, None])[:, :, None], shape)
    one_position, one_feature = np.zeros((2, *shape), dtype=bool)
    one_position[3, 0, :] = True
    one_feature[:, :, 3] = True
    names = (("layer norm", "层归一化"), ("batch norm", "批量归一化"))
    for place, (chosen, words) in enumerate(zip((one_position, one_feature), names, strict=True)):
        axes = figure.add_subplot(1, 2, place + 1, projection="3d")
        colors = np.where(chosen, ORANGE, "#eceff1")
        axes.voxels(is_real, facecolors=colors, edgecolor=GREY, linewidth=0.3)
        axes.set(xticks=[], yticks=[], zticks=[], title=say(*words))
        axes.set_xlabel(say("sentence", "句子"), labelpad=-12)
        axes.set_ylabel(say("position", "位置"), labelpad=-12)
        axes.set_zlabel(say("feature", "特征"), labelpad=-12)
        axes.set_box_aspect(None, zoom=0.85)


def _saturated() -> Data:
    scales = torch.linspace(0, 20, 60)
    scores = torch.tensor([1.0, 0.5, 0.0, -0.5])
    gradients = []
    for scale in scales:
        weights = F.softmax(scores * scale, dim=0)
        gradients.append((torch.diag(weights) - torch.outer(weights, weights)).norm())
    return {"scale": scales.numpy(), "gradient": torch.stack(gradients).numpy()}


@picture("transformer-saturation", 3.6, 2.3, _saturated)
def saturation(figure: Figure, data: Data, say: Say) -> None:
    """The gradient of a softmax as its scores grow."""
    axes = figure.add_subplot(xlabel=say("scale of the scores", "分数的倍数"))
    axes.set_ylabel(say("gradient of the softmax", "softmax 的梯度"))
    axes.plot(data["scale"], data["gradient"], color=TEAL)


def _rates() -> Data:
    config = TrainingConfig(updates=20_000, warmup=4000)
    steps = np.arange(1, 20_001, 50)
    peak = peak_rate(config, 512)
    rates = [rate_at(int(step), step / 20_000, peak=peak, config=config) for step in steps]
    return {"step": steps, "rate": np.array(rates)}


@picture("transformer-rate", 3.8, 2.3, _rates)
def rate(figure: Figure, data: Data, say: Say) -> None:
    """The learning rate of the paper's base size against the step."""
    axes = figure.add_subplot(xlabel=say("step", "步数"), ylabel=say("learning rate", "学习率"))
    axes.plot(data["step"], data["rate"], color=TEAL)
