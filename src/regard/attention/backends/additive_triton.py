"""Additive attention on NVIDIA GPUs without the N×M×h tensor: one fused kernel for each pass.

The hidden units live in registers, and each costs a multiplication and half a reciprocal
(``kernels.attention.additive_triton``). The gradient works them out again, once for the scores,
then once for the queries and once for the keys; nothing is added up in an order that chance
decides.

With TRITON_INTERPRET=1 in the environment before anything imports Triton, its interpreter runs the
same kernels on a CPU: slowly, but as they are written.
"""

import os
from functools import lru_cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from regard.attention.backends.base import Answer, Backend, Offer, Refusal
from regard.attention.engine.gradients import Gradients
from regard.attention.engine.numerics import without_unseen
from regard.attention.engine.request import Request
from regard.attention.masks.bound import BoundMask
from regard.attention.masks.grid import Band, KeyRanges
from regard.attention.scores import Additive
from regard.attention.weighting import Softmax

# Sizes of the blocks of one program, which fit the registers of 128 threads.
_FORWARD = {"ROWS": 64, "KEYS": 64, "WIDTH": 128}
_GRADIENT = {"ROWS": 64, "KEYS": 64, "WIDTH": 64, "DIMS": 64}
# How many scores have their gradients held at once, in whole blocks of queries: 64 MB, and as much
# again for the weights. Working the hidden units out another time would cost more.
_PANEL = 2**24
# Matrix products need at least so many rows and columns.
_LEAST = 16
# How the kernels work out e^2(q + k): from the exponentials of both; the same, but never above
# 2^62; or from the sum.
_PLAIN, _CLAMPED, _SUMMED = 0, 1, 2
# Up to the first |q| and |k|, the product of two sums 1 + e^2(q + k) is below the largest float32,
# e^88; up to the second, e^2q and e^2k are neither infinite nor zero.
_REACHES = ((11.0, _PLAIN), (40.0, _CLAMPED))
# A mask that is no band and no documents is handed over pair by pair: at most 64 MB.
_LARGEST_MASK = 2**26
_NOTES = ("fused in Triton; reciprocal form where |q| and |k| allow it, else exponentials",)


class AdditiveTriton(Backend):
    """Additive attention on a GPU."""

    ignores_numbers = True

    def offer(self, request: Request) -> Offer | Refusal:
        why = _why_not(request)
        if why is not None:
            return Refusal(why)
        return Offer(_run, _bytes_beyond, _NOTES, differentiates_once=True)


def _why_not(request: Request) -> str | None:
    """Why the kernels cannot serve a request, or None if they can."""
    if type(request.score) is not Additive:
        return "the score is not additive"
    if (why := _why_not_machine(request.query)) is not None:
        return why
    if type(request.weighting) is not Softmax:
        return "the weighting is not softmax"
    if request.query.dtype == torch.float64:
        return "it computes in float32"
    if request.position is not None:
        return "the bias is a rule of distances"
    if request.bias is not None and request.bias.requires_grad:
        return "the bias needs a gradient"
    if not request.query.numel() or not request.value.shape[-1]:
        return "there is nothing to compute"
    if _is_too_large(request.mask):
        return "the mask would be an N×M matrix of more than 64 MB"
    return None


def _bytes_beyond(request: Request) -> int:
    B, H, N, D = request.query.shape
    G, M, E = request.value.shape[1:]
    queries, keys = B * H * N, B * G * M
    numbers = queries + 2 * (queries + keys) * D
    if request.needs_grad():
        rows = _GRADIENT["ROWS"]
        panel = max(_PANEL, B * H * M * rows)
        numbers += (queries + keys) * D + 2 * min(panel, queries * M) + queries // rows * D
    if request.query.dtype != torch.float32:
        numbers += (queries + keys) * (D + E)
    of_mask = 0
    if request.mask is not None and not request.mask.is_range:
        of_mask = request.mask.size
    return 4 * numbers + of_mask


def _run(request: Request) -> Answer:
    query, key, value = (t.float() for t in (request.query, request.key, request.value))
    key, value = without_unseen(request.mask, key, value)
    H, D = query.shape[1], query.shape[3]
    w = torch.broadcast_to(request.score.tensors()[0].float(), (H, D))
    task = _Call.of(request)
    out, lse = _Fused.apply(  # type: ignore[no-untyped-call]
        task, query, key, value, request.bias, w
    )
    return out.to(request.query.dtype), lse if request.return_lse else None


