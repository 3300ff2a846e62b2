"""The best places of each row, exactly: of equal ones, those that come first."""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn import functional as F

# Places of a group, and how many times as many as are asked for make groups worth while.
_GROUP, _MANY = 8, 16
# Rows up to so long are sorted whole on a CPU: numpy sorts them without a branch, and `topk` waits
# five times as long for its branches.
_SHORT = 256


def best_of(
    rows: Float[Tensor, "*b m"], count: int
) -> tuple[Int[Tensor, "*b K"], Bool[Tensor, "*b K"]]:
    """The ``count`` best places of each row, the best first, and which of them there are.

    Args:
        rows: Scores; −inf is no place at all.
        count: K. Where fewer are there, the rest are zeros.

    Example:
        >>> best_of(torch.tensor([1.0, 3.0, -torch.inf, 3.0]), 2)
        (tensor([1, 3]), tensor([True, True]))
    """
    return _settled(rows, *_candidates(rows, min(count + 1, rows.shape[-1])), count)


def _settled(rows: Tensor, values: Tensor, places: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """The best ``count``, of one more that tells whether what is left out is as good."""
    m = rows.shape[-1]
    values, places = _first_of_equals(values, places)
    if 0 < count < m:
        least = values[..., count - 1]
        is_tied = (values[..., count] == least) & (least > float("-inf"))
        if bool(is_tied.any()):
            places[is_tied] = F.pad(_with_ties(rows[is_tied], least[is_tied], count), (0, 1))
    is_there = F.pad(values[..., :count] != float("-inf"), (0, max(0, count - m)))
    places = F.pad(places[..., :count], (0, max(0, count - m)))
    return places.masked_fill(~is_there, 0), is_there


def _candidates(rows: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """The best values with their places. They lie in the groups that have the best tops.

    Places of a group are equally far apart, since that is the quickest to look through; the last
    places, too few for one more of each group, are looked at by themselves.
    """
    m = rows.shape[-1]
    if m < _MANY * count:
        return _top(rows, count)
    groups = m // _GROUP
    grouped: Tensor = rows[..., : groups * _GROUP].unflatten(-1, (_GROUP, groups))  # type: ignore[no-untyped-call]
    _, best = _candidates(grouped.amax(dim=-2), count)
    inside = torch.arange(0, _GROUP * groups, groups, device=rows.device)
    places = (best.unsqueeze(-1) + inside).flatten(-2)
    rest = torch.arange(_GROUP * groups, m, device=rows.device)
    return _among(rows, places, rest, count)


def _among(rows: Tensor, places: Tensor, rest: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """The best values with their places, among some places of each row and others of all."""
    if len(rest):
        places = torch.cat([places, rest.expand(*places.shape[:-1], -1)], dim=-1)
    values, which = _top(rows.gather(-1, places), count)
    return values, places.gather(-1, which)


def _top(rows: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """The best values of each row and their places, the best first."""
    if rows.device.type != "cpu" or rows.dtype != torch.float32 or rows.shape[-1] > _SHORT:
        values, places = rows.topk(count, dim=-1)
        return values, places
    # Value and place in one integer: the bits of a float, those of a negative one turned round,
    # are in the order of its value.
    bits = (rows + 0.0).view(torch.int32)  # −0 is 0
    bits = bits ^ ((bits >> 31) & 0x7FFFFFFF)
    last = rows.shape[-1] - 1
    both = bits.long().bitwise_left_shift_(32).bitwise_or_(torch.arange(last, -1, -1))
    both.numpy().sort(axis=-1)
    places = last - (both[..., -count:].flip(-1) & 0xFFFFFFFF)
    return rows.gather(-1, places), places


def _first_of_equals(values: Tensor, places: Tensor) -> tuple[Tensor, Tensor]:
    """Stable top-k: of equal values the one with the smaller index first."""
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
