"""Attention over dot products by compiled loops: blocks, tasks, and whose sums are whose.

``kernels.attention.dot`` describes the loops. Where a mask is a range of keys for each query, the
whole grid is one block; other masks are laid out block by block. Tasks are heads and parts of their
queries, cut without regard to the number of threads: so is the answer.
"""

from collections.abc import Iterable, Iterator, Sequence
from copy import copy
from itertools import chain, product
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from regard.attention.engine.blocks import Block, BlockInputs, BlockPass
from regard.attention.engine.numerics import (
    as_array,
    bits_of_keys,
    bits_of_queries,
    dropout_threshold,
    operand,
)
from regard.attention.masks.grid import KeyRanges
from regard.attention.weighting import Weighting
from regard.kernels.threads import parallel_for, share_out

if TYPE_CHECKING:
    from regard.kernels.attention.dot import GridBlock, PairTerms

# Queries of a tile, and keys: products want many; along a narrow band, fewer have more keys in
# common. With all keys, as many queries as make so many scores, and no fewer than some.
_TILE, _NARROW_TILE, _NARROW, _KEYS = 128, 64, 1024, 256
_SCORES, _FEWEST = 2**16, 16
# Multiplications of a task that are worth handing to a thread, which waits for the interpreter, of
# the backward pass: about a millisecond; and of the forward pass, where none waits.
_TASK, _FORWARD_TASK = 2**25, 2**22
# Tasks into which the backward pass is cut, if heads are fewer. A part of a head takes memory for
# the gradients of its keys and values: there are fewer where that would be more than so many
# numbers, or than such a share of the part's scores.
MOST_PARTS, _FEWER_PARTS, _NUMBERS, _SHARE = 32, 8, 2**24, 1 / 4
_Span: TypeAlias = tuple[int, int]
_Array: TypeAlias = NDArray[np.generic]


class _Block(NamedTuple):
    """A part of the grid as the loops take it, with all heads."""

    grid: "GridBlock"
    pairs: "PairTerms"  # terms of pairs besides products
    batch: range
    rows: range
    keys: range
    is_last: bool  # the same queries see no more keys in the next block


