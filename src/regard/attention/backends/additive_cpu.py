"""Additive attention on a CPU without the N×M×h tensor, and almost without transcendentals.

``tanh(q + k) = 1 − 2r`` with ``r = 1 / (1 + e^2q · e^2k)``, so that after one exponential per
query and per key the hidden units cost a multiplication and a reciprocal each, which processors do
some fifty times faster than tanh. Where e^2q or e^2k might overflow, or queries are so few that
the keys' exponentials would cost more than they save, ``r = sigmoid(−2 (q + k))`` takes its place.
Where all q and k are small, ``1 − 2r`` would cancel: ``tanh(q + k) = u / (u + 2)`` with
``u = e^(2q + 2k) − 1``, which ``e^2q − 1`` and ``e^2k − 1`` give without loss.

The hidden units live in tiles that fit a core's cache. ``tanh' = 4 (r − r²)`` gives the gradients
from the same tile, worked out once in the backward pass.
"""

from collections.abc import Callable, Iterator
from itertools import chain
from threading import local
from typing import NamedTuple

import torch
from torch import Tensor

from regard.attention.backends import additive_few
from regard.attention.backends.base import Backend
from regard.attention.engine import tiled
from regard.attention.engine.blocks import (
    Block,
    BlockPass,
    Inputs,
    Sizes,
    add_to_bias,
    add_to_keys,
    bias_of,
    keys_of,
    rows_of,
)
from regard.attention.engine.function_context import FunctionContext, Gradients
from regard.attention.engine.numerics import LOG2_E, as_it_is, divisor, exp_of, mix
from regard.attention.engine.request import Request
from regard.attention.scores import Additive
from regard.attention.weighting import Softmax

# Hidden units of a tile: 4 MB of float32; smaller ones spend their time on calls. Gradients of keys
# are added up tile by tile: the more queries in one, the less often.
_TILE = 2**20
_ROWS_OF_GRADIENTS = 16
# As if a pair held so many numbers: with 2^17 pairs, scores and their gradients stay in the cache.
_FLOATS_PER_PAIR = 8
# Exponents whose double is far from overflow: e^±80 in float32, e^±700 in float64.
_SAFE = {torch.float32: 40.0, torch.float64: 350.0}
# Up to here, what is lost in 1 − 2r shows beside what tanh itself is rounded by.
_SMALL = 1.0


class AdditiveCpu(Backend):
    """Additive attention on a CPU."""

    def refuse(self, request: Request) -> str | None:
        """Why this backend cannot serve, or None if it can."""
        if type(request.score) is not Additive:
            return "the score is not additive"
        if request.query.device.type != "cpu":
            return "it is for CPUs"
        if type(request.weighting) is not Softmax:
            return "the weighting is not softmax"
        if request.position is not None:
            return "the bias is a rule of distances"
        if not request.query.numel():
            return "there are no queries, or they have no hidden units"
        return None

    def notes(self, request: Request) -> tuple[str, ...]:
        """What is done on the way, in words."""
        if additive_few.fits(request):
            return ("all hidden units of a few queries at once, sigmoid form",)
        if request.query.shape[2] <= additive_few.MOST_QUERIES:
            return ("sigmoid form, since queries are few",)
        return (f"reciprocal form where |q| and |k| allow it, tiles of {_TILE} hidden units",)

    def bytes_beyond(self, request: Request) -> int:
        """Memory taken beyond inputs and output."""
        B, H, N, D = request.query.shape
        M = request.key.shape[2]
        item = max(4, request.query.element_size())
        blocks = tiled.bytes_beyond(request) // item
        # The form for small queries and keys has a second tile, and keys twice as wide.
        tiles = 2 * min(_TILE, B * H * N * M * D)
        return item * (blocks + tiles + B * H * (N + 2 * M) * D)

    def run(self, request: Request) -> tuple[Tensor, Tensor | None]:
        """The mixed values (B, H, N, E), and the log-sum-exp (B, H, N) if it is wanted."""
        if additive_few.fits(request):
            return additive_few.run(request), None
        inputs = Inputs.of(request)
        job = BlockPass.of(request, Sizes.of(request, _FLOATS_PER_PAIR, cuts_keys=False))
        out, lse = _Additive.apply(  # type: ignore[no-untyped-call]
            job, inputs.query, inputs.key, inputs.value, inputs.bias, *inputs.tensors
        )
        return out.to(request.query.dtype), lse if request.return_lse else None


