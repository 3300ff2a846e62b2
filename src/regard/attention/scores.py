"""Scores: how a query and a key match, as small frozen objects.

A new score is one class here: its tensors, its formula on a tile, and whether it is a dot product.
Those that fall with distance are in ``kernels.py``.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import isfinite, sqrt
from typing import NamedTuple, Protocol, runtime_checkable

import torch
from jaxtyping import Float
from torch import Tensor

from regard.checks import check_positive
from regard.errors import SettingError, ShapeError


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
        """The tensors the score is made with; gradients flow to them.

        What differs from head to head belongs here: a tile may hold a part of the heads only of a
        score that has none.
        """
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
        if self.scale is not None and (
            not isinstance(self.scale, int | float) or not isfinite(self.scale)
        ):
            raise SettingError(f"scale must be a finite number; got {self.scale!r}.")
        if self.softcap is not None:
            check_positive("softcap", self.softcap)

    def tensors(self) -> tuple[Tensor, ...]:
        """None: nothing is learned."""
        return ()

    def check(self, query: Tensor, key: Tensor) -> None:
        """Raise ShapeError unless queries and keys are equally wide."""
        check_same_width(query, key)

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
        if self.scale is not None:
            return self.scale
        return 1 / sqrt(max(1, query.shape[-1]))


@dataclass(frozen=True, slots=True)
class Dot:
    """``q · k``: the plain dot product of Luong et al. (2015)."""

    def tensors(self) -> tuple[Tensor, ...]:
        """None: nothing is learned."""
        return ()

    def check(self, query: Tensor, key: Tensor) -> None:
        """Raise ShapeError unless queries and keys are equally wide."""
        check_same_width(query, key)

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
class Bilinear:
    """``qᵀ W k``: Luong et al. (2015)'s *general* score; queries and keys may differ in width.

    Attributes:
        w: W, (D, K), or (H, D, K) per head, for queries of width D and keys of width K.
    """

    w: Float[Tensor, "..."]

    def tensors(self) -> tuple[Tensor, ...]:
        """The matrix."""
        return (self.w,)

    def check(self, query: Tensor, key: Tensor) -> None:
        """Raise ShapeError unless W joins the widths of queries and keys."""
        check_tensor("w", self.w)
        H, D, K = query.shape[-3], query.shape[-1], key.shape[-1]
        if self.w.shape not in ((D, K), (1, D, K), (H, D, K)):
            raise ShapeError(
                f"w must have shape (D, K) = {(D, K)} or (H, D, K) = {(H, D, K)}; "
                f"got {tuple(self.w.shape)}."
            )

    def tile(
        self, query: Float[Tensor, "*b n D"], key: Float[Tensor, "*b m K"], *tensors: Tensor
    ) -> Float[Tensor, "*b n m"]:
        """The scores of every query with every key."""
        (w,) = tensors
        return query @ w @ key.transpose(-1, -2)

    def as_dot(self, query: Tensor, key: Tensor) -> DotForm | None:
        """Queries times W, with scale one."""
        return DotForm(query @ self.w.to(query.dtype), key, 1.0)

    def floats_per_pair(self, dim: int) -> int:
        """One: the score."""
        return 1


@dataclass(frozen=True, slots=True, eq=False)
class Cosine:
    """``cos(q, k) / temperature``: only directions count; a vector of zeros scores zero.

    Attributes:
        temperature: A number, or a tensor, () or (H, 1), such as a learned one per head.
    """

    temperature: float | Float[Tensor, "..."] = 1.0

    def __post_init__(self) -> None:
        if isinstance(self.temperature, int | float):
            check_positive("temperature", self.temperature)

    def tensors(self) -> tuple[Tensor, ...]:
        """The temperature, if it is a tensor."""
        return parameters(self.temperature)

    def check(self, query: Tensor, key: Tensor) -> None:
        """Raise ShapeError unless q and k are equally wide and the temperature is () or (H, 1)."""
        check_same_width(query, key)
        H = query.shape[-3]
        if isinstance(self.temperature, Tensor) and self.temperature.shape not in (
            (),
            (1,),
            (1, 1),
            (H, 1),
        ):
            raise ShapeError(
                f"temperature must have shape () or (H, 1) = ({H}, 1); "
                f"got {tuple(self.temperature.shape)}."
            )

    def tile(
        self, query: Float[Tensor, "*b n D"], key: Float[Tensor, "*b m D"], *tensors: Tensor
    ) -> Float[Tensor, "*b n m"]:
        """The scores of every query with every key."""
        temperature = per_head(given(self.temperature, tensors))
        return (_direction(query) / temperature) @ _direction(key).transpose(-1, -2)

    def as_dot(self, query: Tensor, key: Tensor) -> DotForm | None:
        """The directions, with scale one."""
        temperature = per_head(given(self.temperature, self.tensors()))
        return DotForm((_direction(query) / temperature).to(query.dtype), _direction(key), 1.0)

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

    def as_dot(self, query: Tensor, key: Tensor) -> DotForm | None:
        """None: it is not a dot product."""
        return None

    def floats_per_pair(self, dim: int) -> int:
        """Every hidden unit, and once more for its gradient."""
        return 2 * dim


@dataclass(frozen=True, slots=True, eq=False, init=False)
class Custom:
    """Whatever formula one writes, in memory that grows with N all the same.

    Attributes:
        function: Called as ``function(query, key, *tensors)`` with (B, H, n, D) queries and
            (B, H, m, K) keys of a tile; gives their (B, H, n, m) scores. Its answer for a pair
            must depend on that pair alone.
        parameters: Tensors that gradients flow to. One that the function merely captures would be
            passed over, and is refused.

    Example:
        >>> from regard.attention import attend
        >>> sharpness = torch.tensor(3.0, requires_grad=True)
        >>> score = Custom(lambda q, k, sharpness: sharpness * (q @ k.mT), sharpness)
        >>> attend(torch.ones(1, 1, 1, 2), torch.ones(1, 1, 3, 2), score=score).shape
        torch.Size([1, 1, 1, 2])
    """

    function: Callable[..., Tensor]
    parameters: tuple[Tensor, ...]

    def __init__(self, function: Callable[..., Tensor], *tensors: Tensor) -> None:
        object.__setattr__(self, "function", function)
        object.__setattr__(self, "parameters", tensors)

    def tensors(self) -> tuple[Tensor, ...]:
        """The tensors it was made with."""
        return self.parameters

    def check(self, query: Tensor, key: Tensor) -> None:
        """Raise unless the function scores one query and one key, and captures no parameter."""
        one, other = query.detach()[..., :1, :], key.detach()[..., :1, :]
        if not one.numel() or not other.numel():
            return
        if one.dim() == 4 and one.shape[1] != other.shape[1]:
            other = other.repeat_interleave(one.shape[1] // other.shape[1], dim=1)
        scores = self.function(one, other, *(t.detach() for t in self.parameters))
        want = (*one.shape[:-1], 1)
        if not isinstance(scores, Tensor) or scores.shape != want:
            came = tuple(scores.shape) if isinstance(scores, Tensor) else type(scores).__name__
            raise ShapeError(
                f"function must give scores of shape (B, H, n, m) = {want}; got {came}."
            )
        if scores.requires_grad:
            raise SettingError(
                "function must take every tensor that needs a gradient as an argument; got one it "
                "captures. Pass it: Custom(function, tensor)."
            )

    def tile(
        self, query: Float[Tensor, "*b n D"], key: Float[Tensor, "*b m K"], *tensors: Tensor
    ) -> Float[Tensor, "*b n m"]:
        """The scores of every query with every key."""
        return self.function(query, key, *tensors)

    def as_dot(self, query: Tensor, key: Tensor) -> DotForm | None:
        """None: nobody knows."""
        return None

    def floats_per_pair(self, dim: int) -> int:
        """As much as a formula over differences would hold."""
        return 3 * dim


def parameters(*given_with: float | Tensor | None) -> tuple[Tensor, ...]:
    """Those of a score's parameters that are tensors."""
    return tuple(each for each in given_with if isinstance(each, Tensor))


