"""Linear maps in float32, by compiled loops over weights that are laid out for them."""

from collections.abc import Callable
from functools import cached_property

import numpy as np
from jaxtyping import Float
from torch import Tensor, nn

from regard.kernels.products import packed
from regard.kernels.threads import parallel_rows
from regard.layers import TokenEmbedding


class Linear:
    """``states @ weightᵀ + bias``, the same for a state whatever stands beside it.

    Args:
        weight: In float32; a copy of it is made.
        bias: None is none.

    Example:
        >>> import torch
        >>> linear = nn.Linear(16, 3)
        >>> states = torch.randn(2, 16)
        >>> torch.allclose(Linear(linear.weight, linear.bias)(states), linear(states), atol=1e-5)
        True
    """

    def __init__(self, weight: Float[Tensor, "O I"], bias: Float[Tensor, " O"] | None) -> None:
        added = weight.new_zeros(len(weight)) if bias is None else bias.detach()
        self._multiply, self._outputs = packed.multiply_panels, len(weight)
        self._panels = packed.pack(weight.detach().numpy())
        self._bias = packed.pad(added.numpy())

    def __call__(self, states: Float[Tensor, "R I"]) -> Float[Tensor, "R O"]:
        """The states mapped."""
        rows = len(states)
        made = states.new_empty(rows, self._outputs)
        asked, out = np.ascontiguousarray(states.numpy()), made.numpy()

        def work(first: int, stop: int) -> None:
            self._multiply(first, stop, asked, self._panels, self._bias, out)

        parallel_rows(len(self._panels), 2 * rows * self._panels[0].size, work)
        return made


class PreparedLinear(nn.Linear):
    """``nn.Linear`` by ``Linear``.

    Args:
        linear: In float32; its weights are shared, and copied into panels.

    Example:
        >>> import torch
        >>> linear = nn.Linear(16, 3).requires_grad_(False)
        >>> states = torch.randn(5, 2, 16)
        >>> torch.allclose(PreparedLinear(linear)(states), linear(states), atol=1e-5)
        True
    """

    def __init__(self, linear: nn.Linear) -> None:
        nn.Module.__init__(self)
        self.in_features, self.out_features = linear.in_features, linear.out_features
        self.weight, self.bias = linear.weight, linear.bias

    @cached_property
    def _map(self) -> Linear:
        return Linear(self.weight, self.bias)

    def forward(self, states: Float[Tensor, "*batch I"]) -> Float[Tensor, "*batch O"]:
        """The states mapped."""
        flat = self._map(states.reshape(-1, self.in_features))
        return flat.view(*states.shape[:-1], self.out_features)


class PreparedEmbedding(TokenEmbedding):
    """A table of embeddings whose logits are made by ``Linear``.

    Args:
        table: In float32; its weights are shared, and copied into panels where logits are wanted.
    """

    def __init__(self, table: TokenEmbedding) -> None:
        nn.Module.__init__(self)
        self.scale, self.pad_id, self.weight = table.scale, table.pad_id, table.weight

    @cached_property
    def _map(self) -> Linear:
        return Linear(self.weight, None)

    def logits(
        self, states: Float[Tensor, "*batch C"], bias: Float[Tensor, " V"] | None = None
    ) -> Float[Tensor, "*batch V"]:
        """How well each state matches each token."""
        logits = self._map(states.reshape(-1, states.shape[-1])).view(*states.shape[:-1], -1)
        return logits if bias is None else logits + bias


def projection_of(layer: nn.Module | None) -> Callable[[Tensor], Tensor]:
    """Projections of a layer: by compiled loops, if it is linear and in float32."""
    if isinstance(layer, nn.Linear):
        return Linear(layer.weight, layer.bias)
    return nn.Identity() if layer is None else layer
