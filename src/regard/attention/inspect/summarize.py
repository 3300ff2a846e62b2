"""The call that looks inside: statistics of the weights of queries over keys."""

from typing import Any, Unpack

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.autograd.function import once_differentiable

from regard.attention.engine.blocks import Block, BlockInputs, BlockPass
from regard.attention.engine.gradients import Ends, Gradients, gradients, inputs_of
from regard.attention.engine.numerics import in_input_dtypes, is_finite
from regard.attention.engine.options import WeightsOptions, options_of, takes
from regard.attention.engine.request import Request, make_weights_request, without_autocast
from regard.attention.inspect.softmax_statistics import is_served, of_all
from regard.attention.inspect.statistics import Statistics, SummaryOptions, of_block
from regard.attention.inspect.summary import Summary, bucket_width
from regard.checks import check_count
from regard.errors import SettingError, ShapeError, excerpt

Queries = Bool[Tensor, "..."] | slice


@takes(WeightsOptions)
def summarize(
    query: Float[Tensor, "*q N D"],
    key: Float[Tensor, "*k M K"],
    *,
    top: int = 8,
    map: int = 64,  # noqa: A002  (its name everywhere else)
    queries: Queries | None = None,
    start: tuple[int, int] = (0, 0),
    **options: Unpack[WeightsOptions],
) -> Summary:
    """Summarize attention weights of queries over keys, without the N×M matrix.

    Exact for every score, mask, bias and weighting; accumulated in float32 at least; memory grows
    with N. All but ``top_keys`` and ``counts`` is differentiable, once. Dropout plays no part.

    Args:
        query: One vector per query.
        key: One vector per key, which queries are matched with.
        top: How many keys of each query are named.
        map: How many rows and columns the pooled map has at most.
        queries: Which queries count in the sums of keys and in the map: a slice, or True for
            those that do, broadcasting to (*batch, N). None counts all; padding should not count.
        start: The positions of query 0 and key 0 where both are parts of a longer sequence, such as
            decoding steps: ``top_keys``, ``received`` and the map are then about those positions.
        **options: ``score``, ``mask``, ``bias`` and ``weighting``, as ``attend`` takes them.

    Raises:
        ShapeError: Shapes, dtypes or devices do not fit together.
        SettingError: An option is unknown or out of range.

    Example:
        >>> keys = torch.tensor([[1.0, 0.0], [0.0, 1.0]])
        >>> seen = summarize(keys[:1], keys, top=1)
        >>> seen.top_keys, seen.received
        (tensor([[0]]), tensor([0.6698, 0.3302]))
    """
    request = make_weights_request(query, key, options_of(summarize, options))
    return summary_of(request, top, map, queries, start)


def counted_of(request: Request, queries: Queries | None) -> Tensor | None:
    """Mask of the counted queries, (B or 1, 1, N); None if all count."""
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


def summary_of(
    request: Request, top: int, most: int, queries: Queries | None, start: tuple[int, int]
) -> Summary:
    """Summarize the weights of a request; see ``summarize``."""
    options = _options_of(request, top, most, start)
    with without_autocast(request.query.device.type):
        counted = counted_of(request, queries)
        job, flat = BlockPass.of_whole_rows(request), inputs_of(request).flat()
        statistics = Statistics(*_Statistics.apply(job, options, counted, *flat))  # type: ignore[no-untyped-call]
        return _put_in_shape(request, statistics, counted, options, most)


