"""Weightings by their definitions, over rows of scores."""

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional as F

from regard.attention import Entmax15, Hard, Softmax, Sparsemax, Weighting

WEIGHTINGS: dict[str, Callable[[Tensor | None], Weighting]] = {
    "softmax": lambda sink: Softmax(),
    "sink": lambda sink: Softmax(sink=sink),
    "sparsemax": lambda sink: Sparsemax(),
    "entmax15": lambda sink: Entmax15(),
    "hard": lambda sink: Hard(),
}
_POWERS = {"sparsemax": 1, "entmax15": 2}


def weigh(name: str, scores: Tensor, sink: Tensor | None = None) -> Tensor:
    """Weights (B, H, N, M) of scores; rows of −inf give zeros. Half precision goes through float32.

    Sparsemax and entmax by their definition, ``max(0, score / power − τ) ** power``: the τ that
    makes a row sum to one is halved out, then gets its gradient from a step of Newton's method.
    """
    narrow, scores = scores.dtype, scores.to(torch.promote_types(scores.dtype, torch.float32))
    empty = scores.amax(-1, keepdim=True) == -torch.inf
    if name == "sink":
        assert sink is not None
        column = sink.to(scores.dtype).reshape(-1, 1, 1).expand(*scores.shape[:-1], 1)
        return torch.cat([scores, column], -1).softmax(-1)[..., :-1].to(narrow)
    scores = scores.masked_fill(empty, 0)
    if name == "softmax":
        rows = scores.softmax(-1)
    elif name == "hard":
        rows = F.one_hot(scores.argmax(-1), scores.shape[-1]).to(scores.dtype)
    else:
        rows = _by_bisection((scores - scores.detach().amax(-1, keepdim=True)), _POWERS[name])
    return rows.masked_fill(empty, 0).to(narrow)


def _by_bisection(scores: Tensor, power: int) -> Tensor:
    scores = scores / power
    fixed = scores.detach()
    high = fixed.amax(-1, keepdim=True)
    low = high - 1
    for _ in range(55):
        middle = (low + high) / 2
        is_low = ((fixed - middle).clamp_min(0) ** power).sum(-1, keepdim=True) > 1
        low, high = torch.where(is_low, middle, low), torch.where(is_low, high, middle)
    slope = power * ((fixed - low).clamp_min(0) ** (power - 1) * (fixed > low)).sum(-1, True)
    total = ((scores - low).clamp_min(0) ** power).sum(-1, keepdim=True)
    return (scores - (low + (total - 1) / slope)).clamp_min(0) ** power
