"""Attention with any score, mask, bias and weighting, exact, by blocks, in plain torch operations.

A block holds the scores of a few queries with all the keys they may see; the backward pass works
them out again instead of keeping them. Every step is differentiable, and so is the gradient.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import chain
from operator import or_
from typing import Any, NamedTuple

import torch
from torch import Tensor

from regard.attention.engine.blocks import (
    Block,
    BlockInputs,
    BlockPass,
    Sizes,
    floats_per_pair,
    keys_of,
    rows_of,
)
from regard.attention.engine.gradients import Gradients, GradientSums
from regard.attention.engine.numerics import divisor, exp_of, in_input_dtypes, is_finite, mix
from regard.attention.engine.request import Request
from regard.attention.weighting import Softmax, Weighting
from regard.kernels import why_not
from regard.kernels.compiling import ParallelLoop
from regard.kernels.threads import share_out


def bytes_beyond(request: Request) -> int:
    """Memory taken beyond inputs and output."""
    B, H, N, D = request.query.shape
    M, E = request.value.shape[-2:]
    # Scores, weights, and the gradients of both.
    block = sizes_of(request).largest(request) * (4 + floats_per_pair(request))
    copies = 0
    if request.query.dtype in (torch.bfloat16, torch.float16):
        copies += sum(t.numel() for t in (request.query, request.key, request.value))
    if request.key.shape[1] != H:
        copies += B * H * M * (D + E)
    return max(4, request.query.element_size()) * (block + copies + B * H * N)


def run(request: Request) -> tuple[Tensor, Tensor | None]:
    """The mixed values (B, H, N, E), and the log-sum-exp (B, H, N) if it is wanted."""
    job, inputs = job_of(request), BlockInputs.of(request)
    out, lse = _Tiled.apply(job, *inputs.flat())  # type: ignore[no-untyped-call]
    return out.to(request.query.dtype), lse if request.return_lse else None


def job_of(request: Request) -> BlockPass:
    """Settings that all blocks of a request share."""
    return BlockPass.of(request, sizes_of(request))


def forward(job: BlockPass, inputs: BlockInputs) -> tuple[Tensor, Tensor, Tensor]:
    """The mixed values; of softmax also maxima and sums of powers (B, H, N, 1), of others zeros."""
    query, value = inputs.query, inputs.value
    B, H, N, _ = query.shape
    out = query.new_zeros(B, H, N, value.shape[-1])
    top, total = query.new_zeros(B, H, N, 1), query.new_zeros(B, H, N, 1)
    if isinstance(job.weighting, Softmax):
        for parts in job.parts():
            partial = reduce(or_, (_partial(job, part, inputs) for part in parts))
            rows_of(top, parts[0]).copy_(partial.top)
            rows_of(total, parts[0]).copy_(partial.total)
            rows_of(out, parts[0]).copy_(partial.mixed / divisor(partial.total))
    else:
        for block in job.blocks():
            weights = row_weights(job.weighting, job.scores_of(block, inputs))
            rows_of(out, block).copy_(_mixed(job, block, inputs, weights))
    return out, top, total


def backward(
    job: BlockPass,
    inputs: BlockInputs,
    needs_grad: tuple[bool, ...],
    d_out: Tensor,
    d_lse: Tensor,
    answer: tuple[Tensor, Tensor, Tensor] | None = None,
) -> list[Tensor | None]:
    """The gradients of ``inputs``, differentiable again; with ``answer``, softmax needs less."""
    again = torch.is_grad_enabled()
    slope: _AnySlope | _SoftmaxSlope = _AnySlope(job, d_lse)
    blocks = job.blocks()
    if answer is not None and not again and isinstance(job.weighting, Softmax):
        slope, blocks = _SoftmaxSlope(job, d_out, d_lse, *answer), chain.from_iterable(job.parts())
        d_out = slope.d_out
    sums = GradientSums(inputs, needs_grad)
    if again:
        sums.depend_on(d_out)
    for block in blocks:
        leaves = _leaves_of(inputs.of_block(block), again)
        sums.add(block, _block_gradients(job, block, leaves, rows_of(d_out, block), slope, again))
    return sums.totals


def input_gradients(
    request: Request,
    d_out: Tensor,
    d_lse: Tensor,
    answer: tuple[Tensor, Tensor, Tensor] | None = None,
) -> list[tuple[Tensor, Tensor]]:
    """The inputs of a request with their gradients, differentiable where gradients are enabled."""
    with torch.enable_grad():
        inputs = BlockInputs.of(request)
    tensors = inputs.flat()
    needs_grad = tuple(t is not None and t.requires_grad for t in tensors)
    d_out = d_out.to(inputs.query.dtype)
    grads = backward(job_of(request), inputs, needs_grad, d_out, d_lse, answer)
    pairs = zip(tensors, grads, strict=True)
    return [(t, grad) for t, grad in pairs if t is not None and grad is not None]


def chained(
    pairs: list[tuple[Tensor, Tensor]], leaves: Sequence[Tensor], *, create_graph: bool = False
) -> list[Tensor]:
    """The gradients of leaves that require one, from ends with their gradients."""
    differentiable = [leaf for leaf in leaves if leaf.requires_grad]
    # An end may depend on nothing: there may be no keys.
    pairs = [(end, d_end) for end, d_end in pairs if end.requires_grad]
    if not pairs:
        return [torch.zeros_like(leaf) for leaf in differentiable]
    ends, d_ends = zip(*pairs, strict=True)
    options = {"create_graph": create_graph, "materialize_grads": True}
    return list(torch.autograd.grad(ends, differentiable, d_ends, **options))


def sizes_of(request: Request) -> Sizes:
    """Limits of the size of a request's blocks."""
    # Weights of softmax follow from their scores and one sum; of others, from the whole row.
    is_softmax = isinstance(request.weighting, Softmax)
    return Sizes.of(request, floats_per_pair(request), cuts_keys=is_softmax)


