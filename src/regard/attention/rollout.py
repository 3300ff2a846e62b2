"""Attention through all layers: how much of each output comes from each input."""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from regard.attention.inspect.weights import Positions, positions_of
from regard.attention.observing import AttentionCall
from regard.checks import check_fraction
from regard.errors import SettingError, ShapeError, excerpt


def rollout(
    calls: Sequence[AttentionCall], positions: Positions, *, residual: float = 0.5
) -> Float[Tensor, "*batch P N"]:
    """Contribution of each input to each chosen output, by attention and residual paths alone.

    Attention rollout of Abnar & Zuidema (2020), https://arxiv.org/abs/2005.00928, from chosen
    outputs: the rows of ``Π (residual · I + (1 − residual) · mean over heads of the weights)``.
    Going from the last layer to the first a vector at a time, it needs no N×N matrix.

    Args:
        calls: The self-attention of every layer, the first layer first, such as an observer saw.
        positions: Which outputs, from 0, or from the last below 0.
        residual: The share that goes past the attention of a layer.

    Returns:
        A row over the inputs for each output; it sums to one, less the weight lost to sinks and
        queries with nothing to see.

    Raises:
        ShapeError: Queries and keys of a call differ in positions, or there is no such output.
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
    if not isinstance(calls, list | tuple) or not all(isinstance(c, AttentionCall) for c in calls):
        raise SettingError(f"calls must be a list of AttentionCall; got {excerpt(calls)}.")
    if not calls:
        raise SettingError("calls must hold one layer at least; got none.")
    N = calls[-1].query.shape[-2]
    for call in calls:
        if call.query.shape[-2] != N or call.key.shape[-2] != N:
            raise ShapeError(
                f"calls must be self-attention over the same N = {N} positions; "
                f"got {call.query.shape[-2]} queries and {call.key.shape[-2]} keys."
            )
    query = calls[-1].query
    outputs = torch.tensor(
        positions_of(positions, N, "output"), dtype=torch.long, device=query.device
    )
    wide = torch.promote_types(query.dtype, torch.float32)
    reached = torch.zeros(N, len(outputs), dtype=wide, device=query.device)
    reached[outputs, torch.arange(len(outputs), device=query.device)] = 1
    for call in reversed(calls):
        reached = residual * reached + (1 - residual) * _back(call, reached)
    return reached.mT


def _back(call: AttentionCall, reached: Tensor) -> Tensor:
    """Rollout up to a layer's attention, (*batch, N, P): the mean over its heads."""
    has_heads = max(call.query.dim(), call.key.dim()) > 3
    states = reached.unsqueeze(-3) if has_heads and reached.dim() > 2 else reached
    sums = call.transposed(states)
    return sums.mean(dim=-3) if has_heads else sums
