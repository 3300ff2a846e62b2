"""Weightings: how a row of scores becomes a row of weights."""

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Float
from torch import Tensor


@runtime_checkable
class Weighting(Protocol):
    """How a row of scores becomes a row of weights."""

    def rows(self, scores: Float[Tensor, "*b n M"]) -> Float[Tensor, "*b n M"]:
        """The weights of whole rows of scores; a row of −inf gives zeros."""
        ...

    def gradient(
        self, weights: Float[Tensor, "*b n M"], grad: Float[Tensor, "*b n M"]
    ) -> Float[Tensor, "*b n M"]:
        """The gradient of the scores, from the weights and their gradient."""
        ...


@dataclass(frozen=True, slots=True)
class Softmax:
    """``exp(score) / sum of exp(scores)``."""

    def rows(self, scores: Float[Tensor, "*b n M"]) -> Float[Tensor, "*b n M"]:
        """The weights of whole rows of scores; a row of −inf gives zeros.

        Example:
            >>> Softmax().rows(torch.tensor([[0.0, 0.0], [-torch.inf, -torch.inf]]))
            tensor([[0.5000, 0.5000],
                    [0.0000, 0.0000]])
        """
        empty = scores.amax(dim=-1, keepdim=True) == float("-inf")
        if not empty.is_cuda and not bool(empty.any()):
            return torch.softmax(scores, dim=-1)
        return torch.softmax(scores.masked_fill(empty, 0.0), dim=-1).masked_fill(empty, 0.0)

    def gradient(
        self, weights: Float[Tensor, "*b n M"], grad: Float[Tensor, "*b n M"]
    ) -> Float[Tensor, "*b n M"]:
        """The gradient of the scores, from the weights and their gradient."""
        return weights * (grad - (weights * grad).sum(dim=-1, keepdim=True))
