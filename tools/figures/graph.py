"""The figure of chapter 9's graph: the karate club, its friendships and its sides."""

from typing import Any

import torch
from examples.experiments import karate
from matplotlib.figure import Figure

from tools.figures.drawing import BLUE, GREY, ORANGE, Data, Say, picture

# The script is an example, and carries no types.
_karate: Any = karate


def _layout(rounds: int = 300) -> torch.Tensor:
    """Places of the members (34, 2): as far from one another as there are friendships between."""
    far = torch.where(_karate.neighbours(), 1.0, torch.inf).fill_diagonal_(0)
    for middle in range(34):
        far = torch.minimum(far, far[:, middle, None] + far[middle])
    angle = torch.arange(34) * 2.4
    places = torch.stack([angle.cos(), angle.sin()], dim=1) * (angle + 1).sqrt()[:, None] / 4
    importance = 1 / far.fill_diagonal_(1).square()
    for _ in range(rounds):  # stress majorization, a place after another
        for node in range(34):
            away = places[node] - places
            apart = away.norm(dim=1, keepdim=True).clamp_min(1e-6)
            wanted = places + far[node, :, None] * away / apart
            w = importance[node].clone()
            w[node] = 0
            places[node] = (w[:, None] * wanted).sum(0) / w.sum()
    return places


def _club() -> Data:
    looked, sides = _karate.weights(_karate.train(0))
    return {"weights": looked.numpy(), "side": sides.numpy(), "places": _layout().numpy()}


@picture("tasks-graph", 5.4, 4, _club, is_learned=True)
def club(figure: Figure, data: Data, say: Say) -> None:
    """Each friendship as wide as its weights, each member in the colour of its predicted side."""
    axes = figure.add_subplot()
    weights, (x, y) = data["weights"], data["places"].T
    for one, other in _karate.EDGES.tolist():
        width = 0.3 + 3 * (weights[one, other] + weights[other, one])
        axes.plot(
            x[[one, other]], y[[one, other]], color=GREY, alpha=0.6, linewidth=width, zorder=1
        )
    guessed, right = data["side"] > 0.5, _karate.SIDES.numpy() == 1
    names = (say("the instructor's side", "教练一边"), say("the president's side", "主席一边"))
    for side, (color, name) in enumerate(zip((BLUE, ORANGE), names, strict=True)):
        axes.scatter(
            x[guessed == side], y[guessed == side], color=color, s=150, label=name, zorder=2
        )
    wrong = guessed != right
    known = _karate.KNOWN.numpy()
    axes.scatter(x[known], y[known], facecolor="none", edgecolor="black", s=260, zorder=2)
    axes.scatter(
        x[wrong], y[wrong], marker="x", color="black", s=320, zorder=3, label=say("wrong", "判错")
    )
    for node in range(34):
        axes.text(
            x[node],
            y[node],
            str(node),
            ha="center",
            va="center",
            fontsize=6,
            color="white",
            zorder=4,
        )
    axes.legend(frameon=False, fontsize=8, loc="upper left", bbox_to_anchor=(0.8, 1.05))
    axes.set_axis_off()
    axes.set_aspect("equal")
