"""Matrix products in int8: what is multiplied is rounded, and the result is not.

Weights are rounded once, by row; states as they come, by row too, so that an answer does not depend
on its neighbours; see ``kernels.products.int8``.
"""

import numpy as np
import torch
from jaxtyping import Float, Float32, Int, Int8
from torch import Tensor, nn

from regard.errors import SettingError
from regard.kernels.products import int8
from regard.kernels.products.packed import pad
from regard.kernels.threads import parallel_rows
from regard.layers import TokenEmbedding
from regard.layers.block import TransformerBlock
from regard.models.decoder import Decoder
from regard.models.transformer import Transformer


def rounded_rows(weight: Float[Tensor, "O I"]) -> tuple[Int[Tensor, "O I"], Float[Tensor, " O"]]:
    """Each row in int8, and what it is multiplied by to have it back."""
    scales = weight.abs().amax(dim=1).clamp_min(torch.finfo(torch.float32).tiny) / 127
    return (weight / scales[:, None]).round().to(torch.int8), scales


class _Matrix:
    """A rounded matrix as compiled loops multiply it.

    Attributes:
        panels: The weights; others may share them.
    """

    def __init__(self, values: Int[Tensor, "O I"], scales: Float[Tensor, " O"]) -> None:
        self._outputs, self._inputs = values.shape
        self.panels: Int8[np.ndarray, "o i p"] = int8.pack(values.numpy())
        self._scales = self._lanes(scales)
        self._nothing = np.zeros_like(self._scales)

    def _lanes(self, numbers: Float[Tensor, " O"]) -> Float32[np.ndarray, " op"]:
        return pad(numbers.numpy(), int8.OUTPUTS)

    def some(self, ids: Int[Tensor, " N"]) -> Int[Tensor, "N I"]:
        """The weights of some outputs."""
        return torch.from_numpy(int8.unpack(self.panels, ids.numpy(), self._inputs))

    def rounded(self) -> tuple[Int[Tensor, "O I"], Float[Tensor, " O"]]:
        """The weights, and what gives back those of each output."""
        values = self.some(torch.arange(self._outputs))
        return values, torch.from_numpy(self._scales[: self._outputs])

    def product(
        self, states: Float[Tensor, "*batch I"], bias: Float[Tensor, " O"] | None
    ) -> Float[Tensor, "*batch O"]:
        """``states @ weightᵀ + bias``, its rows and panels shared out among threads."""
        flat = states.float().reshape(-1, self._inputs).contiguous().numpy()
        added = self._nothing if bias is None else self._lanes(bias)
        (rows, inputs), (panels, steps, _) = flat.shape, self.panels.shape
        given = np.empty((rows, int8.INPUTS * steps), int8.ROUNDED)
        begins, sizes = np.empty(rows, np.int32), np.empty(rows, np.float32)
        out = np.empty((rows, panels * int8.OUTPUTS), np.float32)
        parallel_rows(
            rows, inputs, lambda *part: int8.round_part(*part, flat, given, begins, sizes)
        )
        rest = (given, self.panels, begins, sizes, self._scales, added, out)
        parallel_rows(panels, rows * inputs, lambda *part: int8.multiply_part(*part, *rest))
        # Loops are compiled for how numbers lie: of one row and of several it is to be the same.
        products = torch.from_numpy(out)[:, : self._outputs].contiguous()
        return products.view(*states.shape[:-1], self._outputs)


class _Rounded(nn.Module):
    """A layer whose weights are rounded."""

    matrix: _Matrix

    @property
    def panels(self) -> Int8[np.ndarray, "o i p"]:
        """The weights as loops take them."""
        return self.matrix.panels

    def share(self, panels: Int8[np.ndarray, "o i p"]) -> None:
        """Let go of its weights for the same elsewhere."""
        self.matrix.panels = panels


