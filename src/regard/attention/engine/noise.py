"""Random numbers that are a function of the place: (seed, batch, head, query, key).

They are the same however the work is cut into tiles, and a backward pass asks for them again
instead of keeping them.
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
    bits = _bits(seed, (batch, heads, queries, keys), like.device)
    threshold = int(rate * 2**32) - 2**31
    return (bits >= threshold).to(like.dtype).mul_(1 / (1 - rate))


def gumbel(
    seed: int,
    batch: range,
    heads: range,
    queries: range,
    keys: range,
    *,
    like: Tensor,
) -> Float[Tensor, "b h n m"]:
    """Gumbel noise: the key whose score plus noise is largest is a draw from the softmax.

    Args:
        seed: Chooses the draw.
        batch: Places of the tile on each axis.
        heads: See ``batch``.
        queries: See ``batch``.
        keys: See ``batch``.
        like: A tensor of the dtype and device that are wanted.
    """
    bits = _bits(seed, (batch, heads, queries, keys), like.device)
    # In float64: the 32 bits are to reach both ends of the interval, yet neither 0 nor 1.
    uniform = bits.double().add_(2**31 + 0.5).mul_(2.0**-32)
    return -(-uniform.log()).log().to(like.dtype)


def _bits(seed: int, places: tuple[range, range, range, range], device: torch.device) -> Tensor:
    """32 random bits for each place of a tile."""
    bits = torch.tensor(_signed(seed * _GOLDEN), dtype=torch.int32, device=device)
    for axis, run in enumerate(places):
        place = torch.arange(run.start, run.stop, dtype=torch.int32, device=device)
        place = place.mul_(_signed(_GOLDEN)).reshape((-1,) + (1,) * (3 - axis))
        bits = _mix(bits + place if axis < 3 else bits ^ _mix(place))
    return bits


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
