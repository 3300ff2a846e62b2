"""Any score, mask, bias and weighting, exact, block by block of queries, in plain torch operations.

A block holds the scores of a few queries with all their keys; the backward pass works them out
again instead of keeping them. Every step is differentiable, and so is the gradient.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor

from regard.attention.dropout import kept
from regard.attention.masks import BoundMask, Cover, cut
from regard.attention.request import Request
from regard.attention.scores import Score
from regard.attention.weighting import Weighting

# Numbers held at once for a block: 4 MB of float32 stay in a core's cache.
_BLOCK = 2**20
_MOST_ROWS = 128


def refuse(request: Request) -> str | None:
    """None: it serves everything."""
    return None


def notes(request: Request) -> tuple[str, ...]:
    """What is done on the way, in words."""
    chunk, rows = block_sizes(request)
    return (f"blocks of {chunk} batch rows and {rows} queries",)


def bytes_beyond(request: Request) -> int:
    """Memory taken beyond inputs and output."""
    item = max(4, request.query.element_size())
    B, H, N, D = request.query.shape
    M = request.key.shape[2]
    chunk, rows = block_sizes(request)
    block = chunk * H * rows * M * (4 + request.score.floats_per_pair(D))
    copies = 0
    if request.query.dtype != torch.float64 and item > request.query.element_size():
        copies += sum(t.numel() for t in (request.query, request.key, request.value))
    if request.key.shape[1] != H:
        copies += B * H * M * (D + request.value.shape[-1])
    return item * (block + copies + B * H * N)


def run(request: Request) -> tuple[Tensor, Tensor | None]:
    """The mixed values (B, H, N, E), and the log-sum-exp (B, H, N) if it is wanted."""
    dtype = request.query.dtype
    wide = torch.promote_types(dtype, torch.float32)
    query, key, value = (t.to(wide) for t in (request.query, request.key, request.value))
    if request.mask is not None and (hidden := request.mask.hidden) is not None:
        hidden = hidden if hidden.shape[1] == 1 else _share(hidden, key.shape[1])
        key, value = key.masked_fill(hidden, 0), value.masked_fill(hidden, 0)
    if (repeats := query.shape[1] // key.shape[1]) > 1:
        key, value = (t.repeat_interleave(repeats, dim=1) for t in (key, value))
    bias = None if request.bias is None else request.bias.to(wide)
    job = Job.of(request)
    out, lse = _Tiled.apply(  # type: ignore[no-untyped-call]
        job, query, key, value, bias, *request.score.tensors()
    )
    return out.to(dtype), lse if request.return_lse else None


def block_sizes(request: Request) -> tuple[int, int]:
    """How many batch rows and how many queries make a block."""
    B, H, N, D = request.query.shape
    pairs = max(1, _BLOCK // max(1, H * request.key.shape[2] * request.score.floats_per_pair(D)))
    chunk = max(1, min(B, pairs // max(1, min(N, 32))))
    return chunk, max(1, min(N, pairs // chunk, _MOST_ROWS))


def _share(hidden: Tensor, groups: int) -> Tensor:
    """Hidden from every query of every head that shares a key head."""
    return hidden.reshape(hidden.shape[0], groups, -1, *hidden.shape[2:]).all(dim=2)


class Block(NamedTuple):
    """Some batch rows, some of their queries, and the keys these may see."""

    chunk: range
    rows: range
    keys: range


@dataclass(frozen=True, slots=True, eq=False)
class Job:
    """What the blocks have in common and no gradient flows to."""

    score: Score
    mask: BoundMask | None
    weighting: Weighting
    dropout: float
    seed: int
    sizes: tuple[int, int]
    wants_lse: bool

    @classmethod
    def of(cls, request: Request) -> "Job":
        """The job of a request; draws the seed of its dropout."""
        seed = 0
        if request.dropout:
            seed = int(torch.randint(2**31 - 1, (), generator=request.generator))
        return cls(
            request.score,
            request.mask,
            request.weighting,
            request.dropout,
            seed,
            block_sizes(request),
            request.return_lse,
        )

    def blocks(self, batch: int, queries: int, keys: int) -> Iterator[Block]:
        """All blocks, rows of one chunk after the other."""
        chunk, rows = self.sizes
        for b in range(0, batch, chunk):
            for n in range(0, queries, rows):
                those = range(n, min(n + rows, queries))
                span = range(keys) if self.mask is None else self.mask.span(those)
                yield Block(range(b, min(b + chunk, batch)), those, span)

    def scores(
        self, block: Block, query: Tensor, key: Tensor, bias: Tensor | None, tensors: Any
    ) -> Tensor:
        """Scores of a block, −inf where hidden."""
        scores = self.score.tile(query, key, *tensors)
        if bias is not None:
            scores = scores + bias
        if (seen := self.visible(block)) is not None:
            scores = scores.masked_fill(~seen, float("-inf"))
        return scores

    def visible(self, block: Block) -> Tensor | None:
        """The mask of a block, or None if all of it is visible."""
        if self.mask is None:
            return None
        tile = self.mask.tile(block.rows, block.keys)
        if tile is Cover.ALL:
            return None
        assert isinstance(tile, Tensor)
        if tile.dim() == 4 and tile.shape[0] > 1:
            tile = tile[block.chunk.start : block.chunk.stop]
        return tile

    def factor(self, block: Block, weights: Tensor) -> Tensor | None:
        """What dropout multiplies the weights of a block by, or None."""
        if not self.dropout:
            return None
        return kept(
            self.seed,
            self.dropout,
            block.chunk,
            range(weights.shape[1]),
            block.rows,
            block.keys,
            like=weights,
        )


def rows_of(tensor: Tensor, block: Block) -> Tensor:
    """The part of (B, H, N, ...) that a block's queries have."""
    return tensor[block.chunk.start : block.chunk.stop, :, block.rows.start : block.rows.stop]


