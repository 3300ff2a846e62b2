"""The masks: windows, lengths and prefixes, packed documents, and rules that a user writes."""

from collections.abc import Callable, Sequence
from functools import cached_property
from math import prod
from typing import final

import torch
from jaxtyping import Int
from torch import Tensor

from regard.attention.masks.base import Mask, as_numbers, check_device, check_integers, written
from regard.attention.masks.grid import Band, Cover, Form, Grid, OpenRange, Segment, Segments
from regard.checks import check_at_least, check_whole
from regard.errors import SettingError, ShapeError, excerpt


def causal(first: int | None = None) -> Mask:
    """Keys up to the query's own position: no looking ahead.

    Args:
        first: The position of query 0 among the keys. None lines the last query up with the last
            key, so that a decoding step over cached keys needs no special case.

    Example:
        >>> print(causal().draw(2, 4))
        1 1 1 .
        1 1 1 1
        >>> print(causal(first=0).draw(2, 4))
        1 . . .
        1 1 . .
    """
    return _Window(None, 0, None) if first is None else window(after=0, first=first)


def window(before: int | None = None, after: int | None = None, first: int | None = None) -> Mask:
    """Keys near the query's position: restricted self-attention, Vaswani et al. (2017), section 4.

    Args:
        before: How many keys before its own position a query sees; None is all of them.
        after: How many keys after its own position it sees; None is all of them.
        first: The position of query 0 among the keys. None aligns the last query with the last key.

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
        if number is not None and (type(number) is not int or number < 0):
            check_whole(name, number)
            if name != "first":
                check_at_least(name, number, 0)
    return _Window(before, after, first)


@final
class _Window(Mask):
    def __init__(self, before: int | None, after: int | None, first: int | None) -> None:
        self.before, self.after, self.first = before, after, first
        self.alike = ("window", before, after, first)

    def __repr__(self) -> str:
        name = "causal" if (self.before, self.after) == (None, 0) else "window"
        sides = {} if name == "causal" else {"before": self.before, "after": self.after}
        values = {**sides, "first": self.first}.items()
        return f"{name}({', '.join(f'{key}={n}' for key, n in values if n is not None)})"

    def form(self, grid: Grid) -> Band:
        first = grid.keys - grid.queries if self.first is None else self.first
        least = None if self.before is None else first - self.before
        return Band(least, None if self.after is None else first + self.after, is_exact=True)

    def cover(self, grid: Grid, rows: range, keys: range) -> Cover | None:
        band = self.form(grid)
        least, most = band.least, band.most
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

    def pairs(self, grid: Grid, rows: range | OpenRange, keys: range | OpenRange) -> Tensor:
        band = self.form(grid)
        least, most = band.least, band.most
        query = torch.arange(rows.start, rows.stop, device=grid.device)[:, None]
        key = torch.arange(keys.start, keys.stop, device=grid.device)
        sizes = (rows.stop - rows.start, keys.stop - keys.start)
        visible = torch.ones(sizes, dtype=torch.bool, device=grid.device)
        if least is not None:
            visible &= key >= query + least
        if most is not None:
            visible &= key <= query + most
        return visible

    def formula(self, grid: Grid) -> Tensor:
        return self.pairs(grid, OpenRange(0, grid.queries), OpenRange(0, grid.keys))

    def extent(self, grid: Grid) -> tuple[int, int, int, int]:
        return (1, 1, grid.queries, grid.keys)


def lengths(n: Int[Tensor, "..."] | Sequence[int] | int) -> Mask:
    """Mask of padding at the end: the first ``n`` keys are visible.

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
    return _Lengths(n if isinstance(n, Tensor) else as_numbers("lengths", n))


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
        check_integers(name, n)
        if n.dim() > 2:
            raise ShapeError(f"{name} must have shape (), (B,) or (B, N); got {tuple(n.shape)}.")
        self.name, self.is_bounded = name, is_bounded
        # A copy, so that cached results stay true when the caller's tensor changes.
        self.n = n.detach().clone()

    def __repr__(self) -> str:
        return f"{self.name}({written(self.n)})"

    # Read when they are asked for: a compiler that traces the making of a mask has no numbers.
    @cached_property
    def ends(self) -> tuple[int, int] | None:
        """The smallest and the largest number, where reading them is cheap."""
        if self.n.is_cuda or not self.n.numel():
            return None
        return int(self.n.min()), int(self.n.max())

    def check(self, grid: Grid) -> None:
        B, N = prod(grid.batch), grid.queries
        if self.n.shape not in ((), (B,), (B, N)):
            raise ShapeError(
                f"{self.name} must have shape (B,) = ({B},) or (B, N) = ({B}, {N}); "
                f"got {tuple(self.n.shape)}."
            )
        if self.n.device != grid.device:
            check_device(self.name, self.n, grid)
        if self.ends is None:
            return
        least, most = self.ends
        if least < 0:
            raise ShapeError(f"{self.name} must be at least 0; got {least}.")
        if self.is_bounded and most > grid.keys:
            raise ShapeError(f"{self.name} must be at most M = {grid.keys}; got {most}.")

    def cover(self, grid: Grid, rows: range, keys: range) -> Cover | None:
        if self.ends is None:
            return None
        least, most = self.ends
        if keys.stop <= least:
            return Cover.ALL
        return Cover.NONE if keys.start >= most else None

    def pairs(self, grid: Grid, rows: range | OpenRange, keys: range | OpenRange) -> Tensor:
        n = self.n[:, rows.start : rows.stop] if self.n.dim() == 2 else self.n.reshape(-1, 1)
        positions = torch.arange(keys.start, keys.stop, device=self.n.device)
        return positions < n[:, None, :, None]

    def formula(self, grid: Grid) -> Tensor:
        return self.pairs(grid, OpenRange(0, grid.queries), OpenRange(0, grid.keys))

    def extent(self, grid: Grid) -> tuple[int, int, int, int]:
        N = self.n.shape[1] if self.n.dim() == 2 else 1
        return (self.n.shape[0] if self.n.dim() else 1, 1, N, grid.keys)