def _why_not_machine(query: Tensor) -> str | None:
    is_served = query.is_cuda and torch.version.hip is None
    if not is_served and not (query.device.type == "cpu" and _is_interpreted()):
        return "it is for NVIDIA GPUs"
    return None if _has_triton() else "triton is not installed"


def _is_interpreted() -> bool:
    return os.environ.get("TRITON_INTERPRET") == "1"


@lru_cache(maxsize=1)
def _has_triton() -> bool:
    return find_spec("triton") is not None


def _is_too_large(mask: BoundMask | None) -> bool:
    return mask is not None and mask.size > _LARGEST_MASK and not mask.is_range


class _Call(NamedTuple):
    """Settings of a call, without its differentiable tensors."""

    mask: BoundMask | None
    dropout: float
    seed: int
    wants_lse: bool

    @classmethod
    def of(cls, request: Request) -> "_Call":
        seed = request.draw_seed() if request.dropout else 0
        return cls(request.mask, request.dropout, seed, request.return_lse)


class _VisibleKeys(NamedTuple):
    """Keys that a mask leaves visible: those of the ranges that the pairs allow too."""

    ranges: KeyRanges | None
    pairs: Tensor | None  # (B, H, N, M), expanded; None if the ranges say it all
    reach: int  # the most keys from the first to the last that one query sees

    @classmethod
    def of(cls, mask: BoundMask | None, shape: tuple[int, int, int, int]) -> "_VisibleKeys":
        """A mask laid over (B, H, N, M); None hides nothing."""
        N, M = shape[2:]
        if mask is None:
            return cls(None, None, M)
        reach, form = M, mask.form
        if isinstance(form, Band) and form.least is not None and form.most is not None:
            reach = max(0, min(M, form.most - form.least + 1))
        ranges = None if form is None else KeyRanges.of(form, N, M, mask.grid.device)
        if mask.is_range:
            return cls(ranges, None, reach)
        pairs = mask.dense()
        is_same_for_all = (1, 1, *pairs.shape)[-3:-1] == (1, 1)
        pairs = pairs.expand(shape)
        if ranges is None and is_same_for_all:
            ranges = KeyRanges.of_all(pairs[:, 0, 0], N, M)
        return cls(ranges, pairs, reach)


class _Form(NamedTuple):
    """Computation of e^2(q + k); ``shift`` is taken from queries and added to keys."""

    number: int
    shift: Tensor | None

    @classmethod
    def of(cls, query: Tensor, key: Tensor) -> "_Form":
        """The fastest form that is safe. Waits for the GPU, to see how large |q| and |k| are."""
        if query.is_cuda and torch.cuda.is_current_stream_capturing():
            return cls(_SUMMED, None)
        B, G, _, D = key.shape
        grouped = query.reshape(B, G, -1, D)
        low, high = grouped.amin(dim=2), grouped.amax(dim=2)
        key_low, key_high = key.amin(dim=2), key.amax(dim=2)
        shift = (low + high - key_low - key_high) / 4
        plain = torch.stack([-low, high, -key_low, key_high]).amax()
        shifted = torch.stack([shift - low, high - shift, -key_low - shift, key_high + shift])
        reach, reach_shifted = torch.stack([plain, shifted.amax()]).tolist()
        for limit, number in _REACHES:
            if reach <= limit:
                return cls(number, None)
            if reach_shifted <= limit:
                return cls(number, shift.unsqueeze(2))
        return cls(_SUMMED, None)

    def factors(self, query: Tensor, key: Tensor) -> tuple[Tensor, Tensor]:
        """Projected queries and keys, padded to an even number of hidden units."""
        if self.shift is not None:
            repeats = query.shape[1] // key.shape[1]
            query = query - self.shift.repeat_interleave(repeats, dim=1)
            key = key + self.shift
        pair = (F.pad(t * 2, (0, t.shape[-1] % 2)) for t in (query, key))
        if self.number == _SUMMED:
            first, second = pair
        else:
            first, second = (t.exp_() for t in pair)
        return first, second


