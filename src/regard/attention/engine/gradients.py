"""Gradients of blocks: summed block by block, worked out again instead of kept."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from regard.attention.engine.blocks import Block, BlockInputs, BlockPass, corner_of, rows_of
from regard.attention.engine.request import Request
from regard.attention.masks.grid import cut
from regard.attention.weighting import Softmax, Weighting

# The gradients of a function's arguments, in their order.
Gradients = tuple[Tensor | None, ...]

Ends = Iterator[tuple[Tensor, Tensor]]


class GradientSums:
    """Gradients of ``BlockInputs`` that are wanted, summed block by block."""

    def __init__(self, inputs: BlockInputs, needs_grad: Sequence[bool]) -> None:
        self.totals = [
            (_zeros_by_column(tensor) if number in (1, 2) else torch.zeros_like(tensor))
            if want and tensor is not None
            else None
            for number, (tensor, want) in enumerate(zip(inputs.flat(), needs_grad, strict=True))
        ]

    def depend_on(self, tensor: Tensor) -> None:
        """Let the sums have a past even where nothing is added."""
        nothing = tensor[..., :0].sum()
        self.totals = [total if total is None else total + nothing for total in self.totals]

    def add(self, block: Block, grads: Sequence[Tensor | None]) -> None:
        """Add the gradients of one block's inputs."""
        for number, (total, grad) in enumerate(zip(self.totals, grads, strict=True)):
            if total is not None and grad is not None:
                _ADDERS.get(number, add_to_all)(total, block, grad)


def add_to_rows(total: Tensor, block: Block, part: Tensor) -> None:
    """Add to the part of (B, H, N, ...) that a block's queries have."""
    view = rows_of(total, block)
    view += part


def add_to_all(total: Tensor, block: Block, part: Tensor) -> None:
    """Add to the gradient that all blocks share."""
    total += part


def add_to_keys(total: Tensor, block: Block, part: Tensor) -> None:
    """Add to the part of (B, H, M, ...) that a block's keys have."""
    corner, start = total[block.corner], 0
    for keys in block.keys:
        view = corner[:, :, keys.start : keys.stop]
        view += part[:, :, start : start + len(keys)]
        start += len(keys)


def add_to_bias(total: Tensor, block: Block, part: Tensor) -> None:
    """Add to the part of a bias that a block adds."""
    corner, start = corner_of(total, block), 0
    for keys in block.keys if total.shape[-1] > 1 else block.keys[:1]:
        view = cut(corner, block.rows, keys)
        view += part[..., start : start + view.shape[-1]]
        start += len(keys)


def _add_to_heads(total: Tensor, block: Block, part: Tensor) -> None:
    view = total[block.corner[1]] if len(total) > 1 else total
    view += part


# Where gradients belong, by their position in ``flat``; those of other tensors are of all blocks.
_ADDERS = {
    0: add_to_rows,
    1: add_to_keys,
    2: add_to_keys,
    3: add_to_bias,
    4: add_to_rows,
    5: _add_to_heads,
}


def _zeros_by_column(tensor: Tensor) -> Tensor:
    """Zeros in the shape of a tensor, laid out as gradients of keys and values are worked out."""
    *lead, M, D = tensor.shape
    # A little longer than needed: at powers of two, all columns would fall on the same cache lines.
    return tensor.new_zeros(*lead, D, M + 16)[..., :M].transpose(-1, -2)


def inputs_of(request: Request) -> BlockInputs:
    """The inputs of a request whose weights are wanted, the sink among them."""
    return BlockInputs.of(request)._replace(sink=request.sink)


def gradients(
    job: BlockPass,
    inputs: BlockInputs,
    needs_grad: tuple[bool, ...],
    work: Callable[[Block, BlockInputs], Ends],
) -> list[Tensor | None]:
    """The gradients of ``inputs.flat()``; ``work`` pairs a block's outputs with gradients."""
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
        learned = [leaf for leaf in leaves if leaf is not None and leaf.requires_grad]
        computed = iter(torch.autograd.grad(outs, learned, d_outs, allow_unused=True))
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
    log_sum = below.masked_fill(is_empty, 0).logsumexp(dim=-1, keepdim=True)
    if sink is not None:
        log_sum = torch.logaddexp(log_sum, sink.unsqueeze(-1) - top)
    lse = (top + log_sum).masked_fill(is_empty, float("-inf")).squeeze(-1)
    if isinstance(weighting, Softmax):
        logs = below - log_sum.masked_fill(is_empty, 0)
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
