"""Linear layers and embedding tables packed for compiled loops, in float32 and int8.

In int8 weights are rounded once, by row; states as they come, by row too, so that an answer does
not depend on its neighbours; see ``kernels.products.int8``.
"""

from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Float32, Int, Int8
from torch import Tensor, nn

from regard.errors import SettingError, ShapeError
from regard.kernels.products import int8, packed
from regard.kernels.products.projections import (
    NO_NUMBERS,
    NO_PROJECTIONS,
    EmbeddingTable,
    Projections,
)
from regard.kernels.threads import parallel_rows
from regard.layers import TokenEmbedding
from regard.layers.block import TransformerBlock
from regard.layers.inputs import valid_ids
from regard.models.decoder import Decoder
from regard.models.transformer import Transformer

# Weights up to so many bytes stay in the cache of a core while it goes through them for its rows.
MOST_BYTES = 2**25
# Bytes of weights, once a row, for which a thread more is worth its start and its waits: a small
# model's sentence takes up to six times as long by two threads.
BYTES_A_THREAD = 2**24


class Linear:
    """``states @ weightᵀ + bias`` in float32, the same for a state in any batch."""

    def __init__(
        self, panels: Float32[np.ndarray, "o I p"], bias: Float32[np.ndarray, " op"], outputs: int
    ) -> None:
        self._panels, self._bias, self._outputs = panels, bias, outputs

    @classmethod
    def of(cls, weight: Float[Tensor, "O I"], bias: Float[Tensor, " O"] | None) -> "Linear":
        """Pack a map."""
        added = weight.new_zeros(len(weight)) if bias is None else bias.detach()
        panels = packed.pack(weight.detach().numpy())
        return cls(panels, packed.pad(added.numpy()), len(weight))

    def __call__(self, states: Float[Tensor, "R I"]) -> Float[Tensor, "R O"]:
        """The states mapped."""
        rows = len(states)
        mapped = states.new_empty(rows, self._outputs)
        arguments = (np.ascontiguousarray(states.numpy()), self._panels, self._bias, mapped.numpy())
        operations = 2 * rows * self._panels[0].size
        parallel_rows(len(self._panels), operations, packed.multiply_panels, *arguments)
        return mapped


def _flat(states: Float[Tensor, "*batch I"], width: int) -> Float[Tensor, "R I"]:
    """The states as rows; ShapeError if they are not as wide as the weights."""
    if states.dim() == 0 or states.shape[-1] != width or states.dtype != torch.float32:
        raise ShapeError(
            f"states must be of width {width}, in float32; got {tuple(states.shape)}, "
            f"{states.dtype}."
        )
    return states.reshape(-1, width)


class PackedLinear(nn.Linear):
    """``nn.Linear`` by ``Linear``; shares the weights, and packs a copy at its first call."""

    def __init__(self, linear: nn.Linear) -> None:
        nn.Module.__init__(self)
        self.in_features, self.out_features = linear.in_features, linear.out_features
        self.weight, self.bias = linear.weight, linear.bias

    @cached_property
    def _map(self) -> Linear:
        return Linear.of(self.weight, self.bias)

    def forward(self, states: Float[Tensor, "*batch I"]) -> Float[Tensor, "*batch O"]:
        flat = self._map(_flat(states, self.in_features))
        return flat.view(*states.shape[:-1], self.out_features)


class PackedEmbedding(TokenEmbedding):
    """A table of embeddings whose logits are made by ``Linear``; packed at the first of them."""

    def __init__(self, table: TokenEmbedding) -> None:
        nn.Module.__init__(self)
        self.scale, self.pad_id, self.weight = table.scale, table.pad_id, table.weight

    @cached_property
    def _map(self) -> Linear:
        return Linear.of(self.weight, None)

    def logits(
        self, states: Float[Tensor, "*batch C"], bias: Float[Tensor, " V"] | None = None
    ) -> Float[Tensor, "*batch V"]:
        logits = self._map(_flat(states, self.weight.shape[1])).view(*states.shape[:-1], -1)
        return logits if bias is None else logits + bias


