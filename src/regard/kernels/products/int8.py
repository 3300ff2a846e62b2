"""Products with weights in int8, and the projections of all layers in either precision.

States are rounded as they come, each by itself. Where the processor adds up four products of bytes
at once (AVX-512 VNNI), to eight bits; elsewhere, where it adds up two products of sixteen bits, to
as many as the sum has room for, fourteen at most: precision is lost by the weights alone. Sums are
whole numbers, so that a state's product does not depend on its neighbours. Weights lie in panels of
some outputs, in each of which as many inputs of an output stand together as are added up at once,
and nowhere else: the vector of a token is read from there as well.

Tokens per second of both precisions: ``benchmarks/records/decoding_speed.json``.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float32, Int, Int8, Int32

from regard.kernels.compiling import in_order, inlined, shared, uncounted_part
from regard.kernels.elementary import copy, largest_absolute, whole
from regard.kernels.products.packed import BYTES, PAIRS, has, i64, plain_panels, plain_rows, tiling
from regard.kernels.products.packed import OUTPUTS as LANES
from regard.kernels.team import parallel, shared_out

f32, i32 = np.float32, np.int32

HAS_BYTES = has("avx512vnni")
# Outputs side by side, inputs of one that stand together, and the type of rounded states.
OUTPUTS, INPUTS, ROUNDED = (16, 4, np.int8) if HAS_BYTES else (8, 2, np.int16)
# Of two bytes that are multiplied one has no sign: weights are so much more than they are.
_SHIFT, _LARGEST = (128, 127) if HAS_BYTES else (0, 2**14 - 1)

# Chunks of a product for each thread of a team, and the fewest products of numbers in one.
_CHUNKS, _LEAST_WORK = 16, 2**15

_by_tiles = tiling(BYTES if HAS_BYTES else PAIRS)


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
def _round_rows(first, stop, states, inputs, out, begins, sizes):
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


@shared
def multiply_rows(states, inputs, weight, scales, bias, out):
    """``states @ weightᵀ + bias``, both rounded; scales and bias are padded to ``OUTPUTS``."""
    rows, panels = states.shape[0], weight.shape[0]
    rounded = np.empty((rows, INPUTS * weight.shape[1]), ROUNDED)
    begins, sizes = np.empty(rows, np.int32), np.empty(rows, np.float32)
    _round_rows(0, rows, states, inputs, rounded, begins, sizes)
    if out.shape[1] == panels * OUTPUTS:
        _by_tiles(i64(0), panels, rounded, weight, begins, sizes, scales, bias, out)
        return
    padded = np.empty((rows, panels * OUTPUTS), np.float32)
    _by_tiles(i64(0), panels, rounded, weight, begins, sizes, scales, bias, padded)
    for r in range(rows):
        copy(padded[r], out[r])


round_rows = parallel(_round_rows)


@parallel
def multiply_part(first, stop, states, weight, begins, sizes, scales, bias, out):
    """Panels ``first`` to ``stop`` of the product; ``out`` has whole panels."""
    _by_tiles(first, stop, states, weight, begins, sizes, scales, bias, out)


NO_NUMBERS, _NO_WHOLE = np.zeros((0, 0), f32), np.zeros((0, 0, 0, 0), np.int8)


class Projections(NamedTuple):
    """Linear maps of one kind, stacked by layer, in float32 (``weight``) or int8 (``rounded``)."""

    outputs: int
    weight: Float32[np.ndarray, "L o I w"]
    rounded: Int8[np.ndarray, "L o i p"]
    scales: Float32[np.ndarray, "L op"]
    bias: Float32[np.ndarray, "L op"]


NO_PROJECTIONS = Projections(0, np.zeros((0, 0, 0, LANES), f32), _NO_WHOLE, NO_NUMBERS, NO_NUMBERS)


class EmbeddingTable(NamedTuple):
    """Vectors of tokens in float32, or ``values`` in int8 with their scales."""

    vectors: Float32[np.ndarray, "V C"]
    values: Int8[np.ndarray, "o i p"]
    scales: Float32[np.ndarray, " V"]
    scale: np.float32


@shared
def project(states, inputs, maps, layer, out):
    """A layer's map of the first columns of the states."""
    bias = maps.bias[layer]
    if maps.rounded.size:
        multiply_rows(states, inputs, maps.rounded[layer], maps.scales[layer], bias, out)
    else:
        plain_rows(states, maps.weight[layer], bias, out)


class RoundedRows(NamedTuple):
    """Room for rows as they are multiplied in int8, one after the other."""

    values: Int[np.ndarray, " N"]
    begins: Int32[np.ndarray, " R"]
    sizes: Float32[np.ndarray, " R"]


def width_of_rounded(maps: Sequence[Projections]) -> int:
    """Float32 numbers in whose place a rounded input of any of some maps has room; 0 if of none."""
    if not any(projection.rounded.size for projection in maps):
        return 0
    width: int = max(projection.rounded.shape[2] for projection in maps)
    return INPUTS * width * np.dtype(ROUNDED).itemsize // 4


@inlined
def _rows_of(rounded, maps, rows):
    """The rounded rows as inputs of a map."""
    width = INPUTS * maps.rounded.shape[2]
    return rounded.values[: rows * width].reshape(rows, width)


@shared
def round_for(first, stop, states, inputs, maps, rounded):
    """Round rows ``first`` to ``stop`` as inputs of a map, if that is in int8."""
    if maps.rounded.size:
        rows = _rows_of(rounded, maps, states.shape[0])
        _round_rows(first, stop, states, inputs, rows, rounded.begins, rounded.sizes)


@shared_out
@uncounted_part
def _multiply(first, stop, grain, states, rounded, maps, layer, out):
    """Panels of a layer's map, so many for each of ``first`` to ``stop``."""
    rows, bias, begin = states.shape[0], maps.bias[layer], first * grain
    if maps.rounded.size:
        inputs, weight = _rows_of(rounded, maps, rows), maps.rounded[layer]
        of_rows, end = (rounded.begins, rounded.sizes), min(stop * grain, weight.shape[0])
        _by_tiles(begin, end, inputs, weight, *of_rows, maps.scales[layer], bias, out)
    else:
        weight = maps.weight[layer]
        plain_panels(begin, min(stop * grain, weight.shape[0]), states, weight, bias, out)


@uncounted_part
def project_in_team(team, states, rounded, maps, layer, out):
    """A layer's map of the states, rounded before; ``out`` has whole panels."""
    rows, is_rounded = states.shape[0], maps.rounded.size > 0
    panels = maps.rounded.shape[1] if is_rounded else maps.weight.shape[1]
    size = maps.rounded.shape[2] * OUTPUTS * INPUTS if is_rounded else maps.weight.shape[2] * LANES
    grain = 4 if rows == 1 else 2 if is_rounded else 3
    grains, tasks = -(-panels // grain), 1
    if team.threads > 1:
        fewest = max(_LEAST_WORK // (rows * size), panels // (_CHUNKS * team.threads), 1)
        tasks = -(-grains // -(-fewest // grain))
    _multiply(team, tasks, 0, grains, (grain, states, rounded, maps, layer, out))


@inlined
def embed(table, token, position, out):
    """Write the vector of a token plus that of its position."""
    if table.values.size:
        scale = table.scales[token] * table.scale
        for c in range(out.size):
            out[c] = f32(weight_at(table.values, token, c)) * scale + position[c]
    else:
        vector = table.vectors[token]
        for c in range(out.size):
            out[c] = vector[c] * table.scale + position[c]