class _Form(NamedTuple):
    """How tanh follows from what a tile holds, h: ``shift + factor · h``.

    Attributes:
        shift: What is added.
        factor: What h is multiplied by.
        slope: The derivative of tanh by its argument, over that which ``backward`` gives.
        backward: Multiplies a gradient by that derivative, in one pass.
    """

    shift: float
    factor: float
    slope: float
    backward: Callable[..., Tensor]


_OF_SIGMOID = _Form(1.0, -2.0, 4.0, torch.ops.aten.sigmoid_backward.grad_input)
_OF_TANH = _Form(0.0, 1.0, 1.0, torch.ops.aten.tanh_backward.grad_input)


class _Factors(NamedTuple):
    """Queries and keys as they meet in a tile.

    Attributes:
        query: e^2q, or e^2q − 1, or −2q.
        key: e^2k, or e^2k beside e^2k − 1, or k.
        w: The weights of the hidden units, (D,), or (H, D) where heads differ.
        one: 1, for ``1 + e^2q e^2k``; None if the factors are not the exponentials.
        form: How tanh follows from what a tile of them holds.
    """

    query: Tensor
    key: Tensor
    w: Tensor
    one: Tensor | None
    form: _Form

    @classmethod
    def of(cls, query: Tensor, key: Tensor, w: Tensor) -> "_Factors":
        """The factors in whichever form is safe and fast."""
        D = query.shape[-1]
        w = w.reshape(-1) if w.dim() < 2 or w.shape[0] == 1 else w
        w = w.expand(*w.shape[:-1], D).contiguous()
        query, key = query.contiguous(), key.contiguous()
        # For fewer queries the keys' exponentials cost more than sigmoids.
        if query.shape[2] > additive_few.MOST_QUERIES:
            shifted = _shift_into_range(query, key)
            if shifted is not None:
                query, key = shifted
                if max(query.abs().amax(), key.abs().amax()) <= _SMALL:
                    both = torch.cat([exp_of(2 * key), (2 * key).expm1_()], -1)
                    return cls((2 * query).expm1_(), both, w, None, _OF_TANH)
                one = w.new_ones(1, 1, 1, 1)
                return cls(exp_of(2 * query), exp_of(2 * key), w, one, _OF_SIGMOID)
        return cls(-2 * query, key, w, None, _OF_SIGMOID)

    def hidden(self, query: Tensor, key: Tensor, h: Tensor) -> Tensor:
        """R or tanh for every pair of (p, n, 1, D) and (p, 1, m, D), written to (p, n, m, D)."""
        if self.form is _OF_TANH:
            power, less_one = key.chunk(2, dim=-1)
            torch.addcmul(less_one, query, power, out=h)
            return h.div_(h + 2)
        if self.one is None:
            return torch.add(query, key, alpha=-2, out=h).sigmoid_()
        return torch.addcmul(self.one, query, key, out=h).reciprocal_()

    def lanes(self, *tensors: Tensor) -> Iterator[tuple[Tensor, ...]]:
        """``w`` and views of (b, H, …) tensors as (b · H, …); head by head where w differs."""
        if self.w.dim() == 1:
            yield self.w, *(t.view(-1, *t.shape[2:]) for t in tensors)
        else:
            for h, w in enumerate(self.w):
                yield w, *(t[:, h] for t in tensors)

    def shift(self) -> Tensor:
        """What scores are without the tile's part, broadcasting to (b, H, n, m)."""
        total = self.form.shift * self.w.sum(-1)
        return total if self.w.dim() == 1 else total[:, None, None]


def _shift_into_range(query: Tensor, key: Tensor) -> tuple[Tensor, Tensor] | None:
    """The same sums q + k with neither part too large for an exponential, or None.

    Where they are too large as they are, a shift per feature is tried: q − c and k + c.
    """
    limit = _SAFE[query.dtype]
    if query.abs().amax() <= limit and key.abs().amax() <= limit:
        return query, key
    low, high = query.aminmax(dim=2, keepdim=True)
    key_low, key_high = key.aminmax(dim=2, keepdim=True)
    shift = (low + high - key_low - key_high) / 4
    query, key = query - shift, key + shift
    if query.abs().amax() <= limit and key.abs().amax() <= limit:
        return query, key
    return None


