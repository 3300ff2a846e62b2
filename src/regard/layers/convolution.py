"""Convolutions over a sequence, with gates."""

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.utils.parametrizations import weight_norm

from regard.checks import check_at_least, check_fraction
from regard.errors import SettingError


class GatedConvolution(nn.Module):
    """Each place made of its neighbourhood: half of a convolution, gated by the other half.

    ``v(A, B) = A * sigmoid(B)`` with ``[A B] = W x + b`` over k places: the gated linear unit of
    Dauphin et al. (2017), https://arxiv.org/abs/1612.08083, as Gehring et al. (2017) use it.
    Beyond the ends stand zeros.

    Args:
        model_dim: Width of the states, C.
        kernel_size: Places seen, k; odd unless causal.
        is_causal: Whether they end with a place's own, or have it in the middle.
        dropout: Share of the inputs dropped while training.
        has_weight_norm: Whether lengths and directions of the weights are learned apart: Salimans
            & Kingma (2016), https://arxiv.org/abs/1602.07868.

    Raises:
        SettingError: A number is out of range, or the kernel has no middle.

    Example:
        >>> layer = GatedConvolution(4, 3, is_causal=True)
        >>> states = torch.ones(2, 5, 4)
        >>> whole, _ = layer(states)
        >>> first, past = layer(states[:, :3])
        >>> rest, _ = layer(states[:, 3:], past)
        >>> torch.allclose(torch.cat([first, rest], 1), whole, atol=1e-6)
        True
    """

    def __init__(
        self,
        model_dim: int,
        kernel_size: int,
        *,
        is_causal: bool = False,
        dropout: float = 0.0,
        has_weight_norm: bool = False,
    ) -> None:
        super().__init__()
        check_at_least("kernel_size", kernel_size, 1)
        check_fraction("dropout", dropout)
        if not is_causal and kernel_size % 2 == 0:
            raise SettingError(
                f"kernel_size must be odd, to have a middle, unless is_causal; got {kernel_size}."
            )
        self.dropout = dropout
        before = kernel_size - 1 if is_causal else kernel_size // 2
        self.before, self.after = before, kernel_size - 1 - before
        self.convolution = nn.Conv1d(model_dim, 2 * model_dim, kernel_size)
        # Gates halve what goes through: Gehring et al., section 3.5.
        deviation = (4 * (1 - dropout) / (kernel_size * model_dim)) ** 0.5
        nn.init.normal_(self.convolution.weight, std=deviation)
        assert self.convolution.bias is not None
        nn.init.zeros_(self.convolution.bias)
        if has_weight_norm:
            weight_norm(self.convolution)

    def forward(
        self, states: Float[Tensor, "B N C"], past: Float[Tensor, "B P C"] | None = None
    ) -> tuple[Float[Tensor, "B N C"], Float[Tensor, "B P C"]]:
        """The places one layer further on, and the last inputs, for those that come after.

        Args:
            states: Zero where they are padding.
            past: The inputs before them, from an earlier call. None: there are none.
        """
        B, N, C = states.shape
        inputs = F.dropout(states, self.dropout, training=self.training)
        before = inputs.new_zeros(B, self.before, C) if past is None else past
        inputs = torch.cat([before, inputs, inputs.new_zeros(B, self.after, C)], dim=1)
        gated = F.glu(self.convolution(inputs.transpose(1, 2)).transpose(1, 2), dim=-1)
        return gated, inputs[:, N : N + self.before]
