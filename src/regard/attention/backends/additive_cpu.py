"""Additive attention on a CPU by compiled loops, without the N×M×h tensor and its tanh.

``kernels.attention.additive`` says how a hidden unit is worked out. Blocks of queries hold no
scores here: they bound the memory of a mask, a bias and dropout. The loops share out the heads and
queries of a block, and of its gradients the parts into which its queries are cut, which do not
depend on the number of threads: nor does the answer.
"""

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from regard.attention.backends.base import Answer, Backend, LoopPass, Notes, Offer, Refusal
from regard.attention.engine.blocks import Block, BlockInputs, BlockPass, Sizes, bias_of, keys_of
from regard.attention.engine.gradients import add_to_bias, add_to_keys
from regard.attention.engine.numerics import as_array
from regard.attention.engine.request import Request
from regard.attention.scores import Additive
from regard.attention.weighting import Softmax
from regard.kernels import why_not
from regard.kernels.compiling import ParallelLoop
from regard.kernels.threads import share_out

# Pairs of a block, for each of which a mask takes a byte, a bias or dropout four.
_PAIRS = 2**22
_ROWS, _ROWS_UNDER_A_MASK = 512, 256
# For fewer queries the keys' exponentials cost more than tanh.
_FEW_QUERIES = 3
# e^2q e^2k stays far from overflow.
_SAFE = 20.0
# Up to here q + k may be so small that it matters how many of its digits are right.
_SMALL = 0.5
# Hidden units that are worth handing to a thread: a hundred microseconds.
_UNITS_OF_A_TASK = 2**19
# Parts of a block whose gradients may be worked out at once, and the fewest queries of one.
_PARTS, _FEWEST_ROWS = 16, 8


class AdditiveCpu(Backend):
    """Additive attention on a CPU."""

    device = "cpu"
    ignores_numbers = True

    def offer(self, request: Request) -> Offer | Refusal:
        if type(request.score) is not Additive:
            return Refusal("the score is not additive")
        if type(request.weighting) is not Softmax:
            return Refusal("the weighting is not softmax")
        if request.position is not None:
            return Refusal("the bias is a rule of distances")
        if request.query.dtype is torch.float64:
            return Refusal("it is for float32 and less")
        if not request.query.numel():
            return Refusal("there are no queries, or they have no hidden units")
        if (why := why_not()) is not None:
            return Refusal(why)
        return Offer(_run, _bytes_beyond, _notes_of, differentiates_once=True)


def _notes_of(request: Request) -> Notes:
    if request.query.shape[2] <= _FEW_QUERIES:
        return ("a compiled loop, tanh itself, since queries are few",)
    return ("a compiled loop, tanh by exponentials of q and k where their size allows it",)


