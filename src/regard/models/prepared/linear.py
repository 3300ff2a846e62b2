"""Linear maps of a few states, by compiled loops where torch would take longer."""

from collections.abc import Callable

import numpy as np
from jaxtyping import Float
from torch import Tensor, nn

from regard.models.prepared.sharing import by_rows

# More states than these share weights that are laid out for them.
_FEW = 32


class Linear:
    """``states @ weightᵀ + bias``, the same for a state whatever stands beside it in a small batch.

    The weights stay where they are.

    Args:
        weight: In float32.
        bias: None is none.

    Example:
        >>> import torch
        >>> linear = nn.Linear(16, 3)
        >>> states = torch.randn(2, 16)
        >>> torch.allclose(Linear(linear.weight, linear.bias)(states), linear(states), atol=1e-5)
        True
    """

    def __init__(self, weight: Float[Tensor, "O I"], bias: Float[Tensor, " O"] | None) -> None:
        # Only here: what cannot be compiled cannot be imported.
        from regard.models.prepared.few_rows import few_rows

        self._few_rows = few_rows
        self._weight = weight.detach().contiguous()
        self._bias = None if bias is None else bias.detach().contiguous()
        self._given = self._weight.numpy()
        self._added = np.zeros(0, np.float32) if self._bias is None else self._bias.numpy()

    def __call__(self, states: Float[Tensor, "R I"]) -> Float[Tensor, "R O"]:
        """The states mapped."""
        rows, width = states.shape
        if rows > _FEW:
            return nn.functional.linear(states, self._weight, self._bias)
        made = states.new_empty(rows, len(self._given))
        asked, given, added, out = states.numpy(), self._given, self._added, made.numpy()

        def work(first: int, stop: int) -> None:
            self._few_rows(first, stop, asked, given, added, out)

        by_rows(len(given), 2 * rows * width, work)
        return made


def mapping(layer: nn.Module | None) -> Callable[[Tensor], Tensor]:
    """What a layer does to a few states: by compiled loops, if it is a map in float32."""
    if isinstance(layer, nn.Linear):
        return Linear(layer.weight, layer.bias)
    return nn.Identity() if layer is None else layer
