"""Projections and embedding tables of all layers as compiled loops take them, float32 or int8."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float32, Int8

from regard.kernels.compiling import inlined, shared
from regard.kernels.products import int8, packed

f32 = np.float32
# A number that is written out would make a function of its own of each that is called with it.
i64 = np.int64

NO_NUMBERS, _NO_WHOLE = np.zeros((0, 0), f32), np.zeros((0, 0, 0, 0), np.int8)


class Projections(NamedTuple):
    """Linear maps of one kind, a layer's on the other; what there is none of has no entries.

    Attributes:
        outputs: How wide it makes states; 0 where there is no such map.
        weight: In float32, in panels.
        rounded: Instead, in int8, in panels of pairs or of bytes.
        scales: What gives them back.
        bias: Zeros where there is none.
    """

    outputs: int
    weight: Float32[np.ndarray, "L o I w"]
    rounded: Int8[np.ndarray, "L o i p"]
    scales: Float32[np.ndarray, "L op"]
    bias: Float32[np.ndarray, "L op"]


NO_PROJECTIONS = Projections(
    0, np.zeros((0, 0, 0, packed.OUTPUTS), f32), _NO_WHOLE, NO_NUMBERS, NO_NUMBERS
)


class EmbeddingTable(NamedTuple):
    """Vectors of tokens; what there is none of has no entries.

    Attributes:
        vectors: In float32.
        values: Instead, in int8, in panels.
        scales: What gives them back.
        scale: What all are multiplied by.
    """

    vectors: Float32[np.ndarray, "V C"]
    values: Int8[np.ndarray, "o i p"]
    scales: Float32[np.ndarray, " V"]
    scale: np.float32


@shared
def project(states, maps, layer, out):  # type: ignore[no-untyped-def]
    """A layer's map of the states."""
    bias = maps.bias[layer]
    if maps.rounded.size:
        int8.multiply_rows(states, maps.rounded[layer], maps.scales[layer], bias, out)
    else:
        packed.plain_rows(states, maps.weight[layer], bias, out)


@inlined
def embed(table, token, place, out):  # type: ignore[no-untyped-def]
    """The vector of a token, and what is added for its place."""
    if table.values.size:
        scale = table.scales[token] * table.scale
        for c in range(out.size):
            out[c] = f32(int8.weight_at(table.values, token, c)) * scale + place[c]
    else:
        vector = table.vectors[token]
        for c in range(out.size):
            out[c] = vector[c] * table.scale + place[c]
