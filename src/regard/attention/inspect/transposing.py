"""Weights transposed: what each key gets of the states of the queries that look at it."""

from collections.abc import Iterator
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.autograd.function import once_differentiable

from regard.attention.biases import PositionBias
from regard.attention.engine.blocks import Block, Job, add_to_keys, as_it_is, keys_of, mix
from regard.attention.engine.gradients import Given, gradients, weights_of
from regard.attention.inspect.summarizing import job_of, request_of, without_autocast
from regard.attention.masks.base import Mask
from regard.attention.scores import ScaledDot, Score
from regard.attention.weighting import Softmax, Weighting
from regard.errors import ShapeError

_SCALED_DOT = ScaledDot()
_SOFTMAX = Softmax()


@without_autocast
def transposed(
    query: Float[Tensor, "*q N D"],
    key: Float[Tensor, "*k M K"],
    states: Float[Tensor, "... N E"],
    *,
    score: Score = _SCALED_DOT,
    mask: Mask | Bool[Tensor, "..."] | None = None,
    bias: Float[Tensor, "..."] | PositionBias | None = None,
    weighting: Weighting = _SOFTMAX,
) -> Float[Tensor, "*b M E"]:
    """``weightsᵀ · states``: for each key, the states of the queries, by how much they look at it.

    Of states that are all one, that is the mass a key receives; of one query's, its row. Memory
    grows with N; differentiable, once.

    Args:
        query: What is looked for, one vector per query.
        key: What each position is matched on.
        states: What each query gives; broadcasts to (*batch, heads, N, E).
        score: How a query and a key match.
        mask: Which keys a query may look at. None lets every query see every key.
        bias: Added to the scores.
        weighting: How scores become weights.

    Raises:
        ShapeError: Shapes, dtypes or devices do not fit together.
        SettingError: An option is unknown or out of range.

    Example:
        >>> transposed(torch.zeros(3, 4), torch.zeros(2, 4), torch.ones(3, 1))
        tensor([[1.5000],
                [1.5000]])
    """
    request = request_of(query, key, score, mask, bias, weighting)
    B, H, N, M = (*request.query.shape[:3], request.key.shape[2])
    whole = (*request.leading, N)
    if states.dim() < 2:
        raise ShapeError(f"states must have axes (N, E) at least; got {tuple(states.shape)}.")
    try:
        own = states.expand(*whole, states.shape[-1]).reshape(B, H, N, -1)
    except RuntimeError:
        raise ShapeError(
            f"states must broadcast to (*batch, N, E) = {(*whole, states.shape[-1])}; "
            f"got {tuple(states.shape)}."
        ) from None
    given = Given.of(request)
    given = given._replace(states=own.to(given.query.dtype))
    found: Tensor = _Transposed.apply(job_of(request), *given.flat())  # type: ignore[no-untyped-call]
    return found.reshape(*request.leading, M, states.shape[-1])


class _Transposed(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, job: Job, *flat: Tensor | None) -> Tensor:
        given = Given.from_flat(flat)
        assert given.states is not None
        B, H, _, M = job.shape
        total = given.states.new_zeros(B, H, M, given.states.shape[-1])
        for block in job.blocks() if all(job.shape) else ():
            add_to_keys(total, block, _of_block(job, block, given.of_block(block)))
        ctx.job = job
        ctx.save_for_backward(*flat)
        return total

    @staticmethod
    @as_it_is
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> Any:
        def again(block: Block, own: Given) -> Iterator[tuple[Tensor, Tensor]]:
            yield _of_block(ctx.job, block, own), keys_of(grad, block)

        given = Given.from_flat(ctx.saved_tensors)
        return (None, *gradients(ctx.job, given, ctx.needs_input_grad[1:], again))


def _of_block(job: Job, block: Block, own: Given) -> Tensor:
    """What the keys of a block get, (b, h, m, E)."""
    assert own.states is not None
    weights, _, _ = weights_of(job.weighting, own.scores(job, block), own.sink)
    veil = None if block.veil is None else block.veil.expand(weights.shape).mT
    return mix(weights.mT, own.states, veil)
