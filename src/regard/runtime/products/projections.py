"""Projections and embedding tables of models, packed for compiled loops."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from regard.kernels.products import int8
from regard.kernels.products.packed import pack_each, pad_each
from regard.kernels.products.projections import NO_NUMBERS, EmbeddingTable, Projections
from regard.kernels.products.projections import NO_PROJECTIONS as NO_PROJECTIONS
from regard.layers import TokenEmbedding
from regard.runtime.products.int8 import Int8Embedding, Int8Linear

f32 = np.float32


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


def pack_projections(parts: Sequence[Part]) -> Projections:
    """The maps of one kind, all in float32 or all rounded."""
    if not parts:
        return NO_PROJECTIONS
    outputs = len(parts[0].weight)
    nothing = torch.zeros(outputs)
    biases = [(nothing if part.bias is None else part.bias).numpy() for part in parts]
    made = NO_PROJECTIONS._replace(outputs=outputs, bias=pad_each(biases))
    scales = [part.scales.float().numpy() for part in parts if part.scales is not None]
    if not scales:
        return made._replace(weight=pack_each([part.weight.numpy() for part in parts]))
    rounded = np.stack([int8.pack(part.weight.numpy()) for part in parts])
    for part, shared_with in zip(parts, rounded, strict=True):
        if part.layer is not None:
            part.layer.share(shared_with)
    return made._replace(
        rounded=rounded,
        bias=pad_each(biases, int8.OUTPUTS),
        scales=pad_each(scales, int8.OUTPUTS),
    )


def embedding_table(embedding: TokenEmbedding | Int8Embedding) -> EmbeddingTable:
    """The vectors of an embedding, where they are."""
    scale = f32(embedding.scale)
    if isinstance(embedding, Int8Embedding):
        return EmbeddingTable(NO_NUMBERS, embedding.panels, embedding.scales.numpy(), scale)
    nothing = np.zeros((0, 0, 0), np.int8)
    return EmbeddingTable(embedding.weight.detach().numpy(), nothing, np.zeros(0, f32), scale)
