"""The statistics of a block of scores: the formulas, as differentiable operations.

``softmax_statistics.py`` has the same numbers of softmax without gradients, faster.
"""

import torch
from torch import Tensor

from regard.attention.engine.blocks import Block, BlockPass
from regard.attention.engine.gradients import weights_of
from regard.attention.inspect.best import best_of
from regard.attention.inspect.buckets import numbers_of
from regard.attention.inspect.statistics import Ask, Statistics, counted_rows, rows_of_map


def of_block(
    job: BlockPass,
    ask: Ask,
    block: Block,
    scores: Tensor,
    sink: Tensor | None,
    counted: Tensor | None,
) -> Statistics:
    """The statistics of one block from its scores; differentiable."""
    N, M = job.shape[2:]
    device = scores.device
    rows = torch.arange(block.rows.start, block.rows.stop, device=device)
    keys = torch.cat([torch.arange(k.start, k.stop, device=device) for k in block.keys])
    weights, lse, entropy = weights_of(job.weighting, scores, sink)
    apart = (keys - rows[:, None] - (M - N)).abs().to(weights.dtype)
    is_first = keys == 0
    first = weights[..., 0] if bool(is_first[:1].any()) else torch.zeros_like(lse)
    given = weights
    if counted is not None:
        given = weights.where(counted_rows(counted, block), 0)
    map_rows = rows_of_map(ask, block)
    row_buckets = numbers_of(rows + ask.start[0], ask.start[0], ask.bucket[0]) - map_rows.start
    key_buckets = numbers_of(keys + ask.start[1], ask.start[1], ask.bucket[1])
    columns = given.new_zeros(*given.shape[:-1], ask.columns(M)).index_add(-1, key_buckets, given)
    pooled = columns.new_zeros(*columns.shape[:2], map_rows.stop - map_rows.start, ask.columns(M))
    ranked = scores.detach()
    if not job.weighting.ranks_like_scores:
        ranked = weights.detach().masked_fill(ranked == float("-inf"), float("-inf"))
    places, is_there = best_of(ranked, ask.top)
    return Statistics(
        lse,
        entropy,
        (weights * apart).sum(dim=-1),
        first,
        given.sum(dim=-2),
        pooled.index_add(-2, row_buckets, columns),
        weights.gather(-1, places) * is_there,
        keys[places].masked_fill(~is_there, -1),
    )
