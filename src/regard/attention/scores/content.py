"""Scores by content: dot products, bilinear and additive ones, cosines."""

from dataclasses import dataclass
from math import sqrt

import torch
from jaxtyping import Float
from torch import Tensor, nn

from regard.attention.scores.base import (
    DotForm,
    Score,
    check_number_of_heads,
    check_parameter,
    check_positive_parameter,
    check_same_width,
    check_tensor,
    only_parameter,
    parameters,
    per_head,
)
from regard.checks import check_finite, check_positive, choose
from regard.errors import ShapeError


@dataclass(frozen=True, slots=True)
class ScaledDot(Score):
    """``scale · q · k``: the scaled dot product of Vaswani et al. (2017), equation 1.

    Attributes:
        scale: None is 1/sqrt(D).
        softcap: None, or a bound c: scores become ``c · tanh(score / c)``, never beyond ±c.

    Example:
        >>> import torch
        >>> from regard.attention import ScaledDot, weights
        >>> query = torch.tensor([[1.0, 0.0]])
        >>> keys = torch.tensor([[2.0, 0.0], [0.0, 2.0], [-2.0, 0.0]])
        >>> weights(query, keys, score=ScaledDot(scale=1.0))
        tensor([[0.8668, 0.1173, 0.0159]])
        >>> weights(query, keys, score=ScaledDot(scale=9.0, softcap=1.0))
        tensor([[0.6652, 0.2447, 0.0900]])
    """

    has_like_heads = True
    is_dot_product = True

    scale: float | None = None
    softcap: float | None = None

    def __post_init__(self) -> None:
        if self.scale is not None:
            check_finite("scale", self.scale)
        if self.softcap is not None:
            check_positive("softcap", self.softcap)

    def tile(self, query: Tensor, key: Tensor, *tensors: Tensor) -> Tensor:
        scores = (query * self._scale(query)) @ key.transpose(-1, -2)
        return scores if self.softcap is None else self.softcap * (scores / self.softcap).tanh()

    def as_dot(self, query: Tensor, key: Tensor) -> DotForm | None:
        return None if self.softcap is not None else DotForm(query, key, self._scale(query))

    def floats_per_pair(self, dim: int) -> int:
        return 1 if self.softcap is None else 3

    def _scale(self, query: Tensor) -> float:
        if self.scale is not None:
            return self.scale
        return 1 / sqrt(max(1, query.shape[-1]))


@dataclass(frozen=True, slots=True)
class Dot(Score):
    """``q · k``: the plain dot product of Luong et al. (2015).

    Example:
        >>> import torch
        >>> from regard.attention import Dot, weights
        >>> query = torch.tensor([[1.0, 0.0]])
        >>> keys = torch.tensor([[2.0, 0.0], [0.0, 2.0], [-2.0, 0.0]])
        >>> weights(query, keys, score=Dot())
        tensor([[0.8668, 0.1173, 0.0159]])
    """

    has_like_heads = True
    is_dot_product = True

    def tile(self, query: Tensor, key: Tensor, *tensors: Tensor) -> Tensor:
        return query @ key.transpose(-1, -2)

    def as_dot(self, query: Tensor, key: Tensor) -> DotForm | None:
        return DotForm(query, key, 1.0)

    def floats_per_pair(self, dim: int) -> int:
        return 1


@dataclass(frozen=True, slots=True, eq=False)
class Bilinear(Score):
    """``qᵀ W k``: Luong et al. (2015)'s *general* score; queries and keys may differ in width.

    Attributes:
        w: W, (D, K), or (H, D, K) per head, for queries of width D and keys of width K.

    Example:
        >>> import torch
        >>> from regard.attention import Bilinear, weights
        >>> w = torch.tensor([[1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])  # queries of 2, keys of 3
        >>> weights(torch.tensor([[0.0, 3.0]]), torch.eye(3), score=Bilinear(w))
        tensor([[0.0453, 0.0453, 0.9094]])
    """

    is_dot_product = True

    w: Float[Tensor, "..."]

    def tensors(self) -> tuple[Tensor, ...]:
        return (self.w,)

    def check(self, query: Tensor, key: Tensor) -> None:
        check_tensor("w", self.w)
        H, D, K = query.shape[-3], query.shape[-1], key.shape[-1]
        if self.w.shape not in ((D, K), (1, D, K), (H, D, K)):
            raise ShapeError(
                f"w must have shape (D, K) = {(D, K)} or (H, D, K) = {(H, D, K)}; "
                f"got {tuple(self.w.shape)}."
            )

    def tile(self, query: Tensor, key: Tensor, *tensors: Tensor) -> Tensor:
        (w,) = tensors
        return query @ w @ key.transpose(-1, -2)

    def as_dot(self, query: Tensor, key: Tensor) -> DotForm | None:
        return DotForm(query @ self.w.to(query.dtype), key, 1.0)

    def floats_per_pair(self, dim: int) -> int:
        return 1