class DotLoops:
    """A call as the loops read it; a position bias is a number for each distance."""

    def __init__(
        self, job: BlockPass, scale: float, ranges: KeyRanges | None, inputs: BlockInputs
    ) -> None:
        from regard.kernels.attention import dot
        from regard.kernels.attention.weightings import CODES

        self.loops, self.job, self.scale, self.ranges, self.inputs = dot, job, scale, ranges, inputs
        name = job.weighting.compiled_as
        self.weighting = None if name is None else CODES[name]
        query, key, value = inputs[:3]
        self.group = query.shape[1] // key.shape[1]
        sizes = dot.Sizes(query.shape[2], self.group, key.shape[3], value.shape[3])
        self._operands = (sizes, *map(operand, (query, key, value)))
        width = job.shape[3]
        if ranges is not None:
            width = min(width, max(1, int((ranges.stop - ranges.first).max())))
        self.tile = tile_size(job.weighting, width, job.shape[3])
        # Multiplications for a query.
        self.cost = width * (inputs.key.shape[-1] + inputs.value.shape[-1])

    def answer(self) -> tuple[Tensor, Tensor, Tensor]:
        """The mixed values, the best scores, and the sums of powers relative to them."""
        B, H, N, _ = self.job.shape
        out = torch.zeros(B, H, N, self.inputs.value.shape[-1])
        top = torch.full((B, H, N), torch.finfo(torch.float32).min)
        total = torch.zeros(B, H, N)
        outputs = [tensor.numpy() for tensor in (out, top, total)]
        for block in self._blocks():
            rows, lanes = _multiple(_FORWARD_TASK // self.cost, self.tile[0]), 1
            if rows >= len(block.rows):
                lanes = max(1, _FORWARD_TASK // (self.cost * len(block.rows)))
            cuts = product(_cut(range(len(block.batch) * H), lanes), _cut(block.rows, rows))
            tasks = np.array([(*heads, *queries) for heads, queries in cuts])
            share_out(
                len(tasks),
                len(tasks),
                self.loops.forward,
                tasks,
                *self._operands,
                self.scale,
                self.weighting,
                block.pairs,
                *outputs,
                block.grid,
                block.is_last,
            )
        return out, top, total

    def gradients(self, needs_grad: Sequence[bool], *saved: Tensor) -> list[Tensor | None]:
        """Gradients of ``inputs.flat()`` from (maxima, sums of powers, d_out, d_out · out)."""
        sums = _Sums(self.inputs, needs_grad, self.job.shape)
        top, total, d_out, mean = saved
        arrays = (as_array(top), as_array(total), operand(d_out), as_array(mean))
        for block in self._blocks():
            units = self._units(block, sums)
            worth = len(block.batch) * self.job.shape[1] * len(block.rows) * self.cost // _TASK
            most = min(gradient_parts(len(units), *self.inputs[:3]), max(1, worth))
            spans = list(_cut(block.rows, _multiple(-(-len(block.rows) // most), self.tile[0])))
            parts = [sums] + [sums.zeros(block.batch, self._keys_of(block, s)) for s in spans[1:]]
            written = [part.arrays for part in parts]

            def add(
                task: int,
                block: _Block = block,
                units: list[list[_Span]] = units,
                spans: list[_Span] = spans,
                parts: list[_Sums] = parts,
                written: list[tuple[_Array, ...]] = written,
            ) -> None:
                unit, number = divmod(task, len(spans))
                for lanes in units[unit]:
                    self.loops.backward(
                        *self._operands,
                        self.scale,
                        self.weighting,
                        block.pairs,
                        *arrays,
                        *written[number],
                        parts[number].origin,
                        block.grid,
                        lanes,
                        spans[number],
                    )

            parallel_for(len(units) * len(spans), add)
            for part in parts[1:]:
                sums.add(part)
        return sums.totals(self.inputs, needs_grad)

    def _blocks(self) -> Iterator[_Block]:
        B, H, N, M = self.job.shape
        if self.job.mask is None or self.ranges is not None:
            grid = self.loops.GridBlock(0, 0, 0, 0, M, H, *self.tile)
            yield _Block(grid, self._pairs(None), range(B), range(N), range(M), True)
            return
        for block in self.job.blocks():
            corner = (block.batch.start, 0, block.rows.start)
            laid_out = _laid_out(block) if self.weighting is None else [_laid_out_whole(block)]
            for keys, hidden in laid_out:
                grid = self.loops.GridBlock(*corner, keys.start, keys.stop, H, *self.tile)
                is_last = keys.stop == block.keys[-1].stop
                yield _Block(grid, self._pairs(hidden), block.batch, block.rows, keys, is_last)

    def _pairs(self, hidden: Tensor | None) -> "PairTerms":
        B, H, N, M = self.job.shape
        first, stop = (None, None) if self.ranges is None else self.ranges
        bits: tuple[Tensor | None, Tensor | None] = (None, None)
        if self.job.dropout:
            device = self.inputs.query.device
            bits = (
                bits_of_queries(self.job.seed, range(B), range(H), range(N), device),
                bits_of_keys(range(M), device),
            )
        return self.loops.PairTerms(
            _or_nothing(first, 2, torch.int32),
            _or_nothing(stop, 2, torch.int32),
            _or_nothing(hidden, 4, torch.uint8),
            _or_nothing(self.inputs.bias, 4, torch.float32),
            _or_nothing(self.inputs.tensors[0] if self.inputs.tensors else None, 3, torch.float32),
            _or_nothing(bits[0], 3, torch.int32),
            _or_nothing(bits[1], 1, torch.int32),
            dropout_threshold(self.job.dropout) + 2**31,
            1 / (1 - self.job.dropout),
        )

    def _units(self, block: _Block, sums: "_Sums") -> list[list[_Span]]:
        """Batch rows and heads in groups; no two of them add to one gradient."""
        H = self.job.shape[1]
        shared = sums.shared_bias
        units: dict[_Span, list[_Span]] = {}
        for lane in range(0, len(block.batch) * H, self.group):
            b, h = divmod(lane, H)
            owner = (b, h) if shared is None else (b % shared.shape[0], h % shared.shape[1])
            units.setdefault(owner, []).append((lane, lane + self.group))
        groups = list(units.values())
        several = max(1, _TASK // (self.cost * len(block.rows) * self.group))
        return [
            _joined(chain.from_iterable(groups[start : start + several]))
            for start in range(0, len(groups), several)
        ]

    def _keys_of(self, block: _Block, rows: _Span) -> range:
        """The keys that some queries of a block see, from the first to the last."""
        if self.ranges is None:
            return block.keys
        first, stop = (bound[:, slice(*rows)] for bound in self.ranges)
        sees = stop > first
        M = self.job.shape[3]
        start = int(torch.where(sees, first, M).min())
        return range(max(0, start), max(start, min(M, int(torch.where(sees, stop, 0).max()))))


class _Sums:
    """Gradients of everything, or of a part of the queries beside them."""

    def __init__(
        self, inputs: BlockInputs, needs_grad: Sequence[bool], shape: tuple[int, int, int, int]
    ) -> None:
        B, H, N, M = shape
        self.query, self.key, self.value = (torch.zeros(t.shape) for t in inputs[:3])
        self.batch, self.keys = range(B), range(M)
        # Of a bias that all queries share, each has a sum for every batch row and head.
        self.bias, self.shared_bias, self.steps = None, None, None
        if inputs.bias is not None and needs_grad[3]:
            is_of_all = inputs.bias.shape[2] < N
            self.bias = torch.zeros((B, H, 1, M) if is_of_all else inputs.bias.shape)
            self.shared_bias = None if is_of_all else self.bias
        if any(needs_grad[6:]):
            self.steps = torch.zeros(B, H, N + M - 1)

    def zeros(self, batch: range, keys: range) -> "_Sums":
        """Sums for some batch rows and keys, all zero, beside which others may be added to."""
        part = copy(self)
        part.batch, part.keys = batch, keys
        part.key, part.value = (
            torch.zeros(len(batch), t.shape[1], len(keys), t.shape[3])
            for t in (self.key, self.value)
        )
        if self.bias is not None and self.shared_bias is None:
            part.bias = torch.zeros_like(self.bias)
        part.steps = None if self.steps is None else torch.zeros_like(self.steps)
        return part

    @property
    def arrays(self) -> tuple[_Array, ...]:
        """Arrays that the loops accumulate into."""
        return (
            self.query.numpy(),
            self.key.numpy(),
            self.value.numpy(),
            _or_nothing(self.bias, 4, torch.float32),
            _or_nothing(self.steps, 3, torch.float32),
        )

    @property
    def origin(self) -> _Span:
        """The first batch row and key of the gradients of keys and values."""
        return self.batch.start, self.keys.start

    def add(self, part: "_Sums") -> None:
        batch, keys = (slice(run.start, run.stop) for run in (part.batch, part.keys))
        self.key[batch, :, keys] += part.key
        self.value[batch, :, keys] += part.value
        if self.bias is not None and part.bias is not None and part.bias is not self.bias:
            self.bias += part.bias
        if self.steps is not None and part.steps is not None:
            self.steps += part.steps

    def totals(self, inputs: BlockInputs, needs_grad: Sequence[bool]) -> list[Tensor | None]:
        """The gradients that are wanted, in the shapes of their tensors."""
        totals = (self.query, self.key, self.value, self.bias, None, None, self.steps)
        return [
            None if total is None or tensor is None or not want else total.sum_to_size(tensor.shape)
            for total, tensor, want in zip(totals, inputs.flat(), needs_grad, strict=False)
        ]


def tile_size(weighting: Weighting, width: int, keys: int) -> tuple[int, int]:
    """The number of queries and of keys in a tile, where a query sees up to ``width`` keys."""
    if weighting.compiled_as is None:
        return _TILE if width > _NARROW else _NARROW_TILE, _KEYS
    return max(_FEWEST, min(_TILE, _SCORES // width // _FEWEST * _FEWEST)), keys


def gradient_parts(units: int, query: Tensor, key: Tensor, value: Tensor) -> int:
    """Number of parts into which queries may be cut for the gradients of keys and values."""
    least = (key.shape[-1] + value.shape[-1]) / _SHARE
    room = min(_NUMBERS // (key.numel() + value.numel()), int(query.shape[2] / least))
    return max(1, min(MOST_PARTS // units, max(_FEWER_PARTS // units, room)))


def _or_nothing(tensor: Tensor | None, axes: int, dtype: torch.dtype) -> _Array:
    """The numbers of a tensor, or an array without entries for None."""
    return as_array(torch.empty((0,) * axes, dtype=dtype) if tensor is None else tensor)


def _laid_out(block: Block) -> Iterator[tuple[range, Tensor | None]]:
    """The pieces of a block's keys; where their pairs are hidden, (b or 1, h or 1, n or 1, m)."""
    start = 0
    for keys in block.keys:
        columns = slice(start, start + len(keys))
        start += len(keys)
        hidden = block.hidden
        if hidden is not None:
            hidden = hidden.reshape((1,) * (4 - hidden.dim()) + hidden.shape)
            if hidden.shape[3] > 1:
                hidden = hidden[..., columns]
            hidden = hidden.expand(-1, -1, -1, len(keys)).to(torch.uint8)
        yield keys, hidden


def _laid_out_whole(block: Block) -> tuple[range, Tensor | None]:
    """Lay out all keys from the first piece to the last as one; keys between pieces are masked."""
    parts = list(_laid_out(block))
    if len(parts) == 1:
        return parts[0]
    keys = range(block.keys[0].start, block.keys[-1].stop)
    axes = next((hidden.shape[:3] for _, hidden in parts if hidden is not None), (1, 1, 1))
    whole = torch.ones(*axes, len(keys), dtype=torch.uint8)
    for piece, hidden in parts:
        part = whole[..., piece.start - keys.start : piece.stop - keys.start]
        part.copy_(torch.zeros(()) if hidden is None else hidden)
    return keys, whole


def _cut(run: range, most: int) -> Iterator[_Span]:
    for start in range(run.start, run.stop, most):
        yield start, min(start + most, run.stop)


def _joined(spans: Iterable[_Span]) -> list[_Span]:
    """Spans, of which neighbours become one: a call of a loop costs more than a short sentence."""
    joined: list[_Span] = []
    for start, stop in spans:
        if joined and joined[-1][1] == start:
            joined[-1] = (joined[-1][0], stop)
        else:
            joined.append((start, stop))
    return joined


def _multiple(number: int, of: int) -> int:
    """The first multiple of ``of`` from a number on, and no less than one of it."""
    return max(1, -(-number // of)) * of
