"""Scores that fall with distance: the kernels of Nadaraya-Watson regression, as small objects.

Softmax over one of these scores is the kernel's weighted mean: ``exp(score)`` is the kernel itself,
up to a factor that is the same for all keys. A bandwidth says how far "near" reaches.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import final

import torch
from jaxtyping import Float
from torch import Tensor

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
from regard.errors import SettingError, ShapeError

# A score written as a dot product may be this far off before it is worked out in float64; less
# where a gradient flows, in which the rounding of a row is multiplied by keys and not by their
# distances. So errors stay within four times those of the formula from differences.
_LARGEST_ERROR, _LARGEST_ERROR_OF_GRADIENTS = 3e-6, 5e-7

Bandwidth = float | Float[Tensor, "..."]


@dataclass(frozen=True, slots=True, eq=False)
class Gaussian(Score):
    """``−‖q − k‖² / (2 · bandwidth²)``: the Gaussian kernel of Nadaraya (1964) and Watson (1964).

    Attributes:
        bandwidth: The standard deviation: a number, or a tensor that broadcasts to (H, D), such as
            one per dimension (D,) or one per head (H, 1).
        precision: A matrix P, (D, D) or (H, D, D), for ``−(q − k)ᵀ P (q − k) / 2`` instead.

    Example:
        >>> import torch
        >>> from regard.attention import Gaussian, weights
        >>> query, keys = torch.tensor([[0.0]]), torch.tensor([[0.0], [1.0], [3.0]])
        >>> weights(query, keys, score=Gaussian(1.0))
        tensor([[0.6182, 0.3749, 0.0069]])
    """

    bandwidth: Bandwidth | None = None
    precision: Float[Tensor, "..."] | None = None

    def __post_init__(self) -> None:
        if (self.bandwidth is None) == (self.precision is None):
            raise SettingError(
                "Gaussian must be given either a bandwidth or a precision matrix; "
                f"got bandwidth={self.bandwidth}, precision={self.precision}."
            )
        if self.bandwidth is not None:
            check_positive_parameter("bandwidth", self.bandwidth)
        else:
            check_tensor("precision", self.precision)

    def tensors(self) -> tuple[Tensor, ...]:
        return parameters(self.bandwidth, self.precision)

    def check(self, query: Tensor, key: Tensor) -> None:
        check_same_width(query, key)
        check_parameter("bandwidth", self.bandwidth, query)
        if self.precision is not None:
            H, D = query.shape[-3], query.shape[-1]
            if self.precision.shape not in ((D, D), (H, D, D), (1, D, D)):
                raise ShapeError(
                    f"precision must have shape (D, D) = {(D, D)} or (H, D, D) = {(H, D, D)}; "
                    f"got {tuple(self.precision.shape)}."
                )

    def tile(self, query: Tensor, key: Tensor, *tensors: Tensor) -> Tensor:
        if self.precision is not None:
            (matrix,) = tensors
            difference = query.unsqueeze(-2) - key.unsqueeze(-3)
            matrix = matrix if matrix.dim() == 2 else matrix.unsqueeze(-3)
            return -(difference * (difference @ matrix)).sum(-1) / 2
        return -_squared_distance(query, key, only_parameter(self.bandwidth, tensors)) / 2

    def as_dot(self, query: Tensor, key: Tensor) -> DotForm | None:
        """A dot product and a number of each key, around the mean of the keys.

        ``−‖q − k‖²/2 = q·k − ‖k‖²/2 − ‖q‖²/2``, whose last term is the same for all keys of a
        query. Far from the origin the other two would cancel; around the keys' mean they hardly do,
        and where a bound on their error is too large for float32, they are worked out in float64.
        """
        wide = torch.promote_types(query.dtype, torch.float32)
        query, key = query.to(wide), key.to(wide)
        form = self._around_mean(query, key)
        if form is None and query.dtype != torch.float64:
            form = self._around_mean(query.double(), key.double())
        return form

    def _around_mean(self, query: Tensor, key: Tensor) -> DotForm | None:
        if self.precision is None:
            bandwidth = only_parameter(self.bandwidth, self.tensors())
            query, key = _centred(query, _repeated_keys(bandwidth, query, key))
            scale = per_head(bandwidth)
            return _of_products(query / scale, key / scale, None)
        precision = self.precision.to(query.dtype)
        matrix = (precision + precision.mT) / 2
        key = _repeated_keys(matrix.flatten(-2), query, key) if matrix.dim() == 3 else key
        return _of_products(*_centred(query, key), matrix)


@dataclass(frozen=True, slots=True, eq=False)
class _OfDifferences(Score, ABC):
    """A score that is a function of ``(q − k) / bandwidth``, and no dot product."""

    bandwidth: Bandwidth = 1.0

    def __post_init__(self) -> None:
        check_positive_parameter("bandwidth", self.bandwidth)

    @abstractmethod
    def falls(self, differences: Float[Tensor, "*b n m D"]) -> Float[Tensor, "*b n m"]:
        """The scores of pairs, from their differences in bandwidths."""

    @final
    def tensors(self) -> tuple[Tensor, ...]:
        return parameters(self.bandwidth)

    @final
    def check(self, query: Tensor, key: Tensor) -> None:
        check_same_width(query, key)
        check_parameter("bandwidth", self.bandwidth, query)

    @final
    def tile(self, query: Tensor, key: Tensor, *tensors: Tensor) -> Tensor:
        return self.falls(_differences(query, key, only_parameter(self.bandwidth, tensors)))


@dataclass(frozen=True, slots=True, eq=False)
class Laplace(_OfDifferences):
    """``−‖q − k‖₁ / bandwidth``: the Laplace kernel.

    Attributes:
        bandwidth: A number, or a tensor that broadcasts to (H, D); each dimension's distance is
            divided by its own.

    Example:
        >>> import torch
        >>> from regard.attention import Laplace, weights
        >>> query, keys = torch.tensor([[0.0]]), torch.tensor([[0.0], [1.0], [3.0]])
        >>> weights(query, keys, score=Laplace(1.0))
        tensor([[0.7054, 0.2595, 0.0351]])
    """

    def falls(self, differences: Float[Tensor, "*b n m D"]) -> Float[Tensor, "*b n m"]:
        return -differences.abs().sum(-1)


@dataclass(frozen=True, slots=True, eq=False)
class StudentT(Score):
    """``−(df + 1)/2 · log(1 + ‖q − k‖² / df)``: Student's t kernel, whose tails are long.

    Attributes:
        df: Degrees of freedom: a number, or a tensor, () or (H, 1). One is the Cauchy kernel.

    Example:
        >>> import torch
        >>> from regard.attention import StudentT, weights
        >>> query, keys = torch.tensor([[0.0]]), torch.tensor([[0.0], [1.0], [3.0]])
        >>> weights(query, keys, score=StudentT(1.0))
        tensor([[0.6250, 0.3125, 0.0625]])
    """

    df: Bandwidth = 1.0

    def __post_init__(self) -> None:
        check_positive_parameter("df", self.df)

    def tensors(self) -> tuple[Tensor, ...]:
        return parameters(self.df)

    def check(self, query: Tensor, key: Tensor) -> None:
        check_same_width(query, key)
        check_number_of_heads("df", self.df, query)

    def tile(self, query: Tensor, key: Tensor, *tensors: Tensor) -> Tensor:
        df = per_head(only_parameter(self.df, tensors))
        return -(df + 1) / 2 * (_squared_distance(query, key, 1.0) / df).log1p()


@dataclass(frozen=True, slots=True, eq=False)
class Box(_OfDifferences):
    """Zero within ``bandwidth`` and −∞ beyond: every key nearby counts the same.

    Its gradient is zero wherever it has one.

    Attributes:
        bandwidth: The radius: a number, or a tensor that broadcasts to (H, D), with which the ball
            becomes an ellipsoid.

    Example:
        >>> import torch
        >>> from regard.attention import Box, weights
        >>> query, keys = torch.tensor([[0.0]]), torch.tensor([[0.0], [1.0], [3.0]])
        >>> weights(query, keys, score=Box(2.0))
        tensor([[0.5000, 0.5000, 0.0000]])
    """

    def falls(self, differences: Float[Tensor, "*b n m D"]) -> Float[Tensor, "*b n m"]:
        distance = differences.square().sum(-1)
        # Zero, yet with a place in the graph, for callers who ask for a gradient.
        return (0 * distance).masked_fill(distance > 1, float("-inf"))


@dataclass(frozen=True, slots=True, eq=False)
class Epanechnikov(_OfDifferences):
    """``log(1 − ‖q − k‖² / bandwidth²)`` within ``bandwidth`` and −∞ beyond.

    ``exp`` of it is the kernel of Epanechnikov (1969), which has the least mean squared error.

    Attributes:
        bandwidth: The radius: a number, or a tensor that broadcasts to (H, D).

    Example:
        >>> import torch
        >>> from regard.attention import Epanechnikov, weights
        >>> query, keys = torch.tensor([[0.0]]), torch.tensor([[0.0], [1.0], [3.0]])
        >>> weights(query, keys, score=Epanechnikov(2.0))
        tensor([[0.5714, 0.4286, 0.0000]])
    """

    def falls(self, differences: Float[Tensor, "*b n m D"]) -> Float[Tensor, "*b n m"]:
        distance = differences.square().sum(-1)
        beyond = distance >= 1
        # Filled before the logarithm too: the gradient of log(0) is infinite, and ∞ · 0 is NaN.
        return (-distance.masked_fill(beyond, 0)).log1p().masked_fill(beyond, float("-inf"))


def _differences(query: Tensor, key: Tensor, bandwidth: Bandwidth) -> Float[Tensor, "*b n m D"]:
    """``(q − k) / bandwidth`` of every pair."""
    if isinstance(bandwidth, Tensor) and bandwidth.dim() == 2:
        bandwidth = bandwidth[:, None, None, :]
    return (query.unsqueeze(-2) - key.unsqueeze(-3)) / bandwidth


def _squared_distance(query: Tensor, key: Tensor, bandwidth: Bandwidth) -> Float[Tensor, "*b n m"]:
    return _differences(query, key, bandwidth).square().sum(-1)


def _repeated_keys(parameter: Bandwidth, query: Tensor, key: Tensor) -> Tensor:
    """Keys with a copy for each query head, if a parameter tells the heads apart."""
    if isinstance(parameter, Tensor) and parameter.dim() == 2 and parameter.shape[0] > 1:
        return key.repeat_interleave(query.shape[1] // max(1, key.shape[1]), dim=1)
    return key


def _centred(query: Tensor, key: Tensor) -> tuple[Tensor, Tensor]:
    """Centre both on the mean of the keys; distances stay the same."""
    centre = key.detach().mean(dim=-2, keepdim=True)
    H, G = query.shape[1], key.shape[1]
    of_queries = centre if H == G else centre.repeat_interleave(H // G, dim=1)
    return query - of_queries, key - centre


def _of_products(query: Tensor, key: Tensor, matrix: Tensor | None) -> DotForm | None:
    """``q·k − ‖k‖²/2``, with a matrix ``qᵀPk − kᵀPk/2``; None if rounding could be seen in it."""
    turned = query if matrix is None else query @ matrix
    length = key if matrix is None else key @ matrix
    half = (length * key).sum(-1) / 2
    if query.numel() and key.numel():
        reach = turned.detach().norm(dim=-1).amax() * key.detach().norm(dim=-1).amax()
        size = torch.maximum(reach, half.detach().abs().amax())
        is_recorded = turned.requires_grad or half.requires_grad
        limit = _LARGEST_ERROR_OF_GRADIENTS if is_recorded else _LARGEST_ERROR
        # A NaN, as in padding, is not above the limit: it is seen in the answer.
        if bool(size * torch.finfo(query.dtype).eps > limit):
            return None
    return DotForm(turned, key, 1.0, -half)
