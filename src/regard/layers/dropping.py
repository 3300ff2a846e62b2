"""Dropout whose masks come from packed random bytes.

``torch.nn.functional.dropout`` draws one random number per element on a CPU, a quarter of a small
Transformer's training step. Here one 64-bit draw serves eight elements, and the mask is kept as
one byte per element for the backward pass.
"""

import math

import torch
from jaxtyping import Float, UInt8
from torch import Tensor, nn
from torch.nn import functional as F

from regard.checks import check_fraction
from regard.layers.function_context import FunctionContext


class Dropout(nn.Module):
    """Zeroes a share of the elements while training and scales up the rest.

    On a CPU the rate is rounded to a multiple of 1/256 and the scale follows the rounded rate, so
    the expectation is kept exactly (Srivastava et al., 2014,
    https://jmlr.org/papers/v15/srivastava14a.html).

    Args:
        rate: Share of elements to drop, at least 0 and below 1.

    Raises:
        SettingError: The rate is out of range.

    Example:
        >>> drop, states = Dropout(0.5), torch.ones(1000)
        >>> sorted(set(drop(states).tolist())), sorted(set(drop.eval()(states).tolist()))
        ([0.0, 2.0], [1.0])
    """

    def __init__(self, rate: float) -> None:
        super().__init__()
        check_fraction("dropout", rate)
        self.rate = rate

    def forward(self, states: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
        """``states`` with a share of elements zeroed while training, unchanged otherwise."""
        return dropout(states, self.rate, training=self.training)

    def extra_repr(self) -> str:
        """The rate, for ``print(model)``."""
        return f"rate={self.rate}"


def dropout(
    states: Float[Tensor, "*shape"], rate: float, *, training: bool = True
) -> Float[Tensor, "*shape"]:
    """``states`` with about ``rate`` of its elements zeroed and the others scaled up.

    Args:
        states: Any float tensor.
        rate: Share of elements to drop.
        training: False returns ``states`` itself.

    Example:
        >>> dropout(torch.ones(1000), 0.25).unique()
        tensor([0.0000, 1.3333])
    """
    if not training or rate == 0:
        return states
    # A compiler draws its own numbers, within what comes before and after.
    if states.device.type != "cpu" or torch.compiler.is_compiling():
        return F.dropout(states, rate)
    result: Tensor = _PackedDropout.apply(states, rate)  # type: ignore[no-untyped-call]
    return result


def random_bytes(shape: torch.Size) -> UInt8[Tensor, "..."]:
    """Uniform random bytes from torch's CPU generator, eight to a draw."""
    count = math.prod(shape)
    words = torch.empty((count + 7) // 8, dtype=torch.int64).random_(-(2**63), None)
    return words.view(torch.uint8)[:count].view(shape)


def keep_mask(randoms: UInt8[Tensor, "*shape"], rate: float) -> Float[Tensor, "*shape"]:
    """1 where an element is kept, 0 where dropped, as float32: multiplying is one fast pass."""
    return randoms.float().sub_(threshold(rate) - 1).clamp_(0, 1)


def threshold(rate: float) -> int:
    """The smallest random byte that keeps its element."""
    return min(round(rate * 256), 255)


def keep_scale(rate: float) -> float:
    """Scale of the elements that dropout keeps, for the rounded rate."""
    return 256 / (256 - threshold(rate))


class _PackedDropout(torch.autograd.Function):
    @staticmethod
    def forward(ctx: FunctionContext, states: Tensor, rate: float) -> Tensor:
        randoms = random_bytes(states.shape)
        ctx.save_for_backward(randoms)
        ctx.rate = rate
        return _apply_mask(states, randoms, rate)

    @staticmethod
    def backward(ctx: FunctionContext, grad: Tensor) -> tuple[Tensor, None]:
        (randoms,) = ctx.saved_tensors
        return _apply_mask(grad, randoms, ctx.rate), None


def _apply_mask(states: Tensor, randoms: Tensor, rate: float) -> Tensor:
    return (states * keep_mask(randoms, rate)).mul_(keep_scale(rate)).to(states.dtype)
