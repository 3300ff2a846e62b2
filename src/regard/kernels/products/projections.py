"""Projections of all layers, and vectors of tokens, in float32 or int8."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float32, Int, Int8, Int32

from regard.kernels.compiling import inlined, shared, uncounted_part
from regard.kernels.products.int8 import (
    INPUTS,
    OUTPUTS,
    ROUNDED,
    by_tiles,
    round_part,
    weight_at,
)
from regard.kernels.products.packed import OUTPUTS as LANES
from regard.kernels.products.packed import plain_panels
from regard.kernels.team import shared_out

f32 = np.float32

# Chunks of a product for each thread of a team, and the fewest products of numbers in one.
_CHUNKS, _LEAST_WORK = 16, 2**15
# States that go through the panels of a chunk together, so that they stay in the cache of a core.
_ROWS = 256

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
        round_part(first, stop, states, inputs, rows, rounded.begins, rounded.sizes)


@shared_out
@uncounted_part
def _multiply(first, stop, grain, grains, states, rounded, maps, layer, out):
    """A layer's map, by blocks of rows, and of each block so many panels at a time."""
    rows, bias, is_rounded = states.shape[0], maps.bias[layer], maps.rounded.size > 0
    while first < stop:
        block = first // grains
        begin, end = (first - block * grains) * grain, (stop - block * grains) * grain
        at, to = block * _ROWS, min(rows, (block + 1) * _ROWS)
        if is_rounded:
            inputs, weight = _rows_of(rounded, maps, rows)[at:to], maps.rounded[layer]
            of_rows, end = (rounded.begins[at:to], rounded.sizes[at:to]), min(end, len(weight))
            by_tiles(begin, end, inputs, weight, *of_rows, maps.scales[layer], bias, out[at:to])
        else:
            weight = maps.weight[layer]
            plain_panels(begin, min(end, len(weight)), states[at:to], weight, bias, out[at:to])
        first = (block + 1) * grains


@uncounted_part
def project_in_team(team, states, rounded, maps, layer, out):
    """A layer's map of the states, rounded before; ``out`` has whole panels."""
    rows, is_rounded = states.shape[0], maps.rounded.size > 0
    panels = maps.rounded.shape[1] if is_rounded else maps.weight.shape[1]
    size = maps.rounded.shape[2] * OUTPUTS * INPUTS if is_rounded else maps.weight.shape[2] * LANES
    grain = 4 if rows == 1 else 2 if is_rounded else 3
    grains, blocks, tasks = -(-panels // grain), -(-rows // _ROWS), 1
    if team.threads > 1:
        even = blocks * panels // (_CHUNKS * team.threads)
        fewest = max(_LEAST_WORK // (min(rows, _ROWS) * size), even, 1)
        tasks = -(-blocks * grains // -(-fewest // grain))
    arguments = (grain, grains, states, rounded, maps, layer, out)
    _multiply(team, tasks, 0, blocks * grains, arguments)


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
