"""The statistics of softmax on a CPU, by one compiled pass over each block of rows, on every core.

The same numbers as ``statistics.of_block``, which the tests compare; without gradients. The powers
that a pass leaves mix the values, where these are wanted too. Tasks are some queries of some heads,
cut alike for any number of threads; the sums of keys are added up in the order of
tasks, so that the answer does not depend on that number.
"""

from collections.abc import Iterator
from dataclasses import replace
from itertools import accumulate
from math import prod
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from regard.attention.engine.blocks import (
    Block,
    BlockInputs,
    BlockPass,
    Sizes,
    bias_of,
    keys_of,
    of_heads,
    pieces,
    rows_of,
)
from regard.attention.engine.numerics import as_array
from regard.attention.inspect.statistics import Statistics, SummaryOptions, rows_of_map
from regard.attention.masks.grid import KeyRanges
from regard.attention.weighting import Softmax
from regard.kernels import why_not
from regard.kernels.threads import parallel_for

# Queries whose scores are worked out at once, and pairs: fewer where they are of several heads.
_ROWS, _PAIRS, _PAIRS_OF_HEADS = 128, 2**20, 2**19
# Tasks that keep many threads busy, and the most parts that queries are cut into: each has sums of
# its own. About a millisecond is worth handing to a thread.
_TASKS, _PARTS, _PAIRS_OF_A_TASK = 128, 32, 2**18
# The pass puts the best keys in order one by one.
_MOST_NAMED = 64


def is_served(job: BlockPass, options: SummaryOptions, inputs: BlockInputs) -> bool:
    """Whether ``of_all`` can be asked."""
    is_plain = isinstance(job.weighting, Softmax) and options.top <= _MOST_NAMED and all(job.shape)
    is_here = inputs.query.device.type == "cpu" and inputs.query.dtype is torch.float32
    return is_plain and is_here and why_not() is None


def of_all(
    job: BlockPass,
    options: SummaryOptions,
    inputs: BlockInputs,
    counted: Tensor | None,
    out: Tensor | None = None,
) -> Statistics:
    """The statistics of all queries; those ``counted`` are (B or 1, 1, N).

    Mixed values are written to ``out``, (B, H, N, E), where it is zero.
    """
    work = _Loops(job, options, _Scores(job, inputs), counted, out)
    parallel_for(len(work.tasks), work.do)
    return work.finished()


