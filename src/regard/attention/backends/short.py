"""Dot products over short sequences on a CPU, a matrix product for each head.

torch's flash kernel works row by row and spends most of its time on overhead where sentences are
short, above all in its backward pass. A row of weights is kept for the backward pass; it is no
longer than its key and value together, so memory still grows with N.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from regard.attention.backends.base import Answer, Backend, Offer, Refusal
from regard.attention.engine import tiled
from regard.attention.engine.gradients import Gradients
from regard.attention.engine.numerics import (
    GOLDEN,
    dropout_factors,
    dropout_threshold,
    exp_of,
    is_finite,
    operand,
)
from regard.attention.engine.request import Request
from regard.attention.scores import DotForm
from regard.kernels import threads, why_not
from regard.kernels.compiling import ParallelLoop

_FASTER = (torch.float32, torch.bfloat16, torch.float16)
# Rows of weights are no longer than this, nor than a key and its value together.
_MOST_KEYS = 128
_NOTES = ("in float32, with every row of weights kept: rows are short",)
# Of queries and keys: a task takes some hundred microseconds.
_PAIRS_OF_A_TASK = 2**14


class Short(Backend):
    """Dot products over short sequences on a CPU."""

    device = "cpu"
    ignores_numbers = True

    def offer(self, request: Request) -> Offer | Refusal:
        form = request.plain_form(may_drop=True)
        why = form if isinstance(form, str) else _why_not(request, form)
        if why is not None:
            return Refusal(why)
        return Offer(_run, _bytes_beyond, _NOTES, differentiates_once=True)


def _why_not(request: Request, form: DotForm) -> str | None:
    """Why it cannot serve the softmax of a dot product, or None if it can."""
    most = min(_MOST_KEYS, request.key.shape[-1] + request.value.shape[-1])
    if request.query.dtype not in _FASTER:
        return "gradients in float64 are those of blocks"
    if request.key.shape[2] > most:
        return f"there are more than {most} keys"
    if request.bias is not None or request.position is not None:
        return "there is a bias"
    if request.key.shape[1] != request.query.shape[1]:
        return "heads are grouped"
    is_double = form.query.dtype == torch.float64
    return "as a dot product the score needs float64" if is_double else None


def _bytes_beyond(request: Request) -> int:
    B, H, N, _ = request.query.shape
    copies = sum(t.numel() for t in (request.query, request.key, request.value))
    rows = 3 if request.dropout else 1  # of weights, of those that are left, of random bits
    return 4 * (rows * B * H * N * request.key.shape[2] + copies)


def _run(request: Request) -> Answer:
    mask = request.mask
    if mask is not None and not (is_finite(request.key) and is_finite(request.value)):
        return tiled.run(request)  # There, a NaN reaches only the queries that may see it.
    form = request.dot()
    assert form is not None
    seed = request.draw_seed() if request.dropout else 0
    penalty = None if mask is None else mask.penalty(torch.float32)
    call = _Call(penalty, form.scale, request.dropout, seed)
    out: Tensor = _Short.apply(form.query, form.key, request.value, call)  # type: ignore[no-untyped-call]
    if mask is not None and not is_finite(out):
        return tiled.run(request)  # A product was too large; hidden, it does no harm there.
    return out, None


class _Call(NamedTuple):
    """Settings that no gradient flows to."""

    penalty: Tensor | None  # added to the scores; broadcasts to (B, H, N, M)
    scale: float
    dropout: float
    seed: int


class _Short(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, query: Tensor, key: Tensor, value: Tensor, call: _Call) -> Tensor:
        ctx.way = _BY_LOOPS if _is_compiled() else _BY_TORCH
        ctx.dtypes = (query.dtype, key.dtype, value.dtype)
        inputs = tuple(tensor.detach().float() for tensor in (query, key, value))
        with torch.autocast("cpu", enabled=False):
            out, weights, left = ctx.way.answer(*inputs, call)
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(*inputs, weights, left)
        ctx.scale = call.scale
        result: Tensor = out.to(query.dtype)
        return result

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, grad: Tensor | None) -> Gradients:
        if grad is None:
            return (None,) * 4
        with torch.autocast("cpu", enabled=False):
            grads = ctx.way.gradients(ctx.saved_tensors, ctx.scale, grad.float())
        return (*(t.to(dtype) for t, dtype in zip(grads, ctx.dtypes, strict=True)), None)


class _Way(NamedTuple):
    """An implementation of the answer and the gradients of ``_Short``, in float32.

    ``answer`` gives the mixed values (B, H, N, E), the weights (B·H, N, M), and the weights
    after dropout; ``gradients`` of all these are those of query, key and value, (B, H, N, D).
    """

    answer: Callable[[Tensor, Tensor, Tensor, _Call], tuple[Tensor, Tensor, Tensor]]
    gradients: Callable[[Sequence[Tensor], float, Tensor], tuple[Tensor, Tensor, Tensor]]


def _is_compiled() -> bool:
    """Whether compiled loops can run here, which multiply by torch's BLAS."""
    if torch.compiler.is_compiling() or why_not() is not None:
        return False
    return threads.address_of_products() != 0


