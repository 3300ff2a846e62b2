"""Products with weights in int8.

States are rounded as they come, each by itself. Where the processor adds up four products of bytes
at once (AVX-512 VNNI), to eight bits; elsewhere, where it adds up two products of sixteen bits, to
as many as the sum has room for, fourteen at most: precision is lost by the weights alone. Sums are
whole numbers, so that a state's product does not depend on its neighbours. Weights lie in panels of
some outputs, in each of which as many inputs of an output stand together as are added up at once,
and nowhere else: the vector of a token is read from there as well.

Tokens per second of both precisions: ``benchmarks/records/decoding_speed.json``.
"""

import numpy as np
from jaxtyping import Int, Int8

from regard.kernels.compiling import in_order, shared
from regard.kernels.elementary import largest_absolute, whole
from regard.kernels.products.packed import BYTES, PAIRS, has, tiling
from regard.kernels.team import parallel

f32, i32 = np.float32, np.int32

HAS_BYTES = has("avx512vnni")
# Outputs side by side, inputs of one that stand together, and the type of rounded states.
OUTPUTS, INPUTS, ROUNDED = (16, 4, np.int8) if HAS_BYTES else (8, 2, np.int16)
# Of two bytes that are multiplied one has no sign: weights are so much more than they are.
_SHIFT, _LARGEST = (128, 127) if HAS_BYTES else (0, 2**14 - 1)

by_tiles = tiling(BYTES if HAS_BYTES else PAIRS)


def pack(values: Int8[np.ndarray, "O I"]) -> Int8[np.ndarray, "o i p"]:
    """Packed weights, padded with zeros."""
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
def weight_at(panels, output, index):
    """One weight."""
    lane = output % OUTPUTS * INPUTS + index % INPUTS
    return i32(panels[output // OUTPUTS, index // INPUTS, lane]) ^ i32(-_SHIFT)


@in_order
def round_part(first, stop, states, inputs, out, begins, sizes):
    """Rows as whole numbers, the sums that undo the shift of weights, and their scales."""
    most = f32(min(_LARGEST, (2**31 - 1) // (127 * inputs)))
    for r in range(first, stop):
        row, target = states[r, :inputs], out[r]
        size = largest_absolute(row)
        sizes[r] = size / most
        factor = most / size if size > f32(0) else f32(0)
        total = i32(0)
        for c in range(inputs):
            number = whole(row[c] * factor)
            target[c] = number
            total += i32(target[c])
        for c in range(inputs, target.size):
            target[c] = 0
        begins[r] = -_SHIFT * total


round_rows = parallel(round_part)


@parallel
def multiply_part(first, stop, states, weight, begins, sizes, scales, bias, out):
    """Panels ``first`` to ``stop`` of the product; ``out`` has whole panels."""
    by_tiles(first, stop, states, weight, begins, sizes, scales, bias, out)
