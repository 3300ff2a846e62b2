"""What a summary tells of the weights, block by block of queries, never all of them at once.

The formulas, once, as differentiable operations on the scores of a block: the backward pass works
them out again. ``softmax_statistics.py`` has the same numbers of softmax without gradients, faster.
"""

from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from regard.attention.backends.blocks import (
    Block,
    Inputs,
    Job,
    add_to_bias,
    add_to_keys,
    as_it_is,
    bias_of,
    keys_of,
    rows_of,
)
from regard.attention.backends.tiled import score_block, scores_of
from regard.attention.best import best_of
from regard.attention.buckets import count_of, numbers_of
from regard.attention.weighting import Entmax15, Hard, Softmax, Sparsemax, Weighting

# Of these, a key with a higher score never has less weight.
_RANKED_LIKE_SCORES = (Softmax, Sparsemax, Entmax15, Hard)


class Ask(NamedTuple):
    """What is asked about the weights.

    Attributes:
        top: How many keys of each query, K.
        start: The places of the first query and of the first key in the maps.
        bucket: How many queries, and how many keys, share a bucket of the map.
    """

    top: int
    start: tuple[int, int]
    bucket: tuple[int, int]


class Statistics(NamedTuple):
    """Numbers of a block, or of all queries and keys.

    Attributes:
        lse: (B, H, N), the log-sum-exp of the scores; −inf where nothing is seen.
        entropy: (B, H, N), of the weights.
        distance: (B, H, N), from the query's place to the keys.
        first: (B, H, N), the weight of key 0.
        received: (B, H, M), the sums of weights over the counted queries.
        pooled: (B, H, R, C), the same over buckets.
        top_weights: (B, H, N, K).
        top_keys: (B, H, N, K), −1 for none.
    """

    lse: Tensor
    entropy: Tensor
    distance: Tensor
    first: Tensor
    received: Tensor
    pooled: Tensor
    top_weights: Tensor
    top_keys: Tensor

    @classmethod
    def of_nothing(cls, job: Job, ask: Ask, like: Tensor) -> "Statistics":
        """The statistics of queries that see nothing."""
        B, H, N, M = job.shape
        R, C = (count_of(*each) for each in zip(ask.start, (N, M), ask.bucket, strict=True))
        zeros = like.new_zeros
        return cls(
            like.new_full((B, H, N), float("-inf")),
            zeros(B, H, N),
            zeros(B, H, N),
            zeros(B, H, N),
            zeros(B, H, M),
            zeros(B, H, R, C),
            zeros(B, H, N, ask.top),
            like.new_full((B, H, N, ask.top), -1, dtype=torch.int64),
        )

    def put(self, ask: Ask, block: Block, part: "Statistics") -> None:
        """Take in those of a block."""
        for whole, own in zip(self[:4], part[:4], strict=True):
            rows_of(whole, block).copy_(own)
        rows_of(self.top_weights, block).copy_(part.top_weights)
        rows_of(self.top_keys, block).copy_(part.top_keys)
        add_to_keys(self.received.unsqueeze(-1), block, part.received.unsqueeze(-1))
        view = self.pooled[block.corner][:, :, _rows_of_map(ask, block)]
        view += part.pooled

    def of(self, ask: Ask, block: Block) -> "Statistics":
        """The part that belongs to a block."""
        keys = keys_of(self.received.unsqueeze(-1), block).squeeze(-1)
        pooled = self.pooled[block.corner][:, :, _rows_of_map(ask, block)]
        rows = [rows_of(each, block) for each in self[:4]]
        top = [rows_of(each, block) for each in self[6:]]
        return Statistics(*rows, keys, pooled, *top)  # type: ignore[call-arg]


def statistics_of(
    job: Job, ask: Ask, inputs: Inputs, sink: Tensor | None, counted: Tensor | None
) -> Statistics:
    """The statistics of all queries; gradients flow to inputs and sink.

    Args:
        job: What the blocks have in common; they hold whole rows.
        ask: What is asked.
        inputs: Queries, keys, bias and the tensors of the score; the values are not looked at.
        sink: Of the softmax, (H, 1) or (1, 1), or None.
        counted: Which queries count as givers, (B, 1, N); None counts all.
    """
    query, key, _, bias, tensors = inputs
    found = _Statistics.apply(job, ask, counted, query, key, bias, sink, *tensors)  # type: ignore[no-untyped-call]
    return Statistics(*found)


