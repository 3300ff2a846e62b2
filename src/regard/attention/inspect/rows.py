"""The weights themselves: all of them, or those of a few queries or keys that someone points at."""

from collections.abc import Iterator, Sequence

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from regard.attention.biases import PositionBias
from regard.attention.engine.blocks import Block, BlockPass
from regard.attention.engine.foreign_options import refuse_options
from regard.attention.engine.gradients import Given, weights_of
from regard.attention.engine.request import Request, make_weights_request, without_autocast
from regard.attention.masks.base import Mask
from regard.attention.scores import ScaledDot, Score
from regard.attention.weighting import Softmax, Weighting, apply_sink
from regard.errors import ShapeError

_SCALED_DOT = ScaledDot()
_SOFTMAX = Softmax()
Places = Sequence[int] | Int[Tensor, " P"] | slice
# Scores that are held at once.
_MOST_PAIRS = 2**22


def weights(
    query: Float[Tensor, "*q N D"],
    key: Float[Tensor, "*k M K"],
    *,
    score: Score = _SCALED_DOT,
    mask: Mask | Bool[Tensor, "..."] | None = None,
    bias: Float[Tensor, "..."] | PositionBias | None = None,
    weighting: Weighting = _SOFTMAX,
    **foreign: object,
) -> Float[Tensor, "*b N M"]:
    """The attention weights of every query over every key: the whole matrix, when it is wanted.

    A query that may see no key at all gets zero weights.

    Args:
        query: What is looked for, one vector per query.
        key: What each position is matched on.
        score: How a query and a key match.
        mask: Which keys a query may look at. None lets every query see every key.
        bias: Added to the scores; broadcasts to (*batch, heads, N, M).
        weighting: How scores become weights.
        **foreign: Options of other libraries; the error says what they are called here.

    Returns:
        One row of weights per query; a row sums to one, or to zero if nothing is visible.

    Raises:
        ShapeError: Shapes, dtypes or devices do not fit together.

    Example:
        >>> weights(torch.zeros(1, 4), torch.zeros(2, 4))
        tensor([[0.5000, 0.5000]])
    """
    refuse_options(weights, foreign)
    return matrix_of(
        make_weights_request(query, key, score=score, mask=mask, bias=bias, weighting=weighting)
    )


def rows(
    query: Float[Tensor, "*q N D"],
    key: Float[Tensor, "*k M K"],
    places: Places,
    *,
    score: Score = _SCALED_DOT,
    mask: Mask | Bool[Tensor, "..."] | None = None,
    bias: Float[Tensor, "..."] | PositionBias | None = None,
    weighting: Weighting = _SOFTMAX,
) -> Float[Tensor, "*b P M"]:
    """The weights of some queries over every key: rows of what ``weights`` gives.

    Differentiable; in float32 at least.

    Args:
        query: All queries, since a mask or a bias may ask where they stand.
        key: What each position is matched on.
        places: Which queries, from 0, or from the last below 0.
        score: How a query and a key match.
        mask: Which keys a query may look at. None lets every query see every key.
        bias: Added to the scores.
        weighting: How scores become weights.

    Raises:
        ShapeError: Shapes, dtypes or devices do not fit together, or there is no such query.
        SettingError: An option is unknown or out of range.

    Example:
        >>> rows(torch.zeros(3, 4), torch.zeros(2, 4), [-1])
        tensor([[0.5000, 0.5000]])
    """
    return rows_of(
        make_weights_request(query, key, score=score, mask=mask, bias=bias, weighting=weighting),
        places,
    )


def rows_of(request: Request, places: Places) -> Float[Tensor, "*b P M"]:
    """Some rows of the weights of a request; see ``rows``."""
    with without_autocast(request.query.device.type):
        return _rows(request, places)


