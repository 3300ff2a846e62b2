"""The statistics of softmax, faster: few passes over each block, in the cache, in place.

The same numbers as ``statistics.of_block``, which the tests compare; without gradients.
"""

from math import log
from typing import NamedTuple

import torch
from torch import Tensor

from regard.attention.backends.blocks import LOG2_E, Block, Job, is_finite
from regard.attention.best import best_of
from regard.attention.buckets import numbers_of, parts_of
from regard.attention.kernels import Box, Epanechnikov, Gaussian, Laplace, StudentT
from regard.attention.recomputing import Given
from regard.attention.scores import Additive, Bilinear, Cosine, Dot, ScaledDot
from regard.attention.statistics import Ask, Statistics, counted_rows

# Keys of a part of a block, for each of which it is known whether something is hidden.
PART = 512
# Two to such a power is zero, and yet zero times it is not NaN.
_LOWEST = -10000.0
# Scores whose tiles belong to nobody else, so that they may be changed in place.
_OWN_TILES = (
    Additive,
    Bilinear,
    Box,
    Cosine,
    Dot,
    Epanechnikov,
    Gaussian,
    Laplace,
    ScaledDot,
    StudentT,
)


class Stripe(NamedTuple):
    """Some queries and the keys they may see: what all batch rows and heads have in common.

    Attributes:
        keys: The places of the keys, (m,).
        buckets: Those of the map that the keys are in, (m,).
        side: −1 for keys before the first query's place, 1 for those after the last's, else 0.
        beyond: How far a key is from the first query's place; 0 where the side is 0.
        low: Where the keys with side 0 begin.
        apart: How far these are from each query's place, (n, high − low).
        inside: How far each query is from the first, (n,).
    """

    keys: Tensor
    buckets: Tensor
    side: Tensor
    beyond: Tensor
    low: int
    apart: Tensor
    inside: Tensor


