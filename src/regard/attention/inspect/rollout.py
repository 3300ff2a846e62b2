"""Weights transposed, and rollout: what reaches each key, in one layer and through all of them."""

from collections.abc import Iterator, Sequence
from typing import Protocol, Unpack, runtime_checkable

import torch
from jaxtyping import Float
from torch import Tensor
from torch.autograd.function import once_differentiable

from regard.attention.engine.blocks import Block, BlockInputs, BlockPass, add_to_keys, keys_of
from regard.attention.engine.gradients import (
    FunctionContext,
    Gradients,
    gradients,
    inputs_of,
    weights_of,
)
from regard.attention.engine.numerics import as_it_is, mix
from regard.attention.engine.options import WeightsOptions, options_of, takes
from regard.attention.engine.request import Request, make_weights_request, without_autocast
from regard.attention.inspect.rows import Places, places_of
from regard.checks import check_fraction
from regard.errors import SettingError, ShapeError


@runtime_checkable
class SelfAttention(Protocol):
    """A layer's attention, such as an ``AttentionCall``."""

    @property
    def query(self) -> Tensor:
        """Its queries."""

    @property
    def key(self) -> Tensor:
        """Its keys, of the same places."""

    def transposed(self, states: Tensor) -> Tensor:
        """Sums of the queries' states by key."""


@takes(WeightsOptions)
def transposed(
    query: Float[Tensor, "*q N D"],
    key: Float[Tensor, "*k M K"],
    states: Float[Tensor, "... N E"],
    **options: Unpack[WeightsOptions],
) -> Float[Tensor, "*b M E"]:
    """``weightsᵀ · states``: for each key, the states of the queries, by how much they look at it.

    Of states that are all one, that is the mass a key receives; of one query's, its row. Memory
    grows with N; differentiable, once.

    Args:
        query: What is looked for, one vector per query.
        key: What each position is matched on.
        states: What each query gives; broadcasts to (*batch, heads, N, E).
        **options: ``score``, ``mask``, ``bias`` and ``weighting``, as ``attend`` takes them.

    Raises:
        ShapeError: Shapes, dtypes or devices do not fit together.
        SettingError: An option is unknown or out of range.

    Example:
        >>> transposed(torch.zeros(3, 4), torch.zeros(2, 4), torch.ones(3, 1))
        tensor([[1.5000],
                [1.5000]])
    """
    return transposed_of(
        make_weights_request(query, key, options_of(transposed, options)),
        states,
    )


def transposed_of(request: Request, states: Float[Tensor, "... N E"]) -> Float[Tensor, "*b M E"]:
    """``weightsᵀ · states`` of a request; see ``transposed``."""
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
    inputs = inputs_of(request)
    inputs = inputs._replace(states=own.to(inputs.query.dtype))
    job = BlockPass.of_whole_rows(request)
    with without_autocast(request.query.device.type):
        found: Tensor = _Transposed.apply(job, *inputs.flat())  # type: ignore[no-untyped-call]
    return found.reshape(*request.leading, M, states.shape[-1])


def rollout(
    calls: Sequence[SelfAttention], places: Places, *, residual: float = 0.5
) -> Float[Tensor, "*batch P N"]:
    """How much of each chosen output comes from each input, by attention and residual paths alone.

    Attention rollout of Abnar & Zuidema (2020), https://arxiv.org/abs/2005.00928, from chosen
    outputs: the rows of ``Π (residual · I + (1 − residual) · mean over heads of the weights)``.
    Going from the last layer to the first a vector at a time, it needs no N×N matrix.

    Args:
        calls: The self-attention of every layer, the first layer first, such as an observer saw.
        places: Which outputs, from 0, or from the last below 0.
        residual: The share that goes past the attention of a layer.

    Returns:
        A row over the inputs for each output; it sums to one, less what sinks and queries with
        nothing to see lose.

    Raises:
        ShapeError: Queries and keys of a call are not the same places, or there is no such output.
        SettingError: There is no call, or ``residual`` is not a fraction.

    Example:
        >>> from regard.attention import attend, causal, observe
        >>> calls = []
        >>> with observe(calls.append):
        ...     _ = attend(torch.zeros(2, 4), torch.zeros(2, 4), mask=causal())
        >>> rollout(calls, [0, 1])
        tensor([[1.0000, 0.0000],
                [0.2500, 0.7500]])
    """
    check_fraction("residual", residual)
    if not calls:
        raise SettingError("calls must hold one layer at least; got none.")
    N = calls[-1].query.shape[-2]
    for call in calls:
        if call.query.shape[-2] != N or call.key.shape[-2] != N:
            raise ShapeError(
                f"calls must be self-attention over the same N = {N} places; "
                f"got {call.query.shape[-2]} queries and {call.key.shape[-2]} keys."
            )
    query = calls[-1].query
    wanted = torch.tensor(places_of(places, N, "output"), dtype=torch.long, device=query.device)
    wide = torch.promote_types(query.dtype, torch.float32)
    reached = torch.zeros(N, len(wanted), dtype=wide, device=query.device)
    reached[wanted, torch.arange(len(wanted), device=query.device)] = 1
    for call in reversed(calls):
        reached = residual * reached + (1 - residual) * _back(call, reached)
    return reached.mT


def _back(call: SelfAttention, reached: Tensor) -> Tensor:
    """Rollout up to a layer's attention, (*batch, N, P): the mean over its heads."""
    has_heads = max(call.query.dim(), call.key.dim()) > 3
    states = reached.unsqueeze(-3) if has_heads and reached.dim() > 2 else reached
    found = call.transposed(states)
    return found.mean(dim=-3) if has_heads else found


class _Transposed(torch.autograd.Function):
    @staticmethod
    def forward(ctx: FunctionContext, job: BlockPass, *flat: Tensor | None) -> Tensor:
        inputs = BlockInputs.from_flat(flat)
        assert inputs.states is not None
        B, H, _, M = job.shape
        total = inputs.states.new_zeros(B, H, M, inputs.states.shape[-1])
        for block in job.blocks() if all(job.shape) else ():
            add_to_keys(total, block, _of_block(job, block, inputs.of_block(block)))
        ctx.job = job
        ctx.save_for_backward(*flat)
        return total

    @staticmethod
    @as_it_is
    @once_differentiable
    def backward(ctx: FunctionContext, grad: Tensor) -> Gradients:
        def again(block: Block, own: BlockInputs) -> Iterator[tuple[Tensor, Tensor]]:
            yield _of_block(ctx.job, block, own), keys_of(grad, block)

        inputs = BlockInputs.from_flat(ctx.saved_tensors)
        return (None, *gradients(ctx.job, inputs, ctx.needs_input_grad[1:], again))


def _of_block(job: BlockPass, block: Block, own: BlockInputs) -> Tensor:
    """Sums by key of a block, (b, h, m, E)."""
    assert own.states is not None
    weights, _, _ = weights_of(job.weighting, job.scores(block, own), own.sink)
    hidden = None if block.hidden is None else block.hidden.expand(weights.shape).mT
    return mix(weights.mT, own.states, hidden)
