"""Masks of keys near the query's own place: causal ones, and windows."""

from dataclasses import astuple
from typing import final

import torch
from torch import Tensor

from regard.attention.masks.base import Mask
from regard.attention.masks.grid import Band, Cover, Form, Grid, Stretch
from regard.checks import check_at_least
from regard.errors import SettingError


def causal(first: int | None = None) -> Mask:
    """Keys up to the query's own place: no looking ahead.

    Args:
        first: The place of query 0 among the keys. None lines the last query up with the last
            key, so that a decoding step over cached keys needs no special case.

    Example:
        >>> print(causal().draw(2, 4))
        1 1 1 .
        1 1 1 1
        >>> print(causal(first=0).draw(2, 4))
        1 . . .
        1 1 . .
    """
    return window(after=0, first=first)


def window(before: int | None = None, after: int | None = None, first: int | None = None) -> Mask:
    """Keys near the query's own place: restricted self-attention, Vaswani et al. (2017), section 4.

    Args:
        before: How many keys before its own place a query sees; None is all of them.
        after: How many keys after its own place it sees; None is all of them.
        first: The place of query 0 among the keys. None lines the last query up with the last key.

    Raises:
        SettingError: ``before`` or ``after`` is below 0.

    Example:
        >>> print(window(before=1, after=0).draw(4, 4))
        1 . . .
        1 1 . .
        . 1 1 .
        . . 1 1
        >>> print(window(before=0, after=1, first=1).draw(2, 4))
        . 1 1 .
        . . 1 1
    """
    for name, number in (("before", before), ("after", after), ("first", first)):
        if isinstance(number, float | str):
            raise SettingError(f"{name} must be a whole number or None; got {number!r}.")
        if number is not None and name != "first":
            check_at_least(name, number, 0)
    return _Window(before, after, first)


@final
class _Window(Mask):
    def __init__(self, before: int | None, after: int | None, first: int | None) -> None:
        super().__init__()
        self.before, self.after, self.first = before, after, first

    def __repr__(self) -> str:
        name = "causal" if (self.before, self.after) == (None, 0) else "window"
        sides = {} if name == "causal" else {"before": self.before, "after": self.after}
        given = {**sides, "first": self.first}.items()
        return f"{name}({', '.join(f'{key}={n}' for key, n in given if n is not None)})"

    def band(self, grid: Grid) -> Band:
        """The window as a stripe of the grid."""
        first = grid.keys - grid.queries if self.first is None else self.first
        least = None if self.before is None else first - self.before
        return Band(least, None if self.after is None else first + self.after, is_exact=True)

    def cover(self, grid: Grid, rows: range, keys: range) -> Cover | None:
        least, most, _ = astuple(self.band(grid))
        first, last = rows.start, rows.stop - 1  # the corners that see least and most
        if (least is None or keys.start >= last + least) and (
            most is None or keys.stop - 1 <= first + most
        ):
            return Cover.ALL
        if (least is not None and keys.stop - 1 < first + least) or (
            most is not None and keys.start > last + most
        ):
            return Cover.NONE
        return None

    def pairs(self, grid: Grid, rows: range | Stretch, keys: range | Stretch) -> Tensor:
        band = self.band(grid)
        least, most = band.least, band.most
        query = torch.arange(rows.start, rows.stop, device=grid.device)[:, None]
        key = torch.arange(keys.start, keys.stop, device=grid.device)
        sizes = (rows.stop - rows.start, keys.stop - keys.start)
        seen = torch.ones(sizes, dtype=torch.bool, device=grid.device)
        if least is not None:
            seen &= key >= query + least
        if most is not None:
            seen &= key <= query + most
        return seen

    def formula(self, grid: Grid) -> Tensor:
        return self.pairs(grid, Stretch(0, grid.queries), Stretch(0, grid.keys))

    def extent(self, grid: Grid) -> tuple[int, int, int, int]:
        return (1, 1, grid.queries, grid.keys)

    def form(self, grid: Grid) -> Form | None:
        return self.band(grid)
