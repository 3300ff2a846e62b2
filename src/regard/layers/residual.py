"""The residual connection around a sublayer: dropout, norms, and all of it in one step.

Masks of dropout come from packed random bytes: ``torch.nn.functional.dropout`` draws one number per
element on a CPU, a quarter of a small Transformer's training step. Here one 64-bit draw serves
eight elements, and the mask is kept as one byte per element for the backward pass. In float32 and
bfloat16 a compiled pass applies it.
"""

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Literal

import numpy as np
import torch
from jaxtyping import Bool, Float, UInt8
from torch import Tensor, nn
from torch.nn import functional as F

from regard.checks import check_choice, check_count, check_fraction, check_positive, choose
from regard.kernels import numbers, takes
from regard.kernels.compiling import ParallelLoop
from regard.kernels.threads import share_out


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
        return f"rate={self.rate}"


def dropout(
    states: Float[Tensor, "*shape"], rate: float, *, training: bool = True
) -> Float[Tensor, "*shape"]:
    """``states`` with about ``rate`` of its elements zeroed and the others scaled up."""
    if not training or rate == 0:
        return states
    # A compiler draws its own numbers, fused with the operations before and after.
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
    def forward(ctx: Any, states: Tensor, rate: float) -> Tensor:
        randoms = random_bytes(states.shape)
        ctx.save_for_backward(randoms)
        ctx.rate = rate
        return _drop(states, randoms, rate, states.dtype)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        (randoms,) = ctx.saved_tensors
        return _drop(grad, randoms, ctx.rate, grad.dtype), None


class _AddDropped(torch.autograd.Function):
    """``states + dropout(change)`` of one shape."""

    @staticmethod
    def forward(ctx: Any, states: Tensor, change: Tensor, rate: float) -> Tensor:
        randoms = random_bytes(change.shape)
        ctx.save_for_backward(randoms)
        ctx.rate, ctx.dtypes = rate, (states.dtype, change.dtype)
        wide = torch.promote_types(*ctx.dtypes)
        if not takes(states, change):
            return states + _drop(change, randoms, rate, wide)
        from regard.kernels import training as kernels

        total = torch.empty(states.shape, dtype=wide)
        _over_elements(kernels.add_dropped, rate, total, randoms, states, change)
        return total

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, None]:
        (randoms,) = ctx.saved_tensors
        of_states, of_change = ctx.dtypes
        return grad.to(of_states), _drop(grad, randoms, ctx.rate, of_change), None


def _drop(states: Tensor, randoms: Tensor, rate: float, dtype: torch.dtype) -> Tensor:
    """Apply a mask; the result is of ``dtype``."""
    if not takes(states) or dtype not in (torch.float32, torch.bfloat16):
        return (states * keep_mask(randoms, rate)).mul_(keep_scale(rate)).to(dtype)
    # Only here: where compiling fails, so does the import.
    from regard.kernels import training as kernels

    out = torch.empty(states.shape, dtype=dtype)
    _over_elements(kernels.drop, rate, out, randoms, states)
    return out


