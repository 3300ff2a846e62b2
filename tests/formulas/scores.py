"""Scores, each with the formula of one pair of a query and a key.

Nothing is shared with the engine. A formula of one pair serves the loops of ``reference.py`` and,
mapped over all pairs, the naive formula: dense, in whatever dtype it is asked for.
"""

from collections.abc import Callable
from typing import NamedTuple

import torch
from tests.formulas.sizes import Sizes, draw
from torch import Tensor

import regard as rg
from regard.attention import Score


class ScoreCase(NamedTuple):
    """A score and its formula.

    Attributes:
        make: The engine's score, from its tensors.
        pair: The score of one query and one key, from the tensors of their head.
        shapes: Of the tensors, in letters; "H" is always the first.
        is_positive: Whether the tensors must be above zero.
        is_dot: Whether it can be written as a dot product.
    """

    make: Callable[..., Score]
    pair: Callable[..., Tensor]
    shapes: tuple[str, ...] = ()
    is_positive: bool = False
    is_dot: bool = False

    def tensors(self, sizes: Sizes, dtype: torch.dtype) -> list[Tensor]:
        """Tensors that the score can be made with."""
        drawn = [draw(shape, sizes, torch.float64) for shape in self.shapes]
        if self.is_positive:
            drawn = [0.7 + tensor.abs() for tensor in drawn]
        # Matrices that leave scores of order one.
        pairs = zip(self.shapes, drawn, strict=True)
        return [(t / sizes.D if "DD" in shape else t).to(dtype) for shape, t in pairs]

    def of_head(self, head: int, tensors: list[Tensor]) -> list[Tensor]:
        pairs = zip(self.shapes, tensors, strict=True)
        return [tensor[head] if "H" in shape else tensor for shape, tensor in pairs]

    def loops(self, tensors: list[Tensor]) -> Callable[[int], Callable[[Tensor, Tensor], Tensor]]:
        """The score as ``attend_by_loops`` takes it."""
        wide = [tensor.double() for tensor in tensors]

        def of(head: int) -> Callable[[Tensor, Tensor], Tensor]:
            own = self.of_head(head, wide)
            return lambda q, k: self.pair(q, k, *own)

        return of

    def dense(self, query: Tensor, key: Tensor, tensors: list[Tensor]) -> Tensor:
        """The scores (B, H, N, M) of (B, H, N, D) and (B, H, M, D) in their own dtype."""
        none = (None,) * len(tensors)
        heads = tuple(0 if "H" in shape else None for shape in self.shapes)
        every = torch.vmap(self.pair, (None, 0, *none))
        every = torch.vmap(every, (0, None, *none))
        every = torch.vmap(every, (0, 0, *heads))
        every = torch.vmap(every, (0, 0, *none))
        return every(query, key, *tensors)


def _squared_distance(q: Tensor, k: Tensor, bandwidth: Tensor | float) -> Tensor:
    return (((q - k) / bandwidth) ** 2).sum()


def _box(q: Tensor, k: Tensor, radius: Tensor | float) -> Tensor:
    distance = _squared_distance(q, k, radius)
    return torch.where(distance <= 1, 0 * distance, -torch.inf)


def _epanechnikov(q: Tensor, k: Tensor, radius: Tensor | float) -> Tensor:
    distance = _squared_distance(q, k, radius)
    inside = distance < 1
    return torch.where(inside, (1 - torch.where(inside, distance, 0)).log(), -torch.inf)


def _cosine(q: Tensor, k: Tensor, temperature: Tensor | float) -> Tensor:
    return ((q @ k) / (q @ q).sqrt() / (k @ k).sqrt() / temperature).sum()


def _student(q: Tensor, k: Tensor, df: Tensor | float) -> Tensor:
    return (-(df + 1) / 2 * (1 + _squared_distance(q, k, 1.0) / df).log()).sum()


def _by(bandwidth: float, pair: Callable[..., Tensor]) -> Callable[..., Tensor]:
    return lambda q, k: pair(q, k, bandwidth)


def _gaussian(q: Tensor, k: Tensor, bandwidth: Tensor | float) -> Tensor:
    return -_squared_distance(q, k, bandwidth) / 2


def _laplace(q: Tensor, k: Tensor, bandwidth: Tensor | float) -> Tensor:
    return -((q - k).abs() / bandwidth).sum()


def _additive(q: Tensor, k: Tensor, w: Tensor) -> Tensor:
    return (w * (q + k).tanh()).sum()


def _bilinear(q: Tensor, k: Tensor, w: Tensor) -> Tensor:
    return q @ w @ k


def _precision(q: Tensor, k: Tensor, matrix: Tensor) -> Tensor:
    return -((q - k) @ matrix @ (q - k)) / 2


SCORES = {
    "scaled dot": ScoreCase(rg.ScaledDot, lambda q, k: q @ k / q.shape[-1] ** 0.5, is_dot=True),
    "scaled": ScoreCase(lambda: rg.ScaledDot(scale=0.3), lambda q, k: 0.3 * (q @ k), is_dot=True),
    "soft-cap": ScoreCase(
        lambda: rg.ScaledDot(scale=0.3, softcap=2.0), lambda q, k: 2 * (q @ k * 0.3 / 2).tanh()
    ),
    "dot": ScoreCase(rg.Dot, lambda q, k: q @ k, is_dot=True),
    "bilinear": ScoreCase(rg.Bilinear, _bilinear, ("DD",), is_dot=True),
    "bilinear per head": ScoreCase(rg.Bilinear, _bilinear, ("HDD",), is_dot=True),
    "cosine": ScoreCase(lambda: rg.Cosine(0.3), _by(0.3, _cosine), is_dot=True),
    "cosine per head": ScoreCase(rg.Cosine, _cosine, ("H1",), is_positive=True, is_dot=True),
    "gaussian": ScoreCase(lambda: rg.Gaussian(1.5), _by(1.5, _gaussian), is_dot=True),
    "gaussian learned": ScoreCase(rg.Gaussian, _gaussian, ("",), is_positive=True, is_dot=True),
    "gaussian per dimension": ScoreCase(
        rg.Gaussian, _gaussian, ("D",), is_positive=True, is_dot=True
    ),
    "gaussian per head": ScoreCase(rg.Gaussian, _gaussian, ("HD",), is_positive=True, is_dot=True),
    "precision": ScoreCase(lambda p: rg.Gaussian(precision=p), _precision, ("DD",), is_dot=True),
    "precision per head": ScoreCase(
        lambda p: rg.Gaussian(precision=p), _precision, ("HDD",), is_dot=True
    ),
    "box": ScoreCase(lambda: rg.Box(4.0), _by(4.0, _box)),
    "epanechnikov": ScoreCase(lambda: rg.Epanechnikov(5.0), _by(5.0, _epanechnikov)),
    "laplace": ScoreCase(lambda: rg.Laplace(2.0), _by(2.0, _laplace)),
    "laplace per head": ScoreCase(rg.Laplace, _laplace, ("HD",), is_positive=True),
    "student": ScoreCase(lambda: rg.StudentT(3.0), _by(3.0, _student)),
    "student per head": ScoreCase(rg.StudentT, _student, ("H1",), is_positive=True),
    "additive": ScoreCase(rg.Additive, _additive, ("D",)),
    "additive per head": ScoreCase(rg.Additive, _additive, ("HD",)),
    "custom": ScoreCase(
        lambda w: rg.Custom(lambda q, k, w: (q * w) @ k.mT, w), lambda q, k, w: (q * w) @ k, ("D",)
    ),
}
