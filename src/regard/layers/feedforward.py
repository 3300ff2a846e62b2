"""The position-wise feed-forward sublayer."""

from collections.abc import Callable
from functools import partial

from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from regard.choices import choose

# Those of twice the width make one half the other's gate: Shazeer (2020),
# https://arxiv.org/abs/2002.05202, equation 6.
GATED = ("swiglu",)


def swiglu(inner: Float[Tensor, "*batch G"]) -> Float[Tensor, "*batch F"]:
    """``Swish(x W) * (x V)``, the two side by side in ``inner``."""
    gate, value = inner.chunk(2, dim=-1)
    return F.silu(gate) * value


ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "gelu": F.gelu,
    "gelu_tanh": partial(F.gelu, approximate="tanh"),
    "relu": F.relu,
    "silu": F.silu,
    "swiglu": swiglu,
}


class FeedForward(nn.Module):
    """Two linear maps with a nonlinearity between, the same at every position.

    ``activation(x W1 + b1) W2 + b2``: equation 2 of Vaswani et al. (2017),
    https://arxiv.org/abs/1706.03762. ``swiglu`` has a third matrix of the same size; two thirds of
    the width make as many weights.

    Args:
        model_dim: Width of the states, C.
        ffn_dim: Width in the middle, F.
        activation: ``relu`` as in the paper, ``gelu``, ``gelu_tanh`` (as GPT-2 approximates it),
            ``silu`` or ``swiglu``.

    Raises:
        SettingError: The activation is unknown.

    Example:
        >>> import torch
        >>> feed = FeedForward(model_dim=4, ffn_dim=16)
        >>> states = torch.randn(1, 3, 4)
        >>> out = feed(states)
        >>> out.shape, torch.allclose(out[:, 1], feed(states[:, 1]), atol=1e-6)
        (torch.Size([1, 3, 4]), True)
    """

    def __init__(self, model_dim: int, ffn_dim: int, *, activation: str = "relu") -> None:
        super().__init__()
        self.activation = choose("activation", activation, ACTIVATIONS)
        sides = 2 if activation in GATED else 1
        self.inner = nn.Linear(model_dim, sides * ffn_dim)
        self.outer = nn.Linear(ffn_dim, model_dim)
        for linear, parts in ((self.inner, sides), (self.outer, 1)):
            for matrix in linear.weight.data.chunk(parts):
                nn.init.xavier_uniform_(matrix)
            nn.init.zeros_(linear.bias)

    def forward(self, states: Float[Tensor, "*batch C"]) -> Float[Tensor, "*batch C"]:
        """Each position's state, transformed by itself."""
        change: Tensor = self.outer(self.activation(self.inner(states)))
        return change
