"""The best places of each row, exactly: of equal ones, those that come first."""

from math import sqrt

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn import functional as F

# Where groups are smaller, looking at every place is as quick.
_SMALLEST_GROUP = 4


def best_of(
    rows: Float[Tensor, "*b m"], count: int, *, tops: Float[Tensor, "*b g"] | None = None
) -> tuple[Int[Tensor, "*b K"], Bool[Tensor, "*b K"]]:
    """The ``count`` best places of each row, the best first, and which of them there are.

    Args:
        rows: Scores; −inf is no place at all.
        count: K. Where fewer are there, the rest are zeros.
        tops: What ``tops_of`` gives, if it is at hand.

    Example:
        >>> best_of(torch.tensor([1.0, 3.0, -torch.inf, 3.0]), 2)
        (tensor([1, 3]), tensor([True, True]))
    """
    m = rows.shape[-1]
    # One more than asked for: it tells whether what is left out is as good as what is taken.
    values, places = _first_of_equals(*_candidates(rows, min(count + 1, m), tops))
    if 0 < count < m:
        least = values[..., count - 1]
        is_tied = (values[..., count] == least) & (least > float("-inf"))
        if bool(is_tied.any()):
            places[is_tied] = F.pad(_with_ties(rows[is_tied], least[is_tied], count), (0, 1))
    is_there = F.pad(values[..., :count] != float("-inf"), (0, max(0, count - m)))
    places = F.pad(places[..., :count], (0, max(0, count - m)))
    return places.masked_fill(~is_there, 0), is_there


def tops_of(rows: Float[Tensor, "*b m"], count: int) -> Float[Tensor, "*b g"] | None:
    """The best of every group of places, or None where ``best_of`` has no use for it.

    Places of a group are equally far apart, since that is the quickest to look through; the last
    places, too few for one more of each group, are in none.
    """
    m = rows.shape[-1]
    size = _group_size(m, count)
    if size < _SMALLEST_GROUP:
        return None
    groups = m // size
    return rows[..., : groups * size].unflatten(-1, (size, groups)).amax(dim=-2)  # type: ignore[no-any-return,no-untyped-call]


def _group_size(m: int, count: int) -> int:
    """Where the best groups and the best places among them are found with the least work."""
    size: int = 2 ** round(sqrt(m / (count + 1))).bit_length() // 2
    return size


def _candidates(rows: Tensor, count: int, tops: Tensor | None) -> tuple[Tensor, Tensor]:
    """The best values with their places. They lie in the groups that have the best tops."""
    m = rows.shape[-1]
    tops = tops_of(rows, count - 1) if tops is None else tops
    if tops is None or tops.shape[-1] < count:
        values, places = rows.topk(count, dim=-1)
        return values, places
    groups = tops.shape[-1]
    size = m // groups
    best = tops.topk(count, dim=-1, sorted=False).indices
    inside = torch.arange(0, size * groups, groups, device=rows.device)
    places = (best.unsqueeze(-1) + inside).flatten(-2)
    if size * groups < m:
        rest = torch.arange(size * groups, m, device=rows.device)
        places = torch.cat([places, rest.expand(*places.shape[:-1], -1)], dim=-1)
    values, which = rows.gather(-1, places).topk(count, dim=-1)
    return values, places.gather(-1, which)


def _first_of_equals(values: Tensor, places: Tensor) -> tuple[Tensor, Tensor]:
    """The same, of equal values the one with the smaller place first."""
    is_equal = (values[..., 1:] == values[..., :-1]) & (values[..., 1:] > float("-inf"))
    if not bool(is_equal.any()):
        return values, places
    places, order = places.sort(dim=-1)
    values, again = values.gather(-1, order).sort(dim=-1, descending=True, stable=True)
    return values, places.gather(-1, again)


def _with_ties(rows: Tensor, least: Tensor, count: int) -> Tensor:
    """All places better than ``least`` and as many of the first as good as it as are wanted."""
    least = least.unsqueeze(-1)
    is_better, is_least = rows > least, rows == least
    room = count - is_better.sum(dim=-1, keepdim=True)
    taken = is_better | (is_least & (is_least.cumsum(dim=-1) <= room))
    places = taken.nonzero()[:, 1].reshape(-1, count)
    order = rows.gather(-1, places).sort(dim=-1, descending=True, stable=True).indices
    return places.gather(-1, order)
