"""What blocks have in common: tables of places, and memory that is used again."""

from math import prod
from typing import NamedTuple

import torch
from torch import Tensor

from regard.attention.engine.blocks import Block, BlockPass
from regard.attention.inspect.buckets import numbers_of
from regard.attention.inspect.statistics import Ask


class Stripe(NamedTuple):
    """Some queries and the keys they may see: what all batch rows and heads have in common.

    Attributes:
        keys: The places of the keys, (m,).
        buckets: Those of the map that the keys are in, (m,).
        beyond: How far a key is from the first query's place; 0 for those among the places.
        low: Where the keys among the queries' places begin.
        apart: How far these are from each query's place, (n, high − low).
        inside: How far each query is from the first, (n,).
    """

    keys: Tensor
    buckets: Tensor
    beyond: Tensor
    low: int
    apart: Tensor
    inside: Tensor


class Room:
    """What is used again for the next block: memory, and tables of places of which stripes are cut.

    Args:
        job: What the blocks have in common.
        ask: What is asked.
        like: Of the dtype and on the device of the scores.
    """

    def __init__(self, job: BlockPass, ask: Ask, like: Tensor) -> None:
        N, M = job.shape[2:]
        self._job, self._like = job, like
        self._powers: Tensor | None = None
        self._scores: Tensor | None = None
        self._keys = torch.arange(M, device=like.device)
        self._buckets = numbers_of(self._keys + ask.start[1], ask.start[1], ask.bucket[1])
        self._steps = torch.arange(-M - N, M + N, device=like.device)
        self._of_rows(0)

    def powers(self, *shape: int) -> Tensor:
        """A tensor of a shape, filled with anything."""
        size = prod(shape)
        if self._powers is None or self._powers.numel() < size:
            self._powers = self._like.new_empty(size)
        return self._powers[:size].view(shape)

    def scores(self, *shape: int) -> Tensor:
        """Another tensor of a shape, filled with anything."""
        size = prod(shape)
        if self._scores is None or self._scores.numel() < size:
            self._scores = self._like.new_empty(size)
        return self._scores[:size].view(shape)

    def stripe(self, block: Block) -> Stripe:
        """The stripe of a block."""
        N, M = self._job.shape[2:]
        if len(block.rows) != len(self._inside):
            self._of_rows(len(block.rows))
        begin = block.rows.start + M - N
        zero = N + M - begin
        middle = range(begin, begin + len(block.rows))
        among = [range(max(s.start, begin), min(s.stop, middle.stop)) for s in block.keys]
        apart = [self._apart[:, s.start - begin : s.stop - begin] for s in among if s]
        return Stripe(
            block.along_keys(lambda s: self._keys[s.start : s.stop]),
            block.along_keys(lambda s: self._buckets[s.start : s.stop]),
            block.along_keys(lambda s: self._beyond[s.start + zero : s.stop + zero]),
            sum(len(range(s.start, min(s.stop, begin))) for s in block.keys),
            apart[0] if len(apart) == 1 else torch.cat([self._apart[:, :0], *apart], dim=-1),
            self._inside,
        )

    def _of_rows(self, count: int) -> None:
        """Make the tables for stripes of so many queries."""
        is_among = (self._steps >= 0) & (self._steps < count)
        self._beyond = self._steps.abs().masked_fill_(is_among, 0).to(self._like.dtype)
        self._inside = torch.arange(count, device=self._like.device).to(self._like.dtype)
        self._apart = (self._inside - self._inside[:, None]).abs()