class _Int8Matrix(nn.Module):
    """A matrix in int8, one scale an output; packed for all layers, ``panels`` share memory."""

    def __init__(self, weight: Float[Tensor, "O I"]) -> None:
        super().__init__()
        scales = weight.abs().amax(dim=1).clamp_min(torch.finfo(torch.float32).tiny) / 127
        values = (weight / scales[:, None]).round().to(torch.int8)
        self.shape = tuple(values.shape)
        self.panels: Int8[np.ndarray, "o i p"] = int8.pack(values.numpy())
        self._scales = packed.pad(scales.numpy(), int8.OUTPUTS)

    def rows(self, ids: Int[Tensor, " N"]) -> Int[Tensor, "N I"]:
        """The weights of some outputs."""
        return torch.from_numpy(int8.unpack(self.panels, ids.numpy(), self.shape[1]))

    @property
    def values(self) -> Int[Tensor, "O I"]:
        """The weights."""
        return self.rows(torch.arange(self.shape[0]))

    @property
    def scales(self) -> Float[Tensor, " O"]:
        """Factors that give back the weights of each output."""
        return torch.from_numpy(self._scales[: self.shape[0]])

    def product(
        self, states: Float[Tensor, "*batch I"], bias: Float[Tensor, " O"] | None
    ) -> Float[Tensor, "*batch O"]:
        """``states @ weightᵀ + bias``, its rows and panels split among threads."""
        (outputs, inputs), (panels, steps, _) = self.shape, self.panels.shape
        flat = _flat(states.float(), inputs).contiguous().numpy()
        added = np.zeros_like(self._scales)
        if bias is not None:
            added = packed.pad(bias.numpy(), int8.OUTPUTS)
        rows = len(flat)
        rounded = np.empty((rows, int8.INPUTS * steps), int8.ROUNDED)
        begins, sizes = np.empty(rows, np.int32), np.empty(rows, np.float32)
        out = np.empty((rows, panels * int8.OUTPUTS), np.float32)
        parallel_rows(rows, inputs, int8.round_rows, flat, inputs, rounded, begins, sizes)
        arguments = (rounded, self.panels, begins, sizes, self._scales, added, out)
        parallel_rows(panels, rows * inputs, int8.multiply_part, *arguments)
        # Loops are compiled for how numbers lie: of one row and of several it is to be the same.
        products = torch.from_numpy(out)[:, :outputs].contiguous()
        return products.view(*states.shape[:-1], outputs)


class Int8Linear(_Int8Matrix):
    """A linear map whose products are in int8, for use and not for training."""

    bias: Tensor

    def __init__(self, linear: nn.Linear) -> None:
        super().__init__(linear.weight.detach().float())
        self.in_features, self.out_features = linear.in_features, linear.out_features
        self.register_buffer("bias", None if linear.bias is None else linear.bias.detach())

    @torch.no_grad()
    def forward(self, states: Float[Tensor, "*batch I"]) -> Float[Tensor, "*batch O"]:
        return self.product(states, self.bias)

    def extra_repr(self) -> str:
        return f"{self.in_features}, {self.out_features}, bias={self.bias is not None}"


class Int8Embedding(_Int8Matrix):
    """A table of embeddings in int8, which may be the last layer as well."""

    def __init__(self, table: Float[Tensor, "V C"], scale: float) -> None:
        super().__init__(table.detach())
        self.scale = scale

    @torch.no_grad()
    def forward(self, ids: Int[Tensor, "*batch"]) -> Float[Tensor, "*batch C"]:
        ids = valid_ids("token ids", ids, self.shape[0])
        rows = self.rows(ids.flatten()).float().view(*ids.shape, self.shape[1])
        return rows * (self.scales[ids] * self.scale)[..., None]

    @torch.no_grad()
    def logits(
        self, states: Float[Tensor, "*batch C"], bias: Float[Tensor, " V"] | None = None
    ) -> Float[Tensor, "*batch V"]:
        """How well each state matches each token."""
        return self.product(states, bias)


def round_weights(model: nn.Module) -> None:
    """Round the weights of a model's Transformer layers and tables to int8, in place."""
    blocks = [module for module in model.modules() if isinstance(module, TransformerBlock)]
    if not blocks or any(p.device.type != "cpu" for p in model.parameters()):
        reason = "it is on a GPU" if blocks else "it has no layers of a Transformer"
        raise SettingError(
            f"precision must be one for this model; got int8, but {reason}. Use float32."
        )
    mixes_embeddings = isinstance(model, Transformer) and model.config.values == "embeddings"
    for block in blocks:
        _replace(block.attend, "query_key_value", "output")
        _replace(block.feed, "inner", "outer")
        if block.cross_attend is not None:
            # Keys and values of two inputs take a part of one matrix each.
            of_memory = () if mixes_embeddings else ("key_value",)
            _replace(block.cross_attend, "query", "output", *of_memory)
    if isinstance(model, Transformer):
        _replace_tables(model, ("source_embedding", "target_embedding", "output"))
    elif isinstance(model, Decoder):
        _replace_tables(model, ("embedding", "output"))


