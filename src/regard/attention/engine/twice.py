"""Gradients that can be differentiated, of answers whose own cannot: those of the tiled engine."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from regard.attention.engine import tiled
from regard.attention.engine.gradients import Gradients
from regard.attention.engine.request import Request, without_autocast


def differentiable_twice(
    make_request: Callable[[], Request],
    out: Tensor,
    lse: Tensor | None,
    inputs: tuple[Tensor | None, ...],
) -> tuple[Tensor, Tensor | None]:
    """An answer whose gradient can be differentiated: as that of the tiled engine."""
    twice: tuple[Tensor, Tensor | None] = _Twice.apply(make_request, out, lse, *inputs)  # type: ignore[no-untyped-call]
    return twice


class _Twice(torch.autograd.Function):
    """An answer as it is; a gradient that is to be differentiated is that of the tiled engine."""

    @staticmethod
    def forward(
        ctx: Any,
        make_request: Callable[[], Request],
        out: Tensor,
        lse: Tensor | None,
        *inputs: Tensor | None,
    ) -> tuple[Tensor, Tensor | None]:
        ctx.make_request = make_request
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(*inputs)
        return out, lse  # views of them, as torch has it of inputs

    @staticmethod
    def backward(ctx: Any, d_out: Tensor | None, d_lse: Tensor | None) -> Gradients:
        inputs = ctx.saved_tensors
        if not torch.is_grad_enabled() or (d_out is None and d_lse is None):
            return (None, d_out, d_lse, *(None for _ in inputs))
        # Views, as one tensor may be query, key and value.
        query, key, value = (tensor.view_as(tensor) for tensor in inputs[:3])
        request = replace(ctx.make_request(), query=query, key=key, value=value)
        d_out = query.new_zeros(*query.shape[:3], value.shape[3]) if d_out is None else d_out
        d_lse = d_out.new_zeros(d_out.shape[:3]) if d_lse is None else d_lse
        leaves = (query, key, value, *inputs[3:])
        with without_autocast(query.device.type):
            pairs = tiled.input_gradients(request, d_out, d_lse)
            differentiable = [leaf for leaf in leaves if leaf is not None and leaf.requires_grad]
            # Each from its own pair: a query may be made from a tensor of the score, too.
            alike = zip(pairs, differentiable, strict=True)
            grads = iter([tiled.chained([p], [t], create_graph=True)[0] for p, t in alike])
        needs = (leaf is not None and leaf.requires_grad for leaf in leaves)
        return (None, None, None, *(next(grads) if need else None for need in needs))
