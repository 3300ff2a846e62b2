"""Matrix products in int8: what is multiplied is rounded, and the result is not.

Weights are rounded once, by row; states as they come, by row too, so that an answer does not depend
on its neighbours: to eight bits where the processor multiplies bytes (``bytewise``), else to up to
fourteen (``pairwise``).
"""

import numpy as np
import torch
from jaxtyping import Float, Float32, Int, Int8
from torch import Tensor, nn

from regard.kernels.threads import by_rows


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
        # Only here: what cannot be compiled cannot be imported.
        from regard.kernels.products import bytewise, pairwise
        from regard.kernels.products import packed as panels

        self._loops = bytewise if bytewise.has_bytes() else pairwise
        self._in_lanes = panels.in_lanes
        self._outputs, self._inputs = values.shape
        self.panels: Int8[np.ndarray, "o i p"] = self._loops.lay_out(values.numpy())
        self._scales = self._lanes(scales)
        self._nothing = np.zeros_like(self._scales)

    def _lanes(self, numbers: Float[Tensor, " O"]) -> Float32[np.ndarray, " op"]:
        lanes: np.ndarray = self._in_lanes(numbers.numpy(), self._loops.OUTPUTS)
        return lanes

    def some(self, ids: Int[Tensor, " N"]) -> Int[Tensor, "N I"]:
        """The weights of some outputs."""
        return torch.from_numpy(self._loops.weights_of(self.panels, ids.numpy(), self._inputs))

    def rounded(self) -> tuple[Int[Tensor, "O I"], Float[Tensor, " O"]]:
        """The weights, and what gives back those of each output."""
        values = self.some(torch.arange(self._outputs))
        return values, torch.from_numpy(self._scales[: self._outputs])

    def product(
        self, states: Float[Tensor, "*batch I"], bias: Float[Tensor, " O"] | None
    ) -> Float[Tensor, "*batch O"]:
        """``states @ weightᵀ + bias``, its rows and panels shared out among threads."""
        loops, flat = self._loops, states.float().reshape(-1, self._inputs).contiguous().numpy()
        added = self._nothing if bias is None else self._lanes(bias)
        (rows, inputs), (panels, steps, _) = flat.shape, self.panels.shape
        given = np.empty((rows, loops.INPUTS * steps), loops.ROUNDED)
        begins, sizes = np.empty(rows, np.int32), np.empty(rows, np.float32)
        out = np.empty((rows, panels * loops.OUTPUTS), np.float32)
        by_rows(rows, inputs, lambda *part: loops.round_part(*part, flat, given, begins, sizes))
        rest = (given, self.panels, begins, sizes, self._scales, added, out)
        by_rows(panels, rows * inputs, lambda *part: loops.multiply_part(*part, *rest))
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
