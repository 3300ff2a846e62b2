"""Gradients of what blocks of scores give, worked out again block by block instead of kept."""

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from regard.attention.engine.blocks import Block, BlockInputs, BlockPass, GradientSums
from regard.attention.engine.request import Request
from regard.attention.weighting import Softmax, Weighting

# The gradients of what a function was given, in its order.
Gradients = tuple[Tensor | None, ...]

Ends = Iterator[tuple[Tensor, Tensor]]


def inputs_of(request: Request) -> BlockInputs:
    """The inputs of a request whose weights are wanted, the sink among them."""
    return BlockInputs.of(request)._replace(sink=request.sink)


def gradients(
    job: BlockPass,
    inputs: BlockInputs,
    needs_grad: tuple[bool, ...],
    work: Callable[[Block, BlockInputs], Ends],
) -> list[Tensor | None]:
    """The gradients of ``inputs.flat()``; ``work`` pairs what a block gives with its gradients."""
    sums = GradientSums(inputs, needs_grad)
    for block in job.blocks() if all(job.shape) else ():
        leaves = tuple(
            t if t is None else t.detach().requires_grad_(want)
            for t, want in zip(inputs.of_block(block).flat(), needs_grad, strict=True)
        )
        with torch.enable_grad():
            of_block = work(block, BlockInputs.from_flat(leaves))
            ends = [end for end in of_block if end[0].requires_grad]
        if not ends:
            continue
        outs, d_outs = zip(*ends, strict=True)
        own = [leaf for leaf in leaves if leaf is not None and leaf.requires_grad]
        computed = iter(torch.autograd.grad(outs, own, d_outs, allow_unused=True))
        grads = [next(computed) if t is not None and t.requires_grad else None for t in leaves]
        sums.add(block, grads)
    return sums.totals


def weights_of(
    weighting: Weighting, scores: Tensor, sink: Tensor | None
) -> tuple[Tensor, Tensor, Tensor]:
    """Weights of whole rows of scores, log-sum-exp and entropy; of rows of −∞ zeros, −∞, zero."""
    top = scores.detach().amax(dim=-1, keepdim=True)
    is_empty = top == float("-inf")
    # Not from one number for the best score and the sum: large scores would leave few digits.
    below = scores - top.masked_fill(is_empty, 0)
    rest = below.masked_fill(is_empty, 0).logsumexp(dim=-1, keepdim=True)
    if sink is not None:
        rest = torch.logaddexp(rest, sink.unsqueeze(-1) - top)
    lse = (top + rest).masked_fill(is_empty, float("-inf")).squeeze(-1)
    if isinstance(weighting, Softmax):
        logs = below - rest.masked_fill(is_empty, 0)
        weights = logs.exp()
        # Where the weight is zero, its logarithm may be anything finite.
        logs = logs.clamp_min(torch.finfo(scores.dtype).min)
    else:
        weights = _WeightRows.apply(weighting, scores)  # type: ignore[no-untyped-call]
        logs = weights.clamp_min(torch.finfo(scores.dtype).tiny).log()
    return weights, lse, (weights * -logs).sum(dim=-1)


class _WeightRows(torch.autograd.Function):
    """The weights of whole rows of scores, with the gradient that the weighting has for them."""

    @staticmethod
    def forward(ctx: Any, weighting: Weighting, scores: Tensor) -> Tensor:
        weights = weighting.rows(scores)
        ctx.weighting = weighting
        ctx.save_for_backward(weights)
        return weights

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[None, Tensor]:
        (weights,) = ctx.saved_tensors
        return None, ctx.weighting.gradient(weights, grad)
