"""Linear maps in float32, by compiled loops over weights that are laid out for them."""

from collections.abc import Callable

import numpy as np
from jaxtyping import Float
from torch import Tensor, nn

from regard.models.prepared.sharing import by_rows

# Weights of more bytes stay where they are: they are not to be in memory twice.
MOST_LAID_OUT = 2**31
# More states than these share weights that torch lays out for them.
_FEW = 32


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
        # Only here: what cannot be compiled cannot be imported.
        from regard.models.prepared import panels

        added = weight.new_zeros(len(weight)) if bias is None else bias.detach()
        self._multiply, self._outputs = panels.multiply_panels, len(weight)
        self._panels = panels.in_panels(weight.detach().numpy())
        self._bias = panels.in_lanes(added.numpy())

    def __call__(self, states: Float[Tensor, "R I"]) -> Float[Tensor, "R O"]:
        """The states mapped."""
        rows = len(states)
        made = states.new_empty(rows, self._outputs)
        asked, out = np.ascontiguousarray(states.numpy()), made.numpy()

        def work(first: int, stop: int) -> None:
            self._multiply(first, stop, asked, self._panels, self._bias, out)

        by_rows(len(self._panels), 2 * rows * self._panels[0].size, work)
        return made


class LinearInPlace:
    """The same with weights where they are; what a state has depends on how many there are.

    Args:
        weight: In float32.
        bias: None is none.
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


def mapping(layer: nn.Module | None, *, is_laid_out: bool) -> Callable[[Tensor], Tensor]:
    """What a layer does to a few states: by compiled loops, if it is a map in float32."""
    if isinstance(layer, nn.Linear):
        return (Linear if is_laid_out else LinearInPlace)(layer.weight, layer.bias)
    return nn.Identity() if layer is None else layer
