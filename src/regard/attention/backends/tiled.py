"""Any score, mask, bias and weighting, exact, block by block of queries, in plain torch operations.

A block holds the scores of a few queries with all their keys; the backward pass works them out
again instead of keeping them. Every step is differentiable, and so is the gradient.
"""

from typing import Any

import torch
from torch import Tensor

from regard.attention.backends.blocks import (
    Block,
    Inputs,
    Job,
    bias_of,
    block_sizes,
    keys_of,
    mix,
    rows_of,
)
from regard.attention.request import Request


def refuse(request: Request) -> str | None:
    """None: it serves everything."""
    return None


def notes(request: Request) -> tuple[str, ...]:
    """What is done on the way, in words."""
    chunk, rows = block_sizes(request, _floats(request))
    return (f"blocks of {chunk} batch rows and {rows} queries",)


def bytes_beyond(request: Request) -> int:
    """Memory taken beyond inputs and output."""
    B, H, N, D = request.query.shape
    M, E = request.value.shape[-2:]
    chunk, rows = block_sizes(request, _floats(request))
    block = chunk * H * rows * M * (4 + _floats(request))
    copies = 0
    if request.query.dtype in (torch.bfloat16, torch.float16):
        copies += sum(t.numel() for t in (request.query, request.key, request.value))
    if request.key.shape[1] != H:
        copies += B * H * M * (D + E)
    return max(4, request.query.element_size()) * (block + copies + B * H * N)


def run(request: Request) -> tuple[Tensor, Tensor | None]:
    """The mixed values (B, H, N, E), and the log-sum-exp (B, H, N) if it is wanted."""
    inputs = Inputs.of(request)
    job = job_of(request)
    out, lse = _Tiled.apply(  # type: ignore[no-untyped-call]
        job, inputs.query, inputs.key, inputs.value, inputs.bias, *inputs.tensors
    )
    return out.to(request.query.dtype), lse if request.return_lse else None


def job_of(request: Request) -> Job:
    """What the blocks of a request have in common."""
    return Job.of(request, floats_per_pair=_floats(request))


def backward(
    job: Job,
    inputs: Inputs,
    wanted: tuple[bool, ...],
    d_out: Tensor,
    d_lse: Tensor,
    answer: tuple[Tensor, Tensor] | None = None,
) -> list[Tensor | None]:
    """The gradients of ``inputs``; differentiable again where gradients are enabled.

    Args:
        job: What the blocks have in common.
        inputs: What gradients are wanted of.
        wanted: Which of them.
        d_out: The gradient of the mixed values.
        d_lse: The gradient of the log-sum-exp.
        answer: The mixed values and the log-sum-exp, if they are at hand.
    """
    query, key, value, bias, tensors = inputs
    again = torch.is_grad_enabled()
    sums = _Sums([query, key, value, bias, *tensors], wanted)
    for block in job.blocks(query.shape[0], query.shape[2], key.shape[2]):
        if not block.keys:
            continue
        parts = [
            rows_of(query, block),
            keys_of(key, block),
            keys_of(value, block),
            bias_of(bias, block),
            *tensors,
        ]
        if not again:
            parts = [t if t is None else t.detach().requires_grad_() for t in parts]
        sums.add(
            block,
            _block_gradients(
                job, block, parts, rows_of(d_out, block), rows_of(d_lse, block), again
            ),
        )
    return sums.totals


def scores_of(job: Job, block: Block, inputs: Inputs) -> Tensor:
    """The scores of a block with its bias, −inf where hidden."""
    query, key, _, bias, tensors = inputs
    return _scores(
        job, block, rows_of(query, block), keys_of(key, block), bias_of(bias, block), tensors
    )


def _floats(request: Request) -> int:
    of_position = 0 if request.position is None else 2
    return request.score.floats_per_pair(request.query.shape[-1]) + of_position


def _scores(
    job: Job,
    block: Block,
    query: Tensor,
    key: Tensor,
    bias: Tensor | None,
    tensors: tuple[Tensor, ...] | list[Tensor],
) -> Tensor:
    """Scores of a block, −inf where hidden."""
    own = len(job.score.tensors())
    scores = job.score.tile(query, key, *tensors[:own])
    if job.position is not None:
        scores = scores + job.position.tile(query, job.steps(block, query.device), *tensors[own:])
    if bias is not None:
        scores = scores + bias
    if (veil := job.veil(block)) is not None:
        scores = scores.masked_fill(veil, float("-inf"))
    return scores


