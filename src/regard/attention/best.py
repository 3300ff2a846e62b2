"""The best places of each row, exactly: of equal ones, those that come first."""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

# Fewer are looked through at once; of more, first the best of every group.
_GROUP, _MANY_GROUPS = 32, 4


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
    values, places = _candidates(rows, min(count + 1, m), tops)
    values, places = _first_of_equals(values, places)
    if m > count:
        tied = (values[..., count] == values[..., count - 1]) & (
            values[..., count - 1] > float("-inf")
        )
        if count and bool(tied.any()):
            places = places.clone()
            places[tied] = _with_ties(rows[tied], places[tied], values[tied][:, count - 1])
        values, places = values[..., :count], places[..., :count]
    missing = count - places.shape[-1]
    is_there = values != float("-inf")
    if missing > 0:
        is_there = torch.nn.functional.pad(is_there, (0, missing))
        places = torch.nn.functional.pad(places, (0, missing))
    return places.masked_fill(~is_there, 0), is_there


def tops_of(rows: Float[Tensor, "*b m"]) -> Float[Tensor, "*b g"] | None:
    """The best of every group of neighbours, or None where that does not help."""
    m = rows.shape[-1]
    if m < _GROUP * _MANY_GROUPS:
        return None
    whole = m // _GROUP * _GROUP
    tops = rows[..., :whole].reshape(*rows.shape[:-1], -1, _GROUP).amax(dim=-1)
    if whole == m:
        return tops
    return torch.cat([tops, rows[..., whole:].amax(dim=-1, keepdim=True)], dim=-1)


def _candidates(rows: Tensor, count: int, tops: Tensor | None) -> tuple[Tensor, Tensor]:
    """The best values with their places. They lie in the groups that have the best tops."""
    m = rows.shape[-1]
    if tops is None:
        tops = tops_of(rows)
    if tops is None or tops.shape[-1] <= count * _MANY_GROUPS:
        values, places = rows.topk(count, dim=-1)
        return values, places
    groups = tops.topk(count, dim=-1, sorted=False).indices
    inside = torch.arange(_GROUP, device=rows.device)
    places = (groups.unsqueeze(-1) * _GROUP + inside).flatten(-2)
    found = rows.gather(-1, places.clamp_max(m - 1)).masked_fill_(places >= m, float("-inf"))
    values, which = found.topk(count, dim=-1)
    return values, places.gather(-1, which)


def _first_of_equals(values: Tensor, places: Tensor) -> tuple[Tensor, Tensor]:
    """The same, of equal values the one with the smaller place first."""
    if not bool((values[..., 1:] == values[..., :-1]).any()):
        return values, places
    places, order = places.sort(dim=-1)
    values, again = values.gather(-1, order).sort(dim=-1, descending=True, stable=True)
    return values, places.gather(-1, again)


def _with_ties(rows: Tensor, places: Tensor, least: Tensor) -> Tensor:
    """Places of which the last few are the first in the row that are as good as ``least``."""
    count = places.shape[-1] - 1
    least = least.unsqueeze(-1)
    room = count - (rows > least).sum(dim=-1, keepdim=True)
    is_least = rows == least
    taken = (rows > least) | (is_least & (is_least.cumsum(dim=-1) <= room))
    found = taken.nonzero()[:, 1].reshape(-1, count)
    values = rows.gather(-1, found)
    order = values.sort(dim=-1, descending=True, stable=True).indices
    return torch.cat([found.gather(-1, order), places[:, count:]], dim=-1)