def summary_and_mixed_of(
    request: Request, top: int, most: int, queries: Queries | None, start: tuple[int, int]
) -> tuple[Summary, Tensor] | None:
    """The summary of a request and its answer, of one pass; None where no pass gives both."""
    options = _options_of(request, top, most, start)
    if request.position is not None or request.query.dtype is not torch.float32:
        return None
    with without_autocast(request.query.device.type):
        job, inputs = BlockPass.of_whole_rows(request), inputs_of(request)
        # A hidden value that is NaN is to reach nothing, and zero times it is NaN.
        is_safe = request.mask is None or is_finite(inputs.value)
        if not is_served(job, options, inputs) or not is_safe:
            return None
        # As with queries and keys, heads that lie between each other take more time.
        inputs = inputs._replace(value=inputs.value.contiguous())
        counted, (B, H, N, _) = counted_of(request, queries), job.shape
        out = inputs.value.new_zeros(B, H, N, inputs.value.shape[-1])
        statistics = of_all(job, options, inputs, counted, out)
        summary = _put_in_shape(request, statistics, counted, options, most)
        return summary, out.reshape(*request.leading, *out.shape[2:])


class _Statistics(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        job: BlockPass,
        options: SummaryOptions,
        counted: Tensor | None,
        *flat: Tensor | None,
    ) -> tuple[Tensor, ...]:
        inputs = BlockInputs.from_flat(flat)
        if is_served(job, options, inputs):
            total = of_all(job, options, inputs, counted)
        else:
            total = _by_formula(job, options, inputs, counted)
        ctx.job, ctx.options = job, options
        ctx.save_for_backward(counted, *flat)
        ctx.mark_non_differentiable(total.top_keys)
        return tuple(total)

    @staticmethod
    @in_input_dtypes
    @once_differentiable
    def backward(ctx: Any, d_lse: Tensor, *d_statistics: Tensor) -> Gradients:
        job, options, grads = ctx.job, ctx.options, Statistics(d_lse, *d_statistics)
        counted, *flat = ctx.saved_tensors

        def again(block: Block, block_inputs: BlockInputs) -> Ends:
            outputs = of_block(
                job, options, block, job.scores(block, block_inputs), block_inputs.sink, counted
            )
            # Without the last: of positions there is no gradient.
            return zip(outputs[:-1], grads.of(options, block)[:-1], strict=True)

        outputs = gradients(job, BlockInputs.from_flat(flat), ctx.needs_input_grad[3:], again)
        return (None, None, None, *outputs)


def _by_formula(
    job: BlockPass, options: SummaryOptions, inputs: BlockInputs, counted: Tensor | None
) -> Statistics:
    total = Statistics.empty(job, options, inputs.query)
    for block in job.blocks() if all(job.shape) else ():
        block_inputs = inputs.of_block(block)
        part = of_block(
            job, options, block, job.scores(block, block_inputs), block_inputs.sink, counted
        )
        total.add_block(options, block, part)
    return total


def _put_in_shape(
    request: Request,
    statistics: Statistics,
    counted: Tensor | None,
    options: SummaryOptions,
    most: int,
) -> Summary:
    lead, rank = request.leading, 2
    counts = statistics.lse.detach() != float("-inf")
    if counted is not None:
        counts = counts & counted
    named = {**statistics._asdict(), "counts": counts}
    shaped = {name: tensor.reshape(*lead, *tensor.shape[rank:]) for name, tensor in named.items()}
    if before := options.start[1]:
        keys = shaped["top_keys"]
        shaped["top_keys"] = torch.where(keys < 0, keys, keys + before)
        shaped["received"] = torch.nn.functional.pad(shaped["received"], (before, 0))
        shaped["first"] = torch.zeros_like(shaped["first"])
    return Summary(**shaped, bucket=options.bucket, start=options.start, map=most)


def _options_of(request: Request, top: int, most: int, start: tuple[int, int]) -> SummaryOptions:
    for name, number, least in (("top", top, 0), ("map", most, 1)):
        check_count(name, number, least)
    if not isinstance(start, tuple | list) or len(start) != 2:
        raise SettingError(f"start must be two whole numbers; got {excerpt(start)}.")
    for start_index in start:
        check_count("start", start_index, 0)
    N, M = request.query.shape[2], request.key.shape[2]
    bucket = (bucket_width(start[0], N, most), bucket_width(start[1], M, most))
    return SummaryOptions(top, start, bucket)
