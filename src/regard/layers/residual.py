"""The residual connection around a sublayer: dropout, addition and norm in one step."""

from collections.abc import Callable
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor, nn

from regard.checks import check_fraction
from regard.choices import check_choice
from regard.layers.dropping import dropout, keep_mask, keep_scale, random_bytes
from regard.layers.function_context import FunctionContext
from regard.layers.norms import make_norm

NormOrder = Literal["post", "pre"]


class Residual(nn.Module):
    """A sublayer with a way around it.

    ``post``: ``norm(x + dropout(sublayer(x)))``, Vaswani et al. (2017), section 5.4;
    ``pre``: ``x + dropout(sublayer(norm(x)))``, Xiong et al. (2020),
    https://arxiv.org/abs/2002.04745.

    Args:
        model_dim: Width of the states, C.
        dropout: Share of the sublayer's output dropped while training.
        norm: Whether the norm comes after the addition or before the sublayer.
        kind: Which norm: ``layer`` as in the papers, ``rms`` or ``batch``.
        eps: What the norm adds to a variance; None is the kind's own.

    Raises:
        SettingError: The rate is out of range, or order or kind unknown.

    Example:
        >>> states = torch.tensor([[1.0, 3.0]])
        >>> Residual(2, norm="pre")(states, lambda normed: 10 * normed).round(decimals=2).tolist()
        [[-9.0, 13.0]]
        >>> Residual(2, norm="post")(states, lambda states: 10 * states).round(decimals=2).tolist()
        [[-1.0, 1.0]]
    """

    def __init__(
        self,
        model_dim: int,
        *,
        dropout: float = 0.0,
        norm: NormOrder = "post",
        kind: str = "layer",
        eps: float | None = None,
    ) -> None:
        super().__init__()
        check_fraction("dropout", dropout)
        check_choice("norm", norm, NormOrder)
        self.rate = dropout
        self.order = norm
        self.norm = make_norm(kind, model_dim, eps=eps)

    def forward(
        self, states: Float[Tensor, "*batch C"], sublayer: Callable[[Tensor], Tensor]
    ) -> Float[Tensor, "*batch C"]:
        """``states`` after the sublayer, its residual and its norm.

        Args:
            states: What goes in and around.
            sublayer: Called once, with ``states`` or with their norm.
        """
        if self.order == "pre":
            change = sublayer(self.norm(states))
            return states + dropout(change, self.rate, training=self.training)
        change = sublayer(states)
        is_fused = self.training and self.rate > 0 and states.device.type == "cpu"
        if is_fused and isinstance(self.norm, nn.LayerNorm):
            fused: Tensor = _AddDropoutNorm.apply(  # type: ignore[no-untyped-call]
                states, change, self.norm.weight, self.norm.bias, self.norm.eps, self.rate
            )
            return fused
        result: Tensor = self.norm(states + dropout(change, self.rate, training=self.training))
        return result

    def extra_repr(self) -> str:
        """Order and rate, for ``print(model)``."""
        return f"norm={self.order}, dropout={self.rate}"


class _AddDropoutNorm(torch.autograd.Function):
    """``layer_norm(states + dropout(change))`` with three passes over memory instead of seven."""

    @staticmethod
    def forward(
        ctx: FunctionContext,
        states: Tensor,
        change: Tensor,
        weight: Tensor,
        bias: Tensor,
        eps: float,
        rate: float,
    ) -> Tensor:
        randoms = random_bytes(change.shape)
        kept = keep_mask(randoms, rate)
        total = torch.addcmul(states, change.to(states.dtype), kept, value=keep_scale(rate))
        out, mean, rstd = torch.native_layer_norm(total, weight.shape, weight, bias, eps)
        ctx.save_for_backward(total, randoms, mean, rstd, weight, bias)
        ctx.rate = rate
        ctx.dtype = change.dtype
        return out

    @staticmethod
    def backward(
        ctx: FunctionContext, grad: Tensor
    ) -> tuple[Tensor, Tensor, Tensor, Tensor, None, None]:
        total, randoms, mean, rstd, weight, bias = ctx.saved_tensors
        d_total, d_weight, d_bias = torch.ops.aten.native_layer_norm_backward(
            grad, total, weight.shape, mean, rstd, weight, bias, [True, True, True]
        )
        d_change = (d_total * keep_mask(randoms, ctx.rate)).mul_(keep_scale(ctx.rate))
        return d_total, d_change.to(ctx.dtype), d_weight, d_bias, None, None
