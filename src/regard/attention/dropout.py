"""Dropout of attention weights that is a function of the place: (seed, batch, head, query, key).

The same weight is dropped however the work is cut into tiles, and the backward pass asks again
instead of keeping a mask.
"""

import torch
from jaxtyping import Float
from torch import Tensor

# Multipliers of a 32-bit mixer ("lowbias32") found by exhaustive search for little bias:
# https://github.com/skeeto/hash-prospector. Python's ints are cut to signed 32 bits.
_ONE, _TWO = 0x7FEB352D, 0x846CA68B
_GOLDEN = 0x9E3779B9


def kept(
    seed: int,
    rate: float,
    batch: range,
    heads: range,
    queries: range,
    keys: range,
    *,
    like: Tensor,
) -> Float[Tensor, "b h n m"]:
    """What each weight of a tile is multiplied by: 0, or 1 / (1 − rate).

    Args:
        seed: Chooses the pattern.
        rate: The fraction that is dropped.
        batch: Places of the tile on each axis.
        heads: See ``batch``.
        queries: See ``batch``.
        keys: See ``batch``.
        like: A tensor of the dtype and device that are wanted.

    Example:
        >>> whole = kept(1, 0.5, range(1), range(1), range(2), range(6), like=torch.ones(1))
        >>> tile = kept(1, 0.5, range(1), range(1), range(1, 2), range(2, 5), like=whole)
        >>> torch.equal(whole[..., 1:2, 2:5], tile)
        True
    """
    bits = torch.tensor(_signed(seed * _GOLDEN), dtype=torch.int32, device=like.device)
    for axis, places in enumerate((batch, heads, queries, keys)):
        place = torch.arange(places.start, places.stop, dtype=torch.int32, device=like.device)
        place = place.mul_(_signed(_GOLDEN)).reshape((-1,) + (1,) * (3 - axis))
        bits = _mix(bits + place if axis < 3 else bits ^ _mix(place))
    threshold = int(rate * 2**32) - 2**31
    return (bits >= threshold).to(like.dtype).mul_(1 / (1 - rate))


def _mix(bits: Tensor) -> Tensor:
    """Every bit of the result depends on every bit of a 32-bit number."""
    bits = bits ^ ((bits >> 16) & 0xFFFF)
    bits.mul_(_signed(_ONE))
    bits ^= (bits >> 15) & 0x1FFFF
    bits.mul_(_signed(_TWO))
    bits ^= (bits >> 16) & 0xFFFF
    return bits


def _signed(number: int) -> int:
    return (number + 2**31) % 2**32 - 2**31