class Int8Linear(_Rounded):
    """A linear map whose products are in int8, for use and not for training.

    Args:
        linear: What it stands in for; it is not kept.

    Example:
        >>> linear = nn.Linear(64, 8)
        >>> states = torch.randn(5, 64)
        >>> bool((Int8Linear(linear)(states) - linear(states)).abs().max() < 0.1)
        True
    """

    def __init__(self, linear: nn.Linear) -> None:
        super().__init__()
        self.in_features, self.out_features = linear.in_features, linear.out_features
        self.bias: Tensor
        self.register_buffer("bias", None if linear.bias is None else linear.bias.detach())
        self.matrix = _Matrix(*rounded_rows(linear.weight.detach().float()))

    @torch.no_grad()
    def forward(self, states: Float[Tensor, "*batch I"]) -> Float[Tensor, "*batch O"]:
        """The states mapped."""
        return self.matrix.product(states, self.bias)

    def rounded(self) -> tuple[Int[Tensor, "O I"], Float[Tensor, " O"]]:
        """The weights, and what gives back those of each output."""
        return self.matrix.rounded()

    def extra_repr(self) -> str:
        """Sizes, for ``print(model)``."""
        return f"{self.in_features}, {self.out_features}, bias={self.bias is not None}"


class Int8Embedding(_Rounded):
    """A table of embeddings in int8, which may be the last layer as well.

    Args:
        table: The vectors.
        scale: What vectors are multiplied by when they are looked up.

    Example:
        >>> table = torch.tensor([[1.0, -0.5], [0.0, 2.0]])
        >>> embedding = Int8Embedding(table, scale=10.0)
        >>> embedding(torch.tensor([1, 0]))
        tensor([[ 0.0000, 20.0000],
                [10.0000, -5.0394]])
    """

    scales: Tensor

    def __init__(self, table: Float[Tensor, "V C"], scale: float) -> None:
        super().__init__()
        values, scales = rounded_rows(table.detach())
        self.register_buffer("scales", scales, persistent=False)
        self.scale, self.shape = scale, tuple(values.shape)
        self.matrix = _Matrix(values, scales)

    @property
    def values(self) -> Int[Tensor, "V C"]:
        """All rounded vectors."""
        return self.matrix.rounded()[0]

    @torch.no_grad()
    def forward(self, ids: Int[Tensor, "*batch"]) -> Float[Tensor, "*batch C"]:
        """The vectors of ``ids``."""
        rows = self.matrix.some(ids.flatten()).float().view(*ids.shape, -1)
        return rows * (self.scales[ids] * self.scale)[..., None]

    @torch.no_grad()
    def logits(
        self, states: Float[Tensor, "*batch C"], bias: Float[Tensor, " V"] | None = None
    ) -> Float[Tensor, "*batch V"]:
        """How well each state matches each token."""
        return self.matrix.product(states, bias)


def round_weights(model: nn.Module) -> None:
    """Round the weights of a model's Transformer layers and tables to int8, in place.

    Raises:
        SettingError: It has no such layers, or is on a GPU.
    """
    blocks = [each for each in model.modules() if isinstance(each, TransformerBlock)]
    if not blocks or any(p.device.type != "cpu" for p in model.parameters()):
        reason = "it is on a GPU" if blocks else "it has no layers of a Transformer"
        raise SettingError(
            f"precision must be one for this model; got int8, but {reason}. Use float32."
        )
    mixes_embeddings = isinstance(model, Transformer) and model.config.values == "embeddings"
    for block in blocks:
        _replace(block.attend, "query_key_value", "output")
        _replace(block.feed, "inner", "outer")
        if block.look is not None:
            # Keys and values of two inputs take a part of one matrix each.
            of_memory = () if mixes_embeddings else ("key_value",)
            _replace(block.look, "query", "output", *of_memory)
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
    """Convert embedding tables, some of which are tied."""
    made: dict[nn.Module, Int8Embedding] = {}
    tables = {name: model.get_submodule(name) for name in names}
    for name, table in tables.items():
        if not isinstance(table, TokenEmbedding):
            continue
        if table not in made:
            made[table] = Int8Embedding(table.weight, table.scale)
        model._modules[name] = made[table]
