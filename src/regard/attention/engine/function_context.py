"""Context between the forward and the backward pass of a function over blocks."""

from typing import TYPE_CHECKING

from torch import Tensor
from torch.autograd.function import FunctionCtx

from regard.attention.engine.blocks import BlockPass

# The gradients of what a function was given, in its order.
Gradients = tuple[Tensor | None, ...]

if TYPE_CHECKING:

    class FunctionContext(FunctionCtx):
        """As torch makes it; each function sets what its backward pass asks for.

        Attributes:
            saved_tensors: What the forward pass saved; None where it saved none.
            needs_input_grad: For each input, whether its gradient is wanted.
            job: What the blocks have in common.
        """

        saved_tensors: tuple[Tensor, ...]
        needs_input_grad: tuple[bool, ...]
        job: BlockPass

        def save_for_backward(self, *tensors: Tensor | None) -> None:
            """Keep tensors."""

else:
    FunctionContext = FunctionCtx