def given(parameter: float | Tensor | None, tensors: tuple[Tensor, ...]) -> float | Tensor:
    """A score's only parameter: what stands in for its tensor, or the number it is."""
    if tensors:
        return tensors[0]
    assert not isinstance(parameter, Tensor)
    assert parameter is not None
    return parameter


def per_head(parameter: float | Tensor) -> float | Tensor:
    """A parameter that broadcasts to (H, D) as one that broadcasts to (B, H, N, D)."""
    if isinstance(parameter, Tensor) and parameter.dim() == 2:
        return parameter[:, None, :]
    return parameter


def check_tensor(name: str, tensor: object) -> None:
    """Raise ShapeError unless a score's parameter is a tensor."""
    if not isinstance(tensor, Tensor):
        raise ShapeError(f"{name} must be a tensor; got {type(tensor).__name__}.")


def check_parameter(name: str, parameter: float | Tensor | None, query: Tensor) -> None:
    """Raise ShapeError unless a parameter broadcasts to (H, D)."""
    if not isinstance(parameter, Tensor):
        return
    H, D = query.shape[-3], query.shape[-1]
    if parameter.dim() > 2 or any(
        have not in (1, want) for have, want in zip(reversed(parameter.shape), (D, H), strict=False)
    ):
        raise ShapeError(
            f"{name} must broadcast to (H, D) = ({H}, {D}); got {tuple(parameter.shape)}."
        )


def check_same_width(query: Tensor, key: Tensor) -> None:
    """Raise ShapeError unless queries and keys are equally wide."""
    if query.shape[-1] != key.shape[-1]:
        raise ShapeError(
            f"key must be as wide as query, D = {query.shape[-1]}; got {key.shape[-1]}."
        )


def _direction(vectors: Tensor) -> Tensor:
    """Vectors of length one; zeros stay zeros."""
    # Neither very long nor very short vectors may lose their squares.
    top = vectors.detach().abs().amax(dim=-1, keepdim=True)
    vectors = vectors / torch.where(top == 0, 1, top)
    squared = vectors.square().sum(dim=-1, keepdim=True)
    return vectors * torch.where(squared == 0, 1, squared).rsqrt()