def documents(
    query_ids: Int[Tensor, "..."] | Sequence[int],
    key_ids: Int[Tensor, "..."] | Sequence[int] | None = None,
) -> Mask:
    """Keys of the query's own document: several texts packed into one row.

    Args:
        query_ids: The number of each query's document: (N,), or (B, N) if batch rows differ.
        key_ids: The same of each key; None if queries and keys stand at the same positions.

    Raises:
        ShapeError: The numbers are no integers or have more than two axes.

    Example:
        >>> print(documents([0, 0, 1]).draw(3, 3))
        1 1 .
        1 1 .
        . . 1
    """
    queries = as_numbers("documents", query_ids)
    return _Documents(queries, queries if key_ids is None else as_numbers("documents", key_ids))


@final
class _Documents(Mask):
    def __init__(self, query_ids: Tensor, key_ids: Tensor) -> None:
        for ids in (query_ids, key_ids):
            check_integers("documents", ids)
            if ids.dim() not in (1, 2):
                raise ShapeError(
                    f"documents must have shape (N,) or (B, N); got {tuple(ids.shape)}."
                )
        self.query_ids = query_ids.detach().clone()
        self.key_ids = self.query_ids if key_ids is query_ids else key_ids.detach().clone()

    def __repr__(self) -> str:
        ids = (
            (self.query_ids,) if self.key_ids is self.query_ids else (self.query_ids, self.key_ids)
        )
        return f"documents({', '.join(map(written, ids))})"

    def check(self, grid: Grid) -> None:
        B = prod(grid.batch)
        for ids, letter, size in (
            (self.query_ids, "N", grid.queries),
            (self.key_ids, "M", grid.keys),
        ):
            if ids.shape not in ((size,), (B, size), (1, size)):
                raise ShapeError(
                    f"documents must have shape ({letter},) = ({size},) or (B, {letter}) = "
                    f"({B}, {size}); got {tuple(ids.shape)}."
                )
            check_device("documents", ids, grid)

    @cached_property
    def _at_hand(self) -> tuple[Tensor, Tensor]:
        """The numbers of queries and of keys as (B, N) and (B, M), where reading them is cheap."""
        return _by_row(self.query_ids).cpu(), _by_row(self.key_ids).cpu()

    def cover(self, grid: Grid, rows: range, keys: range) -> Cover | None:
        queries, numbers_of_keys = self._at_hand
        if not len(rows) or not len(keys):
            return Cover.NONE
        q = queries[:, rows.start : rows.stop].aminmax(dim=1)
        k = numbers_of_keys[:, keys.start : keys.stop].aminmax(dim=1)
        if bool(((q.max < k.min) | (k.max < q.min)).all()):
            return Cover.NONE
        if bool(((q.min == q.max) & (k.min == k.max) & (q.min == k.min)).all()):
            return Cover.ALL
        return None

    def pairs(self, grid: Grid, rows: range, keys: range) -> Tensor:
        query = _by_row(self.query_ids)[:, None, rows.start : rows.stop, None]
        return query == _by_row(self.key_ids)[:, None, None, keys.start : keys.stop]

    def extent(self, grid: Grid) -> tuple[int, int, int, int]:
        B = max(len(ids) for ids in self._at_hand)
        return (B, 1, grid.queries, grid.keys)

    def form(self, grid: Grid) -> Form | None:
        queries, keys = self._at_hand
        B = max(len(queries), len(keys))
        segments: list[Segment] = []
        for b in range(B):
            of_queries, of_keys = (_runs(ids[b % len(ids)]) for ids in (queries, keys))
            if of_queries is None or of_keys is None:
                return None
            segments += [
                Segment(b, rows, of_keys.get(n, range(0))) for n, rows in of_queries.items()
            ]
        return Segments(tuple(segments), B, None, is_exact=True)