def _over_elements(
    loop: ParallelLoop, rate: float, out: Tensor, randoms: Tensor, *inputs: Tensor
) -> None:
    """Run a loop over all elements, some of them a task."""
    from regard.kernels import training as kernels

    read = [numbers(tensor).ravel() for tensor in (*inputs, randoms)]
    arguments = (*read, threshold(rate), keep_scale(rate), numbers(out).ravel())
    share_out(-(-out.numel() // kernels.ELEMENTS), out.numel(), loop, *arguments)


class BatchNorm(nn.Module):
    """Batch normalisation over real positions alone: Ioffe & Szegedy (2015), arXiv:1502.03167."""

    mean: Tensor
    variance: Tensor

    def __init__(self, model_dim: int) -> None:
        super().__init__()
        check_count("model_dim", model_dim)
        self.weight = nn.Parameter(torch.ones(model_dim))
        self.bias = nn.Parameter(torch.zeros(model_dim))
        self.register_buffer("mean", torch.zeros(model_dim))
        self.register_buffer("variance", torch.ones(model_dim))

    def forward(
        self, states: Float[Tensor, "*batch C"], counts: Bool[Tensor, "*batch"] | None = None
    ) -> Float[Tensor, "*batch C"]:
        """Normalise each number of a state; ``counts`` masks the positions of the statistics."""
        mean, variance = self.mean, self.variance
        if self.training:
            rows = states.flatten(0, -2) if counts is None else states[counts]
            variance, mean = torch.var_mean(rows, dim=0, correction=0)
            self._remember(mean.detach(), variance.detach(), len(rows))
        scale = self.weight * (variance + 1e-5).rsqrt()
        return (states - mean) * scale + self.bias

    @torch.no_grad()
    def _remember(self, mean: Tensor, variance: Tensor, count: int) -> None:
        """Move the running averages; that of the variance by the estimate without bias."""
        self.mean.lerp_(mean.to(self.mean.dtype), 0.1)
        unbiased = variance * (count / max(1, count - 1))
        self.variance.lerp_(unbiased.to(self.variance.dtype), 0.1)


# Zhang & Sennrich (2019), https://arxiv.org/abs/1910.07467, leave out the mean and the bias.
NORMS: dict[str, Callable[..., nn.Module]] = {
    "layer": nn.LayerNorm,
    "rms": partial(nn.RMSNorm, eps=1e-6),
    "batch": BatchNorm,
}


def make_norm(kind: str, model_dim: int, *, eps: float | None = None) -> nn.Module:
    """A norm of states of this width; ``eps`` None is the kind's own."""
    norm = choose("kind", kind, NORMS)
    check_count("model_dim", model_dim)
    if eps is not None:
        check_positive("eps", eps)
    return norm(model_dim) if eps is None else norm(model_dim, eps=eps)


def final_norm(order: str, kind: str, model_dim: int, *, eps: float | None = None) -> nn.Module:
    """Final norm of a stack: pre-norm leaves the sum of all sublayers unnormalised."""
    return make_norm(kind, model_dim, eps=eps) if order == "pre" else nn.Identity()


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
        eps: Added to variances by the norm; None is the kind's own.

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
            states: The input of the sublayer, to which its output is added.
            sublayer: Called once, with ``states`` or with their norm.
        """
        if self.order == "pre":
            return self._add(states, sublayer(self.norm(states)))
        change = sublayer(states)
        if self._is_fused(states, change) and isinstance(self.norm, nn.LayerNorm):
            fused: Tensor = _AddDropoutNorm.apply(  # type: ignore[no-untyped-call]
                states, change, self.norm.weight, self.norm.bias, self.norm.eps, self.rate
            )
            return fused
        result: Tensor = self.norm(self._add(states, change))
        return result

    def _add(self, states: Tensor, change: Tensor) -> Tensor:
        if not self._is_fused(states, change):
            return states + dropout(change, self.rate, training=self.training)
        total: Tensor = _AddDropped.apply(states, change, self.rate)  # type: ignore[no-untyped-call]
        return total

    def _is_fused(self, states: Tensor, change: Tensor) -> bool:
        """Whether dropout and sum are one pass."""
        is_here = states.device.type == "cpu" and states.shape == change.shape
        return self.training and self.rate > 0 and is_here and not torch.compiler.is_compiling()

    def extra_repr(self) -> str:
        """Order and rate, for ``print(model)``."""
        return f"norm={self.order}, dropout={self.rate}"


class _AddDropoutNorm(torch.autograd.Function):
    """``layer_norm(states + dropout(change))`` with three passes over memory instead of seven.

    With one compiled pass each way, where the states are of float32.
    """

    @staticmethod
    def forward(
        ctx: Any,
        states: Tensor,
        change: Tensor,
        weight: Tensor,
        bias: Tensor,
        eps: float,
        rate: float,
    ) -> Tensor:
        randoms = random_bytes(change.shape)
        ctx.is_compiled = states.dtype == weight.dtype == bias.dtype == torch.float32 and (
            takes(states, change, weight, bias)
        )
        if ctx.is_compiled:
            out, *saved = _add_norm(states, change, randoms, rate, weight, bias, eps)
        else:
            mask = keep_mask(randoms, rate)
            total = torch.addcmul(states, change.to(states.dtype), mask, value=keep_scale(rate))
            out, *saved = torch.native_layer_norm(total, weight.shape, weight, bias, eps)
            saved = [total, *saved]
        ctx.save_for_backward(*saved, randoms, weight, bias)
        ctx.rate = rate
        ctx.dtype = change.dtype
        return out

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor, None, None]:
        if ctx.is_compiled and takes(grad):  # else there is a second derivative
            return *_add_norm_back(grad, ctx.saved_tensors, ctx.rate, ctx.dtype), None, None
        total, mean, rstd, randoms, weight, bias = ctx.saved_tensors
        d_total, d_weight, d_bias = torch.ops.aten.native_layer_norm_backward(
            grad, total, weight.shape, mean, rstd, weight, bias, [True, True, True]
        )
        d_change = _drop(d_total, randoms, ctx.rate, ctx.dtype)
        return d_total, d_change, d_weight, d_bias, None, None


def _add_norm(
    states: Tensor,
    change: Tensor,
    randoms: Tensor,
    rate: float,
    weight: Tensor,
    bias: Tensor,
    eps: float,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The output, the sum before the norm, and its mean and inverse deviation."""
    # Only here: where compiling fails, so does the import.
    from regard.kernels import training as kernels

    total, out = (torch.empty(states.shape) for _ in range(2))
    mean, rstd = (torch.empty(*states.shape[:-1], 1) for _ in range(2))
    rows = [_rows(tensor) for tensor in (states, change, randoms)]
    norm = [parameter.detach().numpy() for parameter in (weight, bias)]
    written = (_rows(total), _rows(out), mean.numpy().ravel(), rstd.numpy().ravel())
    arguments = (*rows, threshold(rate), keep_scale(rate), *norm, eps, written)
    share_out(-(-total.numel() // kernels.ELEMENTS), len(rows[0]), kernels.add_norm, *arguments)
    return out, total, mean, rstd


def _add_norm_back(
    grad: Tensor, saved: Sequence[Tensor], rate: float, dtype: torch.dtype
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Gradients of the states, the change (of ``dtype``), the weight and the bias."""
    from regard.kernels import training as kernels

    total, mean, rstd, randoms, weight, _ = saved
    d_total, d_change = torch.empty(grad.shape), torch.empty(grad.shape, dtype=dtype)
    read = [_rows(grad), _rows(total), mean.numpy().ravel(), rstd.numpy().ravel()]
    tasks = -(-len(read[0]) // kernels.ROWS)
    sums = torch.empty(tasks, 2, len(weight))
    of_dropout = (_rows(randoms), threshold(rate), keep_scale(rate))
    written = (_rows(d_total), _rows(d_change), sums.numpy())
    arguments = (*read, weight.detach().numpy(), *of_dropout, *written)
    share_out(tasks, tasks, kernels.add_norm_back, *arguments)
    d_weight, d_bias = sums.sum(0)
    return d_total, d_change, d_weight, d_bias


def _rows(states: Tensor) -> np.ndarray:
    """Reshape to one row a position; a view where the states are contiguous."""
    return numbers(states).reshape(-1, states.shape[-1])
