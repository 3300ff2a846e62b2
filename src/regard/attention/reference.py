"""The formulas in float64, pair by pair: slow, plain, and the reference of all tests.

Nothing here is shared with the engine: a score is given as a function of one query and one key.
"""

from collections.abc import Callable
from typing import Literal, NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from regard.checks import check_choice

Pair = Callable[[Float[Tensor, " D"], Float[Tensor, " K"]], Float[Tensor, ""]]


Weighting = Literal["softmax", "sparsemax", "entmax15", "hard"]


class ReferenceOutput(NamedTuple):
    """Output of attention in plain float64 loops."""

    context: Float[Tensor, "B H N E"]
    weights: Float[Tensor, "B H N M"]
    lse: Float[Tensor, "B H N"]


def attend_by_loops(
    query: Float[Tensor, "B H N D"],
    key: Float[Tensor, "B G M K"],
    value: Float[Tensor, "B G M E"],
    score: Callable[[int], Pair] | None = None,
    *,
    visible: Bool[Tensor, "..."] | None = None,
    bias: Float[Tensor, "..."] | None = None,
    weighting: Weighting = "softmax",
    sink: Float[Tensor, " H"] | None = None,
    value_bias: Float[Tensor, "..."] | None = None,
) -> ReferenceOutput:
    """Attention as the formula has it, one pair of a query and a key after the other."""
    check_choice("weighting", weighting, Weighting)
    query, key, value = query.double(), key.double(), value.double()
    (B, H, N, D), (_, G, M, _), E = query.shape, key.shape, value.shape[-1]
    if score is None:
        score = lambda head: lambda q, k: (q * k).sum() / D**0.5  # noqa: E731
    grid = (B, H, N, M)
    visible_pairs = torch.ones(grid, dtype=torch.bool) if visible is None else visible.expand(grid)
    added = torch.zeros(grid).double() if bias is None else bias.double().expand(grid)
    moved = None if value_bias is None else value_bias.double().expand(*grid, E)
    context, weights, lse = [], [], []
    for b in range(B):
        for h in range(H):
            g = h * G // H
            pair = score(h)
            drain = None if sink is None else sink[h].double()
            for n in range(N):
                keys = [m for m in range(M) if visible_pairs[b, h, n, m]]
                scores = {m: pair(query[b, h, n], key[b, g, m]) + added[b, h, n, m] for m in keys}
                row, total = _weigh(scores, weighting, drain)
                weights.append(torch.stack([row.get(m, query.new_zeros(())) for m in range(M)]))
                mixed = query.new_zeros(E)
                for m, weight in row.items():
                    vector = value[b, g, m] if moved is None else value[b, g, m] + moved[b, h, n, m]
                    mixed = mixed + weight * vector
                context.append(mixed)
                lse.append(total)
    return ReferenceOutput(
        torch.stack(context).view(B, H, N, E),
        torch.stack(weights).view(grid),
        torch.stack(lse).view(B, H, N),
    )


def _weigh(
    scores: dict[int, Tensor], weighting: Weighting, sink: Tensor | None
) -> tuple[dict[int, Tensor], Tensor]:
    """Weights of the keys that have a score above −inf, and the log-sum-exp."""
    finite = {m: score for m, score in scores.items() if score.item() != float("-inf")}
    everything = [*finite.values(), *([] if sink is None else [sink])]
    if not everything:
        return {}, torch.tensor(float("-inf"), dtype=torch.float64)
    top = max(score.item() for score in everything)
    total = sum(
        ((score - top).exp() for score in everything), start=torch.zeros((), dtype=torch.float64)
    )
    lse = total.log() + top
    if weighting == "softmax":
        return {m: (score - top).exp() / total for m, score in finite.items()}, lse
    if weighting == "hard":
        best = min((m for m in finite if finite[m].item() == top), default=None)
        return {} if best is None else {best: torch.ones((), dtype=torch.float64)}, lse
    return _cut_off(finite, 1 if weighting == "sparsemax" else 2), lse


def _cut_off(scores: dict[int, Tensor], power: int) -> dict[int, Tensor]:
    """Weights ``max(0, score / power − τ) ** power`` with the τ that makes them sum to one."""
    # τ is found by halving; a step of Newton's method, which leaves it where it is, gives its
    # gradient.
    halves = {m: score / power for m, score in scores.items()}
    numbers = [scaled.item() for scaled in halves.values()]
    high = max(numbers, default=0.0)
    low = high - 1
    for _ in range(100):
        middle = (low + high) / 2
        if sum(max(0.0, number - middle) ** power for number in numbers) > 1:
            low = middle
        else:
            high = middle
    support = {m: scaled for m, scaled in halves.items() if scaled.item() > low}
    slope = sum(power * (scaled.item() - low) ** (power - 1) for scaled in support.values())
    total = sum(
        ((scaled - low) ** power for scaled in support.values()), start=torch.zeros(()).double()
    )
    threshold = low + (total - 1) / slope
    return {m: (scaled - threshold) ** power for m, scaled in support.items()}
