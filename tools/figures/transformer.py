"""Figures of chapter 8: the Transformer, and what a layer norm and a batch norm look at."""

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from torch.nn import functional as F

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


@picture("transformer-norms", 5.6, 2.8)
def norms(figure: Figure, data: Data, say: Say) -> None:
    """A cube of batch, position and feature: the cells that share a mean and a variance."""
    shape = (4, 5, 4)  # sentences, positions, features
    one_position, one_feature = np.zeros((2, *shape), dtype=bool)
    one_position[3, 0, :] = True
    one_feature[:, :, 3] = True
    names = (("layer norm", "层归一化"), ("batch norm", "批量归一化"))
    for place, (chosen, words) in enumerate(zip((one_position, one_feature), names, strict=True)):
        axes = figure.add_subplot(1, 2, place + 1, projection="3d")
        colors = np.where(chosen, ORANGE, "#eceff1")
        axes.voxels(np.ones(shape, dtype=bool), facecolors=colors, edgecolor=GREY, linewidth=0.3)
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
