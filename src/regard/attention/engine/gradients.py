"""Gradients of what blocks of scores give, worked out again block by block instead of kept."""

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from regard.attention.engine.blocks import (
    Block,
    BlockPass,
    Inputs,
    add_to_all,
    add_to_bias,
    add_to_keys,
    add_to_rows,
    bias_of,
    keys_of,
    rows_of,
)
from regard.attention.engine.function_context import FunctionContext
from regard.attention.engine.request import Request
from regard.attention.engine.tiled import score_block
from regard.attention.weighting import Softmax, Weighting


class Given(NamedTuple):
    """Differentiable inputs of all queries and keys, or of one block.

    Attributes:
        query: (B, H, N, D).
        key: (B, H, M, D).
        bias: Broadcasts to (B, H, N, M), or None.
        states: (B, H, N, E), something that queries have besides, or None.
        sink: Of the softmax, (H, 1) or (1, 1), or None.
        tensors: Of the score, then of the position bias.
    """

    query: Tensor
    key: Tensor
    bias: Tensor | None
    states: Tensor | None
    sink: Tensor | None
    tensors: tuple[Tensor, ...]

    @classmethod
    def of(cls, request: Request, states: Tensor | None = None) -> "Given":
        """Take the inputs of a request, in float32 at least."""
        query, key, _, bias, tensors = Inputs.of(request)
        return cls(query, key, bias, states, request.sink, tensors)

    @classmethod
    def from_flat(cls, flat: Sequence[Tensor | None]) -> "Given":
        """The opposite of ``flat``."""
        query, key, bias, states, sink, *tensors = flat
        assert query is not None
        assert key is not None
        return cls(query, key, bias, states, sink, tuple(t for t in tensors if t is not None))

    def flat(self) -> tuple[Tensor | None, ...]:
        """All tensors in a row."""
        return (*self[:5], *self.tensors)

    def of_block(self, block: Block) -> "Given":
        """Slice out the inputs of a block, without history."""
        states = None if self.states is None else rows_of(self.states, block)
        query, key = rows_of(self.query, block), keys_of(self.key, block)
        sink = self.sink
        if sink is not None and len(sink) > 1:
            sink = sink[block.corner[1]]
        return Given(query, key, bias_of(self.bias, block), states, sink, self.tensors)

    def scores(self, job: BlockPass, block: Block) -> Tensor:
        """The scores of a block, of which this is the part; −inf where hidden."""
        return score_block(job, block, self.query, self.key, self.bias, self.tensors)


Ends = Iterator[tuple[Tensor, Tensor]]


def gradients(
    job: BlockPass,
    given: Given,
    wanted: tuple[bool, ...],
    work: Callable[[Block, Given], Ends],
) -> list[Tensor | None]:
    """The gradients of ``given.flat()``.

    Args:
        job: What the blocks have in common.
        given: Of all queries and keys.
        wanted: Which gradients are.
        work: Works out again what a block gives, and pairs it with its gradients.
    """
    flat = given.flat()
    totals = [None if t is None or not w else torch.zeros_like(t) for t, w in _both(flat, wanted)]
    for block in job.blocks() if all(job.shape) else ():
        parts = given.of_block(block).flat()
        leaves = tuple(
            t if t is None else t.detach().requires_grad_(w) for t, w in _both(parts, wanted)
        )
        with torch.enable_grad():
            ends = [end for end in work(block, Given.from_flat(leaves)) if end[0].requires_grad]
        if not ends:
            continue
        own = [leaf for leaf, want in _both(leaves, wanted) if leaf is not None and want]
        outs, d_outs = zip(*ends, strict=True)
        found = iter(torch.autograd.grad(outs, own, d_outs, allow_unused=True))
        for place, total in enumerate(totals):
            if total is not None and (part := next(found)) is not None:
                _ADDERS.get(place, add_to_all)(total, block, part)
    return totals


def weights_of(
    weighting: Weighting, scores: Tensor, sink: Tensor | None
) -> tuple[Tensor, Tensor, Tensor]:
    """Weights (b, h, n, m) of whole rows of scores, their log-sum-exp and entropy (b, h, n).

    All of them are differentiable; of a row of −∞ they are zero, −∞ and zero.

    Args:
        weighting: How scores become weights.
        scores: (b, h, n, m).
        sink: Of the softmax, (h, 1) or (1, 1), or None.
    """
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
        weights = _Rows.apply(weighting, scores)  # type: ignore[no-untyped-call]
        logs = weights.clamp_min(torch.finfo(scores.dtype).tiny).log()
    return weights, lse, (weights * -logs).sum(dim=-1)


if TYPE_CHECKING:

    class _Context(FunctionContext):
        """Context that also holds the weighting."""

        weighting: Weighting

else:
    _Context = FunctionContext


class _Rows(torch.autograd.Function):
    """The weights of whole rows of scores, with the gradient that the weighting has for them."""

    @staticmethod
    def forward(ctx: _Context, weighting: Weighting, scores: Tensor) -> Tensor:
        weights = weighting.rows(scores)
        ctx.weighting = weighting
        ctx.save_for_backward(weights)
        return weights

    @staticmethod
    @once_differentiable
    def backward(ctx: _Context, grad: Tensor) -> tuple[None, Tensor]:
        (weights,) = ctx.saved_tensors
        return None, ctx.weighting.gradient(weights, grad)


def _add_to_heads(total: Tensor, block: Block, part: Tensor) -> None:
    view = total[block.corner[1]] if len(total) > 1 else total
    view += part


def _both(
    tensors: tuple[Tensor | None, ...], wanted: tuple[bool, ...]
) -> Iterator[tuple[Tensor | None, bool]]:
    return zip(tensors, wanted, strict=True)


# Where the gradients belong, by their place in ``flat``; those of other tensors are of all blocks.
_ADDERS = {0: add_to_rows, 1: add_to_keys, 2: add_to_bias, 3: add_to_rows, 4: _add_to_heads}
