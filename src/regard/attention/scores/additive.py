"""The additive score: a small network says how well a query and a key match."""

from dataclasses import dataclass
from math import sqrt

import torch
from jaxtyping import Float
from torch import Tensor, nn

from regard.attention.scores.base import (
    Score,
    check_parameter,
    check_same_width,
    check_tensor,
)


@dataclass(frozen=True, slots=True, eq=False)
class Additive(Score):
    """``w · tanh(q + k)``: additive attention of Bahdanau et al. (2015), on projected q and k.

    Attributes:
        w: How much each hidden unit counts; broadcasts to (H, D): (D,), or (H, D) per head.

    Example:
        >>> import torch
        >>> from regard.attention import Additive, weights
        >>> query = torch.tensor([[1.0, 0.0]])
        >>> keys = torch.tensor([[2.0, 0.0], [0.0, 2.0], [-2.0, 0.0]])
        >>> weights(query, keys, score=Additive(torch.tensor([1.0, 1.0])))
        tensor([[0.3078, 0.6391, 0.0531]])
    """

    w: Float[Tensor, "..."]

    @classmethod
    def for_heads(cls, heads: int, dim: int) -> "Additive":
        """One with weights of each head, by Xavier from D hidden units to one score."""
        bound = sqrt(6 / (dim + 1))
        return cls(nn.Parameter(torch.empty(heads, dim).uniform_(-bound, bound)))

    def tensors(self) -> tuple[Tensor, ...]:
        """The weights of the hidden units."""
        return (self.w,)

    def check(self, query: Tensor, key: Tensor) -> None:
        """Raise ShapeError unless q, k and w are equally wide."""
        check_tensor("w", self.w)
        check_same_width(query, key)
        check_parameter("w", self.w, query)

    def tile(
        self, query: Float[Tensor, "*b n D"], key: Float[Tensor, "*b m D"], *tensors: Tensor
    ) -> Float[Tensor, "*b n m"]:
        """The scores of every query with every key."""
        (w,) = tensors
        hidden = (query.unsqueeze(-2) + key.unsqueeze(-3)).tanh()  # (..., n, m, D)
        w = w.expand(*w.shape[:-1], query.shape[-1]) if w.dim() else w.expand(query.shape[-1])
        # A copy of w for each query, not one product: the gradient of w is then a sum of sums, and
        # keeps a digit that adding up all pairs one after the other would lose.
        w = w[:, None, :, None] if w.dim() == 2 else w[:, None].expand(*hidden.shape[:-2], -1, 1)
        return (hidden @ w).squeeze(-1)

    def floats_per_pair(self, dim: int) -> int:
        """Every hidden unit, and once more for its gradient."""
        return 2 * dim
