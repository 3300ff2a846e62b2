"""Scores: how a query and a key match, as small frozen objects.

A new score is one class here: its tensors, its formula on a tile, and whether it is a dot product.
"""

from dataclasses import dataclass
from typing import NamedTuple, Protocol, runtime_checkable

from jaxtyping import Float
from torch import Tensor

from regard.checks import check_positive
from regard.errors import ShapeError


class DotForm(NamedTuple):
    """A score written as ``scale · query · key``, for the kernels that know only that.

    Attributes:
        query: The queries to use instead.
        key: The keys to use instead.
        scale: What the dot product is multiplied by.
    """

    query: Tensor
    key: Tensor
    scale: float


@runtime_checkable
class Score(Protocol):
    """How a query and a key match."""

    def tensors(self) -> tuple[Tensor, ...]:
        """The tensors the score is made with; gradients flow to them."""
        ...

    def check(self, query: Tensor, key: Tensor) -> None:
        """Raise ShapeError if (B, H, N, D) queries and (B, H, M, D) keys cannot be scored."""
        ...

    def tile(
        self, query: Float[Tensor, "*b n D"], key: Float[Tensor, "*b m D"], *tensors: Tensor
    ) -> Float[Tensor, "*b n m"]:
        """The scores of every query with every key; pure, and differentiable by autograd."""
        ...

    def as_dot(self, query: Tensor, key: Tensor) -> DotForm | None:
        """The same score as a dot product, or None if it is not one."""
        ...

    def floats_per_pair(self, dim: int) -> int:
        """How many numbers ``tile`` holds at once for each pair of a query and a key."""
        ...


@dataclass(frozen=True, slots=True)
class ScaledDot:
    """``scale · q · k``: the scaled dot product of Vaswani et al. (2017), equation 1.

    Attributes:
        scale: None is 1/sqrt(D).
        softcap: None, or a bound c: scores become ``c · tanh(score / c)``, never beyond ±c.
    """

    scale: float | None = None
    softcap: float | None = None

    def __post_init__(self) -> None:
        if self.softcap is not None:
            check_positive("softcap", self.softcap)

    def tensors(self) -> tuple[Tensor, ...]:
        """None: nothing is learned."""
        return ()

    def check(self, query: Tensor, key: Tensor) -> None:
        """Raise ShapeError unless queries and keys are equally wide."""
        _check_same_width(query, key)

    def tile(
        self, query: Float[Tensor, "*b n D"], key: Float[Tensor, "*b m D"], *tensors: Tensor
    ) -> Float[Tensor, "*b n m"]:
        """The scores of every query with every key."""
        scores = (query * self._scale(query)) @ key.transpose(-1, -2)
        return scores if self.softcap is None else self.softcap * (scores / self.softcap).tanh()

    def as_dot(self, query: Tensor, key: Tensor) -> DotForm | None:
        """Itself, unless a soft-cap bends it."""
        return None if self.softcap is not None else DotForm(query, key, self._scale(query))

    def floats_per_pair(self, dim: int) -> int:
        """One, and two more for the soft-cap's gradient."""
        return 1 if self.softcap is None else 3

    def _scale(self, query: Tensor) -> float:
        return float(query.shape[-1]) ** -0.5 if self.scale is None else self.scale


@dataclass(frozen=True, slots=True)
class Dot:
    """``q · k``: the plain dot product of Luong et al. (2015)."""

    def tensors(self) -> tuple[Tensor, ...]:
        """None: nothing is learned."""
        return ()

    def check(self, query: Tensor, key: Tensor) -> None:
        """Raise ShapeError unless queries and keys are equally wide."""
        _check_same_width(query, key)

    def tile(
        self, query: Float[Tensor, "*b n D"], key: Float[Tensor, "*b m D"], *tensors: Tensor
    ) -> Float[Tensor, "*b n m"]:
        """The scores of every query with every key."""
        return query @ key.transpose(-1, -2)

    def as_dot(self, query: Tensor, key: Tensor) -> DotForm | None:
        """Itself, with scale one."""
        return DotForm(query, key, 1.0)

    def floats_per_pair(self, dim: int) -> int:
        """One: the score."""
        return 1


@dataclass(frozen=True, slots=True, eq=False)
class Additive:
    """``w · tanh(q + k)``: additive attention of Bahdanau et al. (2015), on projected q and k.

    Attributes:
        w: How much each hidden unit counts; broadcasts to (H, D): (D,), or (H, D) per head.
    """

    w: Float[Tensor, "..."]

    def tensors(self) -> tuple[Tensor, ...]:
        """The weights of the hidden units."""
        return (self.w,)

    def check(self, query: Tensor, key: Tensor) -> None:
        """Raise ShapeError unless q, k and w are equally wide."""
        _check_same_width(query, key)
        H, D = query.shape[-3], query.shape[-1]
        if self.w.dim() > 2 or any(
            have not in (1, want)
            for have, want in zip(reversed(self.w.shape), (D, H), strict=False)
        ):
            raise ShapeError(f"w must broadcast to (H, D) = ({H}, {D}); got {tuple(self.w.shape)}.")

    def tile(
        self, query: Float[Tensor, "*b n D"], key: Float[Tensor, "*b m D"], *tensors: Tensor
    ) -> Float[Tensor, "*b n m"]:
        """The scores of every query with every key."""
        (w,) = tensors
        hidden = (query.unsqueeze(-2) + key.unsqueeze(-3)).tanh()  # (..., n, m, D)
        w = w.expand(*w.shape[:-1], query.shape[-1]) if w.dim() else w.expand(query.shape[-1])
        if w.dim() == 1:
            return hidden @ w
        return (hidden @ w[:, None, :, None]).squeeze(-1)

    def as_dot(self, query: Tensor, key: Tensor) -> DotForm | None:
        """None: it is not a dot product."""
        return None

    def floats_per_pair(self, dim: int) -> int:
        """Every hidden unit, and once more for its gradient."""
        return 2 * dim


def _check_same_width(query: Tensor, key: Tensor) -> None:
    if query.shape[-1] != key.shape[-1]:
        raise ShapeError(
            f"key must be as wide as query, D = {query.shape[-1]}; got {key.shape[-1]}."
        )