def _bytes_beyond(request: Request) -> int:
    B, H, N, D = request.query.shape
    M, E = request.value.shape[2:]
    factors = B * H * (N + 2 * M) * D
    # At once, the parts of one block; their number is larger where heads are few.
    parts = min(B * H, _PARTS) * max(1, _PARTS // max(1, B * H)) * M * (D + E)
    of_pairs = 4 * (request.bias is not None) + 4 * bool(request.dropout)
    pairs = min(_PAIRS, B * H * N * M) * (of_pairs + (request.mask is not None))
    return 4 * (factors + parts) + pairs


def _run(request: Request) -> Answer:
    inputs = BlockInputs.of(request)
    rows = _ROWS if request.mask is None else _ROWS_UNDER_A_MASK
    job = BlockPass.of(request, Sizes(_PAIRS, rows, None, splits_heads=True))
    loops = partial(_AdditiveLoops, job)
    out, lse = LoopPass.apply(loops, *inputs.flat())  # type: ignore[no-untyped-call]
    return out.to(request.query.dtype), lse if request.return_lse else None


class _Factors(NamedTuple):
    """Queries and keys as the loops read them, and the weights of hidden units, (H or 1, D)."""

    query: Tensor
    key: Tensor
    # None: queries and keys as given. Else they are factors of e^(2q + 2k) − 1, which is query ·
    # key + offset: of small ones (e^2q − 1) e^2k + (e^2k − 1), where no digits are lost; of others
    # e^2q e^2k − 1, where less is lost by taking off 1 than from large differences.
    offset: Tensor | None
    w: Tensor

    @classmethod
    def of(cls, query: Tensor, key: Tensor, w: Tensor) -> "_Factors":
        query, key = query.contiguous(), key.contiguous()
        w = w.reshape(-1, w.shape[-1] if w.dim() else 1)
        w = w.expand(len(w), query.shape[-1]).contiguous()
        if query.shape[2] > _FEW_QUERIES:
            shifted = _shift_into_range(query, key)
            if shifted is not None:
                query, key = shifted
                powers = (2 * key).exp_()
                if max(query.abs().amax(), key.abs().amax()) <= _SMALL:
                    return cls((2 * query).expm1_(), powers, (2 * key).expm1_(), w)
                return cls((2 * query).exp_(), powers, torch.full_like(key, -1), w)
        return cls(query, key, None, w)


def _shift_into_range(query: Tensor, key: Tensor) -> tuple[Tensor, Tensor] | None:
    """Shift queries by −c and keys by +c per feature where exponentials would overflow, or None."""
    if query.abs().amax() <= _SAFE and key.abs().amax() <= _SAFE:
        return query, key
    low, high = query.aminmax(dim=2, keepdim=True)
    key_low, key_high = key.aminmax(dim=2, keepdim=True)
    shift = (low + high - key_low - key_high) / 4
    query, key = query - shift, key + shift
    if query.abs().amax() <= _SAFE and key.abs().amax() <= _SAFE:
        return query, key
    return None


class _BlockArrays:
    """Arrays of a block as the loops read them, its queries cut into parts."""

    def __init__(
        self, job: BlockPass, block: Block, inputs: BlockInputs, factors: _Factors, parts: int = 1
    ) -> None:
        self.block, self.parts = block, parts
        self.lanes = len(block.batch) * len(block.heads)
        self.rows, self.width = len(block.rows), sum(map(len, block.keys))
        self.units = self.width * factors.w.shape[1]
        # Whether keys are read and their gradients written apart from those of other blocks.
        self.is_copied = parts > 1 or len(block.keys) > 1
        of_keys = [factors.key, factors.offset, inputs.value]
        if self.is_copied:
            of_keys = [None if t is None else keys_of(t, block) for t in of_keys]
        hidden = None if block.hidden is None else block.hidden.to(torch.uint8)
        pairs = (self.rows, self.width)
        self.inputs = (
            as_array(factors.query),
            *(None if t is None else as_array(t) for t in of_keys),
            as_array(factors.w),
            _of_pairs(hidden, pairs, torch.uint8),
            _of_pairs(bias_of(inputs.bias, block), pairs, torch.float32),
            _of_pairs(job.factor(block, factors.query), pairs, torch.float32),
        )

    @property
    def offsets(self) -> tuple[int, ...]:
        """Position of the block, as ``kernels.attention.additive`` reads it."""
        block = self.block
        corner = (block.batch.start, block.heads.start)
        origin, first = (corner, 0) if self.is_copied else ((0, 0), block.keys[0].start)
        return (*corner, block.rows.start, len(block.heads), *origin, first, first + self.width)

    def share_out(self, loop: ParallelLoop, count: int, *arguments: object) -> None:
        """Call a loop for ``count`` parts of the block's heads and queries."""
        tasks = -(-self.lanes * self.rows * self.units // _UNITS_OF_A_TASK)
        share_out(min(count, tasks), count, loop, *arguments)


def _of_pairs(
    tensor: Tensor | None, pairs: tuple[int, int], dtype: torch.dtype
) -> NDArray[np.generic]:
    """(b or 1, h or 1, n, m) with a number for each pair; without entries for None."""
    if tensor is None:
        return torch.empty(0, 0, 0, 0, dtype=dtype).numpy()
    tensor = tensor.reshape((1,) * (4 - tensor.dim()) + tensor.shape)
    return as_array(tensor.expand(*tensor.shape[:2], *pairs))


class _AdditiveLoops:
    """Inputs of one call as the loops read them."""

    def __init__(self, job: BlockPass, inputs: BlockInputs) -> None:
        query, key, value, *_, (w,) = inputs
        self.job, self.inputs = job, inputs._replace(value=value.contiguous())
        self.factors = _Factors.of(query, key, w)

    def answer(self) -> tuple[Tensor, Tensor, Tensor]:
        """The mixed values, the best scores, and the sums of powers relative to them."""
        from regard.kernels.attention import additive

        query, value = self.inputs.query, self.inputs.value
        B, H, N, _ = query.shape
        out = query.new_zeros(B, H, N, value.shape[-1])
        top, total = query.new_zeros(B, H, N), query.new_zeros(B, H, N)
        outputs = [tensor.numpy() for tensor in (out, top, total)]
        for block in self.job.blocks():
            work = _BlockArrays(self.job, block, self.inputs, self.factors)
            arguments = (work.rows, *work.inputs, *outputs, work.offsets)
            work.share_out(additive.forward, work.lanes * work.rows, *arguments)
        return out, top, total

    def gradients(self, needs_grad: Sequence[bool], *saved: Tensor) -> list[Tensor | None]:
        """Gradients of ``inputs.flat()`` from (maxima, sums of powers, d_out, d_out · out)."""
        sums = _Sums(self.inputs, needs_grad)
        arrays = [as_array(tensor) for tensor in saved]
        for block in self.job.blocks():
            self._add(block, sums, arrays)
        slope = self.factors.w[:, None]
        shape = self.inputs.tensors[0].shape
        w_shape = shape[-2:] if len(slope) > 1 else (1, *shape[-1:])
        w = sums.w.sum(dim=0).sum_to_size(w_shape).reshape(shape).to(torch.float32)
        of_inputs = [sums.query.mul_(slope), sums.key.mul_(slope), sums.value, sums.bias]
        grads = [*of_inputs, None, None, w]
        return [grad if want else None for grad, want in zip(grads, needs_grad, strict=True)]

    def _add(self, block: Block, sums: "_Sums", saved: Sequence[NDArray[np.generic]]) -> None:
        """Add a block's part to every gradient."""
        from regard.kernels.attention import additive

        corner = len(block.batch), len(block.heads)
        # Cut along the queries too, where heads are too few for many threads.
        most = max(1, min(len(block.rows) // _FEWEST_ROWS, _PARTS // (corner[0] * corner[1])))
        rows = -(-len(block.rows) // most)
        parts = -(-len(block.rows) // rows)
        work = _BlockArrays(self.job, block, self.inputs, self.factors, parts)
        of_keys = [sums.key[None], sums.value[None]]
        if work.is_copied:
            of_keys = [torch.zeros(parts, *corner, work.width, t.shape[-1]) for t in of_keys]
        d_w = torch.zeros(parts, *sums.w.shape)
        pairs = (*corner, work.rows, work.width) if sums.bias is not None else (0, 0, 0, 0)
        d_scores = torch.zeros(pairs)
        written = tuple(grad.numpy() for grad in (sums.query, *of_keys, d_w, d_scores))
        arguments = (
            (work.rows, rows, work.lanes),
            work.inputs,
            tuple(saved),
            written,
            work.offsets,
        )
        work.share_out(additive.backward, parts * work.lanes, *arguments)
        if work.is_copied:
            for total, grad in zip((sums.key, sums.value), of_keys, strict=True):
                add_to_keys(total, block, grad.sum(dim=0))
        sums.w += d_w.sum(dim=0, dtype=torch.float64)
        if sums.bias is not None:
            bias_block = bias_of(sums.bias, block)
            assert bias_block is not None
            add_to_bias(sums.bias, block, d_scores.sum_to_size(bias_block.shape))


class _Sums:
    """Gradients of all inputs, gathered block by block; the factor ``w`` comes in the end."""

    def __init__(self, inputs: BlockInputs, needs_grad: Sequence[bool]) -> None:
        query, _, _, bias, *_ = inputs
        self.query, self.key, self.value = (torch.zeros(t.shape) for t in inputs[:3])
        self.bias = None if bias is None or not needs_grad[3] else torch.zeros_like(bias)
        self.w = torch.zeros(query.shape[0], query.shape[1], query.shape[3], dtype=torch.float64)