def keys_of(tensor: Tensor, block: Block) -> Tensor:
    """The part of (B, H, M, ...) that a block's keys have."""
    return tensor[block.chunk.start : block.chunk.stop, :, block.keys.start : block.keys.stop]


def bias_of(bias: Tensor | None, block: Block) -> Tensor | None:
    """The part of a bias that a block adds."""
    if bias is None:
        return None
    if bias.shape[0] > 1:
        bias = bias[block.chunk.start : block.chunk.stop]
    return cut(bias, block.rows, block.keys)


def mix(weights: Tensor, value: Tensor, seen: Tensor | None) -> Tensor:
    """``weights @ value``, where a NaN in a value reaches only the queries that see it."""
    out = weights @ value
    if seen is not None and not _is_finite(out):
        bad = ~value.isfinite()
        reached = seen.to(value.dtype).expand(weights.shape) @ bad.to(value.dtype)
        clean = weights @ value.masked_fill(bad, 0)
        out = torch.where(reached > 0, float("nan"), clean)
    return out


def _is_finite(out: Tensor) -> bool:
    total = float(out.detach().sum())
    return total - total == 0


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
            scores = job.scores(
                block, rows_of(query, block), keys_of(key, block), bias_of(bias, block), tensors
            )
            if job.wants_lse:
                rows_of(lse, block).copy_(scores.logsumexp(dim=-1))
            weights = job.weighting.rows(scores)
            if (factor := job.factor(block, weights)) is not None:
                weights = weights * factor
            rows_of(out, block).copy_(mix(weights, keys_of(value, block), job.visible(block)))
        ctx.job = job
        ctx.save_for_backward(query, key, value, bias, *tensors)
        return out, lse

    @staticmethod
    def backward(ctx: Any, d_out: Tensor, d_lse: Tensor) -> Any:
        query, key, value, bias, *tensors = ctx.saved_tensors
        job: Job = ctx.job
        again = torch.is_grad_enabled()
        sums = _Sums([query, key, value, bias, *tensors], ctx.needs_input_grad[1:])
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
            grads = _block_gradients(
                job, block, parts, rows_of(d_out, block), rows_of(d_lse, block), again
            )
            sums.add(block, grads)
        return (None, *sums.result())


def _block_gradients(
    job: Job, block: Block, parts: list[Any], d_out: Tensor, d_lse: Tensor, again: bool
) -> list[Tensor | None]:
    """Gradients of one block's query, key, value, bias and tensors of the score."""
    query, key, value, bias, *tensors = parts
    with torch.enable_grad():
        scores = job.scores(block, query, key, bias, tensors)
    with torch.set_grad_enabled(again):
        weights = job.weighting.rows(scores)
        factor = job.factor(block, weights)
        d_weights = d_out @ value.transpose(-1, -2)
        mixed = weights
        if factor is not None:
            d_weights, mixed = d_weights * factor, weights * factor
        d_value = mixed.transpose(-1, -2) @ d_out
        d_scores = job.weighting.gradient(weights, d_weights)
        if job.wants_lse:
            d_scores = d_scores + weights * d_lse.unsqueeze(-1)
        if (seen := job.visible(block)) is not None:
            d_scores = d_scores.masked_fill(~seen, 0)
    inputs = [query, key, *([] if bias is None else [bias]), *tensors]
    grads: list[Any] = list(
        torch.autograd.grad(scores, inputs, d_scores, create_graph=again, allow_unused=True)
    )
    if bias is None:
        grads.insert(2, None)
    grads.insert(2, d_value)
    return grads


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

    def result(self) -> list[Tensor | None]:
        return self.totals