def _answer(
    query: Tensor, key: Tensor, value: Tensor, call: _Call
) -> tuple[Tensor, Tensor, Tensor]:
    B, H, N, _ = query.shape
    M = key.shape[2]
    q, k, v = map(_heads, (query, key, value))
    weights = torch.bmm(q, k.transpose(1, 2)).mul_(call.scale)
    if call.penalty is not None:
        weights.view(B, H, N, M).add_(call.penalty)
    # By hand: torch's softmax is ten times slower where M is no multiple of 16.
    top = weights.amax(-1, keepdim=True).clamp_min_(torch.finfo(torch.float32).min)
    exp_of(weights.sub_(top))
    weights.div_(weights.sum(-1, keepdim=True).clamp_min_(torch.finfo(torch.float32).tiny))
    left = weights
    if call.dropout:
        batch, heads, queries, keys = map(range, (B, H, N, M))
        block = (batch, heads, queries, keys)
        left = weights * _heads(dropout_factors(call.seed, call.dropout, block, like=weights))
    return torch.bmm(left, v).view(B, H, N, -1), weights, left


def _gradients(
    saved: Sequence[Tensor], scale: float, grad: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    query, key, value, weights, left = saved
    # Contiguous: products of an expanded gradient would be taken one by one.
    q, k, v, g = map(_heads, (query, key, value, grad.contiguous()))
    d_value = torch.bmm(left.transpose(1, 2), g)
    d_scores = torch.bmm(g, v.transpose(1, 2)).mul_(left)
    d_scores.addcmul_(weights, d_scores.sum(-1, keepdim=True), value=-1).mul_(scale)
    d_query, d_key = torch.bmm(d_scores, k), torch.bmm(d_scores.transpose(1, 2), q)
    of_query, of_key, of_value = (
        grad_of_heads.view(*grad.shape[:2], *grad_of_heads.shape[1:])
        for grad_of_heads in (d_query, d_key, d_value)
    )
    return of_query, of_key, of_value


def _heads(tensor: Tensor) -> Tensor:
    """Reshape (B, H, N, D) to (B·H, N, D), one matrix a head."""
    return tensor.reshape(-1, *tensor.shape[2:])


def _answer_by_loops(
    query: Tensor, key: Tensor, value: Tensor, call: _Call
) -> tuple[Tensor, Tensor, Tensor]:
    # Only here: where compiling fails, so does the import.
    from regard.kernels.attention import short

    B, H, N, _ = query.shape
    M = key.shape[2]
    out = _empty_heads(B, H, N, value.shape[3])
    weights = torch.empty(B * H, N, M)
    left = torch.empty_like(weights) if call.dropout else weights
    penalty = torch.empty(0, 0, 0, 0) if call.penalty is None else call.penalty
    if call.penalty is not None:
        penalty = penalty.reshape((1,) * (4 - penalty.dim()) + penalty.shape)
        penalty = penalty.expand(*penalty.shape[:3], M).contiguous()
    growth = 1 / (1 - call.dropout) if call.dropout else 0.0
    noise = (call.seed * GOLDEN % 2**32, dropout_threshold(call.dropout) + 2**31, growth)
    operands = [operand(tensor) for tensor in (query, key, value)]
    arrays = (penalty.numpy(), noise, weights.numpy(), left.numpy(), operand(out))
    sizes = (H, N, M, query.shape[3], value.shape[3])
    _over_heads(short.forward, sizes, B, *operands, call.scale, *arrays)
    return out, weights, left


def _gradients_by_loops(
    saved: Sequence[Tensor], scale: float, grad: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    from regard.kernels.attention import short

    query, key, value, weights, left = saved
    B, H, N, D = query.shape
    M, E = value.shape[2:]
    d_query, d_key = _empty_heads(B, H, N, D), _empty_heads(B, H, M, D)
    d_value = _empty_heads(B, H, M, E)
    operands = [operand(tensor) for tensor in (query, key, value)]
    arrays = (weights.numpy(), left.numpy(), operand(grad))
    written = (gradient.transpose(1, 2).numpy() for gradient in (d_query, d_key, d_value))
    _over_heads(short.backward, (H, N, M, D, E), B, *operands, scale, *arrays, *written)
    return d_query, d_key, d_value


def _over_heads(loop: ParallelLoop, sizes: tuple[int, ...], B: int, *arguments: object) -> None:
    """Run a loop for all heads of all batch rows, some of them a task."""
    H, N, M, *_ = sizes
    some = max(1, _PAIRS_OF_A_TASK // max(1, N * M))

    threads.share_out(-(-B * H // some), B * H, loop, sizes, *arguments)


def _empty_heads(B: int, H: int, N: int, D: int) -> Tensor:
    """An empty (B, H, N, D) whose heads lie beside each other, as a projection has them."""
    return torch.empty(B, N, H, D).transpose(1, 2)


_BY_TORCH, _BY_LOOPS = _Way(_answer, _gradients), _Way(_answer_by_loops, _gradients_by_loops)
