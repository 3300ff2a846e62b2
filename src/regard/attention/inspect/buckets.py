"""Buckets of places: how a map of at most so many rows and columns stands for a long sequence.

A bucket holds ``width`` places, and ``width`` is a power of two: a wider bucket is then a whole
number of narrower ones, so that maps of parts of a sequence add up exactly.
"""

from collections.abc import Iterator

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional as F

from regard.errors import ShapeError


def width_of(start: int, length: int, most: int) -> int:
    """The smallest power of two that leaves at most ``most`` buckets.

    Args:
        start: The place of the first of what is to be pooled.
        length: How many there are.
        most: How many buckets there may be; one that starts amid a bucket needs two for two places.

    Example:
        >>> width_of(0, 64, 64), width_of(0, 65, 64), width_of(60, 70, 64)
        (1, 2, 2)
    """
    width = 1
    while count_of(start, length, width) > max(1, most) and width < start + length:
        width *= 2
    return width


def count_of(start: int, length: int, width: int) -> int:
    """How many buckets hold places ``start`` to ``start + length``.

    Example:
        >>> count_of(6, 3, 4)
        2
    """
    return (start % width + length + width - 1) // width


def parts_of(start: int, length: int, width: int) -> Iterator[tuple[int, int]]:
    """Neighbouring places as buckets of one size each: how many, and how many places in each.

    Example:
        >>> list(parts_of(3, 10, 4))
        [(1, 1), (2, 4), (1, 1)]
    """
    before = min(-start % width, length)
    whole, after = divmod(length - before, width)
    return (
        (count, size) for count, size in ((1, before), (whole, width), (1, after)) if count * size
    )


def numbers_of(
    places: Int[Tensor, " n"] | range, start: int, width: int, device: torch.device | None = None
) -> Int[Tensor, " n"]:
    """The bucket of each place, the first being that of place ``start``."""
    if isinstance(places, range):
        places = torch.arange(places.start, places.stop, device=device)
    return places // width - start // width


def widened(
    pooled: Float[Tensor, "*b R"], start: int, width: int, wider: int
) -> Float[Tensor, "*b W"]:
    """The last axis in wider buckets.

    Args:
        pooled: Sums over buckets of ``width`` places.
        start: The place of the first that was pooled.
        width: Of the buckets now.
        wider: Of those wanted: ``width`` times a power of two.
    """
    times = wider // width
    if times == 1:
        return pooled
    before = start // width % times
    after = -(before + pooled.shape[-1]) % times
    padded = F.pad(pooled, (before, after))
    return padded.reshape(*pooled.shape[:-1], padded.shape[-1] // times, times).sum(dim=-1)


def laid_in(
    total: Float[Tensor, "*b R"],
    start: int,
    width: int,
    part: Float[Tensor, "*b r"],
    part_start: int,
    part_width: int,
) -> None:
    """Add sums over buckets of a part to those of the whole, on the last axis.

    Raises:
        ShapeError: Buckets of the part lie in two of the whole.
    """
    if width % part_width:
        raise ShapeError(
            f"buckets of a part must not be wider than those of the whole; got {part_width} "
            f"and {width}."
        )
    part = widened(part, part_start, part_width, width)
    first = part_start // width - start // width
    total[..., first : first + part.shape[-1]] += part
