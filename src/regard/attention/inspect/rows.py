"""The weights themselves: all of them, or those of a few queries or keys that someone points at."""

from collections.abc import Iterator, Sequence
from typing import Unpack

import torch
from jaxtyping import Float, Int
from torch import Tensor

from regard.attention.engine.blocks import Block, BlockInputs, BlockPass, whole_scores
from regard.attention.engine.gradients import inputs_of, weights_of
from regard.attention.engine.options import WeightsOptions, options_of, takes
from regard.attention.engine.request import Request, make_weights_request, without_autocast
from regard.attention.weighting import Softmax, apply_sink
from regard.errors import ShapeError

Places = Sequence[int] | Int[Tensor, " P"] | slice
# Scores that are held at once.
_MOST_PAIRS = 2**22


@takes(WeightsOptions)
def weights(
    query: Float[Tensor, "*q N D"],
    key: Float[Tensor, "*k M K"],
    **options: Unpack[WeightsOptions],
) -> Float[Tensor, "*b N M"]:
    """The attention weights of every query over every key: the whole matrix, when it is wanted.

    A query that may see no key at all gets zero weights.

    Args:
        query: What is looked for, one vector per query.
        key: What each position is matched on.
        **options: ``score``, ``mask``, ``bias`` and ``weighting``, as ``attend`` takes them.

    Returns:
        One row of weights per query; a row sums to one, or to zero if nothing is visible.

    Raises:
        ShapeError: Shapes, dtypes or devices do not fit together.

    Example:
        >>> weights(torch.zeros(1, 4), torch.zeros(2, 4))
        tensor([[0.5000, 0.5000]])
    """
    return matrix_of(make_weights_request(query, key, options_of(weights, options)))


@takes(WeightsOptions)
def rows(
    query: Float[Tensor, "*q N D"],
    key: Float[Tensor, "*k M K"],
    places: Places,
    **options: Unpack[WeightsOptions],
) -> Float[Tensor, "*b P M"]:
    """The weights of some queries over every key: rows of what ``weights`` gives.

    Differentiable; in float32 at least.

    Args:
        query: All queries, since a mask or a bias may ask where they stand.
        key: What each position is matched on.
        places: Which queries, from 0, or from the last below 0.
        **options: ``score``, ``mask``, ``bias`` and ``weighting``, as ``attend`` takes them.

    Raises:
        ShapeError: Shapes, dtypes or devices do not fit together, or there is no such query.
        SettingError: An option is unknown or out of range.

    Example:
        >>> rows(torch.zeros(3, 4), torch.zeros(2, 4), [-1])
        tensor([[0.5000, 0.5000]])
    """
    return rows_of(
        make_weights_request(query, key, options_of(rows, options)),
        places,
    )


def rows_of(request: Request, places: Places) -> Float[Tensor, "*b P M"]:
    """Some rows of the weights of a request; see ``rows``."""
    with without_autocast(request.query.device.type):
        return _rows(request, places)


