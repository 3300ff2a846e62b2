"""The N×M grid of queries and keys: sizes, tiles, forms, ranges of keys, tensors laid over it."""

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from itertools import groupby
from typing import NamedTuple

import torch
from jaxtyping import Bool
from torch import Tensor
from torch.nn import functional as F


class Cover(Enum):
    """State of a whole tile, where it is known without looking at every pair.

    Example:
        >>> from regard.attention import lengths
        >>> bound = lengths([2]).bind(batch=1, heads=1, queries=3, keys=4)
        >>> bound.tile(range(3), range(0, 2)), bound.tile(range(3), range(2, 4))
        (<Cover.ALL: 'all visible'>, <Cover.NONE: 'all hidden'>)
    """

    ALL = "all visible"
    NONE = "all hidden"


Tile = Cover | Tensor


@dataclass(frozen=True, slots=True)
class Band:
    """A stripe along the diagonal: query i sees nothing but keys ``i + least`` to ``i + most``."""

    least: int | None  # None: from the first key
    most: int | None  # None: to the last key
    is_exact: bool  # whether everything in the stripe is visible

    def key_range(self, rows: range, keys: int) -> range:
        """The keys of the stripe that some query of ``rows`` may see, of ``keys`` in all."""
        if self.is_empty:
            return range(0)
        first = 0 if self.least is None else max(0, rows.start + self.least)
        last = keys - 1 if self.most is None else min(keys - 1, rows.stop - 1 + self.most)
        return range(first, last + 1) if last >= first else range(0)

    def key_ranges(self, rows: range, keys: int) -> list[range]:
        """``key_range`` as the only piece."""
        return [self.key_range(rows, keys)]

    @property
    def is_empty(self) -> bool:
        """Whether no query sees any key."""
        return self.least is not None and self.most is not None and self.most < self.least

    def __and__(self, band: "Band") -> "Band":
        """Intersection of two stripes."""
        least = [bound for bound in (self.least, band.least) if bound is not None]
        most = [bound for bound in (self.most, band.most) if bound is not None]
        return Band(
            max(least, default=None), min(most, default=None), self.is_exact and band.is_exact
        )


class OpenRange(NamedTuple):
    """A range whose ends a compiler may leave open, where ``range`` would ask for numbers."""

    start: int
    stop: int


class Segment(NamedTuple):
    """Neighbouring queries of one batch row, and the neighbouring keys they may see."""

    batch: int
    rows: range
    keys: range


@dataclass(frozen=True, slots=True)
class Segments:
    """Pieces of the grid outside of which nothing is visible; no two share a query."""

    segments: tuple[Segment, ...]  # row after row, from the first query to the last
    batch: int  # how many batch rows they tell apart; those of one hold for all
    band: Band | None  # a stripe that the visible part of the pieces lies in
    is_exact: bool  # whether all that is in the pieces, and in the stripe, is visible

    @property
    def pairs(self) -> int:
        """The most pairs that the pieces of one batch row hold on average."""
        return sum(len(one.rows) * len(one.keys) for one in self.segments) // max(1, self.batch)

    def key_ranges(self, rows: range, keys: int) -> list[range]:
        """The keys that some query of ``rows`` may see, from the first piece to the last."""
        ranges = []
        for one in self._meeting(rows):
            those = range(max(rows.start, one.rows.start), min(rows.stop, one.rows.stop))
            reach = range(keys) if self.band is None else self.band.key_range(those, keys)
            ranges.append(range(max(reach.start, one.keys.start), min(reach.stop, one.keys.stop)))
        return sorted((one for one in ranges if one), key=lambda one: one.start)

    def are_in_order(self, queries: int, keys: int) -> bool:
        """Whether the pieces of each row hold every query and every key, one after the other."""
        for _, segments in groupby(self.segments, key=lambda segment: segment.batch):
            row = key = 0
            for segment in segments:
                if segment.rows.start != row or segment.keys.start != key or not len(segment.keys):
                    return False
                row, key = segment.rows.stop, segment.keys.stop
            if (row, key) != (queries, keys):
                return False
        return True

    def _meeting(self, rows: range) -> Iterator[Segment]:
        """The pieces that hold some of ``rows``, found without going through all."""
        for b in range(self.batch):
            first = bisect_right(
                self.segments, (b, rows.start), key=lambda r: (r.batch, r.rows.stop)
            )
            for one in map(self.segments.__getitem__, range(first, len(self.segments))):
                if one.batch != b or one.rows.start >= rows.stop:
                    break
                yield one


Form = Band | Segments