class _Tiled(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, job: BlockPass, *flat: Tensor | None) -> tuple[Tensor, Tensor]:
        out, top, total = forward(job, BlockInputs.from_flat(flat))
        ctx.job = job
        ctx.save_for_backward(out, top, total, *flat)
        return out, (top + total.log()).squeeze(-1)

    @staticmethod
    @in_input_dtypes
    def backward(ctx: Any, d_out: Tensor, d_lse: Tensor) -> Gradients:
        out, top, total, *flat = ctx.saved_tensors
        inputs, needs_grad = BlockInputs.from_flat(flat), ctx.needs_input_grad[1:]
        return (None, *backward(ctx.job, inputs, needs_grad, d_out, d_lse, (out, top, total)))


class _Partial(NamedTuple):
    """Online softmax over some of a query's keys: the maximum, and sums relative to it."""

    top: Tensor
    total: Tensor
    mixed: Tensor

    def __or__(self, part: "_Partial") -> "_Partial":
        """Merge two parts of the keys: Milakov & Gimelshein (2018), arxiv.org/abs/1805.02867."""
        top = torch.maximum(self.top, part.top)
        one, two = exp_of(self.top - top), exp_of(part.top - top)
        total = self.total * one + part.total * two
        return _Partial(top, total, self.mixed * one + part.mixed * two)


def _partial(job: BlockPass, block: Block, inputs: BlockInputs) -> _Partial:
    scores = job.scores_of(block, inputs)
    # Not −∞, even where nothing is visible: the powers of −∞ itself are zeros.
    top = scores.amax(dim=-1, keepdim=True).clamp_min(torch.finfo(scores.dtype).min)
    powers = exp_of(scores - top)
    return _Partial(top, powers.sum(dim=-1, keepdim=True), _mixed(job, block, inputs, powers))