def _rows(request: Request, places: Places) -> Float[Tensor, "*b P M"]:
    job, given = BlockPass.of_whole_rows(request), Given.of(request)
    B, H, N, M = job.shape
    wanted = places_of(places, N, "query")
    most = max(1, _MOST_PAIRS // max(1, B * H * M))
    found = [
        _weights(job, given, some, (range(M),)) for run in _runs(wanted) for some in _cut(run, most)
    ]
    empty = given.query.new_zeros(B, H, 0, M)
    return _shaped(request, torch.cat([empty, *found], dim=-2))


def columns(
    query: Float[Tensor, "*q N D"],
    key: Float[Tensor, "*k M K"],
    places: Places,
    *,
    score: Score = _SCALED_DOT,
    mask: Mask | Bool[Tensor, "..."] | None = None,
    bias: Float[Tensor, "..."] | PositionBias | None = None,
    weighting: Weighting = _SOFTMAX,
    lse: Float[Tensor, "*b N"] | None = None,
) -> Float[Tensor, "*b N P"]:
    """The weights of every query on some keys: columns of what ``weights`` gives.

    With the log-sum-exp of a summary, a softmax looks at those keys only; else, and with other
    weightings, at all, a block at a time. Differentiable; in float32 at least.

    Args:
        query: What is looked for.
        key: All keys.
        places: Which keys, from 0, or from the last below 0.
        score: How a query and a key match.
        mask: Which keys a query may look at. None lets every query see every key.
        bias: Added to the scores.
        weighting: How scores become weights.
        lse: ``Summary.lse`` of the same call.

    Raises:
        ShapeError: Shapes, dtypes or devices do not fit together, or there is no such key.
        SettingError: An option is unknown or out of range.

    Example:
        >>> columns(torch.zeros(3, 4), torch.zeros(2, 4), [0]).T
        tensor([[0.5000, 0.5000, 0.5000]])
    """
    request = make_weights_request(
        query, key, score=score, mask=mask, bias=bias, weighting=weighting
    )
    with without_autocast(request.query.device.type):
        return _columns(request, places, lse)


def _columns(request: Request, places: Places, lse: Tensor | None) -> Float[Tensor, "*b N P"]:
    job, given = BlockPass.of_whole_rows(request), Given.of(request)
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
            found.append(_weights(job, given, some, (range(M),))[..., wanted])
        else:
            scores = _scores(job, given, some, pieces)[0]
            found.append((scores - known[:, :, some.start : some.stop]).exp())
    empty = given.query.new_zeros(B, H, 0, len(wanted))
    return _shaped(request, torch.cat([empty, *found], dim=-2))


def matrix_of(request: Request) -> Float[Tensor, "*b N M"]:
    """All weights of a request, in float32 at least until they are given."""
    with without_autocast(request.query.device.type):
        return _matrix(request)


def _matrix(request: Request) -> Float[Tensor, "*b N M"]:
    dtype, score = request.query.dtype, request.score
    wide = torch.promote_types(dtype, torch.float32)
    queries, keys = request.query.to(wide), request.key.to(wide)
    if (repeats := queries.shape[1] // max(1, keys.shape[1])) > 1:
        keys = keys.repeat_interleave(repeats, dim=1)
    if not keys.shape[2]:
        return queries.new_zeros(*request.leading, queries.shape[2], 0).to(dtype)
    scores = score.tile(queries, keys, *(tensor.to(wide) for tensor in score.tensors()))
    if request.bias is not None:
        scores = scores + request.bias
    if (position := request.position) is not None:
        N, M = scores.shape[-2:]
        steps = position.steps(range(N), range(M), (N, M), scores.device)
        tensors = (tensor.to(wide) for tensor in position.tensors())
        scores = scores + position.tile(queries, steps, *tensors)
    if request.mask is not None:
        scores = scores.masked_fill(~request.mask.dense(), float("-inf"))
    rows = request.weighting.rows(scores)
    if request.sink is not None:
        rows, _ = apply_sink(request.sink, rows, scores.logsumexp(dim=-1))
    rows = rows.to(dtype)
    return rows.reshape(*request.leading, *rows.shape[2:])


def _weights(job: BlockPass, given: Given, queries: range, keys: tuple[range, ...]) -> Tensor:
    scores, sink = _scores(job, given, queries, keys)
    return weights_of(job.weighting, scores, sink)[0] if scores.shape[-1] else scores


def _scores(
    job: BlockPass, given: Given, queries: range, keys: tuple[range, ...]
) -> tuple[Tensor, Tensor | None]:
    """The scores of some queries with pieces of the keys, −inf where hidden; and the sink."""
    B, H, _, _ = job.shape
    hidden = job.mask and job.mask.hidden(queries, keys, range(B))
    block = Block(range(B), range(H), queries, keys, hidden)
    own = given.of_block(block)
    return own.scores(job, block), own.sink


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
