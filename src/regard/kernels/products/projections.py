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
    multiply_rows,
    round_part,
    weight_at,
)
from regard.kernels.products.packed import OUTPUTS as LANES
from regard.kernels.products.packed import plain_panels, plain_rows
from regard.kernels.team import shared_out

f32 = np.float32

# Chunks of a product for each thread of a team, and the fewest products of numbers in one.
_CHUNKS, _LEAST_WORK = 16, 2**15

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
        round_part(first, stop, states, inputs, rows, rounded.begins, rounded.sizes)


@shared_out
@uncounted_part
def _multiply(first, stop, grain, states, rounded, maps, layer, out):
    """Panels of a layer's map, so many for each of ``first`` to ``stop``."""
    rows, bias, begin = states.shape[0], maps.bias[layer], first * grain
    if maps.rounded.size:
        inputs, weight = _rows_of(rounded, maps, rows), maps.rounded[layer]
        of_rows, end = (rounded.begins, rounded.sizes), min(stop * grain, weight.shape[0])
        by_tiles(begin, end, inputs, weight, *of_rows, maps.scales[layer], bias, out)
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
