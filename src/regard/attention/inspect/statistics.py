"""Statistics of attention weights, of one block of queries or of all; and their formulas.

``softmax_statistics.py`` has the same numbers of softmax on a CPU, compiled.
"""

from typing import NamedTuple, TypeVar

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn import functional as F

from regard.attention.engine.blocks import Block, BlockPass, keys_of, rows_of
from regard.attention.engine.gradients import add_to_keys, weights_of
from regard.attention.inspect.summary import bucket_count

Index = TypeVar("Index", int, Tensor)


class SummaryOptions(NamedTuple):
    """Options of a summary."""

    top: int  # keys of each query, K
    start: tuple[int, int]  # positions of the first query and of the first key in the maps
    bucket: tuple[int, int]  # queries, and keys, that share a bucket of the map

    def buckets(self, axis: int, indices: Index) -> Index:
        """The bucket of each query (axis 0) or key (axis 1) in the maps, from 0."""
        start, width = self.start[axis], self.bucket[axis]
        return (start + indices) // width - start // width

    def columns(self, keys: int) -> int:
        """Number of columns of the map of so many keys."""
        return bucket_count(self.start[1], keys, self.bucket[1])


class Statistics(NamedTuple):
    """Numbers of a block, or of all queries and keys."""

    lse: Tensor  # (B, H, N); −inf where nothing is seen
    entropy: Tensor  # (B, H, N)
    distance: Tensor  # (B, H, N), from the query's position to the keys
    first: Tensor  # (B, H, N), the weight of key 0
    received: Tensor  # (B, H, M), the sums of weights over the counted queries
    pooled: Tensor  # (B, H, R, C), the same over buckets
    top_weights: Tensor  # (B, H, N, K)
    top_keys: Tensor  # (B, H, N, K), −1 for none

    @classmethod
    def empty(cls, job: BlockPass, options: SummaryOptions, like: Tensor) -> "Statistics":
        """The statistics of queries that see nothing."""
        B, H, N, M = job.shape
        R, C = (
            bucket_count(*axis) for axis in zip(options.start, (N, M), options.bucket, strict=True)
        )
        zeros = like.new_zeros
        return cls(
            like.new_full((B, H, N), float("-inf")),
            zeros(B, H, N),
            zeros(B, H, N),
            zeros(B, H, N),
            zeros(B, H, M),
            zeros(B, H, R, C),
            zeros(B, H, N, options.top),
            like.new_full((B, H, N, options.top), -1, dtype=torch.int64),
        )

    def add_block(self, options: SummaryOptions, block: Block, part: "Statistics") -> None:
        """Take in those of a block."""
        for whole, of_rows in zip(self[:4], part[:4], strict=True):
            rows_of(whole, block).copy_(of_rows)
        rows_of(self.top_weights, block).copy_(part.top_weights)
        rows_of(self.top_keys, block).copy_(part.top_keys)
        add_to_keys(self.received.unsqueeze(-1), block, part.received.unsqueeze(-1))
        view = self.pooled[block.corner][:, :, rows_of_map(options, block.rows)]
        view += part.pooled

    def of(self, options: SummaryOptions, block: Block) -> "Statistics":
        """The part that belongs to a block."""
        keys = keys_of(self.received.unsqueeze(-1), block).squeeze(-1)
        pooled = self.pooled[block.corner][:, :, rows_of_map(options, block.rows)]
        rows = [rows_of(statistic, block) for statistic in self[:4]]
        top = [rows_of(statistic, block) for statistic in self[6:]]
        return Statistics(*rows, keys, pooled, *top)  # type: ignore[call-arg]