class _Scores:
    """The scores of blocks; where they are products, in memory that is used again."""

    def __init__(self, job: BlockPass, inputs: BlockInputs) -> None:
        is_product = job.score.is_dot_product and job.position is None
        form = job.score.as_dot(inputs.query, inputs.key) if is_product else None
        self._factors = None if form is None else (form.query * form.scale, form.key)
        self._job, self.inputs = job, inputs
        splits_heads = job.sizes.splits_heads or form is not None
        pairs = _PAIRS if form is not None else max(1, job.sizes.pairs // 2)
        self.sizes = Sizes(pairs, _ROWS, None, splits_heads)
        self._room = 0 if form is None else min(prod(job.shape), max(_PAIRS, job.shape[3]))

    def memory(self) -> Tensor:
        """Room for the scores of any block: new memory costs as much as half the product."""
        return self.inputs.query.new_empty(self._room)

    def of(self, block: Block, memory: Tensor) -> Tensor:
        """The scores of a block, which may be changed."""
        if self._factors is None:
            scores = self._job.scores_of(block, self.inputs)
            return scores.clone(memory_format=torch.contiguous_format)
        query, key = rows_of(self._factors[0], block), keys_of(self._factors[1], block)
        shape = (*query.shape[:-1], key.shape[-2])
        scores = torch.matmul(query, key.mT, out=memory[: prod(shape)].view(shape))
        if (bias := bias_of(self.inputs.bias, block)) is not None:
            scores += bias
        return scores


class _HeadBlock(NamedTuple):
    """A group of heads, and the number of a part of the queries."""

    batch: range
    heads: range
    part: int


class _Loops:
    """Arrays that tasks read and write."""

    def __init__(
        self,
        job: BlockPass,
        options: SummaryOptions,
        scores: _Scores,
        counted: Tensor | None,
        out: Tensor | None,
    ) -> None:
        from regard.kernels.attention import statistics

        B, H, _, M = job.shape
        self._out = out
        self._job, self._ask, self._scores = replace(job, sizes=scores.sizes), options, scores
        self._ranges = _ranges_of(job)
        counted = torch.empty(0, 0).bool() if counted is None else counted[:, 0]
        sink = scores.inputs.sink
        sinks = torch.tensor([-torch.inf]) if sink is None else sink[:, 0]
        self.tasks, self._parts = _cut(self._job)
        self._sums = Statistics.empty(job, options, scores.inputs.query)
        self._of_map = [rows_of_map(options, part) for part in self._parts]
        self._received = torch.zeros(len(self._parts), B, H, M)
        self._pooled = [torch.zeros_like(self._sums.pooled[:, :, rows]) for rows in self._of_map]
        self._memory = list[Tensor]()
        self._loops = statistics
        # As the loop reads and writes them: conversions in a task hold the interpreter's lock.
        self._visibility = statistics.Visibility(*map(as_array, (*self._ranges, counted, sinks)))
        parts = zip(self._received, self._pooled, strict=True)
        self._written = [
            statistics.StatisticsOutput(
                *map(as_array, self._sums._replace(received=received, pooled=pooled))
            )
            for received, pooled in parts
        ]

    def do(self, number: int) -> None:
        task = self.tasks[number]
        with torch.inference_mode(False), torch.no_grad():
            memory = self._memory.pop() if self._memory else self._scores.memory()
            for block in self._blocks(task):
                scores = self._scores.of(block._replace(hidden=None), memory)
                factors = scores.new_empty(scores.shape[:3] if self._out is not None else (0, 0, 0))
                self._loops.summarize(
                    scores.numpy(),
                    _pieces_of(block),
                    _hidden_of(block),
                    self._visibility,
                    self._written[task.part],
                    self._loops.StatisticsBlock(*self._offsets(block, task.part)),
                    factors.numpy(),
                )
                if self._out is not None:
                    mixed = scores @ keys_of(self._scores.inputs.value, block)
                    rows_of(self._out, block).copy_(mixed.mul_(factors.unsqueeze(-1)))
            self._memory.append(memory)

    def finished(self) -> Statistics:
        """Sum the parts, when the tasks are done."""
        for rows, received, pooled in zip(self._of_map, self._received, self._pooled, strict=True):
            self._sums.received.add_(received)
            self._sums.pooled[:, :, rows] += pooled
        return self._sums

    def _blocks(self, task: _HeadBlock) -> Iterator[Block]:
        """The blocks of a task, with the hidden keys that the ranges leave out."""
        job, is_exact = self._job, len(self._ranges.first) > 0
        for rows, every in job.stripes(self._parts[task.part]):
            keys = self._keys_within(rows, every, task.batch) if is_exact else every
            together = max(1, job.sizes.pairs // (len(rows) * max(1, sum(map(len, keys)))))
            heads = min(len(task.heads), together) if job.sizes.splits_heads else len(task.heads)
            for batch in pieces(task.batch, max(1, together // len(task.heads))) if keys else ():
                unseen = job.mask.hidden(rows, keys, batch) if job.mask and not is_exact else None
                for some in pieces(task.heads, heads):
                    yield Block(batch, some, rows, keys, of_heads(unseen, some))

    def _keys_within(self, rows: range, keys: tuple[range, ...], batch: range) -> tuple[range, ...]:
        """The keys that some batch rows see of those that any does."""
        if len(self._ranges.first) == 1:
            return keys
        corner = slice(batch.start, batch.stop), slice(rows.start, rows.stop)
        first, stop = (bound[corner] for bound in self._ranges)
        low = int(first.masked_fill(first >= stop, self._job.shape[3]).min())
        high = int(stop.masked_fill(first >= stop, 0).max())
        cut = (range(max(low, piece.start), min(high, piece.stop)) for piece in keys)
        return tuple(piece for piece in cut if piece)

    def _offsets(self, block: Block, part: int) -> tuple[int, ...]:
        """Position of a block, as the loop reads it."""
        (row, key), (height, width) = self._ask.start, self._ask.bucket
        above = row // height + self._of_map[part].start
        corner = block.batch.start, block.heads.start, block.rows.start
        shift = self._job.shape[3] - self._job.shape[2]
        return (*corner, shift, row - above * height, height, key % width, width)


def _ranges_of(job: BlockPass) -> KeyRanges:
    """Range of keys that each query sees, if a range says it all; else without entries."""
    form = None if job.mask is None else job.mask.form
    if form is None or not form.is_exact:
        return KeyRanges(*torch.empty(2, 0, 0, dtype=torch.int32))
    return KeyRanges.of(form, *job.shape[2:], torch.device("cpu"))


def _cut(job: BlockPass) -> tuple[list[_HeadBlock], list[range]]:
    """The tasks, and the parts of the queries that their numbers are about."""
    # The last queries come first, as they often see most. Where a mask costs more than a glance,
    # all heads share it.
    B, H, N, M = job.shape
    width, rows = M, min(N, _ROWS)
    if job.mask is not None:
        width = min(M, job.mask.width + rows)
    is_cheap = job.mask is None or job.mask.is_range
    together = max(1, _PAIRS_OF_HEADS // (rows * width))
    heads = min(H, together) if job.sizes.splits_heads and is_cheap else H
    corners = [
        (batch, some)
        for batch in pieces(range(B), max(1, together // H))
        for some in pieces(range(H), heads)
    ]
    worth = B * H * N * width // _PAIRS_OF_A_TASK
    count = max(1, min(_PARTS, min(_TASKS, worth) // len(corners)))
    parts = list(pieces(range(N), -(-N // (count * _ROWS)) * _ROWS))
    tasks = [
        _HeadBlock(*corner, part) for part in reversed(range(len(parts))) for corner in corners
    ]
    return tasks, parts


def _pieces_of(block: Block) -> NDArray[np.int64]:
    """The keys of a block as the loop is told: first key, first column, column after the last."""
    stops = list(accumulate(map(len, block.keys)))
    rows = [(s.start, stop - len(s), stop) for s, stop in zip(block.keys, stops, strict=True)]
    return np.array(rows, np.int64)


def _hidden_of(block: Block) -> NDArray[np.generic]:
    """Mask of a block, with an entry for every key; empty where all are visible."""
    if block.hidden is None:
        return as_array(torch.empty(0, 0, 0, 0, dtype=torch.bool))
    shape = (1, 1, 1, *block.hidden.shape)[-4:-1]
    return as_array(block.hidden.expand(*shape, sum(map(len, block.keys))))
