"""The call that looks inside: statistics of the weights of queries over keys."""

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from regard.attention.biases import PositionBias
from regard.attention.engine.blocks import Job, Sizes
from regard.attention.engine.gradients import Given
from regard.attention.engine.request import Request, make_request
from regard.attention.inspect.all_statistics import statistics_of
from regard.attention.inspect.buckets import width_of
from regard.attention.inspect.statistics import Ask, Statistics
from regard.attention.inspect.summary import Summary
from regard.attention.masks.base import Mask
from regard.attention.observing import Seen
from regard.attention.scores import ScaledDot, Score
from regard.attention.weighting import Softmax, Weighting
from regard.checks import check_at_least
from regard.errors import SettingError, ShapeError

_SCALED_DOT = ScaledDot()
_SOFTMAX = Softmax()
# Of a block: fewer would cost more calls than work.
_PAIRS = 2**21
P = ParamSpec("P")
R = TypeVar("R")
Queries = Bool[Tensor, "..."] | slice


def without_autocast(call: Callable[P, R]) -> Callable[P, R]:
    """A call in the dtypes of its tensors, even where automatic precision is on."""

    @wraps(call)
    def run(*args: P.args, **options: P.kwargs) -> R:
        kind = next(each.device.type for each in args if isinstance(each, Tensor))
        if not torch.is_autocast_enabled(kind):
            return call(*args, **options)
        with torch.autocast(kind, enabled=False):
            return call(*args, **options)

    return run


@without_autocast
def summarize(
    query: Float[Tensor, "*q N D"],
    key: Float[Tensor, "*k M K"],
    *,
    score: Score = _SCALED_DOT,
    mask: Mask | Bool[Tensor, "..."] | None = None,
    bias: Float[Tensor, "..."] | PositionBias | None = None,
    weighting: Weighting = _SOFTMAX,
    top: int = 8,
    map: int = 64,  # noqa: A002  (what it is called everywhere else)
    queries: Queries | None = None,
    start: tuple[int, int] = (0, 0),
) -> Summary:
    """What the attention weights of queries over keys are like, without the N×M matrix.

    Exact for every score, mask, bias and weighting; accumulated in float32 at least; memory grows
    with N. All but ``top_keys`` and ``counts`` is differentiable, once. Dropout plays no part.

    Args:
        query: What is looked for, one vector per query.
        key: What each position is matched on.
        score: How a query and a key match.
        mask: Which keys a query may look at. None lets every query see every key.
        bias: Added to the scores: a tensor that broadcasts to (*batch, heads, N, M), or a rule of
            the distance such as ``alibi()``.
        weighting: How scores become weights.
        top: How many keys of each query are named.
        map: How many rows and columns the pooled map has at most.
        queries: Which queries count in what keys receive and in the map: a slice, or True for
            those that do, broadcasting to (*batch, N). None counts all; padding should not count.
        start: The places of query 0 and key 0 where both are parts of a longer sequence, such as
            decoding steps: ``top_keys``, ``received`` and the map are then about those places.

    Raises:
        ShapeError: Shapes, dtypes or devices do not fit together.
        SettingError: An option is unknown or out of range.

    Example:
        >>> keys = torch.tensor([[1.0, 0.0], [0.0, 1.0]])
        >>> seen = summarize(keys[:1], keys, top=1)
        >>> seen.top_keys, seen.received
        (tensor([[0]]), tensor([0.6698, 0.3302]))
    """
    _check_numbers(top, map, start)
    request = request_of(query, key, score, mask, bias, weighting)
    return _summary(request, top, map, queries, start)


def summarize_seen(
    seen: Seen,
    *,
    top: int = 8,
    map: int = 64,  # noqa: A002  (what it is called everywhere else)
    queries: Queries | None = None,
) -> Summary:
    """The summary of a call of ``attend`` that an observer saw.

    Example:
        >>> from regard.attention import attend, observe
        >>> calls = []
        >>> with observe(calls.append):
        ...     _ = attend(torch.zeros(1, 4), torch.zeros(3, 4))
        >>> summarize_seen(calls[0]).received
        tensor([0.3333, 0.3333, 0.3333])
    """
    return summarize(
        seen.query,
        seen.key,
        score=seen.score,
        mask=seen.mask,
        bias=seen.bias,
        weighting=seen.weighting,
        top=top,
        map=map,
        queries=queries,
    )