class _Inputs(NamedTuple):
    query: Tensor
    key: Tensor
    value: Tensor
    bias: Tensor | None
    w: Tensor


class _Fused(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        task: _Call,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        bias: Tensor | None,
        w: Tensor,
    ) -> tuple[Tensor, Tensor]:
        B, H, N, _ = query.shape
        ctx.task, ctx.form = task, _Form.of(query, key)
        ctx.visible = _VisibleKeys.of(task.mask, (B, H, N, key.shape[2]))
        inputs = _Inputs(query, key, value, bias, w)
        out, lse = _Launch(task, ctx.visible, ctx.form, inputs).forward()
        ctx.save_for_backward(query, key, value, bias, w, out, lse)
        return out, lse

    @staticmethod
    def backward(ctx: Any, d_out: Tensor, d_lse: Tensor) -> Gradients:
        query, key, value, bias, w, out, lse = ctx.saved_tensors
        if torch.is_grad_enabled():  # ``plan`` has that gradient worked out elsewhere
            return (None,) * len(ctx.needs_input_grad)
        delta = (d_out * out).sum(dim=-1)
        if ctx.task.wants_lse:
            delta = delta - d_lse
        if ctx.form.number == _SUMMED:
            # NaN is in the log-sum-exp of whoever sees one; elsewhere, 0 · NaN would be NaN.
            query, key = (t.masked_fill(t.isnan(), 0) for t in (query, key))
        launch = _Launch(ctx.task, ctx.visible, ctx.form, _Inputs(query, key, value, bias, w))
        d_query, d_key, d_value, d_w = launch.gradients(d_out, lse, delta)
        return None, d_query, d_key, d_value, None, d_w


