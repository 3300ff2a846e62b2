"""Dot products over short sequences on a CPU, as batched matrix products.

torch's flash kernel works row by row and spends most of its time on overhead where sentences are
short: at 16 queries and keys its backward pass is about seven times slower than this. A row of
weights is kept for the backward pass; it is no longer than its key and value together, so memory
still grows with N.
"""

from typing import Any

import torch
from torch import Tensor

from regard.attention.backends.base import FEWEST_PAIRS_OF_SHORT, MOST_KEYS_OF_SHORT, Backend
from regard.attention.backends.sdpa import is_double, refuse_unless_plain
from regard.attention.engine import tiled
from regard.attention.engine.gradients import Gradients
from regard.attention.engine.numerics import dropout_factors, exp_of, is_finite
from regard.attention.engine.request import Request

_FASTER = (torch.float32, torch.bfloat16, torch.float16)


class Short(Backend):
    """Dot products over short sequences on a CPU."""

    judges_by_kind = True
    differentiates_once = True

    def refuse(self, request: Request) -> str | None:
        reason = refuse_unless_plain(request, may_drop=True)
        if reason is not None:
            return reason
        most = min(MOST_KEYS_OF_SHORT, request.key.shape[-1] + request.value.shape[-1])
        if request.query.device.type != "cpu":
            reason = "it is for CPUs"
        elif request.query.dtype not in _FASTER:
            reason = "gradients in float64 are those of blocks"
        elif request.key.shape[2] > most:
            reason = f"there are more than {most} keys"
        elif request.bias is not None or request.position is not None:
            reason = "there is a bias"
        elif request.key.shape[1] != request.query.shape[1]:
            reason = "heads are grouped"
        elif request.query.dtype != torch.float64 and is_double(request):
            reason = "as a dot product the score needs float64"
        return reason

    def decline(self, request: Request) -> str | None:
        pairs = request.query.shape[:3].numel() * request.key.shape[2]
        if request.dropout:
            if request.key.shape[2] > MOST_KEYS_OF_SHORT // (2 if request.needs_grad() else 4):
                return "with so many keys, a compiled pass drops weights faster"
        elif pairs < FEWEST_PAIRS_OF_SHORT:
            return "there is too little to do"
        elif not request.needs_grad() and not _is_slow_in_threads(request):
            return "no gradient is wanted, and the fused forward pass is as fast"
        return None

    def notes(self, request: Request) -> tuple[str, ...]:
        return ("in float32, with every row of weights kept: rows are short",)

    def bytes_beyond(self, request: Request) -> int:
        B, H, N, _ = request.query.shape
        copies = sum(t.numel() for t in (request.query, request.key, request.value))
        rows = 3 if request.dropout else 1  # of weights, of those that are left, of random bits
        return 4 * (rows * B * H * N * request.key.shape[2] + copies)

    def run(self, request: Request) -> tuple[Tensor, Tensor | None]:
        mask = request.mask
        if mask is not None and not (is_finite(request.key) and is_finite(request.value)):
            return tiled.run(request)  # There, a NaN reaches only the queries that may see it.
        penalty = None if mask is None else mask.penalty(torch.float32)
        form = request.dot()
        assert form is not None
        out: Tensor = _Short.apply(  # type: ignore[no-untyped-call]
            form.query, form.key, request.value, penalty, form.scale, _factors(request)
        )
        if mask is not None and not is_finite(out):
            return tiled.run(request)  # A product was too large; hidden, it does no harm there.
        return out, None


def _is_slow_in_threads(request: Request) -> bool:
    """Whether the fused kernel gains nothing by several threads: its rows are too short."""
    return torch.get_num_threads() > 1 and request.key.shape[2] <= MOST_KEYS_OF_SHORT // 8


def _factors(request: Request) -> Tensor | None:
    """Factors of dropout, (B, H, N, M); None without."""
    if not request.dropout:
        return None
    sizes = (*request.query.shape[:3], request.key.shape[2])
    batch, heads, queries, keys = map(range, sizes)
    return dropout_factors(
        request.draw_seed(),
        request.dropout,
        (batch, heads, queries, keys),
        like=torch.empty(0, dtype=torch.float32),
    )


class _Short(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        penalty: Tensor | None,
        scale: float,
        factors: Tensor | None,
    ) -> Tensor:
        B, H, N, _ = query.shape
        M = key.shape[2]
        with torch.autocast("cpu", enabled=False):
            q, k, v = (
                t.float().reshape(B * H, t.shape[2], t.shape[3]) for t in (query, key, value)
            )
            weights = torch.bmm(q, k.transpose(1, 2)).mul_(scale)  # (B·H, N, M)
            if penalty is not None:
                weights.view(B, H, N, M).add_(penalty)
            # By hand: torch's softmax is ten times slower where M is no multiple of 16.
            top = weights.amax(-1, keepdim=True).clamp_min_(torch.finfo(torch.float32).min)
            exp_of(weights.sub_(top))
            weights.div_(weights.sum(-1, keepdim=True).clamp_min_(torch.finfo(torch.float32).tiny))
            left = weights if factors is None else weights * factors.view(B * H, N, M)
            out = torch.bmm(left, v)
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(q, k, v, weights, left)
        ctx.scale = scale
        ctx.dtypes = (query.dtype, key.dtype, value.dtype)
        return out.view(B, H, N, -1).to(query.dtype)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, grad: Tensor | None) -> Gradients:
        if grad is None:
            return (None,) * 6
        q, k, v, weights, left = ctx.saved_tensors
        B, H = grad.shape[:2]
        with torch.autocast("cpu", enabled=False):
            # Contiguous: products of an expanded gradient would be taken one by one.
            g = grad.float().contiguous().view(B * H, grad.shape[2], grad.shape[3])
            d_value = torch.bmm(left.transpose(1, 2), g)
            d_scores = torch.bmm(g, v.transpose(1, 2)).mul_(left)
            d_scores.addcmul_(weights, d_scores.sum(-1, keepdim=True), value=-1).mul_(ctx.scale)
            d_query = torch.bmm(d_scores, k)
            d_key = torch.bmm(d_scores.transpose(1, 2), q)
        grads = (
            t.view(B, H, -1, t.shape[-1]).to(dtype)
            for t, dtype in zip((d_query, d_key, d_value), ctx.dtypes, strict=True)
        )
        return (*grads, None, None, None)