def request_of(
    query: Tensor,
    key: Tensor,
    score: Score,
    mask: Mask | Tensor | None,
    bias: Tensor | PositionBias | None,
    weighting: Weighting,
) -> Request:
    """The checked request of a call that looks at weights only: values of width one, or as the bias
    has them, that take no memory.
    """  # noqa: D205
    # What distances add to values is known to the bias alone.
    table = getattr(bias, "value_table", None)
    value = key
    if isinstance(key, Tensor) and key.dim() > 1:
        width = 1 if table is None else table.shape[-1]
        value = key.new_zeros(()).expand(*key.shape[:-1], width)
    return make_request(query, key, value, score=score, mask=mask, bias=bias, weighting=weighting)


def job_of(request: Request) -> Job:
    """What the blocks of a request have in common; they hold whole rows."""
    floats = request.score.floats_per_pair(request.query.shape[-1])
    floats += 0 if request.position is None else 2
    sizes = Sizes.of(request, floats, cuts_keys=False)
    return Job.of(request, sizes._replace(pairs=max(sizes.pairs, _PAIRS // floats)))


def counted_of(request: Request, queries: Queries | None) -> Tensor | None:
    """Which queries count, (B or 1, 1, N); None if all do.

    Raises:
        ShapeError: They are neither a slice nor booleans that broadcast to (*batch, N).
    """
    if queries is None:
        return None
    N = request.query.shape[2]
    device = request.query.device
    if isinstance(queries, slice):
        counted = torch.zeros(1, 1, N, dtype=torch.bool, device=device)
        counted[..., queries] = True
        return counted
    lead = request.leading[:-1] if len(request.leading) > 1 else request.leading
    if not isinstance(queries, Tensor) or queries.dtype != torch.bool:
        got = queries.dtype if isinstance(queries, Tensor) else type(queries).__name__
        raise ShapeError(f"queries must be a slice or a boolean tensor; got {got}.")
    try:
        whole = queries.to(device).expand(*lead, N)
    except RuntimeError:
        raise ShapeError(
            f"queries must broadcast to (*batch, N) = {(*lead, N)}; got {tuple(queries.shape)}."
        ) from None
    return whole.reshape(-1, 1, N)


def _summary(
    request: Request, top: int, most: int, queries: Queries | None, start: tuple[int, int]
) -> Summary:
    N, M = request.query.shape[2], request.key.shape[2]
    bucket = (width_of(start[0], N, most), width_of(start[1], M, most))
    counted = counted_of(request, queries)
    job, ask = job_of(request), Ask(top, start, bucket)
    found = statistics_of(job, ask, Given.of(request), counted)
    counts = found.lse.detach() != float("-inf")
    if counted is not None:
        counts = counts & counted
    return _put_in_shape(request, found, counts, ask, most)


def _put_in_shape(
    request: Request, found: Statistics, counts: Tensor, ask: Ask, most: int
) -> Summary:
    lead, rank = request.leading, 2
    named = {**found._asdict(), "counts": counts}
    shaped = {name: tensor.reshape(*lead, *tensor.shape[rank:]) for name, tensor in named.items()}
    if before := ask.start[1]:
        keys = shaped["top_keys"]
        shaped["top_keys"] = torch.where(keys < 0, keys, keys + before)
        shaped["received"] = torch.nn.functional.pad(shaped["received"], (before, 0))
        shaped["first"] = torch.zeros_like(shaped["first"])
    return Summary(**shaped, bucket=ask.bucket, start=ask.start, map=most)


def _check_numbers(top: int, most: int, start: tuple[int, int]) -> None:
    for name, number, least in (("top", top, 0), ("map", most, 1)):
        if isinstance(number, bool) or not isinstance(number, int):
            raise SettingError(f"{name} must be a whole number; got {number!r}.")
        check_at_least(name, number, least)
    for place in start:
        check_at_least("start", place, 0)