class _Launch:
    """The kernels of one call, with the arguments they share."""

    def __init__(self, task: _Call, visible: _VisibleKeys, form: _Form, inputs: _Inputs) -> None:
        query, key, value, bias, w = inputs
        # Only now: whoever has no GPU is spared the import.
        kernels = import_module("regard.kernels.attention.additive_triton")
        self.kernels, self.form, self.visible, self.dim = kernels, form, visible, query.shape[-1]
        self.is_fast = query.is_cuda and not _is_interpreted()
        self.query, self.key = form.factors(query, key)
        B, H, N, D = self.query.shape
        G, M, E = value.shape[1:]
        self.batch, self.sizes = B, kernels.CallSizes(H, H // G, N, M, D, E)
        self.w = F.pad(w, (0, D - self.dim)).contiguous()
        self.ranges = None if visible.ranges is None else self._laid_ranges(visible.ranges)
        self.inputs = (
            self.query.transpose(2, 3).contiguous(),
            self.key.transpose(2, 3).contiguous(),
            value.contiguous(),
            self.w,
            None if bias is None else self._laid(bias.expand(B, H, N, M)),
            None if visible.pairs is None else self._laid(visible.pairs.view(torch.uint8)),
            self.ranges,
            kernels.Noise(*_noise_numbers(task)) if task.dropout else None,
        )

    def forward(self) -> tuple[Tensor, Tensor]:
        H, _, N, _, _, E = self.sizes
        out, lse = self.query.new_empty(self.batch, H, N, E), self.query.new_empty(self.batch, H, N)
        sizes = self._fitting(_FORWARD)
        blocks = _blocks(N, sizes["ROWS"])
        grid = (self.batch * H * blocks, _blocks(E, sizes["WIDTH"]))
        panel = self.kernels.Panel(0, blocks, 0)
        self.start("forward", grid, (*self.inputs, out, lse, panel), sizes)
        return out, lse

    def gradients(self, d_out: Tensor, lse: Tensor, delta: Tensor) -> tuple[Tensor, ...]:
        """The gradients of queries, keys, values and w, one panel of queries after the other."""
        H, repeats, N, M, D, E = self.sizes
        sizes = self._fitting(_GRADIENT)
        rows, keys = sizes["ROWS"], sizes["KEYS"]
        query, key, d_out = self.query.contiguous(), self.key.contiguous(), d_out.contiguous()
        d_query, d_key = torch.empty_like(query), torch.zeros_like(key)
        d_value = query.new_zeros(self.batch, H // repeats, M, E)
        d_w = query.new_empty(self.batch, H, _blocks(N, rows), D)
        row_ranges = None
        if self.visible.ranges is not None:
            row_ranges = self._laid_ranges(self.visible.ranges.turned(M, rows=rows, keys=keys))
        parts, columns = _blocks(D, sizes["DIMS"]), _blocks(E, sizes["WIDTH"])
        of_keys = self.batch * H // repeats * _blocks(M, keys)
        width = _panel_width(self.visible.reach, M, rows, keys)
        most = max(1, min(_blocks(N, rows), _PANEL // (self.batch * H * width * rows)))
        weights, d_scores = query.new_empty(2, self.batch * H * most * rows * width)
        for start in range(0, N, most * rows):
            blocks = min(most, _blocks(N - start, rows))
            panel = self.kernels.Panel(start, blocks, width)
            of_rows = self.batch * H * blocks
            for name, grid, arguments in (
                (
                    "score_gradient",
                    (of_rows, width // keys),
                    (*self.inputs, lse, d_out, delta, weights, d_scores),
                ),
                (
                    "query_gradient",
                    (of_rows, parts),
                    (query, key, self.w, self.ranges, d_scores, d_query, d_w),
                ),
                (
                    "key_gradient",
                    (of_keys, parts),
                    (query, key, self.w, self.ranges, row_ranges, d_scores, d_key),
                ),
                (
                    "value_gradient",
                    (of_keys, columns),
                    (self.ranges, row_ranges, d_out, weights, d_value),
                ),
            ):
                self.start(name, grid, (*arguments, panel), sizes)
        d_query, d_key = d_query[..., : self.dim], d_key[..., : self.dim]
        return d_query, d_key, d_value, d_w.sum(dim=(0, 2))[:, : self.dim]

    def constants(self, kernel: Any, sizes: dict[str, int]) -> dict[str, object]:
        """Compile-time constants of the kernels; each names only some."""
        constants = {
            "FORM": self.form.number,
            "IS_FAST": self.is_fast,
            "PRECISION": "tf32x3" if self.is_fast else "ieee",
            **sizes,
        }
        return {name: constants[name] for name in kernel.arg_names if name in constants}

    def start(
        self, name: str, grid: tuple[int, ...], arguments: tuple[object, ...], sizes: dict[str, int]
    ) -> None:
        kernel = getattr(self.kernels, name)
        # Kernels start on the current GPU, whichever the tensors are on.
        with torch.cuda.device_of(self.query):  # type: ignore[no-untyped-call]
            # Fused multiplications and additions: a third of the work, and fewer roundings.
            kernel[grid](
                *arguments, self.sizes, **self.constants(kernel, sizes), enable_fp_fusion=True
            )

    def _fitting(self, sizes: dict[str, int]) -> dict[str, int]:
        """Blocks no larger than their contents, in powers of two."""
        _, _, N, M, D, E = self.sizes
        whole = {"ROWS": N, "KEYS": M, "WIDTH": E, "DIMS": D}
        return {
            name: max(_LEAST, min(size, 1 << (whole[name] - 1).bit_length()))
            for name, size in sizes.items()
        }

    def _laid(self, tensor: Tensor) -> object:
        return self.kernels.Spread(tensor, *tensor.stride())

    def _laid_ranges(self, ranges: KeyRanges) -> object:
        shape = torch.broadcast_shapes(*(t.shape for t in ranges))  # type: ignore[no-untyped-call]
        first, stop = (t.expand(shape).contiguous() for t in ranges)
        return self.kernels.RangePointers(first, stop, 0 if shape[0] == 1 else shape[1])


def _blocks(size: int, block: int) -> int:
    return -(-size // block)


def _panel_width(reach: int, M: int, rows: int, keys: int) -> int:
    """The most keys that the queries of a block look at, in whole blocks of keys."""
    return keys * min(_blocks(M, keys), _blocks(reach + rows - 1 + keys - 1, keys))


def _noise_numbers(task: _Call) -> tuple[int, int, float]:
    """Seed of the pattern of ``noise.kept``, as signed 32 bits."""
    seed = (task.seed * 0x9E3779B9 + 2**31) % 2**32 - 2**31
    return seed, int(task.dropout * 2**32) - 2**31, 1 / (1 - task.dropout)
