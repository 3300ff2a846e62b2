"""The statistics of softmax, faster: few passes over each block, in the cache, in place.

The same numbers as ``statistics.of_block``, which the tests compare; without gradients.
"""

from math import log, prod
from typing import NamedTuple

import torch
from torch import Tensor

from regard.attention.engine.blocks import Block, BlockPass
from regard.attention.engine.gradients import Given
from regard.attention.engine.numerics import LOG2_E, is_finite
from regard.attention.inspect.best import best_of
from regard.attention.inspect.buckets import numbers_of, parts_of
from regard.attention.inspect.statistics import Ask, Statistics, counted_rows

# Keys of a part of a block, for each of which it is known whether something is hidden.
PART = 1024

# Two to such a power is zero, and yet zero times it is not NaN.
_LOWEST = -10000.0


class BlockPlaces(NamedTuple):
    """Where the queries and keys of a block stand: alike in all batch rows and heads.

    Attributes:
        keys: The places of the keys, (m,).
        buckets: Those of the map that the keys are in, (m,).
        beyond: How far a key is from the first query's place; 0 for those among the places.
        low: Where the keys among the queries' places begin.
        apart: How far these are from each query's place, (n, high − low).
        inside: How far each query is from the first, (n,).
    """

    keys: Tensor
    buckets: Tensor
    beyond: Tensor
    low: int
    apart: Tensor
    inside: Tensor


class Workspace:
    """What is used again for the next block: memory, and tables from which places are cut.

    Args:
        job: What the blocks have in common.
        ask: What is asked.
        like: Of the dtype and on the device of the scores.
    """

    def __init__(self, job: BlockPass, ask: Ask, like: Tensor) -> None:
        N, M = job.shape[2:]
        self._job, self._like = job, like
        self._powers: Tensor | None = None
        self._scores: Tensor | None = None
        self._keys = torch.arange(M, device=like.device)
        self._buckets = numbers_of(self._keys + ask.start[1], ask.start[1], ask.bucket[1])
        self._steps = torch.arange(-M - N, M + N, device=like.device)
        self._of_rows(0)

    def powers(self, *shape: int) -> Tensor:
        """A tensor of a shape, filled with anything."""
        size = prod(shape)
        if self._powers is None or self._powers.numel() < size:
            self._powers = self._like.new_empty(size)
        return self._powers[:size].view(shape)

    def scores(self, *shape: int) -> Tensor:
        """Another tensor of a shape, filled with anything."""
        size = prod(shape)
        if self._scores is None or self._scores.numel() < size:
            self._scores = self._like.new_empty(size)
        return self._scores[:size].view(shape)

    def places(self, block: Block) -> BlockPlaces:
        """The places of a block."""
        N, M = self._job.shape[2:]
        if len(block.rows) != len(self._inside):
            self._of_rows(len(block.rows))
        begin = block.rows.start + M - N
        zero = N + M - begin
        middle = range(begin, begin + len(block.rows))
        among = [range(max(s.start, begin), min(s.stop, middle.stop)) for s in block.keys]
        apart = [self._apart[:, s.start - begin : s.stop - begin] for s in among if s]
        return BlockPlaces(
            block.along_keys(lambda s: self._keys[s.start : s.stop]),
            block.along_keys(lambda s: self._buckets[s.start : s.stop]),
            block.along_keys(lambda s: self._beyond[s.start + zero : s.stop + zero]),
            sum(len(range(s.start, min(s.stop, begin))) for s in block.keys),
            apart[0] if len(apart) == 1 else torch.cat([self._apart[:, :0], *apart], dim=-1),
            self._inside,
        )

    def _of_rows(self, count: int) -> None:
        """Make the tables for blocks of so many queries."""
        is_among = (self._steps >= 0) & (self._steps < count)
        self._beyond = self._steps.abs().masked_fill_(is_among, 0).to(self._like.dtype)
        self._inside = torch.arange(count, device=self._like.device).to(self._like.dtype)
        self._apart = (self._inside - self._inside[:, None]).abs()


def of_parts(
    job: BlockPass,
    ask: Ask,
    parts: tuple[Block, ...],
    given: Given,
    counted: Tensor | None,
    workspace: Workspace,
) -> tuple[Block, Statistics]:
    """The statistics of one block of whole rows.

    Args:
        job: What the blocks have in common.
        ask: What is asked.
        parts: The block, cut along its keys.
        given: Of all queries and keys.
        counted: Which queries count.
        workspace: What is kept from block to block.
    """
    block = parts[0]._replace(keys=_joined(parts), hidden=None)
    where = workspace.places(block)
    own = given.of_block(block)
    scores, unit = _scores(job, block, own, workspace)
    hidden = _hide(scores, parts)
    places, is_there = best_of(scores, max(1, ask.top))
    top = scores.gather(-1, places[..., :1])
    top.masked_fill_(~is_there[..., :1], torch.finfo(scores.dtype).min)
    # From here on relative to the best one, and of base two, which is three times as fast.
    scores.sub_(top)
    if unit != 1 / LOG2_E:
        scores.mul_(unit * LOG2_E)
    top *= unit
    powers = torch.exp2(scores, out=workspace.powers(*scores.shape))
    for columns in hidden:
        columns.clamp_min_(_LOWEST)
    total, distance = _total_and_distance(where, powers)
    logs = _sum_of_products(scores, powers) * log(2)
    is_empty = total == 0
    rest = total.log()
    if own.sink is not None:
        rest = torch.logaddexp(rest, own.sink.unsqueeze(-1) - top)
    share = (-rest).exp_().masked_fill_(is_empty, 0)
    lse = (top + rest).masked_fill_(is_empty, float("-inf"))
    rest.masked_fill_(is_empty, 0)
    received, pooled = _received(job, ask, where, block, powers, share, counted)
    first = powers[..., :1] if block.keys[0].start == 0 else torch.zeros_like(total)
    return block, Statistics(
        lse.squeeze(-1),
        ((rest * total - logs) * share).squeeze(-1).clamp_min_(0),
        (distance * share).squeeze(-1),
        (first * share).squeeze(-1),
        received,
        pooled,
        (powers.gather(-1, places) * share).masked_fill_(~is_there, 0)[..., : ask.top],
        _keys_at(block, where, places).masked_fill_(~is_there, -1)[..., : ask.top],
    )


