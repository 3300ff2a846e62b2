"""Random numbers that are a function of the place: (seed, batch, head, query, key).

They are the same however the work is cut into tiles, and a backward pass asks for them again
instead of keeping them.
"""

import torch
from jaxtyping import Float, Int32
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
    """Dropout factors of a tile's weights: 0, or 1 / (1 − rate).

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
    return (bits >= threshold_of(rate)).to(like.dtype).mul_(1 / (1 - rate))


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


def threshold_of(rate: float) -> int:
    """Below which 32 random bits, signed, drop a weight."""
    return int(rate * 2**32) - 2**31


def bits_of_queries(
    seed: int, batch: range, heads: range, queries: range, device: torch.device
) -> Int32[Tensor, "b h n"]:
    """Random bits of each query."""
    bits = torch.tensor(_signed(seed * _GOLDEN), dtype=torch.int32, device=device)
    for axis, run in enumerate((batch, heads, queries)):
        bits = _mix(bits + _places(run, device).reshape((-1,) + (1,) * (2 - axis)))
    return bits


def bits_of_keys(keys: range, device: torch.device) -> Int32[Tensor, " m"]:
    """Random bits of each key; those of a pair are ``mix(query ^ key)``."""
    return _mix(_places(keys, device))


def _bits(seed: int, places: tuple[range, range, range, range], device: torch.device) -> Tensor:
    """32 random bits for each place of a tile."""
    batch, heads, queries, keys = places
    of_rows = bits_of_queries(seed, batch, heads, queries, device)
    return _mix(of_rows.unsqueeze(-1) ^ bits_of_keys(keys, device))


def _places(run: range, device: torch.device) -> Tensor:
    place = torch.arange(run.start, run.stop, dtype=torch.int32, device=device)
    return place.mul_(_signed(_GOLDEN))


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