class _Tile(NamedTuple):
    """How many lanes, queries and keys have their hidden units in the buffer at once."""

    lanes: int
    rows: int
    keys: int

    @classmethod
    def of(cls, lanes: int, rows: int, keys: int, dim: int, *, most_rows: int) -> "_Tile":
        """As many keys as fit with ``most_rows`` queries, then as many queries, then lanes."""
        m = min(keys, max(1, _TILE // (dim * min(rows, most_rows))))
        n = min(rows, max(1, _TILE // (dim * m)))
        is_whole = n == rows and m == keys
        return cls(min(lanes, max(1, _TILE // (dim * n * m))) if is_whole else 1, n, m)


class _Hidden(NamedTuple):
    """The buffer as the hidden units of a tile.

    Attributes:
        all: (p, n, m, D).
        rows: The same as (p · n · m, D).
        dots: Room for a number per pair, (p · n · m,), shared by all shapes.
    """

    all: Tensor
    rows: Tensor
    dots: Tensor


class _Workspace:
    """A buffer for one tile, seen in the shapes that tiles have."""

    def __init__(self, query: Tensor) -> None:
        self.dim = query.shape[-1]
        self.buffer = _borrow_buffer(query)
        self.dots = query.new_empty(max(1, _TILE // self.dim))
        self.shapes: dict[torch.Size, _Hidden] = {}

    def of(self, pairs: Tensor) -> _Hidden:
        """The buffer for the hidden units of (p, n, m) pairs."""
        shape = pairs.shape
        found = self.shapes.get(shape)
        if found is None:
            rows = self.buffer[: shape.numel() * self.dim].view(-1, self.dim)
            found = _Hidden(rows.view(*shape, self.dim), rows, self.dots[: len(rows)])
            self.shapes[shape] = found
        return found


_scratch = local()


def _borrow_buffer(query: Tensor) -> Tensor:
    """Room for one tile, kept by each thread: fresh memory would cost more than the work in it."""
    size = max(_TILE, query.shape[3])
    kept: dict[torch.dtype, Tensor] = _scratch.__dict__.setdefault("buffers", {})
    buffer = kept.get(query.dtype)
    if buffer is None or buffer.numel() < size:
        with torch.inference_mode(False):  # A later call may want to write to it outside of it.
            buffer = kept[query.dtype] = torch.empty(size, dtype=query.dtype)
    return buffer


def _block_scores(factors: _Factors, block: Block, workspace: _Workspace) -> Tensor:
    """All scores of a block, before bias and mask: ``w · tanh(q + k)``."""
    query, key = rows_of(factors.query, block), keys_of(factors.key, block)
    b, H, n, D = query.shape
    m = key.shape[2]
    scores = query.new_empty(b, H, n, m)
    for w, q, k, found in factors.lanes(query, key, scores):
        tile = _Tile.of(len(q), n, m, D, most_rows=1)
        for i in range(0, len(q), tile.lanes):
            some = slice(i, i + tile.lanes)
            keys = torch.split(k[some].unsqueeze(1), tile.keys, dim=2)
            for j in range(0, n, tile.rows):
                rows = slice(j, j + tile.rows)
                queries = q[some, rows].unsqueeze(2)
                parts = torch.split(found[some, rows], tile.keys, dim=2)
                for those, part in zip(keys, parts, strict=True):
                    r = workspace.of(part)
                    factors.hidden(queries, those, r.all)
                    torch.mv(r.rows, w, out=r.dots)
                    part.copy_(r.dots.view(part.shape))
    return scores.mul_(factors.form.factor).add_(factors.shift())


def _adjust(job: BlockPass, block: Block, scores: Tensor, bias: Tensor | None) -> Tensor:
    """Bias and mask applied in place."""
    if bias is not None:
        scores.add_(bias_of(bias, block))  # type: ignore[arg-type]
    if block.hidden is not None:
        scores.masked_fill_(block.hidden, float("-inf"))
    return scores


class _Additive(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: FunctionContext,
        job: BlockPass,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        bias: Tensor | None,
        w: Tensor,
    ) -> tuple[Tensor, Tensor]:
        B, H, N, _ = query.shape
        out = query.new_zeros(B, H, N, value.shape[-1])
        top, total = query.new_zeros(B, H, N, 1), query.new_zeros(B, H, N, 1)
        factors = _Factors.of(query, key, w)
        workspace = _Workspace(query)
        for block in job.blocks():
            scores = _adjust(job, block, _block_scores(factors, block, workspace), bias)
            best = scores.amax(dim=-1, keepdim=True).clamp_min_(torch.finfo(scores.dtype).min)
            powers = exp_of(scores.sub_(best))
            summed = powers.sum(dim=-1, keepdim=True)
            rows_of(top, block).copy_(best)
            rows_of(total, block).copy_(summed)
            if (factor := job.factor(block, powers)) is not None:
                powers *= factor
            mixed = mix(powers, keys_of(value, block), block.hidden)
            rows_of(out, block).copy_(mixed.div_(divisor(summed)))
        ctx.job = job
        ctx.save_for_backward(query, key, value, bias, w, out, top, total)
        return out, (top + total.log()).squeeze(-1)

    @staticmethod
    @as_it_is
    def backward(ctx: FunctionContext, d_out: Tensor, d_lse: Tensor) -> Gradients:
        query, key, value, bias, w, out, top, total = ctx.saved_tensors
        inputs = Inputs(query, key, value, bias, (w,))
        wanted = ctx.needs_input_grad[1:]
        if torch.is_grad_enabled():
            return (None, *tiled.backward(ctx.job, inputs, wanted, d_out, d_lse))
        mean = (d_out * out).sum(dim=-1, keepdim=True)
        if ctx.job.wants_lse:
            mean = mean - d_lse.unsqueeze(-1)
        # Powers stand for weights: what they lack, the gradients that they meet have.
        total = divisor(total)
        d_out, mean = (d_out / total).contiguous(), mean / total
        blocks = ctx.job.blocks()
        first = next(blocks, None)
        every = (range(key.shape[2]),)
        whole = first is not None and not first.rows.start and first.keys == every
        gradients = _Gradients(ctx.job, inputs, wanted, top, whole)
        for block in blocks if first is None else chain([first], blocks):
            gradients.add(block, rows_of(d_out, block), rows_of(mean, block))
        return (None, *gradients.finish())


class _Gradients:
    """Gradients of all inputs, gathered block by block.

    Those of queries and keys lack their common factor, such as ``4 w``, until ``finish``. Where the
    first queries see all keys (``whole``), they write the keys' gradients instead of adding to
    zeros: with one query, as in a decoding step, making the zeros would be half the work.
    """

    def __init__(
        self, job: BlockPass, inputs: Inputs, wanted: tuple[bool, ...], top: Tensor, whole: bool
    ) -> None:
        self.job, self.inputs, self.wanted, self.top = job, inputs, wanted, top
        self.whole = whole
        query, key, value, bias, (w,) = inputs
        self.factors = _Factors.of(query, key, w)
        self.workspace = _Workspace(query)
        make = query.new_empty if whole else query.new_zeros
        self.query = query.new_zeros(query.shape)
        self.key, self.value = make(key.shape), make(value.shape)
        self.bias = None if bias is None or not wanted[3] else torch.zeros_like(bias)
        self.w = torch.zeros_like(self.factors.w)

    def add(self, block: Block, d_out: Tensor, mean: Tensor) -> None:
        """The part that a block of queries has in every gradient."""
        value, job = keys_of(self.inputs.value, block), self.job
        d_weights = d_out @ value.transpose(-1, -2)
        factor = job.factor(block, d_weights)
        if factor is not None:
            d_weights *= factor
        d_weights -= mean
        if block.hidden is not None:
            d_weights.masked_fill_(block.hidden, 0)
        # What a score lacks to be the logarithm of a power.
        offset = _adjust(job, block, torch.zeros_like(d_weights), self.inputs.bias)
        offset += self.factors.shift() - rows_of(self.top, block)
        weights, d_scores = self._go_through_tiles(block, offset, d_weights)
        if factor is not None:
            weights *= factor
        mixed = weights.flatten(0, 1).transpose(1, 2)
        if self.whole and not block.rows.start:
            torch.bmm(mixed, d_out.flatten(0, 1), out=keys_of(self.value, block).flatten(0, 1))
        else:
            d_value = torch.bmm(mixed, d_out.flatten(0, 1))
            add_to_keys(self.value, block, d_value.view(*weights.shape[:2], *d_value.shape[1:]))
        if self.bias is not None:
            part = bias_of(self.bias, block)
            assert part is not None
            add_to_bias(self.bias, block, d_scores.sum_to_size(part.shape))

    def finish(self) -> list[Tensor | None]:
        """The gradients in the order of the inputs."""
        slope = self.factors.form.slope * (
            self.factors.w if self.factors.w.dim() == 1 else self.factors.w[:, None]
        )
        shape = self.inputs.tensors[0].shape
        # Of a first axis of one, the factors know nothing.
        w = self.w.sum_to_size(shape if self.w.dim() == 2 else shape[-1:]).reshape(shape)
        grads = [self.query.mul_(slope), self.key.mul_(slope), self.value, self.bias, w]
        return [grad if want else None for grad, want in zip(grads, self.wanted, strict=True)]

    def _go_through_tiles(
        self, block: Block, offset: Tensor, d_weights: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Weights and the gradient of scores; adds to the gradients of query, key and w."""
        query, key = rows_of(self.factors.query, block), keys_of(self.factors.key, block)
        _, _, n, D = query.shape
        m = key.shape[2]
        # Σ h, weighted by the scores' gradient: what the gradient of w lacks. Summed over queries
        # last, since one long sum would lose a digit.
        form = self.factors.form
        weighted = query.new_zeros(query.shape)
        d_query, d_key = rows_of(self.query, block), keys_of(self.key, block)
        has_gaps = len(block.keys) > 1
        if has_gaps:
            d_key = torch.zeros_like(d_key)
        everything = (query, key, d_query, d_key, offset.mul_(LOG2_E), d_weights, weighted)
        for w, q, k, dq, dk, powers, ds, total in self.factors.lanes(*everything):
            tile = _Tile.of(len(q), n, m, D, most_rows=_ROWS_OF_GRADIENTS)
            for i in range(0, len(q), tile.lanes):
                some = slice(i, i + tile.lanes)
                keys = torch.split(k[some].unsqueeze(1), tile.keys, dim=2)
                d_keys = torch.split(dk[some], tile.keys, dim=1)
                for j in range(0, n, tile.rows):
                    rows = slice(j, j + tile.rows)
                    queries = q[some, rows].unsqueeze(2)
                    is_first = self.whole and not block.rows.start and not j
                    d_queries, sums = dq[some, rows], total[some, rows]
                    columns = (torch.split(t[some, rows], tile.keys, dim=2) for t in (powers, ds))
                    for those, d_those, weights, d_scores in zip(
                        keys, d_keys, *columns, strict=True
                    ):
                        r = self.workspace.of(weights)
                        self.factors.hidden(queries, those, r.all)
                        torch.mv(r.rows, w, out=r.dots)
                        weights.add_(r.dots.view(weights.shape), alpha=form.factor * LOG2_E).exp2_()
                        slopes = d_scores.mul_(weights).unsqueeze(-1)
                        if self.wanted[4]:
                            sums.add_((slopes.mT @ r.all).squeeze(2))
                        form.backward(slopes, r.all, grad_input=r.all)
                        d_queries.add_(r.all.sum(dim=2))
                        if is_first:
                            torch.sum(r.all, dim=1, out=d_those)
                        else:
                            d_those.add_(r.all.sum(dim=1))
        if has_gaps:
            add_to_keys(self.key, block, d_key)
        if self.wanted[4]:
            axes = (0, 2) if self.factors.w.dim() == 2 else (0, 1, 2)
            of_scores = d_weights.sum(dim=(*axes, 3) if len(axes) == 2 else (0, 1, 2, 3))
            self.w += form.shift * of_scores.unsqueeze(-1) + form.factor * weighted.sum(dim=axes)
        return offset, d_weights
