"""Arithmetic on scores and weights where some are −∞ and hidden values may be NaN; random bits."""

from collections.abc import Callable
from functools import wraps
from math import e, log2
from typing import Concatenate, ParamSpec, TypeAlias, TypeVar

import numpy as np
import torch
from jaxtyping import Float, Int32
from numpy.typing import NDArray
from torch import Tensor

from regard.attention.engine.request import without_autocast
from regard.attention.masks.bound import BoundMask
from regard.kernels import why_not

LOG2_E = log2(e)
# Batch rows, heads, queries and keys of a tile.
Block = tuple[range, range, range, range]
C = TypeVar("C")
P = ParamSpec("P")
R = TypeVar("R")


def mask_scores(scores: Tensor, hidden: Tensor | None) -> Tensor:
    """Scores with −∞ where they are hidden."""
    if hidden is None:
        return scores
    if scores.device.type == "cpu" and 2 * hidden.numel() <= scores.numel() and is_finite(scores):
        # Adding is many times as fast there, and right where there is no NaN.
        penalty = torch.zeros(hidden.shape, dtype=scores.dtype).masked_fill_(hidden, float("-inf"))
        return scores + penalty
    return scores.masked_fill(hidden, float("-inf"))


def exp_of(tensor: Tensor) -> Tensor:
    """``exp`` in place: by way of 2^x, which torch works out faster on a CPU."""
    return tensor.mul_(LOG2_E).exp2_()


def divisor(total: Tensor) -> Tensor:
    """A sum of powers to divide by: one where nothing is visible."""
    return total.masked_fill(total == 0, 1)


