"""Masks of the first keys of a row: padding at its end, and prefixes."""

from collections.abc import Sequence
from functools import cached_property
from math import prod
from typing import final

import torch
from jaxtyping import Int
from torch import Tensor

from regard.attention.masks.base import Mask, as_numbers, check_device, check_whole, written
from regard.attention.masks.grid import Cover, Grid, Stretch
from regard.errors import ShapeError


def lengths(n: Int[Tensor, "..."] | Sequence[int] | int) -> Mask:
    """Only the first ``n`` keys: what padding at the end asks for.

    Args:
        n: How many keys are real: one number, one per batch row (B,), or one per batch row and
            query (B, N). Where there are several batch axes, B counts them flattened.

    Raises:
        ShapeError: ``n`` is not of integers or has more than two axes.

    Example:
        >>> print(lengths([2, 3]).draw(2, 4))
        1 1 . .
        1 1 . .
        <BLANKLINE>
        1 1 1 .
        1 1 1 .
    """
    return _Lengths(as_numbers("lengths", n))


def prefix(n: Int[Tensor, "..."] | Sequence[int] | int) -> Mask:
    """The first ``n`` keys, for every query: ``prefix(n) | causal()`` is a prefix language model.

    Unlike :func:`lengths`, ``n`` may exceed the number of keys, as in the first steps of decoding.

    Args:
        n: How many keys: one number, or one per batch row (B,).

    Raises:
        ShapeError: ``n`` is not of integers or has more than two axes.

    Example:
        >>> from regard.attention import causal
        >>> print((prefix(2) | causal()).draw(3, 3))
        1 1 .
        1 1 .
        1 1 1
    """
    return _Lengths(as_numbers("prefix", n), name="prefix", is_bounded=False)


@final
class _Lengths(Mask):
    def __init__(self, n: Tensor, *, name: str = "lengths", is_bounded: bool = True) -> None:
        super().__init__()
        check_whole(name, n)
        if n.dim() > 2:
            raise ShapeError(f"{name} must have shape (), (B,) or (B, N); got {tuple(n.shape)}.")
        self.name, self.is_bounded = name, is_bounded
        # A copy, so that what is worked out stays true when the caller's tensor changes.
        self.n = n.detach().clone()

    def __repr__(self) -> str:
        return f"{self.name}({written(self.n)})"

    # Read when they are asked for: a compiler that traces the making of a mask has no numbers.
    @cached_property
    def least(self) -> int | None:
        """The smallest number, where reading it is cheap."""
        return int(self.n.min()) if self._is_at_hand else None

    @cached_property
    def most(self) -> int | None:
        """The largest number, where reading it is cheap."""
        return int(self.n.max()) if self._is_at_hand else None

    @property
    def _is_at_hand(self) -> bool:
        return not self.n.is_cuda and self.n.numel() > 0

    def check(self, grid: Grid) -> None:
        B, N = prod(grid.batch), grid.queries
        if self.n.shape not in ((), (B,), (B, N)):
            raise ShapeError(
                f"{self.name} must have shape (B,) = ({B},) or (B, N) = ({B}, {N}); "
                f"got {tuple(self.n.shape)}."
            )
        check_device(self.name, self.n, grid)
        if self.least is not None and self.least < 0:
            raise ShapeError(f"{self.name} must be at least 0; got {self.least}.")
        if self.is_bounded and self.most is not None and self.most > grid.keys:
            raise ShapeError(f"{self.name} must be at most M = {grid.keys}; got {self.most}.")

    def cover(self, grid: Grid, rows: range, keys: range) -> Cover | None:
        if self.least is not None and keys.stop <= self.least:
            return Cover.ALL
        if self.most is not None and keys.start >= self.most:
            return Cover.NONE
        return None

    def pairs(self, grid: Grid, rows: range | Stretch, keys: range | Stretch) -> Tensor:
        n = self.n[:, rows.start : rows.stop] if self.n.dim() == 2 else self.n.reshape(-1, 1)
        places = torch.arange(keys.start, keys.stop, device=self.n.device)
        return places < n[:, None, :, None]

    def formula(self, grid: Grid) -> Tensor:
        return self.pairs(grid, Stretch(0, grid.queries), Stretch(0, grid.keys))

    def extent(self, grid: Grid) -> tuple[int, int, int, int]:
        N = self.n.shape[1] if self.n.dim() == 2 else 1
        return (self.n.shape[0] if self.n.dim() else 1, 1, N, grid.keys)
