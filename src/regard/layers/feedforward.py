"""The position-wise feed-forward sublayer."""

from collections.abc import Callable

from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from regard.choices import choose

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {"gelu": F.gelu, "relu": F.relu}


class FeedForward(nn.Module):
    """Two linear maps with a nonlinearity between, the same at every position.

    ``activation(x W1 + b1) W2 + b2``: equation 2 of Vaswani et al. (2017),
    https://arxiv.org/abs/1706.03762.

    Args:
        model_dim: Width of the states, C.
        ffn_dim: Width in the middle, F.
        activation: ``relu`` as in the paper, or ``gelu``.

    Raises:
        SettingError: The activation is unknown.
    """

    def __init__(self, model_dim: int, ffn_dim: int, *, activation: str = "relu") -> None:
        super().__init__()
        self.activation = choose("activation", activation, ACTIVATIONS)
        self.inner = nn.Linear(model_dim, ffn_dim)
        self.outer = nn.Linear(ffn_dim, model_dim)
        for linear in (self.inner, self.outer):
            nn.init.xavier_uniform_(linear.weight)
            nn.init.zeros_(linear.bias)

    def forward(self, states: Float[Tensor, "*batch C"]) -> Float[Tensor, "*batch C"]:
        """Each position's state, transformed by itself."""
        change: Tensor = self.outer(self.activation(self.inner(states)))
        return change