def _scores(job: BlockPass, block: Block, own: Given, workspace: Workspace) -> tuple[Tensor, float]:
    """The scores of a block, in memory of their own, and what one of them is worth.

    Plain products come in base two, into memory that is used again: new memory costs as much as
    half the product.
    """
    is_plain = own.bias is None and job.position is None
    if is_plain and job.score.is_dot_product and not own.tensors:
        form = job.score.as_dot(own.query, own.key)
        if form is not None:
            shape = (*own.query.shape[:-1], own.key.shape[-2])
            query = form.query * (form.scale * LOG2_E)
            return torch.matmul(query, form.key.mT, out=workspace.scores(*shape)), 1 / LOG2_E
    scores = own.scores(job, block)
    if not (job.score.gives_new_tiles and scores.is_contiguous()):
        scores = scores.clone(memory_format=torch.contiguous_format)
    return scores, 1.0


def _joined(parts: tuple[Block, ...]) -> tuple[range, ...]:
    """The keys of all parts, neighbours in one piece."""
    key_ranges: list[range] = []
    for keys in (keys for part in parts for keys in part.keys):
        if key_ranges and key_ranges[-1].stop == keys.start:
            key_ranges[-1] = range(key_ranges[-1].start, keys.stop)
        else:
            key_ranges.append(keys)
    return tuple(key_ranges)


def _keys_at(block: Block, where: BlockPlaces, places: Tensor) -> Tensor:
    """The keys at places of a block's rows."""
    if len(block.keys) == 1:
        return places + block.keys[0].start
    return where.keys[places]


def _hide(scores: Tensor, parts: tuple[Block, ...]) -> list[Tensor]:
    """Set hidden scores to −∞; gives the columns in which there are any."""
    found, start = [], 0
    for part in parts:
        stop = start + sum(map(len, part.keys))
        if part.hidden is not None:
            found.append(scores[..., start:stop].masked_fill_(part.hidden, float("-inf")))
        start = stop
    return found


def _total_and_distance(where: BlockPlaces, powers: Tensor) -> tuple[Tensor, Tensor]:
    """``Σ power`` and ``Σ power · |place of the key − place of the query|``, (b, h, n, 1).

    Of keys before all queries of the block, or after all, the latter is linear in the places.
    """
    low, high = where.low, where.low + where.apart.shape[-1]
    before, after = (powers[..., s].sum(dim=-1) for s in (slice(low), slice(high, None)))
    distance = powers @ where.beyond - (after - before) * where.inside
    total = before + after
    if high > low:
        among = powers[..., low:high]
        total += among.sum(dim=-1)
        distance += (among * where.apart).sum(dim=-1)
    return total.unsqueeze(-1), distance.unsqueeze(-1)


def _sum_of_products(scores: Tensor, powers: Tensor) -> Tensor:
    """``Σ score · power`` of each row, zero where the power is; the scores are lost."""
    sums = scores.mul_(powers).sum(dim=-1, keepdim=True)
    if not is_finite(sums):
        # A score itself may be −∞, and zero times that is NaN.
        sums = scores.masked_fill_(powers == 0, 0).sum(dim=-1, keepdim=True)
    return sums


def _received(
    job: BlockPass,
    ask: Ask,
    where: BlockPlaces,
    block: Block,
    powers: Tensor,
    share: Tensor,
    counted: Tensor | None,
) -> tuple[Tensor, Tensor]:
    """What each key gets, (b, h, m), and each bucket of keys from each of queries, (b, h, r, C)."""
    if counted is not None:
        is_counted = counted_rows(counted, block)
        share = share.where(is_counted, 0)
    by_bucket = _by_bucket(ask, block, powers, share)
    if counted is not None and not is_finite(by_bucket):
        # Whatever is in queries that do not count.
        by_bucket = _by_bucket(ask, block, powers.where(is_counted, 0), share)
    columns = powers.new_zeros(*by_bucket.shape[:-1], ask.columns(job.shape[3]))
    return by_bucket.sum(dim=-2), columns.index_add_(-1, where.buckets, by_bucket)


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
    return found[0] if len(found) == 1 else torch.cat(found, dim=-2)
