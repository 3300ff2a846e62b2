"""Arithmetic on scores and weights where some are −∞ and hidden values may be NaN."""

from collections.abc import Callable
from functools import wraps
from math import e, log2
from typing import Concatenate, ParamSpec, TypeVar

import torch
from torch import Tensor

from regard.attention.engine.request import without_autocast
from regard.attention.masks.bound import BoundMask

LOG2_E = log2(e)
C = TypeVar("C")
P = ParamSpec("P")
R = TypeVar("R")


def hide(scores: Tensor, hidden: Tensor | None) -> Tensor:
    """Scores with −∞ where they are hidden."""
    if hidden is None:
        return scores
    if scores.device.type == "cpu" and 2 * hidden.numel() <= scores.numel() and is_finite(scores):
        # Adding is many times as fast there, and right where there is no NaN.
        penalty = torch.zeros(hidden.shape, dtype=scores.dtype).masked_fill_(hidden, float("-inf"))
        return scores + penalty
    return scores.masked_fill(hidden, float("-inf"))


def exp_of(tensor: Tensor) -> Tensor:
    """``exp`` in place: by way of 2^x, which is three times as fast on a CPU."""
    return tensor.mul_(LOG2_E).exp2_()


def divisor(total: Tensor) -> Tensor:
    """A sum of powers to divide by: one where nothing is visible."""
    return total.masked_fill(total == 0, 1)


def without_unseen(mask: BoundMask | None, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
    """Keys and values with zeros where no query looks, if what is there could do harm.

    ``0 · NaN`` is NaN, so it must not be in the tensors at all. Where asking is free, as on a CPU,
    finite keys and values are left alone.
    """
    if mask is None or (key.device.type == "cpu" and is_finite(key) and is_finite(value)):
        return key, value
    hidden = mask.unseen_of(key)
    if hidden is None:
        return key, value
    return key.masked_fill(hidden, 0), value.masked_fill(hidden, 0)


def mix(weights: Tensor, value: Tensor, hidden: Tensor | None) -> Tensor:
    """``weights @ value``, where a NaN in a value reaches only the queries that see it."""
    out = weights @ value
    if hidden is not None and not is_finite(out):
        bad = ~value.isfinite()
        reached = (~hidden).to(value.dtype).expand(weights.shape) @ bad.to(value.dtype)
        clean = weights @ value.masked_fill(bad, 0)
        out = torch.where(reached > 0, out, clean)
    return out


def as_it_is(
    backward: Callable[Concatenate[C, Tensor, P], R],
) -> Callable[Concatenate[C, Tensor, P], R]:
    """A backward pass in the dtypes of its tensors, even where automatic precision is on.

    It works the scores out again, and they must be those of the forward pass.
    """

    @wraps(backward)
    def run(ctx: C, d_out: Tensor, /, *others: P.args, **options: P.kwargs) -> R:
        with without_autocast(d_out.device.type):
            return backward(ctx, d_out, *others, **options)

    return run


def is_finite(tensor: Tensor) -> bool:
    """Whether the sum is finite; if so, all of it is."""
    total = tensor.detach().sum().item()
    if total - total == 0:
        return True
    # Of float16, sums go beyond its range where nothing is wrong.
    return tensor.dtype is torch.float16 and is_finite(tensor.detach().float())
