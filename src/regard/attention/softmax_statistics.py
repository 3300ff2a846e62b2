"""The statistics of softmax, faster: few passes over each block, in the cache, in place.

The same numbers as ``statistics.of_block``, which the tests compare; without gradients.
"""

from math import log, prod

import torch
from torch import Tensor

from regard.attention.backends.blocks import LOG2_E, Block, Job, is_finite
from regard.attention.best import best_of, tops_of
from regard.attention.buckets import numbers_of, parts_of
from regard.attention.recomputing import Given
from regard.attention.statistics import Ask, Statistics, counted_rows, rows_of_map

# Keys of a part of a block, for each of which it is known whether something is hidden.
PART = 512
# Of 2 to such powers nothing is left, and yet they are finite.
_LOWEST = -10000.0


class Room:
    """Memory for the scores and the powers of one block, used again for the next."""

    def __init__(self, like: Tensor) -> None:
        self._like = like
        self._flat: tuple[Tensor, Tensor] | None = None

    def of(self, *shape: int) -> tuple[Tensor, Tensor]:
        """Two tensors of a shape, filled with anything."""
        size = prod(shape)
        if self._flat is None or self._flat[0].numel() < size:
            self._flat = (self._like.new_empty(size), self._like.new_empty(size))
        one, other = (flat[:size].view(shape) for flat in self._flat)
        return one, other


def of_parts(
    job: Job,
    ask: Ask,
    parts: tuple[Block, ...],
    given: Given,
    counted: Tensor | None,
    room: Room,
) -> tuple[Block, Statistics]:
    """The statistics of one block of whole rows.

    Args:
        job: What the blocks have in common.
        ask: What is asked.
        parts: The block, cut along its keys.
        given: Of all queries and keys.
        counted: Which queries count.
        room: Where to work.
    """
    chunk, heads, rows, _, _ = parts[0]
    block = Block(chunk, heads, rows, tuple(span for part in parts for span in part.keys), None)
    widths = [sum(map(len, part.keys)) for part in parts]
    scores, powers = room.of(len(chunk), len(heads), len(rows), sum(widths))
    hidden = []
    for part, own in zip(parts, torch.split(scores, widths, dim=-1), strict=True):
        of_part = given.of_block(part)
        sink = of_part.sink
        own.copy_(of_part.scores(job, part))
        if part.veil is not None:
            hidden.append(own)
    tops = tops_of(scores, ask.top)
    top = (scores if tops is None else tops).amax(dim=-1, keepdim=True)
    places, is_there = best_of(scores, ask.top, tops=tops)
    best = scores.gather(-1, places)
    # From here on relative to the best one, and of base two, which is three times as fast.
    top.clamp_min_(torch.finfo(scores.dtype).min)
    scores.sub_(top).mul_(LOG2_E)
    torch.exp2(scores, out=powers)
    for own in hidden:
        own.clamp_min_(_LOWEST)
    total = powers.sum(dim=-1, keepdim=True)
    is_empty = total == 0
    rest = total.log()
    if sink is not None:
        rest = torch.logaddexp(rest, sink.unsqueeze(-1) - top)
    share = (-rest).exp_().masked_fill_(is_empty, 0)
    lse = (top + rest).masked_fill_(is_empty, float("-inf"))
    distance = _distance(job, block, powers)
    first = powers[..., :1] if block.keys[0].start == 0 else torch.zeros_like(total)
    received, pooled = _received(job, ask, block, powers, share, counted)
    logs = _sum_of_products(scores, powers) * log(2)
    rest.masked_fill_(is_empty, 0)
    entropy = (rest * total - logs) * share
    keys = torch.cat([torch.arange(s.start, s.stop, device=scores.device) for s in block.keys])
    top_weights = (best - top - rest).exp_().masked_fill_(~is_there, 0)
    return block, Statistics(
        lse.squeeze(-1),
        entropy.squeeze(-1).clamp_min_(0),
        distance.unsqueeze(-1).mul_(share).squeeze(-1),
        first.mul(share).squeeze(-1),
        received,
        pooled,
        top_weights,
        keys[places].masked_fill_(~is_there, -1),
    )


def _sum_of_products(scores: Tensor, powers: Tensor) -> Tensor:
    """``Σ score · power`` of each row, zero where the power is; the scores are lost."""
    sums = scores.mul_(powers).sum(dim=-1, keepdim=True)
    if not is_finite(sums):
        # A score itself may be −∞, and zero times that is NaN.
        sums = scores.masked_fill_(powers == 0, 0).sum(dim=-1, keepdim=True)
    return sums


def _distance(job: Job, block: Block, powers: Tensor) -> Tensor:
    """``Σ power · |place of the key − place of the query|``, (b, h, n).

    Of keys before all queries of the block, or after all, the sums are linear in the places.
    """
    N, M = job.shape[2:]
    begin, end = block.rows.start + M - N, block.rows.stop + M - N
    keys = torch.cat([torch.arange(s.start, s.stop, device=powers.device) for s in block.keys])
    low, high = (int(place) for place in torch.searchsorted(keys, keys.new_tensor([begin, end])))
    side = torch.ones_like(keys, dtype=powers.dtype)
    side[:low] = -1
    side[low:high] = 0
    beyond = (keys - begin).to(powers.dtype) * side
    inside = torch.arange(len(block.rows), device=powers.device)
    found = powers @ beyond - (powers @ side) * inside
    if high > low:
        apart = (keys[low:high] - begin - inside[:, None]).abs().to(powers.dtype)
        found += (powers[..., low:high] * apart).sum(dim=-1)
    return found


def _received(
    job: Job, ask: Ask, block: Block, powers: Tensor, share: Tensor, counted: Tensor | None
) -> tuple[Tensor, Tensor]:
    """What each key gets, (b, h, m), and each bucket of keys from each of queries, (b, h, r, C)."""
    if counted is not None:
        is_counted = counted_rows(counted, block)
        share = share.where(is_counted, 0)
    by_bucket = _by_bucket(ask, block, powers, share)
    if counted is not None and not is_finite(by_bucket):
        # Whatever is in queries that do not count.
        powers = powers.where(is_counted, 0)
        by_bucket = _by_bucket(ask, block, powers, share)
    columns = powers.new_zeros(*by_bucket.shape[:-1], ask.columns(job.shape[3]))
    at = 0
    for span in block.keys:
        own = by_bucket[..., at : at + len(span)]
        places = range(ask.start[1] + span.start, ask.start[1] + span.stop)
        numbers = numbers_of(places, ask.start[1], ask.bucket[1], powers.device)
        columns.index_add_(-1, numbers, own)
        at += len(span)
    return by_bucket.sum(dim=-2), columns


def _by_bucket(ask: Ask, block: Block, powers: Tensor, share: Tensor) -> Tensor:
    """The sums of weights over the queries of each bucket, (b, h, r, m)."""
    start, width = ask.start[0], ask.bucket[0]
    found, at = [], 0
    for buckets, size in parts_of(start + block.rows.start, len(block.rows), width):
        stop = at + buckets * size
        shape = (*powers.shape[:2], buckets, size)
        own = powers[:, :, at:stop].reshape(*shape, powers.shape[-1])
        found.append((share[:, :, at:stop].reshape(shape).unsqueeze(-2) @ own).squeeze(-2))
        at = stop
    made = found[0] if len(found) == 1 else torch.cat(found, dim=-2)
    assert made.shape[-2] == len(range(*rows_of_map(ask, block).indices(2**62)))
    return made