class Room:
    """What is used again for the next block: memory, and tables of places of which stripes are cut.

    Args:
        job: What the blocks have in common.
        ask: What is asked.
        like: Of the dtype and on the device of the scores.
    """

    def __init__(self, job: Job, ask: Ask, like: Tensor) -> None:
        N, M = job.shape[2:]
        self._job, self._like = job, like
        self._powers: Tensor | None = None
        self._keys = torch.arange(M, device=like.device)
        self._buckets = numbers_of(self._keys + ask.start[1], ask.start[1], ask.bucket[1])
        self._steps = torch.arange(-M - N, M + N, device=like.device)
        self._of_rows(0)

    def powers(self, like: Tensor) -> Tensor:
        """A tensor in the shape of another, filled with anything."""
        if self._powers is None or self._powers.numel() < like.numel():
            self._powers = torch.empty_like(like).flatten()
        return self._powers[: like.numel()].view(like.shape)

    def stripe(self, block: Block) -> Stripe:
        """The stripe of a block."""
        N, M = self._job.shape[2:]
        if len(block.rows) != len(self._inside):
            self._of_rows(len(block.rows))
        begin = block.rows.start + M - N
        zero = N + M - begin
        middle = range(begin, begin + len(block.rows))
        among = [range(max(s.start, begin), min(s.stop, middle.stop)) for s in block.keys]
        return Stripe(
            block.along_keys(lambda s: self._keys[s.start : s.stop]),
            block.along_keys(lambda s: self._buckets[s.start : s.stop]),
            block.along_keys(lambda s: self._side[s.start + zero : s.stop + zero]),
            block.along_keys(lambda s: self._beyond[s.start + zero : s.stop + zero]),
            sum(len(range(s.start, min(s.stop, begin))) for s in block.keys),
            torch.cat([self._apart[:, s.start - begin : s.stop - begin] for s in among if s], -1)
            if any(among)
            else self._apart[:, :0],
            self._inside,
        )

    def _of_rows(self, count: int) -> None:
        """Make the tables for stripes of so many queries."""
        self._side = (self._steps >= count).to(self._like.dtype)
        self._side[: len(self._steps) // 2] = -1
        self._beyond = self._steps.to(self._like.dtype) * self._side
        self._inside = torch.arange(count, device=self._like.device).to(self._like.dtype)
        self._apart = (self._inside - self._inside[:, None]).abs()


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
        room: What is kept from block to block.
    """
    block = parts[0]._replace(keys=_joined(parts), veil=None)
    own = given.of_block(block)
    scores = own.scores(job, block)
    if type(job.score) not in _OWN_TILES or not scores.is_contiguous():
        scores = scores.clone(memory_format=torch.contiguous_format)
    hidden = _hide(scores, parts)
    stripe = room.stripe(block)
    places, is_there = best_of(scores, max(1, ask.top))
    best = scores.gather(-1, places)
    top = best[..., :1].masked_fill(~is_there[..., :1], torch.finfo(scores.dtype).min)
    # From here on relative to the best one, and of base two, which is three times as fast.
    scores.sub_(top).mul_(LOG2_E)
    powers = torch.exp2(scores, out=room.powers(scores))
    for columns in hidden:
        columns.clamp_min_(_LOWEST)
    total = powers.sum(dim=-1, keepdim=True)
    is_empty = total == 0
    rest = total.log()
    if own.sink is not None:
        rest = torch.logaddexp(rest, own.sink.unsqueeze(-1) - top)
    share = (-rest).exp_().masked_fill_(is_empty, 0)
    lse = (top + rest).masked_fill_(is_empty, float("-inf"))
    rest.masked_fill_(is_empty, 0)
    received, pooled = _received(job, ask, stripe, block, powers, share, counted)
    distance = _distance(stripe, powers).unsqueeze(-1)
    first = powers[..., :1] if block.keys[0].start == 0 else torch.zeros_like(total)
    logs = _sum_of_products(scores, powers) * log(2)
    return block, Statistics(
        lse.squeeze(-1),
        ((rest * total - logs) * share).squeeze(-1).clamp_min_(0),
        (distance * share).squeeze(-1),
        (first * share).squeeze(-1),
        received,
        pooled,
        (best - top - rest).exp_().masked_fill_(~is_there, 0)[..., : ask.top],
        stripe.keys[places].masked_fill_(~is_there, -1)[..., : ask.top],
    )


def _joined(parts: tuple[Block, ...]) -> tuple[range, ...]:
    """The keys of all parts, neighbours in one piece."""
    spans: list[range] = []
    for span in (span for part in parts for span in part.keys):
        if spans and spans[-1].stop == span.start:
            spans[-1] = range(spans[-1].start, span.stop)
        else:
            spans.append(span)
    return tuple(spans)


def _hide(scores: Tensor, parts: tuple[Block, ...]) -> list[Tensor]:
    """Set hidden scores to −∞; gives the columns in which there are any."""
    found, start = [], 0
    for part in parts:
        stop = start + sum(map(len, part.keys))
        if part.veil is not None:
            found.append(scores[..., start:stop].masked_fill_(part.veil, float("-inf")))
        start = stop
    return found


def _sum_of_products(scores: Tensor, powers: Tensor) -> Tensor:
    """``Σ score · power`` of each row, zero where the power is; the scores are lost."""
    sums = scores.mul_(powers).sum(dim=-1, keepdim=True)
    if not is_finite(sums):
        # A score itself may be −∞, and zero times that is NaN.
        sums = scores.masked_fill_(powers == 0, 0).sum(dim=-1, keepdim=True)
    return sums


def _distance(stripe: Stripe, powers: Tensor) -> Tensor:
    """``Σ power · |place of the key − place of the query|``, (b, h, n).

    Of keys before all queries of the stripe, or after all, the sums are linear in the places.
    """
    found = powers @ stripe.beyond - (powers @ stripe.side) * stripe.inside
    if width := stripe.apart.shape[-1]:
        found += (powers[..., stripe.low : stripe.low + width] * stripe.apart).sum(dim=-1)
    return found


def _received(
    job: Job,
    ask: Ask,
    stripe: Stripe,
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
    return by_bucket.sum(dim=-2), columns.index_add_(-1, stripe.buckets, by_bucket)


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
