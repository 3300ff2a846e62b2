"""Positions: what tells equal words at different places apart."""

from math import log

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from regard.checks import check_at_least, check_positive
from regard.errors import ShapeError


def sinusoidal(
    positions: Int[Tensor, " N"], model_dim: int, *, dtype: torch.dtype = torch.float32
) -> Float[Tensor, "N C"]:
    """Sines and cosines of each position, from fast to slow.

    ``PE(p, 2i) = sin(p / 10000^(2i/C))`` and ``PE(p, 2i+1) = cos(p / 10000^(2i/C))``: Vaswani et
    al. (2017), section 3.5. Worked out in float64, since float32 angles are wrong at p = 10^6.

    Args:
        positions: The places p, from 0.
        model_dim: C; an odd width leaves out the last cosine.
        dtype: Of the result.

    Example:
        >>> sinusoidal(torch.arange(3), 4)
        tensor([[ 0.0000,  1.0000,  0.0000,  1.0000],
                [ 0.8415,  0.5403,  0.0100,  0.9999],
                [ 0.9093, -0.4161,  0.0200,  0.9998]])
    """
    check_positive("model_dim", model_dim)
    even = torch.arange(0, model_dim, 2, dtype=torch.float64, device=positions.device)
    angles = positions.double()[:, None] * torch.exp(even * (-log(10000.0) / model_dim))
    waves = torch.stack((angles.sin(), angles.cos()), dim=-1)  # (N, C/2, 2)
    return waves.flatten(1)[:, :model_dim].to(dtype)


class SinusoidalPositions(nn.Module):
    """Adds ``sinusoidal`` positions; nothing is learned, and any length will do.

    Args:
        model_dim: Width of the states, C.
        max_length: Positions worked out beforehand; later ones are worked out each time.
    """

    table: Tensor

    def __init__(self, model_dim: int, *, max_length: int = 1024) -> None:
        super().__init__()
        table = sinusoidal(torch.arange(max_length), model_dim)
        self.register_buffer("table", table, persistent=False)

    def forward(
        self, states: Float[Tensor, "*batch N C"], *, first: int = 0
    ) -> Float[Tensor, "*batch N C"]:
        """The states with their positions added.

        Args:
            states: One vector per position.
            first: The position of the first of them.
        """
        last = first + states.shape[-2]
        if last <= self.table.shape[0]:
            rows = self.table[first:last]
        else:
            places = torch.arange(first, last, device=states.device)
            rows = sinusoidal(places, self.table.shape[1])
        return states + rows.to(states.dtype)


class LearnedPositions(nn.Module):
    """Adds a learned vector for each position, up to a fixed length.

    Args:
        model_dim: Width of the states, C.
        max_length: How many positions there are.

    Raises:
        SettingError: ``max_length`` is not positive.
    """

    def __init__(self, model_dim: int, *, max_length: int) -> None:
        super().__init__()
        check_positive("max_length", max_length)
        self.table = nn.Parameter(torch.empty(max_length, model_dim))
        nn.init.normal_(self.table, std=model_dim**-0.5)

    def forward(
        self, states: Float[Tensor, "*batch N C"], *, first: int = 0
    ) -> Float[Tensor, "*batch N C"]:
        """The states with their positions added.

        Args:
            states: One vector per position.
            first: The position of the first of them.

        Raises:
            ShapeError: A position lies beyond ``max_length``.
        """
        check_at_least("first", first, 0)
        last = first + states.shape[-2]
        if last > self.table.shape[0]:
            raise ShapeError(
                f"positions must be at most max_length={self.table.shape[0]}; got {last}. "
                "Sinusoidal positions have no such limit."
            )
        return states + self.table[first:last].to(states.dtype)