@dataclass(frozen=True, slots=True)
class Grid:
    """The sizes a mask is applied to."""

    batch: tuple[int, ...]  # sizes of the batch axes; their product is B
    heads: int | None  # None where the tensors have no axis of heads
    queries: int
    keys: int
    device: torch.device

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape that a dense mask must broadcast to: (*batch, heads, N, M)."""
        heads = () if self.heads is None else (self.heads,)
        return (*self.batch, *heads, self.queries, self.keys)

    def accepts(self, shape: tuple[int, ...]) -> bool:
        """Whether a tensor of this shape broadcasts to the grid."""
        pairs = zip(reversed(shape), reversed(self.shape), strict=False)
        return len(shape) <= len(self.shape) and all(have in (1, want) for have, want in pairs)


def as_tensor(tile: Tile, grid: Grid) -> Bool[Tensor, "..."]:
    """A tile as a boolean tensor, of size one where it is all the same."""
    if isinstance(tile, Tensor):
        return tile
    return torch.full((1, 1, 1, 1), tile is Cover.ALL, device=grid.device)


def lift(tensor: Tensor, grid: Grid) -> Tensor:
    """A tensor that broadcasts to ``grid.shape`` as one that broadcasts to (B, H, N, M)."""
    if tensor.dim() < 2:
        return tensor.reshape(1, -1)
    if grid.heads is None and tensor.dim() > 2:
        tensor = tensor.unsqueeze(-3)
    if len(grid.batch) > 1 and tensor.dim() > 3:
        tensor = tensor.expand(*grid.batch, *tensor.shape[-3:])
    return tensor.flatten(0, -4) if tensor.dim() > 4 else tensor


def cut(tensor: Tensor, rows: range, keys: range) -> Tensor:
    """The tile of a tensor that broadcasts to (..., N, M)."""
    if tensor.dim() > 1 and tensor.shape[-2] > 1:
        tensor = tensor[..., rows.start : rows.stop, :]
    if tensor.dim() > 0 and tensor.shape[-1] > 1:
        tensor = tensor[..., keys.start : keys.stop]
    return tensor


class KeyRanges(NamedTuple):
    """Keys ``first`` to before ``stop``, int32 that broadcast to (B, N); some may be outside."""

    first: Tensor
    stop: Tensor

    @classmethod
    def of(cls, form: Form, N: int, M: int, device: torch.device) -> "KeyRanges":
        """The ranges of a band, or of segments, in which no query is twice."""
        first, stop = torch.zeros(1, N, dtype=torch.int32), torch.full((1, N), M, dtype=torch.int32)
        if isinstance(form, Segments):
            first, stop = first.repeat(form.batch, 1), torch.zeros(form.batch, N, dtype=torch.int32)
            for b, rows, keys in form.segments:
                first[b, rows.start : rows.stop] = keys.start
                stop[b, rows.start : rows.stop] = keys.stop
        first, stop = first.to(device), stop.to(device)
        band = form if isinstance(form, Band) else form.band
        positions = torch.arange(N, dtype=torch.int32, device=device)
        if band is not None and band.least is not None:
            first = torch.maximum(first, positions + max(-N, min(band.least, M)))
        if band is not None and band.most is not None:
            stop = torch.minimum(stop, positions + max(-N, min(band.most, M)) + 1)
        return cls(first, stop)

    @classmethod
    def of_all(cls, visible: Tensor, N: int, M: int) -> "KeyRanges":
        """The ranges where all queries of a batch row see the same keys, (b, M)."""
        positions = torch.arange(M, dtype=torch.int32, device=visible.device)
        first = torch.where(visible, positions, M).amin(dim=1, keepdim=True)
        stop = torch.where(visible, positions + 1, 0).amax(dim=1, keepdim=True)
        return cls(first.repeat(1, N), stop.repeat(1, N))

    def turned(self, M: int, *, rows: int, keys: int) -> "KeyRanges":
        """Range of queries, in blocks of ``rows``, that see each block of ``keys`` keys."""
        # Between the first and the last block of queries there may be some that do not see the
        # keys.
        missing = -self.first.shape[1] % rows
        first = (
            F.pad(self.first, (0, missing), value=M).reshape(len(self.first), -1, rows).amin(dim=2)
        )
        stop = F.pad(self.stop, (0, missing), value=0).reshape(len(self.stop), -1, rows).amax(dim=2)
        start = torch.arange(0, M, keys, dtype=torch.int32, device=first.device)
        meets = (first[:, :, None] < start + keys) & (stop[:, :, None] > start)
        blocks = first.shape[1]
        positions = torch.arange(blocks, dtype=torch.int32, device=first.device)[:, None]
        begin = torch.where(meets, positions, blocks).amin(dim=1)
        end = torch.where(meets, positions + 1, 0).amax(dim=1)
        return KeyRanges(begin * rows, end * rows)
