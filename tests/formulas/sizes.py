"""Sizes of a call, and random tensors in shapes of its letters."""

from typing import NamedTuple

import torch
from torch import Tensor


class Sizes(NamedTuple):
    """The letters of every shape: batch, heads, key heads, queries, keys and their widths."""

    B: int = 2
    H: int = 3
    G: int = 3
    N: int = 5
    M: int = 7
    D: int = 11
    E: int = 13


def draw(letters: str, sizes: Sizes, dtype: torch.dtype) -> Tensor:
    """Normal numbers in a shape such as "BHND", "H1" or "5D"."""
    shape = [int(each) if each.isdigit() else getattr(sizes, each) for each in letters]
    return torch.randn(shape, dtype=torch.float64).to(dtype)