def _rows(request: Request, places: Places) -> Float[Tensor, "*b P M"]:
    job, inputs = BlockPass.of_whole_rows(request), inputs_of(request)
    B, H, N, M = job.shape
    wanted = places_of(places, N, "query")
    most = max(1, _MOST_PAIRS // max(1, B * H * M))
    found = [
        _weights(job, inputs, some, (range(M),))
        for run in _runs(wanted)
        for some in _cut(run, most)
    ]
    empty = inputs.query.new_zeros(B, H, 0, M)
    return _shaped(request, torch.cat([empty, *found], dim=-2))


@takes(WeightsOptions)
def columns(
    query: Float[Tensor, "*q N D"],
    key: Float[Tensor, "*k M K"],
    places: Places,
    *,
    lse: Float[Tensor, "*b N"] | None = None,
    **options: Unpack[WeightsOptions],
) -> Float[Tensor, "*b N P"]:
    """The weights of every query on some keys: columns of what ``weights`` gives.

    With the log-sum-exp of a summary, a softmax looks at those keys only; else, and with other
    weightings, at all, a block at a time. Differentiable; in float32 at least.

    Args:
        query: What is looked for.
        key: All keys.
        places: Which keys, from 0, or from the last below 0.
        **options: ``score``, ``mask``, ``bias`` and ``weighting``, as ``attend`` takes them.
        lse: ``Summary.lse`` of the same call.

    Raises:
        ShapeError: Shapes, dtypes or devices do not fit together, or there is no such key.
        SettingError: An option is unknown or out of range.

    Example:
        >>> columns(torch.zeros(3, 4), torch.zeros(2, 4), [0]).T
        tensor([[0.5000, 0.5000, 0.5000]])
    """
    request = make_weights_request(query, key, options_of(columns, options))
    with without_autocast(request.query.device.type):
        return _columns(request, places, lse)


def _columns(request: Request, places: Places, lse: Tensor | None) -> Float[Tensor, "*b N P"]:
    job, inputs = BlockPass.of_whole_rows(request), inputs_of(request)
    B, H, N, M = job.shape
    wanted = places_of(places, M, "key")
    pieces = tuple(_runs(wanted))
    known = lse if isinstance(request.weighting, Softmax) and pieces else None
    if known is not None:
        if known.shape != (*request.leading, N):
            raise ShapeError(
                f"lse must have the shape (*batch, N) = {(*request.leading, N)}; "
                f"got {tuple(known.shape)}."
            )
        known = known.reshape(B, H, N, 1)
        known = known.masked_fill(known == float("-inf"), 0)
    each = B * H * (M if known is None else len(wanted))
    found = []
    for some in _cut(range(N), max(1, _MOST_PAIRS // max(1, each))):
        if known is None:
            found.append(_weights(job, inputs, some, (range(M),))[..., wanted])
        else:
            scores = _scores(job, inputs, some, pieces)[0]
            found.append((scores - known[:, :, some.start : some.stop]).exp())
    empty = inputs.query.new_zeros(B, H, 0, len(wanted))
    return _shaped(request, torch.cat([empty, *found], dim=-2))


def matrix_of(request: Request) -> Float[Tensor, "*b N M"]:
    """All weights of a request, in float32 at least until they are given."""
    with without_autocast(request.query.device.type):
        return _matrix(request)


def _matrix(request: Request) -> Float[Tensor, "*b N M"]:
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


def _weights(
    job: BlockPass, inputs: BlockInputs, queries: range, keys: tuple[range, ...]
) -> Tensor:
    scores, sink = _scores(job, inputs, queries, keys)
    return weights_of(job.weighting, scores, sink)[0] if scores.shape[-1] else scores


def _scores(
    job: BlockPass, inputs: BlockInputs, queries: range, keys: tuple[range, ...]
) -> tuple[Tensor, Tensor | None]:
    """The scores of some queries with pieces of the keys, −inf where hidden; and the sink."""
    B, H, _, _ = job.shape
    hidden = job.mask and job.mask.hidden(queries, keys, range(B))
    block = Block(range(B), range(H), queries, keys, hidden)
    own = inputs.of_block(block)
    return job.scores(block, own), own.sink


def places_of(places: Places, size: int, what: str) -> list[int]:
    """Places from 0.

    Raises:
        ShapeError: One is outside.
    """
    if isinstance(places, slice):
        return list(range(size))[places]
    if isinstance(places, Tensor):
        places = places.tolist()
    wanted = [int(place) + size * (int(place) < 0) for place in places]
    for place, given in zip(wanted, places, strict=True):
        if not 0 <= place < size:
            raise ShapeError(f"places must be of the {size} {what} places; got {given}.")
    return wanted


def _runs(places: list[int]) -> Iterator[range]:
    """Neighbours, in the order they are given."""
    start = 0
    for end in range(1, len(places) + 1):
        if end == len(places) or places[end] != places[end - 1] + 1:
            yield range(places[start], places[end - 1] + 1)
            start = end


def _cut(run: range, most: int) -> Iterator[range]:
    return (run[start : start + most] for start in range(0, len(run), most))


def _shaped(request: Request, found: Tensor) -> Tensor:
    return found.reshape(*request.leading, *found.shape[-2:])
