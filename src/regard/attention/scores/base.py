"""Interface of scores, their form as a dot product, checks that they share, and custom scores."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from regard.checks import check_positive
from regard.errors import SettingError, ShapeError, excerpt


class DotForm(NamedTuple):
    """A score written as ``scale · query · key + of_keys``, for the kernels that know only that.

    Attributes:
        query: The queries to use instead, (B, H, N, D) of a width of their own.
        key: The keys to use instead, (B, G, M, D).
        scale: The factor of the dot product.
        of_keys: A number of each key, added whatever the query, (B, G, M); None adds nothing.

    Example:
        ``½ · 1 · 2 − 4`` and ``½ · 1 · 6 + 0``, and the same as a dot product alone:

        >>> query, key = torch.tensor([[[[1.0]]]]), torch.tensor([[[[2.0], [6.0]]]])
        >>> form = DotForm(query, key, scale=0.5, of_keys=torch.tensor([[[-4.0, 0.0]]]))
        >>> alone = form.in_one_more_dimension()
        >>> alone.key.tolist(), (alone.scale * alone.query @ alone.key.mT).tolist()
        ([[[[2.0, -8.0], [6.0, 0.0]]]], [[[[-3.0, 3.0]]]])
    """

    query: Tensor
    key: Tensor
    scale: float
    of_keys: Tensor | None = None

    def in_one_more_dimension(self) -> "DotForm":
        """Fold the key term into the product: ``scale · (query, 1) · (key, of_keys / scale)``."""
        if self.of_keys is None:
            return self
        one = self.query.new_ones(()).expand(*self.query.shape[:-1], 1)
        last = (self.of_keys / self.scale).unsqueeze(-1)
        return DotForm(
            torch.cat([self.query, one], -1), torch.cat([self.key, last], -1), self.scale
        )


class Score(ABC):
    """The match of queries and keys. A custom score has a ``tile``, and declares its abilities.

    Attributes:
        has_like_heads: Whether a pair is scored alike in every head, as far as ``tensors`` do not
            tell heads apart. Where it is not known, a tile holds all heads.
        is_dot_product: Whether ``as_dot`` gives the score itself, and in the same form
            whatever the numbers in queries and keys.

    Example:
        A key matches the better, the nearer it is:

        >>> from regard.attention import Score, weights
        >>> class Nearness(Score):
        ...     def tile(self, query, key):
        ...         return -torch.cdist(query, key)
        >>> weights(torch.tensor([[0.0]]), torch.tensor([[0.0], [1.0], [2.0]]), score=Nearness())
        tensor([[0.6652, 0.2447, 0.0900]])
    """

    __slots__ = ()

    has_like_heads: ClassVar[bool] = False
    is_dot_product: ClassVar[bool] = False

    @classmethod
    def for_heads(cls, heads: int, dim: int) -> "Score":
        """The score of a layer with H heads of D numbers, its parameters as training begins.

        Unless said, it learns nothing.
        """
        return cls()

    @abstractmethod
    def tile(
        self, query: Float[Tensor, "*b n D"], key: Float[Tensor, "*b m D"], *tensors: Tensor
    ) -> Float[Tensor, "*b n m"]:
        """The scores of every query with every key; pure, and differentiable by autograd.

        Args:
            query: Some of the queries.
            key: Some of the keys.
            tensors: Replacements of ``tensors()``.
        """

    def tensors(self) -> tuple[Tensor, ...]:
        """The tensors the score is made with; gradients flow to them. None, unless said."""
        return ()

    def check(self, query: Tensor, key: Tensor) -> None:
        """Raise ShapeError if (B, H, N, D) queries and (B, H, M, D) keys cannot be scored.

        Unless said, they must be equally wide.
        """
        check_same_width(query, key)

    def as_dot(self, query: Tensor, key: Tensor) -> DotForm | None:
        """Form as a dot product, up to a number for each query; None if there is none."""
        return None

    def floats_per_pair(self, dim: int) -> int:
        """Numbers that ``tile`` holds at once for each pair of a query and a key.

        Unless said, as many as a formula over differences would hold.
        """
        return 3 * dim


def parameters(*values: float | Tensor | None) -> tuple[Tensor, ...]:
    """Parameters of a score that are tensors."""
    return tuple(value for value in values if isinstance(value, Tensor))


def only_parameter(parameter: float | Tensor | None, tensors: tuple[Tensor, ...]) -> float | Tensor:
    """A score's only parameter: the tensor in its place, or the number it is."""
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


def check_positive_parameter(name: str, parameter: object) -> None:
    """Raise SettingError unless a score's parameter is a tensor, or a number above zero."""
    if not isinstance(parameter, Tensor):
        check_positive(name, parameter)  # type: ignore[arg-type]


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


def check_number_of_heads(name: str, parameter: float | Tensor, query: Tensor) -> None:
    """Raise ShapeError unless a parameter is one number, or one for each head."""
    H = query.shape[-3]
    if isinstance(parameter, Tensor) and parameter.shape not in ((), (1,), (1, 1), (H, 1)):
        raise ShapeError(
            f"{name} must have shape () or (H, 1) = ({H}, 1); got {tuple(parameter.shape)}."
        )


def check_same_width(query: Tensor, key: Tensor) -> None:
    """Raise ShapeError unless queries and keys are equally wide."""
    if query.shape[-1] != key.shape[-1]:
        raise ShapeError(
            f"key must be as wide as query, D = {query.shape[-1]}; got {key.shape[-1]}."
        )


@dataclass(frozen=True, slots=True, eq=False, init=False)
class Custom(Score):
    """A score by any formula, in memory that grows with N all the same.

    Attributes:
        function: Called as ``function(query, key, *tensors)`` with (B, H, n, D) queries and
            (B, H, m, K) keys of a tile; gives their (B, H, n, m) scores. Its answer for a pair
            must depend on that pair alone.
        parameters: Tensors that gradients flow to. One that the function merely captures would be
            passed over, and is refused.

    Example:
        >>> import torch
        >>> from regard.attention import attend
        >>> sharpness = torch.tensor(3.0, requires_grad=True)
        >>> score = Custom(lambda q, k, sharpness: sharpness * (q @ k.mT), sharpness)
        >>> attend(torch.ones(1, 1, 1, 2), torch.ones(1, 1, 3, 2), score=score).shape
        torch.Size([1, 1, 1, 2])
    """

    function: Callable[..., Tensor]
    parameters: tuple[Tensor, ...]

    def __init__(self, function: Callable[..., Tensor], *tensors: Tensor) -> None:
        if not callable(function):
            raise SettingError(f"function must be callable; got {excerpt(function)}.")
        for tensor in tensors:
            check_tensor("tensors", tensor)
        object.__setattr__(self, "function", function)
        object.__setattr__(self, "parameters", tensors)

    def tensors(self) -> tuple[Tensor, ...]:
        return self.parameters

    def check(self, query: Tensor, key: Tensor) -> None:
        first_query, first_key = query.detach()[..., :1, :], key.detach()[..., :1, :]
        if not first_query.numel() or not first_key.numel():
            return
        if first_query.dim() == 4 and first_query.shape[1] != first_key.shape[1]:
            first_key = first_key.repeat_interleave(
                first_query.shape[1] // first_key.shape[1], dim=1
            )
        scores = self.function(first_query, first_key, *(t.detach() for t in self.parameters))
        want = (*first_query.shape[:-1], 1)
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

    def tile(self, query: Tensor, key: Tensor, *tensors: Tensor) -> Tensor:
        return self.function(query, key, *tensors)