def _replace(layer: nn.Module, *names: str) -> None:
    """Put a linear map in int8 in the place of each of these."""
    for name in names:
        linear = layer.get_submodule(name)
        if isinstance(linear, nn.Linear):
            layer._modules[name] = Int8Linear(linear)


def _replace_tables(model: nn.Module, names: tuple[str, ...]) -> None:
    """Round embedding tables, some of which are tied."""
    rounded: dict[nn.Module, Int8Embedding] = {}
    tables = {name: model.get_submodule(name) for name in names}
    for name, table in tables.items():
        if not isinstance(table, TokenEmbedding):
            continue
        if table not in rounded:
            rounded[table] = Int8Embedding(table.weight, table.scale)
        model._modules[name] = rounded[table]


class WeightPart(NamedTuple):
    """One map in float32 or int8; ``layer`` is the whole, if that may share packed memory."""

    weight: Float[Tensor, "O I"] | Int[Tensor, "O I"]
    scales: Float[Tensor, " O"] | None
    bias: Float[Tensor, " O"] | None
    layer: Int8Linear | Int8Embedding | None = None


def part_of(
    layer: nn.Linear | Int8Linear | TokenEmbedding | Int8Embedding,
    outputs: slice = slice(None),
    *,
    bias: Float[Tensor, " O"] | None = None,
) -> WeightPart:
    """A layer, or some of its outputs; a table as the last layer has its ``bias`` beside it."""
    if isinstance(layer, nn.Linear | Int8Linear):
        bias = layer.bias
    added = None if bias is None else bias.detach()[outputs]
    if isinstance(layer, Int8Linear | Int8Embedding):
        whole = layer if outputs == slice(None) else None
        return WeightPart(layer.values[outputs], layer.scales[outputs], added, whole)
    return WeightPart(layer.weight.detach()[outputs], None, added)


def pack_projections(parts: Sequence[WeightPart]) -> Projections:
    """Stack the maps of one kind, all in float32 or all in int8."""
    if not parts:
        return NO_PROJECTIONS
    outputs = len(parts[0].weight)
    nothing = torch.zeros(outputs)
    biases = [(nothing if part.bias is None else part.bias).numpy() for part in parts]
    stacked = NO_PROJECTIONS._replace(outputs=outputs, bias=packed.stack_padded(biases))
    scales = [part.scales.float().numpy() for part in parts if part.scales is not None]
    if not scales:
        weight = packed.stack_packed([part.weight.numpy() for part in parts])
        return stacked._replace(weight=weight)
    rounded = np.stack([int8.pack(part.weight.numpy()) for part in parts])
    for part, panels in zip(parts, rounded, strict=True):
        if part.layer is not None:
            part.layer.panels = panels
    return stacked._replace(
        rounded=rounded,
        bias=packed.stack_padded(biases, int8.OUTPUTS),
        scales=packed.stack_padded(scales, int8.OUTPUTS),
    )


def embedding_table(embedding: TokenEmbedding | Int8Embedding) -> EmbeddingTable:
    """The vectors of an embedding; shares their memory."""
    scale = np.float32(embedding.scale)
    if isinstance(embedding, Int8Embedding):
        return EmbeddingTable(NO_NUMBERS, embedding.panels, embedding.scales.numpy(), scale)
    nothing = np.zeros((0, 0, 0), np.int8)
    vectors = embedding.weight.detach().numpy()
    return EmbeddingTable(vectors, nothing, np.zeros(0, np.float32), scale)


def size_of(embedding: TokenEmbedding | Int8Embedding) -> int:
    """Number of ids that a table has."""
    table = embedding if isinstance(embedding, Int8Embedding) else embedding.weight
    return table.shape[0]


def bytes_of(layers: Sequence[nn.Module | None]) -> int:
    """Memory that weights take in compiled loops."""
    total = 0
    for layer in layers:
        if isinstance(layer, Int8Linear | Int8Embedding):
            total += layer.shape[0] * layer.shape[1]
        elif layer is not None:
            assert isinstance(layer.weight, Tensor)
            total += layer.weight.nbytes
    return total
