"""A mask as GPU kernels take it: from which key to which each query sees, the rest pair by pair.

Most masks are a range of keys for each query and nothing else, which takes memory that grows with N
and lets a kernel pass over all keys outside.
"""

from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from regard.attention.masks.bound import BoundMask
from regard.attention.masks.grid import Band, Form, Segments


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
        """From which to which query, in blocks of ``rows``, each block of ``keys`` keys is seen."""
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


class VisibleKeys(NamedTuple):
    """Keys that a mask leaves visible: those of the ranges that the pairs allow too."""

    ranges: KeyRanges | None
    pairs: Tensor | None  # (B, H, N, M), expanded; None if the ranges say it all
    reach: int  # the most keys from the first to the last that one query sees

    @classmethod
    def of(cls, mask: BoundMask | None, shape: tuple[int, int, int, int]) -> "VisibleKeys":
        """A mask laid over (B, H, N, M); None hides nothing."""
        N, M = shape[2:]
        if mask is None:
            return cls(None, None, M)
        reach, form = M, mask.form
        if isinstance(form, Band) and form.least is not None and form.most is not None:
            reach = max(0, min(M, form.most - form.least + 1))
        ranges = None if form is None else KeyRanges.of(form, N, M, mask.grid.device)
        if is_range(mask):
            return cls(ranges, None, reach)
        pairs = mask.dense()
        is_same_for_all = (1, 1, *pairs.shape)[-3:-1] == (1, 1)
        pairs = pairs.expand(shape)
        if ranges is None and is_same_for_all:
            ranges = KeyRanges.of_all(pairs[:, 0, 0], N, M)
        return cls(ranges, pairs, reach)


def is_range(mask: BoundMask) -> bool:
    """Whether each query sees all keys from one place to another, and the mask knows."""
    return mask.form is not None and mask.form.is_exact
