"""What a summary tells of the weights: of one block of queries, or of all."""

from typing import NamedTuple

import torch
from torch import Tensor

from regard.attention.engine.blocks import Block, BlockPass, add_to_keys, keys_of, rows_of
from regard.attention.inspect.buckets import count_of


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

    def columns(self, keys: int) -> int:
        """How many columns the map of so many keys has."""
        return count_of(self.start[1], keys, self.bucket[1])


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
    def of_nothing(cls, job: BlockPass, ask: Ask, like: Tensor) -> "Statistics":
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
        view = self.pooled[block.corner][:, :, rows_of_map(ask, block)]
        view += part.pooled

    def of(self, ask: Ask, block: Block) -> "Statistics":
        """The part that belongs to a block."""
        keys = keys_of(self.received.unsqueeze(-1), block).squeeze(-1)
        pooled = self.pooled[block.corner][:, :, rows_of_map(ask, block)]
        rows = [rows_of(each, block) for each in self[:4]]
        top = [rows_of(each, block) for each in self[6:]]
        return Statistics(*rows, keys, pooled, *top)  # type: ignore[call-arg]


def counted_rows(counted: Tensor, block: Block) -> Tensor:
    """Which queries of a block count, (b, 1, n, 1)."""
    own = counted[block.corner[0]] if len(counted) > 1 else counted
    return own[:, :, block.rows.start : block.rows.stop, None]


def rows_of_map(ask: Ask, block: Block) -> slice:
    """The rows of the map that a block's queries are in."""
    start, width = ask.start[0], ask.bucket[0]
    first, last = start + block.rows.start, start + block.rows.stop - 1
    return slice(first // width - start // width, last // width - start // width + 1)