class _Tiled(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        job: Job,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        bias: Tensor | None,
        *tensors: Tensor,
    ) -> tuple[Tensor, Tensor]:
        B, H, N, _ = query.shape
        out = query.new_zeros(B, H, N, value.shape[-1])
        lse = query.new_full((B, H, N), float("-inf"))
        for block in job.blocks(B, N, key.shape[2]):
            if not block.keys:
                continue
            scores = scores_of(job, block, Inputs(query, key, value, bias, tensors))
            if job.wants_lse:
                rows_of(lse, block).copy_(scores.logsumexp(dim=-1))
            weights = job.weighting.rows(scores)
            if (factor := job.factor(block, weights)) is not None:
                weights = weights * factor
            mixed = mix(weights, keys_of(value, block), job.veil(block))
            if (moved := _moved(job, block, weights, tensors)) is not None:
                mixed = mixed + moved
            rows_of(out, block).copy_(mixed)
        ctx.job = job
        ctx.save_for_backward(query, key, value, bias, *tensors)
        return out, lse

    @staticmethod
    def backward(ctx: Any, d_out: Tensor, d_lse: Tensor) -> Any:
        query, key, value, bias, *tensors = ctx.saved_tensors
        inputs = Inputs(query, key, value, bias, tuple(tensors))
        return (None, *backward(ctx.job, inputs, ctx.needs_input_grad[1:], d_out, d_lse))


def _block_gradients(
    job: Job, block: Block, parts: list[Any], d_out: Tensor, d_lse: Tensor, again: bool
) -> list[Tensor | None]:
    """Gradients of one block's query, key, value, bias and tensors of the score."""
    query, key, value, bias, *tensors = parts
    with torch.enable_grad():
        scores = _scores(job, block, query, key, bias, tensors)
    with torch.set_grad_enabled(again):
        weights = job.weighting.rows(scores)
        factor = job.factor(block, weights)
        d_weights = d_out @ value.transpose(-1, -2)
        mixed = weights if factor is None else weights * factor
        d_value = mixed.transpose(-1, -2) @ d_out
        d_mixed, d_tables = _moved_gradients(job, block, mixed, tensors, d_out, again)
        if d_mixed is not None:
            d_weights = d_weights + d_mixed
        if factor is not None:
            d_weights = d_weights * factor
        d_scores = job.weighting.gradient(weights, d_weights)
        if job.wants_lse:
            d_scores = d_scores + weights * d_lse.unsqueeze(-1)
        if (veil := job.veil(block)) is not None:
            d_scores = d_scores.masked_fill(veil, 0)
    inputs = [query, key, *([] if bias is None else [bias]), *tensors]
    grads: list[Any] = list(
        torch.autograd.grad(scores, inputs, d_scores, create_graph=again, allow_unused=True)
    )
    if bias is None:
        grads.insert(2, None)
    grads.insert(2, d_value)
    for place, grad in d_tables.items():
        own = grads[4 + place]
        grads[4 + place] = grad if own is None else own + grad
    return grads


def _moved(
    job: Job, block: Block, weights: Tensor, tensors: tuple[Tensor, ...] | list[Tensor]
) -> Tensor | None:
    """What distances add to the mixed values of a block."""
    if job.position is None:
        return None
    of_position = tensors[len(job.score.tensors()) :]
    return job.position.mix(weights, job.steps(block, weights.device), *of_position)


def _moved_gradients(
    job: Job, block: Block, weights: Tensor, tensors: list[Tensor], d_out: Tensor, again: bool
) -> tuple[Tensor | None, dict[int, Tensor]]:
    """The gradients of ``_moved``: of the weights, and of tensors by their number."""
    if job.position is None:
        return None, {}
    if not again:
        weights = weights.detach().requires_grad_()
    with torch.enable_grad():
        moved = _moved(job, block, weights, tensors)
    if moved is None:
        return None, {}
    d_weights, *rest = torch.autograd.grad(
        moved, [weights, *tensors], d_out, create_graph=again, allow_unused=True
    )
    return d_weights, {place: grad for place, grad in enumerate(rest) if grad is not None}


class _Sums:
    """Gradients of blocks, added up where they belong."""

    def __init__(self, inputs: list[Any], wanted: tuple[bool, ...]) -> None:
        self.totals = [
            torch.zeros_like(tensor) if want else None
            for tensor, want in zip(inputs, wanted, strict=True)
        ]

    def add(self, block: Block, grads: list[Tensor | None]) -> None:
        places = (rows_of, keys_of, keys_of, bias_of)
        for index, (total, grad) in enumerate(zip(self.totals, grads, strict=True)):
            if total is None or grad is None:
                continue
            part = places[index](total, block) if index < len(places) else total
            assert part is not None
            part += grad