class _Statistics(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        job: Job,
        ask: Ask,
        counted: Tensor | None,
        query: Tensor,
        key: Tensor,
        bias: Tensor | None,
        sink: Tensor | None,
        *tensors: Tensor,
    ) -> tuple[Tensor, ...]:
        inputs = Inputs(query, key, key, bias, tensors)
        total = Statistics.of_nothing(job, ask, query)
        for block in job.blocks():
            scores = scores_of(job, block, inputs)
            total.put(ask, block, of_block(job, ask, block, scores, sink, counted))
        ctx.job, ctx.ask = job, ask
        ctx.save_for_backward(query, key, bias, sink, counted, *tensors)
        ctx.mark_non_differentiable(total.top_keys)
        return tuple(total)

    @staticmethod
    @as_it_is
    @once_differentiable
    def backward(ctx: Any, d_lse: Tensor, *rest: Tensor) -> Any:
        grads = Statistics(d_lse, *rest)
        query, key, bias, sink, counted, *tensors = ctx.saved_tensors
        inputs = [query, key, bias, sink, *tensors]
        wanted = ctx.needs_input_grad[3:]
        totals = _backward(ctx.job, ctx.ask, inputs, wanted, counted, grads)
        return (None, None, None, *totals)


def _backward(
    job: Job,
    ask: Ask,
    inputs: list[Any],
    wanted: tuple[bool, ...],
    counted: Tensor | None,
    grads: Statistics,
) -> list[Tensor | None]:
    """The gradients of query, key, bias, sink and the tensors of the score, block by block."""
    totals = [torch.zeros_like(t) if want else None for t, want in zip(inputs, wanted, strict=True)]
    for block in job.blocks():
        leaves = _leaves_of(block, inputs, wanted)
        query, key, bias, sink, *tensors = leaves
        with torch.enable_grad():
            scores = score_block(job, block, query, key, bias, tensors)
            found = of_block(job, ask, block, scores, sink, counted)
        pairs = zip(found[:-1], grads.of(ask, block)[:-1], strict=True)
        ends = [(out, grad) for out, grad in pairs if out.requires_grad]
        if not ends:
            continue
        own = torch.autograd.grad(
            [out for out, _ in ends],
            [leaf for leaf, want in zip(leaves, wanted, strict=True) if want],
            [grad for _, grad in ends],
            allow_unused=True,
        )
        of_wanted = [total for total in enumerate(totals) if total[1] is not None]
        for (place, total), grad in zip(of_wanted, own, strict=True):
            if total is not None and grad is not None:
                _ADDERS.get(place, _add)(total, block, grad)
    return totals


def _leaves_of(block: Block, inputs: list[Any], wanted: tuple[bool, ...]) -> list[Any]:
    """What a block has of the inputs, from which gradients are counted."""
    query, key, bias, *rest = inputs
    parts = [rows_of(query, block), keys_of(key, block), bias_of(bias, block), *rest]
    pairs = zip(parts, wanted, strict=True)
    return [t if t is None else t.detach().requires_grad_(want) for t, want in pairs]


def _add_to_rows(total: Tensor, block: Block, part: Tensor) -> None:
    view = rows_of(total, block)
    view += part


def _add(total: Tensor, block: Block, part: Tensor) -> None:
    total += part


# Where the gradients of query, key and bias belong; those of anything else are of all blocks.
_ADDERS = {0: _add_to_rows, 1: add_to_keys, 2: add_to_bias}


