"""The formulas in float64, pair by pair: slow, plain, and what everything else is tested against.

Nothing here is shared with the engine: a score is given as a function of one query and one key.
"""

from collections.abc import Callable
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor

Pair = Callable[[Float[Tensor, " D"], Float[Tensor, " K"]], Float[Tensor, ""]]


class Answer(NamedTuple):
    """What attention gives, in float64.

    Attributes:
        context: The mixed values.
        weights: One row per query.
        lse: log Σ exp(score) of each query; −inf where nothing is visible.
    """

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
) -> Answer:
    """Softmax attention as the formula has it, one pair of a query and a key after the other.

    Hidden pairs are never touched, so that whatever is in them cannot matter. Gradients flow.

    Args:
        query: What is looked for.
        key: What each position is matched on; query head h uses key head h · G // H.
        value: What each position gives.
        score: From a head's number, the score of one query and one key. None is the scaled dot.
        visible: True where a query may look; broadcasts to (B, H, N, M). None: everywhere.
        bias: Added to the scores; broadcasts alike.

    Example:
        >>> zeros = torch.zeros(1, 1, 2, 3)
        >>> attend_by_loops(zeros, zeros, zeros).weights
        tensor([[[[0.5000, 0.5000],
                  [0.5000, 0.5000]]]], dtype=torch.float64)
    """
    query, key, value = query.double(), key.double(), value.double()
    (B, H, N, D), (_, G, M, _), E = query.shape, key.shape, value.shape[-1]
    if score is None:
        score = lambda head: lambda q, k: (q * k).sum() / D**0.5  # noqa: E731
    grid = (B, H, N, M)
    seen = torch.ones(grid, dtype=torch.bool) if visible is None else visible.expand(grid)
    added = torch.zeros(grid).double() if bias is None else bias.double().expand(grid)
    context, weights, lse = [], [], []
    for b in range(B):
        for h in range(H):
            g = h * G // H
            pair = score(h)
            for n in range(N):
                places = [m for m in range(M) if seen[b, h, n, m]]
                scores = {m: pair(query[b, h, n], key[b, g, m]) + added[b, h, n, m] for m in places}
                row, total = _softmax(scores)
                weights.append(torch.stack([row.get(m, query.new_zeros(())) for m in range(M)]))
                mixed = query.new_zeros(E)
                for m, weight in row.items():
                    mixed = mixed + weight * value[b, g, m]
                context.append(mixed)
                lse.append(total)
    return Answer(
        torch.stack(context).view(B, H, N, E),
        torch.stack(weights).view(grid),
        torch.stack(lse).view(B, H, N),
    )


def _softmax(scores: dict[int, Tensor]) -> tuple[dict[int, Tensor], Tensor]:
    """Weights of the keys that have a score above −inf, and the log-sum-exp."""
    finite = {m: score for m, score in scores.items() if score.item() != float("-inf")}
    if not finite:
        return {}, torch.tensor(float("-inf"), dtype=torch.float64)
    top = max(score.item() for score in finite.values())
    powers = {m: (score - top).exp() for m, score in finite.items()}
    total = sum(powers.values(), start=torch.zeros((), dtype=torch.float64))
    return {m: power / total for m, power in powers.items()}, total.log() + top