@dataclass(frozen=True, slots=True, eq=False)
class Cosine(Score):
    """``cos(q, k) / temperature``: only directions count; a vector of zeros scores zero.

    Attributes:
        temperature: A number, or a tensor, () or (H, 1), such as a learned one per head.

    Example:
        >>> import torch
        >>> from regard.attention import Cosine, weights
        >>> query = torch.tensor([[1.0, 0.0]])
        >>> keys = torch.tensor([[2.0, 0.0], [0.0, 2.0], [-2.0, 0.0]])
        >>> weights(query, 5 * keys, score=Cosine()).equal(weights(query, keys, score=Cosine()))
        True
    """

    has_like_heads = True
    is_dot_product = True

    temperature: float | Float[Tensor, "..."] = 1.0

    def __post_init__(self) -> None:
        check_positive_parameter("temperature", self.temperature)

    def tensors(self) -> tuple[Tensor, ...]:
        return parameters(self.temperature)

    def check(self, query: Tensor, key: Tensor) -> None:
        check_same_width(query, key)
        check_number_of_heads("temperature", self.temperature, query)

    def tile(self, query: Tensor, key: Tensor, *tensors: Tensor) -> Tensor:
        temperature = per_head(only_parameter(self.temperature, tensors))
        return (_direction(query) / temperature) @ _direction(key).transpose(-1, -2)

    def as_dot(self, query: Tensor, key: Tensor) -> DotForm | None:
        temperature = per_head(only_parameter(self.temperature, self.tensors()))
        return DotForm((_direction(query) / temperature).to(query.dtype), _direction(key), 1.0)

    def floats_per_pair(self, dim: int) -> int:
        return 1


def _direction(vectors: Tensor) -> Tensor:
    """Vectors of length one; zeros stay zeros."""
    # Neither very long nor very short vectors may lose their squares.
    top = vectors.detach().abs().amax(dim=-1, keepdim=True)
    vectors = vectors / torch.where(top == 0, 1, top)
    squared = vectors.square().sum(dim=-1, keepdim=True)
    return vectors * torch.where(squared == 0, 1, squared).rsqrt()


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
        bound = sqrt(6 / (dim + 1))
        return cls(nn.Parameter(torch.empty(heads, dim).uniform_(-bound, bound)))

    def tensors(self) -> tuple[Tensor, ...]:
        return (self.w,)

    def check(self, query: Tensor, key: Tensor) -> None:
        check_tensor("w", self.w)
        check_same_width(query, key)
        check_parameter("w", self.w, query)

    def tile(self, query: Tensor, key: Tensor, *tensors: Tensor) -> Tensor:
        (w,) = tensors
        hidden = (query.unsqueeze(-2) + key.unsqueeze(-3)).tanh()  # (..., n, m, D)
        w = w.expand(*w.shape[:-1], query.shape[-1]) if w.dim() else w.expand(query.shape[-1])
        # A copy of w for each query, not one product: the gradient of w is then a sum of sums, and
        # keeps a digit that adding up all pairs one after the other would lose.
        w = w[:, None, :, None] if w.dim() == 2 else w[:, None].expand(*hidden.shape[:-2], -1, 1)
        return (hidden @ w).squeeze(-1)

    def floats_per_pair(self, dim: int) -> int:
        return 2 * dim


# The scores that settings may name.
SCORES: dict[str, type[Score]] = {"additive": Additive, "dot": Dot, "scaled_dot": ScaledDot}


def make_score(name: str, heads: int, dim: int) -> Score:
    """The score of a name for H heads of D numbers, with parameters of its own if it learns any."""
    return choose("score", name, SCORES).for_heads(heads, dim)


def register_score(name: str, kind: type[Score]) -> None:
    """Let the settings of models, such as ``model.score`` of a recipe, name a score of one's own.

    Args:
        name: Its name; a score of this name is replaced.
        kind: Its class, whose ``for_heads`` makes it.

    Example:
        >>> from regard.attention import Cosine
        >>> register_score("cosine", Cosine)
        >>> type(make_score("cosine", 2, 3)).__name__
        'Cosine'
        >>> from regard.models import TransformerConfig
        >>> TransformerConfig(score="cosine").score
        'cosine'
        >>> del SCORES["cosine"]
    """
    SCORES[name] = kind
