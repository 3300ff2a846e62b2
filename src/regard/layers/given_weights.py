"""Weights that no softmax makes, mixed by the engine all the same, so that observers see them."""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from regard.attention import Dot, attend
from regard.attention.observing import is_edited, is_watched
from regard.attention.weighting import Weighting


@dataclass(frozen=True, slots=True)
class Exponential(Weighting):
    """A weighting: ``exp(score)``, as it is; rows need not sum to one."""

    def rows(self, scores: Float[Tensor, "*b n M"]) -> Float[Tensor, "*b n M"]:
        """The weights of whole rows of scores; a row of −inf gives zeros.

        Example:
            >>> import torch
            >>> Exponential().rows(torch.tensor([[0.0, -torch.inf]]))
            tensor([[1., 0.]])
        """
        return scores.exp()

    def gradient(
        self, weights: Float[Tensor, "*b n M"], grad: Float[Tensor, "*b n M"]
    ) -> Float[Tensor, "*b n M"]:
        """The gradient of the scores, from the weights and their gradient."""
        return weights * grad


def mix(
    log_weights: Float[Tensor, "B N M"], values: Float[Tensor, "B M E"]
) -> Float[Tensor, "B N E"]:
    """``exp(log_weights) · values``, as a call of ``attend`` that observers see.

    The scores of the call are zeros, its bias is ``log_weights``. Where nobody observes or edits,
    there is no call: a step of a recurrent decoder would spend most of its time on it.

    Args:
        log_weights: −inf where a key is not to be seen.
        values: What is mixed.

    Example:
        >>> import torch
        >>> mix(torch.tensor([[[0.25, 0.5]]]).log(), torch.tensor([[[4.0], [6.0]]]))
        tensor([[[4.]]])
    """
    bias = log_weights.to(values.dtype)
    if not (is_watched() or is_edited()):
        # As in ``attend``, automatic precision narrows nothing.
        with torch.autocast(values.device.type, enabled=False):
            return bias.exp() @ values
    B, N, M = bias.shape
    queries, keys = bias.new_zeros(B, N, 1), bias.new_zeros(B, M, 1)
    return attend(queries, keys, values, score=Dot(), bias=bias, weighting=Exponential())
