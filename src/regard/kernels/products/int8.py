"""Products of states with weights in int8: states are rounded as they come, each by itself.

Where the processor adds up four products of bytes at once (AVX-512 VNNI), states are rounded to
eight bits; elsewhere, where it adds up two products of sixteen bits, to as many as the sum has room
for, fourteen at most: what is lost is lost by the weights. Sums are whole numbers, so that a
state's product does not depend on its neighbours. Weights lie in panels of some outputs, in each of
which as many inputs of an output stand together as are added up at once, and nowhere else: the
vector of a token is read from there as well.

Buys 1.6 to 3.8 times the tokens per second of float32: ``benchmarks/records/decoding_speed.json``.
"""

import numpy as np
from jaxtyping import Int, Int8

from regard.kernels.compiling import compiled, in_order, shared
from regard.kernels.elementary import largest_absolute, whole
from regard.kernels.products.packed import PAIRED_OUTPUTS, Bytes, Pairs, has, tiling
from regard.kernels.vectors import copy

f32, i32, i64 = np.float32, np.int32, np.int64

HAS_BYTES = has("avx512vnni")
# Outputs side by side, inputs of one that stand together, and what states are rounded to.
OUTPUTS, INPUTS, ROUNDED = (16, 4, np.int8) if HAS_BYTES else (PAIRED_OUTPUTS, 2, np.int16)
# Of two bytes that are multiplied one has no sign: weights are so much more than they are.
_SHIFT, _LARGEST = (128, 127) if HAS_BYTES else (0, 2**14 - 1)

_by_tiles = tiling(Bytes if HAS_BYTES else Pairs)


def pack(values: Int8[np.ndarray, "O I"]) -> Int8[np.ndarray, "o i p"]:
    """Packed weights, with zeros where inputs and outputs are missing."""
    outputs, inputs = values.shape
    o, i = -(-outputs // OUTPUTS), -(-inputs // INPUTS)
    padded = np.zeros((o * OUTPUTS, i * INPUTS), np.int8)
    padded[:outputs, :inputs] = values
    panels = padded.reshape(o, OUTPUTS, i, INPUTS).transpose(0, 2, 1, 3) ^ np.int8(-_SHIFT)
    return np.ascontiguousarray(panels.reshape(o, i, OUTPUTS * INPUTS))


def unpack(
    panels: Int8[np.ndarray, "o i p"], ids: Int[np.ndarray, " N"], inputs: int
) -> Int8[np.ndarray, "N I"]:
    """The weights of some outputs."""
    o, i, _ = panels.shape
    values = panels.reshape(o, i, OUTPUTS, INPUTS)[ids // OUTPUTS, :, ids % OUTPUTS]
    weights: np.ndarray = values.reshape(len(ids), i * INPUTS)[:, :inputs] ^ np.int8(-_SHIFT)
    return weights


@shared
def weight_at(panels, output, place):  # type: ignore[no-untyped-def]
    """One weight."""
    lane = output % OUTPUTS * INPUTS + place % INPUTS
    return i32(panels[output // OUTPUTS, place // INPUTS, lane]) ^ i32(-_SHIFT)


@in_order
def _round_rows(first, stop, states, out, begins, sizes):  # type: ignore[no-untyped-def]
    """Rows as whole numbers, what gives them back, and what undoes the shift in their sums."""
    inputs = states.shape[1]
    most = f32(min(_LARGEST, (2**31 - 1) // (127 * inputs)))
    for r in range(first, stop):
        row, target = states[r], out[r]
        size = largest_absolute(row)
        sizes[r] = size / most
        share = most / size if size > f32(0) else f32(0)
        total = i32(0)
        for c in range(inputs):
            number = whole(row[c] * share)
            target[c] = number
            total += i32(target[c])
        for c in range(inputs, target.size):
            target[c] = 0
        begins[r] = -_SHIFT * total


@shared
def multiply_rows(states, weight, scales, bias, out):  # type: ignore[no-untyped-def]
    """``states @ weightᵀ + bias``, both rounded.

    Args:
        states: (R, I).
        weight: ``pack``.
        scales: What gives back each output's weights, padded to ``OUTPUTS``.
        bias: Zeros where there is none, the same.
        out: (R, O).
    """
    rows, panels = states.shape[0], weight.shape[0]
    rounded = np.empty((rows, INPUTS * weight.shape[1]), ROUNDED)
    begins, sizes = np.empty(rows, np.int32), np.empty(rows, np.float32)
    _round_rows(0, rows, states, rounded, begins, sizes)
    if out.shape[1] == panels * OUTPUTS:
        _by_tiles(i64(0), panels, rounded, weight, begins, sizes, scales, bias, out)
        return
    padded = np.empty((rows, panels * OUTPUTS), np.float32)
    _by_tiles(i64(0), panels, rounded, weight, begins, sizes, scales, bias, padded)
    for r in range(rows):
        copy(padded[r], out[r])


@compiled
def round_part(first, stop, states, out, begins, sizes):  # type: ignore[no-untyped-def]
    """Rows ``first`` to ``stop`` rounded, what their sums begin with, and what gives them back."""
    _round_rows(first, stop, states, out, begins, sizes)


@compiled
def multiply_part(first, stop, states, weight, begins, sizes, scales, bias, out):  # type: ignore[no-untyped-def]
    """Panels ``first`` to ``stop`` of the product; ``out`` has the outputs of whole panels."""
    _by_tiles(first, stop, states, weight, begins, sizes, scales, bias, out)
