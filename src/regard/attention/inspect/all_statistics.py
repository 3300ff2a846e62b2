"""The statistics of all queries, block by block, never of all weights at once."""

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from regard.attention.engine.blocks import Block, BlockPass, as_it_is
from regard.attention.engine.gradients import Ends, Given, gradients
from regard.attention.inspect.block_statistics import of_block
from regard.attention.inspect.softmax_statistics import PART, of_parts
from regard.attention.inspect.statistics import Ask, Statistics
from regard.attention.inspect.workspace import Room
from regard.attention.weighting import Softmax


def statistics_of(job: BlockPass, ask: Ask, given: Given, counted: Tensor | None) -> Statistics:
    """The statistics of all queries; gradients flow to what is given.

    Args:
        job: What the blocks have in common; they hold whole rows.
        ask: What is asked.
        given: Queries, keys, and what scores are made with.
        counted: Which queries count as givers, (B or 1, 1, N); None counts all.
    """
    return Statistics(*_Statistics.apply(job, ask, counted, *given.flat()))  # type: ignore[no-untyped-call]


class _Statistics(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, job: BlockPass, ask: Ask, counted: Tensor | None, *flat: Tensor | None
    ) -> tuple[Tensor, ...]:
        given = Given.from_flat(flat)
        total = Statistics.of_nothing(job, ask, given.query)
        for block, part in _of_blocks(job, ask, given, counted):
            total.put(ask, block, part)
        ctx.job, ctx.ask = job, ask
        ctx.save_for_backward(counted, *flat)
        ctx.mark_non_differentiable(total.top_keys)
        return tuple(total)

    @staticmethod
    @as_it_is
    @once_differentiable
    def backward(ctx: Any, d_lse: Tensor, *rest: Tensor) -> Any:
        job, ask, grads = ctx.job, ctx.ask, Statistics(d_lse, *rest)
        counted, *flat = ctx.saved_tensors

        def again(block: Block, own: Given) -> Ends:
            found = of_block(job, ask, block, own.scores(job, block), own.sink, counted)
            # Without the last: of places there is no gradient.
            return zip(found[:-1], grads.of(ask, block)[:-1], strict=True)

        found = gradients(job, Given.from_flat(flat), ctx.needs_input_grad[3:], again)
        return (None, None, None, *found)


def _of_blocks(
    job: BlockPass, ask: Ask, given: Given, counted: Tensor | None
) -> Iterator[tuple[Block, Statistics]]:
    """The blocks with their statistics."""
    if not all(job.shape):
        return
    if isinstance(job.weighting, Softmax):
        room = Room(job, ask, given.query)
        for parts in job.blocks_in_parts(PART if job.mask else job.shape[3]):
            yield of_parts(job, ask, parts, given, counted, room)
        return
    for block in job.blocks():
        own = given.of_block(block)
        yield block, of_block(job, ask, block, own.scores(job, block), own.sink, counted)
