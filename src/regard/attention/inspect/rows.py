"""Exact rows and columns of the weights, for the few queries or keys that someone points at."""

from collections.abc import Iterator, Sequence

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from regard.attention.biases import PositionBias
from regard.attention.engine.blocks import Block, Job
from regard.attention.engine.gradients import Given, weights_of
from regard.attention.engine.request import Request
from regard.attention.inspect.summarizing import job_of, request_of, without_autocast
from regard.attention.masks.base import Mask
from regard.attention.observing import Seen
from regard.attention.scores import ScaledDot, Score
from regard.attention.weighting import Softmax, Weighting
from regard.errors import ShapeError

_SCALED_DOT = ScaledDot()
_SOFTMAX = Softmax()
Places = Sequence[int] | Int[Tensor, " P"] | slice
# Scores that are held at once.
_MOST_PAIRS = 2**22


@without_autocast
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
    request = request_of(query, key, score, mask, bias, weighting)
    job, given = job_of(request), Given.of(request)
    B, H, N, M = job.shape
    wanted = places_of(places, N, "query")
    most = max(1, _MOST_PAIRS // max(1, B * H * M))
    found = [
        _weights(job, given, some, (range(M),)) for run in _runs(wanted) for some in _cut(run, most)
    ]
    empty = given.query.new_zeros(B, H, 0, M)
    return _shaped(request, torch.cat([empty, *found], dim=-2))


def rows_seen(seen: Seen, places: Places) -> Float[Tensor, "*b P M"]:
    """Rows of the weights of a call of ``attend`` that an observer saw; see :func:`rows`."""
    return rows(
        seen.query,
        seen.key,
        places,
        score=seen.score,
        mask=seen.mask,
        bias=seen.bias,
        weighting=seen.weighting,
    )


@without_autocast
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
    request = request_of(query, key, score, mask, bias, weighting)
    job, given = job_of(request), Given.of(request)
    B, H, N, M = job.shape
    wanted = places_of(places, M, "key")
    pieces = tuple(_runs(wanted))
    known = lse if isinstance(weighting, Softmax) and pieces else None
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


def _weights(job: Job, given: Given, queries: range, keys: tuple[range, ...]) -> Tensor:
    scores, sink = _scores(job, given, queries, keys)
    return weights_of(job.weighting, scores, sink)[0] if scores.shape[-1] else scores


def _scores(
    job: Job, given: Given, queries: range, keys: tuple[range, ...]
) -> tuple[Tensor, Tensor | None]:
    """The scores of some queries with pieces of the keys, −inf where hidden; and the sink."""
    B, H, _, _ = job.shape
    veil = job.mask and job.mask.veil(queries, keys, range(B))
    block = Block(range(B), range(H), queries, keys, veil)
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
