"""The mask of several texts packed into one row."""

from collections.abc import Sequence
from functools import cached_property
from math import prod
from typing import final

import torch
from jaxtyping import Int
from torch import Tensor

from regard.attention.masks.base import Mask, check_device, check_whole, written
from regard.attention.masks.grid import Cover, Form, Grid, Segment, Segments
from regard.errors import ShapeError


def documents(
    query_ids: Int[Tensor, "..."] | Sequence[int], key_ids: Int[Tensor, "..."] | None = None
) -> Mask:
    """Keys of the query's own document: several texts packed into one row.

    Args:
        query_ids: The number of each query's document: (N,), or (B, N) if batch rows differ.
        key_ids: The same of each key; None if queries and keys stand at the same places.

    Raises:
        ShapeError: The numbers are no integers or have more than two axes.

    Example:
        >>> print(documents([0, 0, 1]).draw(3, 3))
        1 1 .
        1 1 .
        . . 1
    """
    queries = torch.as_tensor(query_ids)
    return _Documents(queries, queries if key_ids is None else torch.as_tensor(key_ids))


@final
class _Documents(Mask):
    def __init__(self, query_ids: Tensor, key_ids: Tensor) -> None:
        super().__init__()
        for ids in (query_ids, key_ids):
            check_whole("documents", ids)
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
        one, other = (
            ids.cpu().reshape(-1, ids.shape[-1]) for ids in (self.query_ids, self.key_ids)
        )
        return one, other

    def cover(self, grid: Grid, rows: range, keys: range) -> Cover | None:
        queries, others = self._at_hand
        if not len(rows) or not len(keys):
            return Cover.NONE
        q = queries[:, rows.start : rows.stop].aminmax(dim=1)
        k = others[:, keys.start : keys.stop].aminmax(dim=1)
        if bool(((q.max < k.min) | (k.max < q.min)).all()):
            return Cover.NONE
        if bool(((q.min == q.max) & (k.min == k.max) & (q.min == k.min)).all()):
            return Cover.ALL
        return None

    def pairs(self, grid: Grid, rows: range, keys: range) -> Tensor:
        query = self.query_ids[..., rows.start : rows.stop].reshape(-1, 1, len(rows), 1)
        key = self.key_ids[..., keys.start : keys.stop].reshape(-1, 1, 1, len(keys))
        return query == key

    def extent(self, grid: Grid) -> tuple[int, int, int, int]:
        B = max(len(ids) for ids in self._at_hand)
        return (B, 1, grid.queries, grid.keys)

    def form(self, grid: Grid) -> Form | None:
        queries, keys = self._at_hand
        B = max(len(queries), len(keys))
        found: list[Segment] = []
        for b in range(B):
            of_queries, of_keys = (_runs(ids[b % len(ids)]) for ids in (queries, keys))
            if of_queries is None or of_keys is None:
                return None
            found += [Segment(b, rows, of_keys.get(n, range(0))) for n, rows in of_queries.items()]
        return Segments(tuple(found), B, None, is_exact=True)


def _runs(ids: Tensor) -> dict[int, range] | None:
    """Where each number stands, or None if one stands in two places."""
    numbers, counts = torch.unique_consecutive(ids, return_counts=True)
    found: dict[int, range] = {}
    start = 0
    for number, count in zip(numbers.tolist(), counts.tolist(), strict=True):
        if number in found:
            return None
        found[number] = range(start, start + count)
        start += count
    return found