def of_block(
    job: BlockPass,
    options: SummaryOptions,
    block: Block,
    scores: Tensor,
    sink: Tensor | None,
    counted: Tensor | None,
) -> Statistics:
    """The statistics of one block from its scores, by the formulas; differentiable."""
    N, M = job.shape[2:]
    device = scores.device
    rows = torch.arange(block.rows.start, block.rows.stop, device=device)
    keys = torch.cat([torch.arange(k.start, k.stop, device=device) for k in block.keys])
    weights, lse, entropy = weights_of(job.weighting, scores, sink)
    distances = (keys - rows[:, None] - (M - N)).abs().to(weights.dtype)
    is_first = keys == 0
    first = weights[..., 0] if bool(is_first[:1].any()) else torch.zeros_like(lse)
    counted_weights = weights
    if counted is not None:
        counted_weights = weights.where(counted_rows(counted, block), 0)
    map_rows = rows_of_map(options, block.rows)
    row_buckets, key_buckets = options.buckets(0, rows) - map_rows.start, options.buckets(1, keys)
    columns = counted_weights.new_zeros(*counted_weights.shape[:-1], options.columns(M)).index_add(
        -1, key_buckets, counted_weights
    )
    pooled = columns.new_zeros(
        *columns.shape[:2], map_rows.stop - map_rows.start, options.columns(M)
    )
    ranked = scores.detach()
    if not job.weighting.ranks_like_scores:
        ranked = weights.detach().masked_fill(ranked == float("-inf"), float("-inf"))
    positions, is_there = top_positions(ranked, options.top)
    return Statistics(
        lse,
        entropy,
        (weights * distances).sum(dim=-1),
        first,
        counted_weights.sum(dim=-2),
        pooled.index_add(-2, row_buckets, columns),
        weights.gather(-1, positions) * is_there,
        keys[positions].masked_fill(~is_there, -1),
    )


def counted_rows(counted: Tensor, block: Block) -> Tensor:
    """Mask of the counted queries of a block, (b, 1, n, 1)."""
    of_rows = counted[block.corner[0]] if len(counted) > 1 else counted
    return of_rows[:, :, block.rows.start : block.rows.stop, None]


def rows_of_map(options: SummaryOptions, queries: range) -> slice:
    """The rows of the map that some queries are in."""
    return slice(options.buckets(0, queries.start), options.buckets(0, queries.stop - 1) + 1)


def top_positions(
    rows: Float[Tensor, "*b m"], count: int
) -> tuple[Int[Tensor, "*b K"], Bool[Tensor, "*b K"]]:
    """The ``count`` best positions of each row, the best first, and which exist (not −inf)."""
    # One more, which tells whether the best left out is as good.
    m = rows.shape[-1]
    values, indices = _first_of_equals(*rows.topk(min(count + 1, m), dim=-1))
    if 0 < count < m:
        least = values[..., count - 1]
        is_tied = (values[..., count] == least) & (least > float("-inf"))
        if bool(is_tied.any()):
            indices[is_tied] = F.pad(_with_ties(rows[is_tied], least[is_tied], count), (0, 1))
    is_there = F.pad(values[..., :count] != float("-inf"), (0, max(0, count - m)))
    indices = F.pad(indices[..., :count], (0, max(0, count - m)))
    return indices.masked_fill(~is_there, 0), is_there


def _first_of_equals(values: Tensor, positions: Tensor) -> tuple[Tensor, Tensor]:
    """Stable top-k: of equal values the one with the smaller index first."""
    is_equal = (values[..., 1:] == values[..., :-1]) & (values[..., 1:] > float("-inf"))
    if not bool(is_equal.any()):
        return values, positions
    positions, order = positions.sort(dim=-1)
    values, again = values.gather(-1, order).sort(dim=-1, descending=True, stable=True)
    return values, positions.gather(-1, again)


def _with_ties(rows: Tensor, least: Tensor, count: int) -> Tensor:
    """Positions better than ``least`` and as many of the first as good as it as are wanted."""
    least = least.unsqueeze(-1)
    is_better, is_least = rows > least, rows == least
    room = count - is_better.sum(dim=-1, keepdim=True)
    selected = is_better | (is_least & (is_least.cumsum(dim=-1) <= room))
    positions = selected.nonzero()[:, 1].reshape(-1, count)
    order = rows.gather(-1, positions).sort(dim=-1, descending=True, stable=True).indices
    return positions.gather(-1, order)