def _by_row(ids: Tensor) -> Tensor:
    """Numbers of documents as (B, N), of any N."""
    return ids if ids.dim() == 2 else ids.unsqueeze(0)


def _runs(ids: Tensor) -> dict[int, range] | None:
    """Position of each number, or None if one stands in two positions."""
    numbers, counts = torch.unique_consecutive(ids, return_counts=True)
    runs: dict[int, range] = {}
    start = 0
    for number, count in zip(numbers.tolist(), counts.tolist(), strict=True):
        if number in runs:
            return None
        runs[number] = range(start, start + count)
        start += count
    return runs


def where(visible: Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]) -> Mask:
    """A custom rule: a function of the numbers of batch row, head, query and key.

    Args:
        visible: Called as ``visible(batch, head, query, key)`` with integer tensors that broadcast
            to (B, H, n, m); gives a boolean tensor that does, True where the query may look. It
            is asked tile by tile. Where there are several batch axes, batch rows are counted
            flattened.

    Raises:
        ShapeError: When the mask is used: the answer is not boolean, or of another shape.

    Example:
        >>> print(where(lambda batch, head, query, key: (query - key) % 2 == 0).draw(3, 3))
        1 . 1
        . 1 .
        1 . 1
    """
    if not callable(visible):
        raise SettingError(
            f"where must be given a function of batch, head, query and key; got {excerpt(visible)}."
        )
    return _Where(visible)


@final
class _Where(Mask):
    def __init__(self, visible: Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]) -> None:
        self.visible = visible

    def __repr__(self) -> str:
        return f"where({getattr(self.visible, '__name__', type(self.visible).__name__)})"

    def check(self, grid: Grid) -> None:
        if grid.queries and grid.keys:
            self.pairs(grid, range(1), range(1))

    def pairs(self, grid: Grid, rows: range, keys: range) -> Tensor:
        ranges = (range(prod(grid.batch)), range(grid.heads or 1), rows, keys)
        positions = [torch.arange(r.start, r.stop, device=grid.device) for r in ranges]
        shapes = [tuple(-1 if axis == number else 1 for axis in range(4)) for number in range(4)]
        tile = self.visible(*(p.reshape(shape) for p, shape in zip(positions, shapes, strict=True)))
        whole = tuple(len(r) for r in ranges)
        if not isinstance(tile, Tensor) or tile.dtype != torch.bool:
            came = tile.dtype if isinstance(tile, Tensor) else type(tile).__name__
            raise ShapeError(f"where must give a boolean tensor; got {came}.")
        pairs = zip(reversed(tile.shape), reversed(whole), strict=False)
        if tile.dim() > 4 or any(have not in (1, want) for have, want in pairs):
            raise ShapeError(
                f"where must give a tensor that broadcasts to (B, H, n, m) = {whole}; "
                f"got {tuple(tile.shape)}."
            )
        return tile