def of_block(
    job: Job, ask: Ask, block: Block, scores: Tensor, sink: Tensor | None, counted: Tensor | None
) -> Statistics:
    """The statistics of one block from its scores; differentiable."""
    N, M = job.shape[2:]
    device = scores.device
    rows = torch.arange(block.rows.start, block.rows.stop, device=device)
    keys = torch.cat([torch.arange(k.start, k.stop, device=device) for k in block.keys])
    weights, lse, entropy = _weights_of(job, block, scores, sink)
    apart = (keys - rows[:, None] - (M - N)).abs().to(weights.dtype)
    is_first = keys == 0
    first = weights[..., 0] if bool(is_first[:1].any()) else torch.zeros_like(lse)
    given = weights
    if counted is not None:
        given = weights.where(_counted_of(counted, block), 0)
    map_rows = _rows_of_map(ask, block)
    row_buckets = numbers_of(rows + ask.start[0], ask.start[0], ask.bucket[0]) - map_rows.start
    key_buckets = numbers_of(keys + ask.start[1], ask.start[1], ask.bucket[1])
    C = count_of(ask.start[1], M, ask.bucket[1])
    columns = given.new_zeros(*given.shape[:-1], C).index_add(-1, key_buckets, given)
    pooled = columns.new_zeros(*columns.shape[:2], map_rows.stop - map_rows.start, C)
    ranked = scores.detach()
    if not isinstance(job.weighting, _RANKED_LIKE_SCORES):
        ranked = weights.detach().masked_fill(ranked == float("-inf"), float("-inf"))
    places, is_there = best_of(ranked, ask.top)
    return Statistics(
        lse,
        entropy,
        (weights * apart).sum(dim=-1),
        first,
        given.sum(dim=-2),
        pooled.index_add(-2, row_buckets, columns),
        weights.gather(-1, places) * is_there,
        keys[places].masked_fill(~is_there, -1),
    )


class _Rows(torch.autograd.Function):
    """The weights of whole rows of scores, with the gradient that the weighting has for them."""

    @staticmethod
    def forward(ctx: Any, weighting: Weighting, scores: Tensor) -> Tensor:
        weights = weighting.rows(scores)
        ctx.weighting = weighting
        ctx.save_for_backward(weights)
        return weights

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[None, Tensor]:
        (weights,) = ctx.saved_tensors
        return None, ctx.weighting.gradient(weights, grad)


def _weights_of(
    job: Job, block: Block, scores: Tensor, sink: Tensor | None
) -> tuple[Tensor, Tensor, Tensor]:
    """Weights (b, h, n, m), log-sum-exp and entropy (b, h, n)."""
    top = scores.detach().amax(dim=-1, keepdim=True)
    is_empty = top == float("-inf")
    # Not from one number for the best score and the sum: large scores would leave few digits.
    below = scores - top.masked_fill(is_empty, 0)
    rest = below.masked_fill(is_empty, 0).logsumexp(dim=-1, keepdim=True)
    if sink is not None:
        own = sink[block.corner[1]] if len(sink) > 1 else sink
        rest = torch.logaddexp(rest, own.unsqueeze(-1) - top)
    lse = (top + rest).masked_fill(is_empty, float("-inf")).squeeze(-1)
    least = torch.finfo(scores.dtype).min
    if isinstance(job.weighting, Softmax):
        # Where the weight is zero, its logarithm may be anything finite.
        logs = (below - rest.masked_fill(is_empty, 0)).clamp_min(least)
        weights = logs.exp()
    else:
        weights = _Rows.apply(job.weighting, scores)  # type: ignore[no-untyped-call]
        logs = weights.clamp_min(torch.finfo(scores.dtype).tiny).log()
    return weights, lse, (weights * -logs).sum(dim=-1)


def _counted_of(counted: Tensor, block: Block) -> Tensor:
    """Which queries of a block count, (b, 1, n, 1)."""
    own = counted[block.corner[0]] if len(counted) > 1 else counted
    return own[:, :, block.rows.start : block.rows.stop, None]


def _rows_of_map(ask: Ask, block: Block) -> slice:
    """The rows of the map that a block's queries are in."""
    start, width = ask.start[0], ask.bucket[0]
    first, last = start + block.rows.start, start + block.rows.stop - 1
    return slice(first // width - start // width, last // width - start // width + 1)