def _mixed(job: BlockPass, block: Block, inputs: BlockInputs, weights: Tensor) -> Tensor:
    """The values of a block's keys, and of their distances, mixed."""
    if (factor := job.factor(block, weights)) is not None:
        weights = weights * factor
    mixed = mix(weights, keys_of(inputs.value, block), block.hidden)
    moved = _position_context(job, block, weights, inputs.tensors)
    return mixed if moved is None else mixed + moved


@dataclass(frozen=True, slots=True)
class _AnySlope:
    """The gradient of scores from that of weights, by the weighting's own formulas."""

    job: BlockPass
    d_lse: Tensor

    def weights(self, block: Block, scores: Tensor) -> Tensor:
        return row_weights(self.job.weighting, scores)

    def of_scores(self, block: Block, weights: Tensor, d_weights: Tensor) -> Tensor:
        d_scores = row_gradient(self.job.weighting, weights, d_weights)
        if self.job.wants_lse:
            d_scores = d_scores + weights * rows_of(self.d_lse, block).unsqueeze(-1)
        return d_scores if block.hidden is None else d_scores.masked_fill(block.hidden, 0)


class _SoftmaxSlope:
    """Gradient of softmax from the output and its sums: no sum over a block's keys."""

    def __init__(
        self, job: BlockPass, d_out: Tensor, d_lse: Tensor, out: Tensor, top: Tensor, total: Tensor
    ) -> None:
        # Σ weight · d_weight over the keys of a query is out · d_out, whatever dropout did. From
        # the log-sum-exp alone, weights at large scores would have too few digits.
        mean = (d_out * out).sum(dim=-1, keepdim=True)
        if job.wants_lse:
            mean = mean - d_lse.unsqueeze(-1)
        # Powers stand for weights: the gradients that they meet are divided by the sum instead.
        total = divisor(total)
        self.pivot, self.d_out, self.mean = top, d_out / total, mean / total

    def weights(self, block: Block, scores: Tensor) -> Tensor:
        return exp_of(scores.detach() - rows_of(self.pivot, block))

    def of_scores(self, block: Block, weights: Tensor, d_weights: Tensor) -> Tensor:
        d_scores = d_weights.sub_(rows_of(self.mean, block)).mul_(weights)
        if block.hidden is None or (d_scores.device.type == "cpu" and is_finite(d_scores)):
            return d_scores  # Where hidden, weights are zero; their factors may be NaN.
        return d_scores.masked_fill_(block.hidden, 0)


def _block_gradients(
    job: BlockPass,
    block: Block,
    inputs: BlockInputs,
    d_out: Tensor,
    slope: "_AnySlope | _SoftmaxSlope",
    again: bool,
) -> list[Tensor | None]:
    """Gradients of one block's query, key, value, bias and tensors of the score."""
    query, key, value, bias, _, _, tensors = inputs
    with torch.enable_grad():
        scores = job.scores(block, inputs)
    with torch.set_grad_enabled(again):
        weights = slope.weights(block, scores)
        factor = job.factor(block, weights)
        d_weights = d_out @ value.transpose(-1, -2)
        mixed = weights if factor is None else weights * factor
        # In this order, since it is a third faster than weightsᵀ @ d_out.
        d_value = (d_out.transpose(-1, -2) @ mixed).transpose(-1, -2)
        d_mixed, d_tables = _position_gradients(job, block, mixed, tensors, d_out, again)
        if d_mixed is not None:
            d_weights = d_weights + d_mixed
        if factor is not None:
            d_weights = d_weights * factor
        d_scores = slope.of_scores(block, weights, d_weights)
    leaves = [leaf for leaf in (query, key, bias, *tensors) if leaf is not None]
    grads: list[Tensor | None] = list(
        torch.autograd.grad(scores, leaves, d_scores, create_graph=again, allow_unused=True)
    )
    d_query, d_key = grads[:2]
    d_bias = None if bias is None else grads[2]
    d_tensors = grads[len(grads) - len(tensors) :]
    for number, grad in d_tables.items():
        d_tensor = d_tensors[number]
        d_tensors[number] = grad if d_tensor is None else d_tensor + grad
    return [d_query, d_key, d_value, d_bias, None, None, *d_tensors]  # of neither states nor a sink


