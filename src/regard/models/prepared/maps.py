"""Linear maps and tables of vectors as compiled loops take them, in float32 or rounded to int8."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Float32, Int, Int8
from torch import Tensor, nn

from regard.attention.engine.kernels.compiling import inlined, shared
from regard.layers import TokenEmbedding
from regard.models.prepared import bytewise, pairwise, panels
from regard.models.prepared.panels import plain_rows, stacked, stacked_lanes
from regard.models.prepared.products import Int8Embedding, Int8Linear

f32 = np.float32
# How rounded weights lie, and what multiplies them.
_rounded = bytewise if bytewise.has_bytes() else pairwise
_multiply_rows, _weight_at = _rounded.multiply_rows, _rounded.weight_at
# A number that is written out would make a function of its own of each that is called with it.
i64 = np.int64

_NO_NUMBERS, _NO_WHOLE = np.zeros((0, 0), f32), np.zeros((0, 0, 0, 0), np.int8)


class Map(NamedTuple):
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


NO_MAP = Map(0, np.zeros((0, 0, 0, panels.OUTPUTS), f32), _NO_WHOLE, _NO_NUMBERS, _NO_NUMBERS)


class Table(NamedTuple):
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
def mapped(states, maps, layer, out):  # type: ignore[no-untyped-def]
    """A layer's map of the states."""
    bias = maps.bias[layer]
    if maps.rounded.size:
        _multiply_rows(states, maps.rounded[layer], maps.scales[layer], bias, out)
    else:
        plain_rows(states, maps.weight[layer], bias, out)


@inlined
def embed(table, token, place, out):  # type: ignore[no-untyped-def]
    """The vector of a token, and what is added for its place."""
    if table.values.size:
        scale = table.scales[token] * table.scale
        for c in range(out.size):
            out[c] = f32(_weight_at(table.values, token, c)) * scale + place[c]
    else:
        vector = table.vectors[token]
        for c in range(out.size):
            out[c] = vector[c] * table.scale + place[c]


class Part(NamedTuple):
    """One map.

    Attributes:
        weight: In float32 or int8.
        scales: Of int8, what gives back the weights of each output.
        bias: None is none.
        layer: The whole of which it is, if that may share the memory of the map's weights.
    """

    weight: Float[Tensor, "O I"] | Int[Tensor, "O I"]
    scales: Float[Tensor, " O"] | None
    bias: Float[Tensor, " O"] | None
    layer: Int8Linear | Int8Embedding | None = None


def part_of(layer: nn.Linear | Int8Linear, outputs: slice = slice(None)) -> Part:
    """A layer, or some of its outputs."""
    bias = None if layer.bias is None else layer.bias.detach()[outputs]
    if isinstance(layer, Int8Linear):
        values, scales = layer.rounded()
        whole = layer if outputs == slice(None) else None
        return Part(values[outputs], scales[outputs], bias, whole)
    return Part(layer.weight.detach()[outputs], None, bias)


def output_of(output: TokenEmbedding | Int8Embedding, bias: Float[Tensor, " V"] | None) -> Part:
    """A last layer."""
    added = None if bias is None else bias.detach()
    if isinstance(output, Int8Embedding):
        return Part(output.values, output.scales, added, output)
    return Part(output.weight.detach(), None, added)


def map_of(parts: Sequence[Part]) -> Map:
    """The maps of one kind, all in float32 or all rounded."""
    if not parts:
        return NO_MAP
    outputs = len(parts[0].weight)
    nothing = torch.zeros(outputs)
    biases = [(nothing if part.bias is None else part.bias).numpy() for part in parts]
    made = NO_MAP._replace(outputs=outputs, bias=stacked_lanes(biases))
    scales = [part.scales.float().numpy() for part in parts if part.scales is not None]
    if not scales:
        return made._replace(weight=stacked([part.weight.numpy() for part in parts]))
    rounded = np.stack([_rounded.lay_out(part.weight.numpy()) for part in parts])
    for part, shared_with in zip(parts, rounded, strict=True):
        if part.layer is not None:
            part.layer.share(shared_with)
    return made._replace(
        rounded=rounded,
        bias=stacked_lanes(biases, _rounded.OUTPUTS),
        scales=stacked_lanes(scales, _rounded.OUTPUTS),
    )


def table_of(embedding: TokenEmbedding | Int8Embedding) -> Table:
    """The vectors of an embedding, where they are."""
    scale = f32(embedding.scale)
    if isinstance(embedding, Int8Embedding):
        return Table(_NO_NUMBERS, embedding.panels, embedding.scales.numpy(), scale)
    nothing = np.zeros((0, 0, 0), np.int8)
    return Table(embedding.weight.detach().numpy(), nothing, np.zeros(0, f32), scale)
