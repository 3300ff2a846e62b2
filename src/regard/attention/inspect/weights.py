"""Weights of all, or of some queries or keys; and sums of them by key."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Unpack

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.autograd.function import once_differentiable

from regard.attention.engine.blocks import (
    Block,
    BlockInputs,
    BlockPass,
    keys_of,
    pieces,
    whole_scores,
)
from regard.attention.engine.gradients import (
    Gradients,
    add_to_keys,
    gradients,
    inputs_of,
    weights_of,
)
from regard.attention.engine.numerics import in_input_dtypes, mix
from regard.attention.engine.options import WeightsOptions, options_of, takes
from regard.attention.engine.request import Request, make_weights_request, without_autocast
from regard.attention.masks.base import as_numbers, check_integers
from regard.attention.weighting import apply_sink
from regard.errors import ShapeError, excerpt

Positions = Sequence[int] | Int[Tensor, " P"] | slice
# Scores that are held at once.
_MOST_PAIRS = 2**22


@takes(WeightsOptions)
def weights(
    query: Float[Tensor, "*q N D"], key: Float[Tensor, "*k M K"], **options: Unpack[WeightsOptions]
) -> Float[Tensor, "*b N M"]:
    """The attention weights of every query over every key: the whole matrix, when it is wanted.

    A query that may see no key at all gets zero weights.

    Args:
        query: One vector per query.
        key: One vector per key, which queries are matched with.
        **options: ``score``, ``mask``, ``bias`` and ``weighting``, as ``attend`` takes them.

    Returns:
        One row of weights per query; a row sums to one, or to zero if nothing is visible.

    Raises:
        ShapeError: Shapes, dtypes or devices do not fit together, or there is no such position.
        SettingError: An option is unknown or out of range.

    Example:
        >>> weights(torch.zeros(1, 4), torch.zeros(2, 4))
        tensor([[0.5000, 0.5000]])
    """
    return matrix_of(make_weights_request(query, key, options_of(weights, options)))


@takes(WeightsOptions)
def rows(
    query: Float[Tensor, "*q N D"],
    key: Float[Tensor, "*k M K"],
    positions: Positions,
    **options: Unpack[WeightsOptions],
) -> Float[Tensor, "*b P M"]:
    """The weights of some queries over every key: rows of the matrix of ``weights``.

    Differentiable; in float32 at least. Arguments and errors are those of ``weights``.

    Args:
        query: All queries, since a mask or a bias may ask where they stand.
        key: One vector per key, which queries are matched with.
        positions: Which queries, from 0, or from the last below 0.
        **options: See ``weights``.

    Example:
        >>> rows(torch.zeros(3, 4), torch.zeros(2, 4), [-1])
        tensor([[0.5000, 0.5000]])
    """
    return rows_of(make_weights_request(query, key, options_of(rows, options)), positions)


def rows_of(request: Request, positions: Positions) -> Float[Tensor, "*b P M"]:
    """Rows of the weights of a request; see ``rows``."""
    queries = positions_of(positions, request.query.shape[2], "query")
    return _weights_of(request, _runs(queries), slice(None))


@takes(WeightsOptions)
def columns(
    query: Float[Tensor, "*q N D"],
    key: Float[Tensor, "*k M K"],
    positions: Positions,
    **options: Unpack[WeightsOptions],
) -> Float[Tensor, "*b N P"]:
    """The weights of every query on some keys: columns of the matrix of ``weights``.

    A block of rows at a time. Differentiable; in float32 at least. Arguments and
    errors are those of ``weights``.

    Args:
        query: All queries.
        key: All keys.
        positions: Which keys, from 0, or from the last below 0.
        **options: See ``weights``.

    Example:
        >>> columns(torch.zeros(3, 4), torch.zeros(2, 4), [0]).T
        tensor([[0.5000, 0.5000, 0.5000]])
    """
    request = make_weights_request(query, key, options_of(columns, options))
    keys = positions_of(positions, request.key.shape[2], "key")
    return _weights_of(request, [range(request.query.shape[2])], keys)


def matrix_of(request: Request) -> Float[Tensor, "*b N M"]:
    """The weights of a request, in float32 at least until they are returned."""
    with without_autocast(request.query.device.type):
        dtype, inputs = request.query.dtype, BlockInputs.of(request)
        if not inputs.key.shape[2]:
            return request.query.new_zeros(*request.leading, request.query.shape[2], 0)
        scores = whole_scores(request, inputs)
        if request.mask is not None:
            scores = scores.masked_fill(~request.mask.dense(), float("-inf"))
        rows = request.weighting.rows(scores)
        if request.sink is not None:
            rows, _ = apply_sink(request.sink, rows, scores.logsumexp(dim=-1))
        rows = rows.to(dtype)
        return rows.reshape(*request.leading, *rows.shape[2:])


def _weights_of(request: Request, runs: Iterable[range], keys: list[int] | slice) -> Tensor:
    """The weights of runs of queries on some keys, some rows at a time."""
    with without_autocast(request.query.device.type):
        job, inputs = BlockPass.of_whole_rows(request), inputs_of(request)
        B, H, _, M = job.shape
        most = max(1, _MOST_PAIRS // max(1, B * H * M))
        blocks = (some for run in runs for some in pieces(run, most))
        parts = [_weights(job, inputs, some)[..., keys] for some in blocks]
        empty = inputs.query.new_zeros(B, H, 0, M)[..., keys]
        weights = torch.cat([empty, *parts], dim=-2)
        return weights.reshape(*request.leading, *weights.shape[-2:])


def _weights(job: BlockPass, inputs: BlockInputs, queries: range) -> Tensor:
    """The weights of some queries over all keys, (B, H, n, M)."""
    B, H, _, M = job.shape
    hidden = job.mask and job.mask.hidden(queries, (range(M),), range(B))
    block = Block(range(B), range(H), queries, (range(M),), hidden)
    block_inputs = inputs.of_block(block)
    scores = job.scores(block, block_inputs)
    return weights_of(job.weighting, scores, block_inputs.sink)[0] if M else scores


def positions_of(positions: Positions, size: int, kind: str) -> list[int]:
    """Positions from 0; raises ShapeError if one is outside."""
    if isinstance(positions, slice):
        return list(range(size))[positions]
    numbers = as_numbers("positions", positions)
    check_integers("positions", numbers)
    if numbers.dim() != 1:
        raise ShapeError(f"positions must be a list of numbers; got {excerpt(positions)}.")
    given = numbers.tolist()
    indices = [position + size * (position < 0) for position in given]
    for position, original in zip(indices, given, strict=True):
        if not 0 <= position < size:
            raise ShapeError(f"positions must be of the {size} {kind} positions; got {original}.")
    return indices


def _runs(positions: list[int]) -> Iterator[range]:
    """Neighbours, in the order they are given."""
    start = 0
    for end in range(1, len(positions) + 1):
        if end == len(positions) or positions[end] != positions[end - 1] + 1:
            yield range(positions[start], positions[end - 1] + 1)
            start = end


def transposed_of(request: Request, states: Float[Tensor, "... N E"]) -> Float[Tensor, "*b M E"]:
    """``weightsᵀ · states`` of a request; see ``AttentionCall.transposed``."""
    B, H, N, M = (*request.query.shape[:3], request.key.shape[2])
    whole = (*request.leading, N)
    if states.dim() < 2:
        raise ShapeError(f"states must have axes (N, E) at least; got {tuple(states.shape)}.")
    try:
        expanded = states.expand(*whole, states.shape[-1]).reshape(B, H, N, -1)
    except RuntimeError:
        raise ShapeError(
            f"states must broadcast to (*batch, N, E) = {(*whole, states.shape[-1])}; "
            f"got {tuple(states.shape)}."
        ) from None
    inputs = inputs_of(request)
    inputs = inputs._replace(states=expanded.to(inputs.query.dtype))
    job = BlockPass.of_whole_rows(request)
    with without_autocast(request.query.device.type):
        sums: Tensor = _Transposed.apply(job, *inputs.flat())  # type: ignore[no-untyped-call]
    return sums.reshape(*request.leading, M, states.shape[-1])


class _Transposed(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, job: BlockPass, *flat: Tensor | None) -> Tensor:
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
    @in_input_dtypes
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> Gradients:
        def again(block: Block, block_inputs: BlockInputs) -> Iterator[tuple[Tensor, Tensor]]:
            yield _of_block(ctx.job, block, block_inputs), keys_of(grad, block)

        inputs = BlockInputs.from_flat(ctx.saved_tensors)
        return (None, *gradients(ctx.job, inputs, ctx.needs_input_grad[1:], again))


def _of_block(job: BlockPass, block: Block, inputs: BlockInputs) -> Tensor:
    """Sums by key of a block, (b, h, m, E)."""
    assert inputs.states is not None
    weights, _, _ = weights_of(job.weighting, job.scores(block, inputs), inputs.sink)
    hidden = None if block.hidden is None else block.hidden.expand(weights.shape).mT
    return mix(weights.mT, inputs.states, hidden)
