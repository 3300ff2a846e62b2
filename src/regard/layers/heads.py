"""Cutting one projection into the heads of queries, keys and values."""

import torch
from jaxtyping import Float
from torch import Tensor

from regard.layers.function_context import FunctionContext
from regard.layers.precision import warn_of_slow_bfloat16

# How many heads a part of a projection has, and how wide each is.
Part = tuple[int, int]

# Which of queries, keys and values, 0, 1 and 2, the layers of these names make.
PROJECTIONS = {
    "query_key_value": (0, 1, 2),
    "query": (0,),
    "key_value": (1, 2),
    "key": (1,),
    "value": (2,),
}


def cut(
    projected: Float[Tensor, "B N W"], parts: tuple[Part, ...]
) -> tuple[Float[Tensor, "B _H N _D"], ...]:
    """The parts of a projection, which lie side by side, each as (B, heads, N, width).

    In float32 where the projection is in bfloat16 on a CPU, which attends in float32 anyway.

    Args:
        projected: One row per position.
        parts: Heads and their width; together as wide as the projection.

    Example:
        >>> query, key = cut(torch.zeros(2, 5, 20), ((3, 4), (2, 4)))
        >>> query.shape, key.shape
        (torch.Size([2, 3, 5, 4]), torch.Size([2, 2, 5, 4]))
    """
    if projected.dtype == torch.bfloat16 and projected.device.type == "cpu":
        warn_of_slow_bfloat16(projected.device)
        heads: tuple[Tensor, ...] = _Widened.apply(projected, parts)  # type: ignore[no-untyped-call]
        return heads
    return tuple(_views(projected, parts))


class _Widened(torch.autograd.Function):
    """Cuts a projection into heads and widens it, in one pass each way.

    A CPU attends in float32 whatever the projection came in (half-precision attention is several
    times slower there where sequences are short), and cutting and widening one after the other
    would read and write every number twice.
    """

    @staticmethod
    def forward(
        ctx: FunctionContext, projected: Tensor, parts: tuple[Part, ...]
    ) -> tuple[Tensor, ...]:
        ctx.dtype = projected.dtype
        return tuple(
            torch.empty(view.shape, dtype=torch.float32).copy_(view)
            for view in _views(projected, parts)
        )

    @staticmethod
    def backward(ctx: FunctionContext, *grads: Tensor) -> tuple[Tensor, None]:
        rows = [grad.transpose(1, 2).to(ctx.dtype).flatten(2) for grad in grads]
        return torch.cat(rows, dim=-1), None


def _views(joined: Tensor, parts: tuple[Part, ...]) -> list[Tensor]:
    B, N, _ = joined.shape
    # Split and not unbound: the gradients then come together in the projection's own order.
    widths = [heads * width for heads, width in parts]
    sides: tuple[Tensor, ...] = torch.split(joined, widths, dim=-1)
    return [side.view(B, N, *part).transpose(1, 2) for side, part in zip(sides, parts, strict=True)]
