"""Context that autograd hands from the forward of a function to its backward."""

from typing import TYPE_CHECKING

import torch
from torch import Tensor
from torch.autograd.function import FunctionCtx

if TYPE_CHECKING:

    class FunctionContext(FunctionCtx):
        """As torch makes it; each function sets what its backward asks for.

        Attributes:
            saved_tensors: What the forward saved.
            rate: The share that was dropped.
            dtype: Of an input.
            shape: Of an input, (B, N).
            backwards: Whether a recurrence went from the last position to the first.
        """

        saved_tensors: tuple[Tensor, ...]
        rate: float
        dtype: torch.dtype
        shape: tuple[int, int]
        backwards: bool

else:
    FunctionContext = FunctionCtx
