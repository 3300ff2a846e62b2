"""Figures of chapter 2: kernel regression of 50 points, from the mean to a learned width."""

from functools import cache, partial

import numpy as np
import torch
from matplotlib.figure import Figure
from torch import Tensor

import regard as rg
from tools.figures.drawing import BLUE, GREY, ORANGE, TEAL, Data, Say, matrix, picture


def curve(x: Tensor) -> Tensor:
    """The truth that is to be guessed from noisy points."""
    return 2 * x.sin() + x**0.8


def points(count: int, seed: int = 0) -> tuple[Tensor, Tensor]:
    """Sorted inputs between 0 and 5, and what was measured there: (count, 1) each."""
    random = torch.Generator().manual_seed(seed)
    x = torch.rand(count, generator=random).mul(5).sort().values[:, None]
    return x, curve(x) + 0.5 * torch.randn(count, 1, generator=random)


ASKED = torch.arange(0, 5, 0.1)[:, None]


@cache
def learned() -> tuple[float, list[float]]:
    """The width that twenty steps of gradient descent find, and the loss before each."""
    x, y = points(50)
    w, losses = torch.tensor(1.0, requires_grad=True), []
    others = ~torch.eye(50, dtype=torch.bool)
    optimizer = torch.optim.SGD([w], lr=0.05)
    for _ in range(20):
        guess = rg.attend(x, x, y, score=rg.Gaussian(1 / w), mask=others)
        loss = (guess - y).square().sum()
        losses.append(loss.item())
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
    return w.item(), losses


def _fit(width: float | None) -> Data:
    x, y = points(50)
    width = 1 / learned()[0] if width is None else width
    fit = rg.attend(ASKED, x, y, score=rg.Gaussian(width)) if width else y.mean().expand(50, 1)
    weights = rg.weights(ASKED, x, score=rg.Gaussian(width)) if width else torch.ones(50, 50) / 50
    lines = {"x": x, "y": y, "fit": fit}
    return {
        **{name: line[:, 0].numpy() for name, line in lines.items()},
        "weights": weights.numpy(),
    }


def _draw(figure: Figure, data: Data, say: Say, label: tuple[str, str]) -> None:
    left, right = figure.subplots(1, 2)
    left.plot(ASKED[:, 0], curve(ASKED)[:, 0], color=GREY, label=say("truth", "真实曲线"))
    left.plot(ASKED[:, 0], data["fit"], color=ORANGE, label=say(*label))
    left.plot(
        data["x"], data["y"], "o", color=BLUE, markersize=3, alpha=0.6, label=say("points", "样本")
    )
    left.set_xlabel("x")
    left.legend(frameon=False)
    x, y = (
        say("keys: points, sorted", "键：样本（已排序）"),
        say("queries: test inputs", "查询：测试输入"),
    )
    matrix(figure, right, data["weights"], x=x, y=y, bar=say("weight", "权重"))


picture("pooling-average", 7, 2.8, partial(_fit, 0.0))(partial(_draw, label=("mean", "平均汇聚")))
picture("pooling-kernel", 7, 2.8, partial(_fit, 1.0))(
    partial(_draw, label=("kernel, width 1", "高斯核，宽度 1"))
)
picture("pooling-learned", 7, 2.8, partial(_fit, None))(
    partial(_draw, label=("learned width", "学到的宽度"))
)


@picture("pooling-loss", 3.5, 2.2, lambda: {"loss": np.array(learned()[1])})
def loss(figure: Figure, data: Data, say: Say) -> None:
    """The sum of squared errors while the width is learned."""
    axes = figure.add_subplot(xlabel=say("step", "步数"), ylabel=say("loss", "损失"))
    axes.plot(range(1, 1 + len(data["loss"])), data["loss"], ".-", color=TEAL)


RATES = (0.005, 0.05, 0.5)


def left_out(w: float) -> tuple[float, float]:
    """The loss when each of fifty points is answered by the others, and its slope."""
    x, y = points(50)
    inverse = torch.tensor(w, requires_grad=True)
    others = ~torch.eye(50, dtype=torch.bool)
    fit = rg.attend(x, x, y, score=rg.Gaussian(1 / inverse), mask=others)
    loss = (fit - y).square().sum()
    (slope,) = torch.autograd.grad(loss, inverse)
    return loss.item(), slope.item()


def _descent() -> Data:
    data = {"w": np.geomspace(0.25, 40, 160)}
    data["loss"] = np.array([left_out(w)[0] for w in data["w"]])
    for rate in RATES:
        path = [1.0]
        for _ in range(20):
            path.append(path[-1] - rate * left_out(path[-1])[1])
        data[f"path {rate}"] = np.array(path)
        data[f"losses {rate}"] = np.array([left_out(w)[0] for w in path])
    return data


@picture("pooling-descent", 5, 2.8, _descent)
def descent(figure: Figure, data: Data, say: Say) -> None:
    """The leave-one-out loss over w, and three paths of gradient descent from 1."""
    axes = figure.add_subplot(xlabel=say("w, one over the width", "w，宽度的倒数"))
    axes.set_ylabel(say("loss", "损失"))
    axes.semilogx(data["w"], data["loss"], color=GREY)
    for rate, color, mark in zip(RATES, (BLUE, TEAL, ORANGE), "xos", strict=True):
        label = say(f"rate {rate}", f"学习率 {rate}")
        path, losses = data[f"path {rate}"], data[f"losses {rate}"]
        axes.plot(path, losses, f"{mark}--", color=color, markersize=4, linewidth=0.8, label=label)
    axes.set_xticks([0.25, 1, 4, 16], ["0.25", "1", "4", "16"])
    axes.legend(frameon=False)


SIZES = (50, 200, 800, 3200, 12800)


def _errors() -> Data:
    def error(count: int, width: float) -> float:
        fits = (
            rg.attend(ASKED[5:45], *points(count, seed), score=rg.Gaussian(width))
            for seed in range(5)
        )
        return float(np.mean([(fit - curve(ASKED[5:45])).square().mean().sqrt() for fit in fits]))

    fixed = [error(count, 0.5) for count in SIZES]
    return {
        "fixed": np.array(fixed),
        "shrinking": np.array([error(n, 1.1 * n**-0.2) for n in SIZES]),
    }


@picture("pooling-consistency", 3.8, 2.4, _errors, is_learned=True)
def consistency(figure: Figure, data: Data, say: Say) -> None:
    """Error against the number of points: it goes to zero only if the width does."""
    axes = figure.add_subplot(xlabel=say("points", "样本数"), ylabel=say("error", "误差"))
    axes.loglog(SIZES, data["fixed"], ".-", color=GREY, label=say("width 0.5", "宽度 0.5"))
    axes.loglog(
        SIZES, data["shrinking"], ".-", color=TEAL, label=say("width ∝ n^(−1/5)", "宽度 ∝ n^(−1/5)")
    )
    axes.legend(frameon=False)