def without_unseen(mask: BoundMask | None, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
    """Keys and values with zeros where no query looks, if NaN or infinities are there."""
    # 0 · NaN is NaN, so it must not be in the tensors at all; where asking is free, finite ones are
    # kept.
    if mask is None or (key.device.type == "cpu" and is_finite(key) and is_finite(value)):
        return key, value
    hidden = mask.unseen_of(key)
    if hidden is None:
        return key, value
    return key.masked_fill(hidden, 0), value.masked_fill(hidden, 0)


def mix(weights: Tensor, value: Tensor, hidden: Tensor | None) -> Tensor:
    """``weights @ value``, where a NaN in a value reaches only the queries that see it."""
    out = weights @ value
    if hidden is not None and not is_finite(out):
        bad = ~value.isfinite()
        reached = (~hidden).to(value.dtype).expand(weights.shape) @ bad.to(value.dtype)
        clean = weights @ value.masked_fill(bad, 0)
        out = torch.where(reached > 0, out, clean)
    return out


def in_input_dtypes(
    backward: Callable[Concatenate[C, Tensor, P], R],
) -> Callable[Concatenate[C, Tensor, P], R]:
    """Run a backward pass in the dtypes of its tensors, even under automatic precision."""

    # It works the scores out again, and they must be those of the forward pass.
    @wraps(backward)
    def run(ctx: C, d_out: Tensor, /, *grads: P.args, **options: P.kwargs) -> R:
        with without_autocast(d_out.device.type):
            return backward(ctx, d_out, *grads, **options)

    return run


def is_finite(tensor: Tensor) -> bool:
    """Whether the sum is finite; if so, all of it is."""
    total = tensor.detach().sum().item()
    if total - total == 0:
        return True
    # Of float16, sums go beyond its range where nothing is wrong.
    return tensor.dtype is torch.float16 and is_finite(tensor.detach().float())


def as_array(tensor: Tensor) -> NDArray[np.generic]:
    """The numbers of a tensor on a CPU, side by side, as compiled loops take them."""
    return tensor.detach().contiguous().numpy()


Operand: TypeAlias = tuple[NDArray[np.generic], tuple[int, int, int, int]]


def operand(tensor: Tensor) -> Operand:
    """Numbers of a storage, a tensor's first, and the steps of batch row, head and position."""
    N, D = tensor.shape[2:]
    if tensor.stride(3) != 1 or (N > 1 and tensor.stride(2) < D):
        tensor = tensor.contiguous()
    batch, head, position, _ = tensor.stride()
    count = tensor.untyped_storage().nbytes() // tensor.element_size()
    numbers = torch.as_strided(tensor.detach(), (count,), (1,), 0).numpy()
    return numbers, (int(tensor.storage_offset()), batch, head, max(position, D))


# Random numbers are a function of (seed, batch, head, query, key): the same however the work is
# cut into tiles, and drawn again for a backward pass instead of stored.

# Multipliers of a 32-bit mixer ("lowbias32") found by exhaustive search for little bias:
# https://github.com/skeeto/hash-prospector. Python's ints are cut to signed 32 bits.
_ONE, _TWO = 0x7FEB352D, 0x846CA68B
GOLDEN = 0x9E3779B9


def dropout_factors(
    seed: int, rate: float, block: Block, *, like: Tensor
) -> Float[Tensor, "b h n m"]:
    """Dropout factors of a tile's weights: 0, or 1 / (1 − rate), in the dtype of ``like``."""
    growth = 1 / (1 - rate)
    is_plain = like.device.type == "cpu" and like.dtype is torch.float32 and type(like) is Tensor
    if is_plain and why_not() is None:
        from regard.kernels.attention.dropout import write_factors

        out = torch.empty([len(run) for run in block])
        base, firsts = seed * GOLDEN % 2**32, tuple(run.start for run in block)
        write_factors(base, firsts, dropout_threshold(rate) + 2**31, growth, out.numpy())
        return out
    bits = _bits(seed, block, like.device)
    return (bits >= dropout_threshold(rate)).to(like.dtype).mul_(growth)


def gumbel_noise(seed: int, block: Block, *, like: Tensor) -> Float[Tensor, "b h n m"]:
    """Gumbel noise: the key whose score plus noise is largest is a draw from the softmax."""
    bits = _bits(seed, block, like.device)
    # In float64: the 32 bits are to reach both ends of the interval, yet neither 0 nor 1.
    uniform = bits.double().add_(2**31 + 0.5).mul_(2.0**-32)
    return -(-uniform.log()).log().to(like.dtype)


def dropout_threshold(rate: float) -> int:
    """The number below which 32 random bits, signed, drop a weight."""
    return int(rate * 2**32) - 2**31


def bits_of_queries(
    seed: int, batch: range, heads: range, queries: range, device: torch.device
) -> Int32[Tensor, "b h n"]:
    """Random bits of each query."""
    bits = torch.tensor(_signed(seed * GOLDEN), dtype=torch.int32, device=device)
    for axis, run in enumerate((batch, heads, queries)):
        bits = _mix(bits + _indices(run, device).reshape((-1,) + (1,) * (2 - axis)))
    return bits


def bits_of_keys(keys: range, device: torch.device) -> Int32[Tensor, " m"]:
    """Random bits of each key; those of a pair are ``mix(query ^ key)``."""
    return _mix(_indices(keys, device))


def _bits(seed: int, block: Block, device: torch.device) -> Tensor:
    batch, heads, queries, keys = block
    of_rows = bits_of_queries(seed, batch, heads, queries, device)
    return _mix(of_rows.unsqueeze(-1) ^ bits_of_keys(keys, device))


def _indices(run: range, device: torch.device) -> Tensor:
    positions = torch.arange(run.start, run.stop, dtype=torch.int32, device=device)
    return positions.mul_(_signed(GOLDEN))


def _mix(bits: Tensor) -> Tensor:
    """Hash a 32-bit number: every bit of the result depends on every bit of it."""
    bits = bits ^ ((bits >> 16) & 0xFFFF)
    bits.mul_(_signed(_ONE))
    bits ^= (bits >> 15) & 0x1FFFF
    bits.mul_(_signed(_TWO))
    bits ^= (bits >> 16) & 0xFFFF
    return bits


def _signed(number: int) -> int:
    return (number + 2**31) % 2**32 - 2**31