def _leaves_of(inputs: BlockInputs, again: bool) -> BlockInputs:
    """Copy inputs as leaves of a graph; ``again`` keeps the past of those with a gradient."""

    def leaf(tensor: Tensor | None) -> Tensor | None:
        if tensor is None:
            return None
        if again and tensor.requires_grad:
            return tensor.view_as(tensor)  # a query may be made from a tensor of the score
        return tensor.detach().requires_grad_()

    return BlockInputs.from_flat([leaf(tensor) for tensor in inputs.flat()])


def _position_context(
    job: BlockPass, block: Block, weights: Tensor, tensors: tuple[Tensor, ...]
) -> Tensor | None:
    """Context that relative positions add to a block."""
    if job.position is None:
        return None
    of_position = tensors[len(job.score.tensors()) :]
    return job.position.mix(weights, job.steps(block, weights.device), *of_position)


def _position_gradients(
    job: BlockPass,
    block: Block,
    weights: Tensor,
    tensors: tuple[Tensor, ...],
    d_out: Tensor,
    again: bool,
) -> tuple[Tensor | None, dict[int, Tensor]]:
    """The gradients of ``_position_context``: of the weights, and of tensors by their number."""
    if job.position is None:
        return None, {}
    if not again:
        weights = weights.detach().requires_grad_()
    with torch.enable_grad():
        # Views: gradients that reach a tensor by way of the weights are counted with the scores.
        views = tuple(tensor.view_as(tensor) for tensor in tensors)
        moved = _position_context(job, block, weights, views)
    if moved is None:
        return None, {}
    d_weights, *d_views = torch.autograd.grad(
        moved, [weights, *views], d_out, create_graph=again, allow_unused=True
    )
    return d_weights, {number: grad for number, grad in enumerate(d_views) if grad is not None}


# Numbers that are worth handing to a thread: a fraction of a millisecond.
_NUMBERS_OF_A_TASK = 2**17


def row_weights(weighting: Weighting, scores: Tensor) -> Tensor:
    """``weighting.rows(scores)``, in one pass where it is compiled."""
    if (code := _code(weighting, scores)) is None:
        return weighting.rows(scores)
    from regard.kernels.attention import weightings

    return _applied(weightings.rows, code, scores)


def row_gradient(weighting: Weighting, weights: Tensor, grad: Tensor) -> Tensor:
    """``weighting.gradient(weights, grad)``, in one pass where it is compiled."""
    if (code := _code(weighting, weights, grad)) is None:
        return weighting.gradient(weights, grad)
    from regard.kernels.attention import weightings

    return _applied(weightings.gradient, code, weights, grad)


def _code(weighting: Weighting, *rows: Tensor) -> int | None:
    """Code of a weighting in compiled loops; None where they cannot run."""
    name = weighting.compiled_as
    if name is None or not all(_may_be_read(tensor) for tensor in rows) or why_not() is not None:
        return None
    from regard.kernels.attention.weightings import CODES

    return CODES[name]


def _may_be_read(tensor: Tensor) -> bool:
    """Whether a loop may read a tensor: nothing records the loop's operations."""
    is_recorded = torch.is_grad_enabled() and tensor.requires_grad
    return tensor.dtype is torch.float32 and tensor.device.type == "cpu" and not is_recorded


def _applied(loop: ParallelLoop, code: int, *rows: Tensor) -> Tensor:
    """Run a loop over rows, and return its output."""
    out = torch.empty_like(rows[0], memory_format=torch.contiguous_format)
    width = max(1, out.shape[-1])
    arrays = [t.detach().contiguous().view(-1, width).numpy() for t in (*rows, out)]
    share_out(-(-out.numel() // _NUMBERS_OF_A_TASK), len(arrays[0]), loop, code, *arrays)
    return out
