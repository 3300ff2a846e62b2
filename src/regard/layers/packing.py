"""Leaving padding out of everything that treats each position by itself."""

import torch
from jaxtyping import Int, Shaped
from torch import Tensor

from regard.layers.function_context import FunctionContext

# Below this share of real positions, cutting the padding out costs less than computing it.
WORTHWHILE = 0.9


class Packing:
    """Where the real positions of a padded batch stand.

    Projections, norms, dropout and feed-forward layers see each position by itself, so they can
    run on the real ones alone, (R, C) instead of (B, N, C); only attention needs the rectangle.

    Args:
        lengths: How many positions of each row are real.
        width: N, padding included.

    Example:
        >>> packing = Packing(torch.tensor([2, 1]), 2)
        >>> packing.pack(torch.tensor([[[1.0], [2.0]], [[3.0], [9.0]]])).flatten().tolist()
        [1.0, 2.0, 3.0]
    """

    def __init__(self, lengths: Int[Tensor, " B"], width: int) -> None:
        is_real = torch.arange(width, device=lengths.device) < lengths[:, None]
        self.places = is_real.flatten().nonzero()[:, 0]
        self.shape = (len(lengths), width)

    @classmethod
    def if_worthwhile(cls, lengths: Int[Tensor, " B"] | None, width: int) -> "Packing | None":
        """The packing of a batch, or None where there is little padding or nothing is known."""
        # To a compiler the lengths are unknown, and it makes other graphs for other shapes.
        if lengths is None or torch.compiler.is_compiling():
            return None
        if int(lengths.sum()) > WORTHWHILE * len(lengths) * width:
            return None
        return cls(lengths, width)

    def pack(self, padded: Shaped[Tensor, "B N *rest"]) -> Shaped[Tensor, "R *rest"]:
        """The real positions, row after row."""
        packed: Tensor = _Pack.apply(padded, self.places)  # type: ignore[no-untyped-call]
        return packed

    def pad(self, packed: Shaped[Tensor, "R *rest"]) -> Shaped[Tensor, "B N *rest"]:
        """The positions where they stood, with zeros for padding."""
        padded: Tensor = _Pad.apply(packed, self.places, self.shape)  # type: ignore[no-untyped-call]
        return padded


# Autograd's own rules for these two add rows one by one; places come once, so copying will do.


class _Pack(torch.autograd.Function):
    @staticmethod
    def forward(ctx: FunctionContext, padded: Tensor, places: Tensor) -> Tensor:
        ctx.save_for_backward(places)
        ctx.shape = (padded.shape[0], padded.shape[1])
        return padded.flatten(0, 1).index_select(0, places)

    @staticmethod
    def backward(ctx: FunctionContext, grad: Tensor) -> tuple[Tensor, None]:
        (places,) = ctx.saved_tensors
        return _spread(grad, places, ctx.shape), None


class _Pad(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: FunctionContext, packed: Tensor, places: Tensor, shape: tuple[int, int]
    ) -> Tensor:
        ctx.save_for_backward(places)
        return _spread(packed, places, shape)

    @staticmethod
    def backward(ctx: FunctionContext, grad: Tensor) -> tuple[Tensor, None, None]:
        (places,) = ctx.saved_tensors
        return grad.flatten(0, 1).index_select(0, places), None, None


def _spread(packed: Tensor, places: Tensor, shape: tuple[int, int]) -> Tensor:
    B, N = shape
    padded = packed.new_zeros(B * N, *packed.shape[1:])
    return padded.index_copy_(0, places, packed).view(B, N, *packed.shape[1:])
