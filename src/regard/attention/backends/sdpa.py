"""torch's fused scaled dot product attention, wherever it gives what was asked."""

from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import partial
from math import prod

import torch
from torch import Tensor
from torch.nn import functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

from regard.attention.backends.base import (
    BAND_COST,
    BAND_ROWS,
    FEWEST_KEYS_OF_LOOPS,
    FEWEST_PAIRS_OF_A_BAND,
    MOST_KEYS_OF_LENGTHS,
    MOST_PAIRS_OF_A_RULE,
    Backend,
)
from regard.attention.backends.dot_cpu import DotCpu
from regard.attention.engine import tiled
from regard.attention.engine.numerics import is_finite, without_unseen
from regard.attention.engine.request import Request
from regard.attention.masks.bound import BoundMask
from regard.attention.scores import DotForm
from regard.attention.weighting import Softmax

# A mask that no flag can express is handed over as numbers: at most 64 MB of float32.
LARGEST_MASK = 2**24
_HALVES = (torch.bfloat16, torch.float16)
_DOT_CPU = DotCpu()


class Sdpa(Backend):
    """torch's fused scaled dot product attention."""

    judges_by_kind = True
    differentiates_once = True

    def refuse(self, request: Request) -> str | None:
        reason = refuse_unless_plain(request, may_drop=self.has_own_dropout(request))
        if reason is not None:
            return reason
        mask = request.mask
        if request.bias is not None and request.bias.requires_grad:
            reason = "the bias needs a gradient"
        elif request.position is not None and (rule := _refuse_rule(request)) is not None:
            reason = rule
        elif _are_unlike(*_widths(request)):
            reason = "values and keys differ so much in width that padding would cost more"
        elif request.query.dtype == torch.float64 and request.needs_grad():
            reason = "gradients in float64 are those of blocks"
        elif request.query.is_cuda and is_double(request):
            reason = "in float64, the kernel of a GPU would hold the N×M matrix"
        elif mask is not None and _handed_over(request) > LARGEST_MASK:
            tensors = "mask" if request.bias is None else "mask and the bias together"
            reason = f"the {tensors} would be an N×M matrix of more than 64 MB"
        return reason

    def decline(self, request: Request) -> str | None:
        if request.mask is not None and _is_narrow(request.mask, request):
            return "the window is so narrow that blocks along it are faster"
        form = request.form()
        if form is not None and form.of_keys is not None and _is_for_loops(request):
            return "a compiled pass adds a number of each key faster than wider keys would"
        if _is_long_under_a_mask(request) and _is_for_loops(request):
            return "a compiled pass leaves out hidden keys, which makes its gradient faster"
        return None

    def has_own_dropout(self, request: Request) -> bool:
        return request.query.is_cuda and request.generator is None and request.seed is None

    def notes(self, request: Request) -> tuple[str, ...]:
        notes = []
        form = request.form()
        assert form is not None
        if min(_widths(request)) < (width := _width(request)):
            notes.append(
                f"keys and values padded with zeros to {width} columns, as the kernel wants them"
            )
        if form.query.dtype != request.query.dtype:
            notes.append(f"in {form.query.dtype}: as a dot product the score needs it")
        if request.dropout:
            notes.append("torch's kernel draws the dropout")
        if request.position is not None:
            notes.append("the rule of distances is written out: it is small")
        if _upcasts(request):
            notes.append("in float32: the CPU's half-precision backward pass is far slower")
        if _is_flag(request):
            notes.append("the mask is a flag")
        elif request.mask is not None:
            notes.append(f"the mask is a tensor of {request.mask.size} elements")
        return tuple(notes)

    def bytes_beyond(self, request: Request) -> int:
        form = request.form()
        assert form is not None
        item = 4 if _upcasts(request) else form.query.element_size()
        total = request.query.shape[:3].numel() * 4  # log-sum-exp, kept for the backward pass
        if request.mask is not None and not _is_flag(request):
            total += request.mask.size * (item + 1)
        if request.bias is not None:
            total += max(request.bias.numel(), _handed_over(request)) * item
        if request.position is not None:
            total += request.query.shape[1] * request.query.shape[2] * request.key.shape[2] * item
        width = _width(request)
        if form.key is not request.key or min(_widths(request)) < width:
            rows = sum(t.shape[:-1].numel() for t in (request.query, request.key, request.value))
            total += form.key.element_size() * width * rows
        if _upcasts(request):
            total += 4 * sum(t.numel() for t in (request.query, request.key, request.value))
        return total

    def run(self, request: Request) -> tuple[Tensor, Tensor | None]:
        key, value, mask = request.key, request.value, request.mask
        is_masked_here = mask is not None and key.is_cpu
        if key.is_cpu and not _may_be_finite(request):
            return tiled.run(request)  # There, a NaN reaches its query, and those that see its key.
        kernel = request.cache.get(Kernel)
        if isinstance(kernel, Kernel):
            out = kernel(request.query, key, value)
        else:
            if mask is not None and not key.is_cpu:
                # 0 · NaN is NaN: what no query may see must not be in the tensors at all.
                key, value = without_unseen(mask, key, value)
            cleaned = request if key is request.key else replace(request, key=key)
            form = cleaned.dot()
            if form is None:  # a score that is a dot product up to rounding, and now is not
                return tiled.run(request)
            out = _attend(request, form, value)
        if is_masked_here and not is_finite(out):
            return tiled.run(request)  # Nor does a value, or a product that is too large.
        return out, None


def _is_for_loops(request: Request) -> bool:
    """Whether the compiled passes of CPUs serve it, and would not rather be spared."""
    return _DOT_CPU.refuse(request) is None and _DOT_CPU.decline(request) is None


def _is_long_under_a_mask(request: Request) -> bool:
    """Whether a gradient is wanted, of so many keys that it matters which of them are hidden."""
    mask = request.mask
    if mask is None or request.bias is not None or request.query.dtype is not torch.float32:
        return False
    if request.key.shape[2] < FEWEST_KEYS_OF_LOOPS or not request.needs_grad():
        return False
    _, heads, queries, keys = mask.mask.extent(mask.grid)
    return mask.is_range or (heads == queries == 1 and keys <= MOST_KEYS_OF_LENGTHS)


def _is_flag(request: Request) -> bool:
    """Whether a flag says what the mask does; a bias leaves no room for one."""
    has_bias = request.bias is not None or request.position is not None
    return request.mask is not None and request.mask.is_causal and not has_bias


def _may_be_finite(request: Request) -> bool:
    """Whether queries and keys are finite, and values if the answer would not tell."""
    # For a NaN query of few keys the kernel gives zeros. The answer tells where each value meets
    # some weight: even 0 · NaN is NaN. A flag leaves out keys after those of the last query.
    shows_nan = not _is_flag(request) or request.key.shape[2] <= request.query.shape[2]
    are_finite = is_finite(request.query) and is_finite(request.key)
    return are_finite and (shows_nan or is_finite(request.value))


def _refuse_rule(request: Request) -> str | None:
    """Why a rule of distances is not handed over as numbers, or None if it is."""
    position, (N, M) = request.position, (request.query.shape[2], request.key.shape[2])
    assert position is not None
    if any(tensor.requires_grad for tensor in position.tensors()):
        return "the bias needs a gradient"
    most = MOST_PAIRS_OF_A_RULE * (2 if request.needs_grad() else 1)
    is_small = request.query.shape[1] * N * M <= most
    is_whole = request.query.is_cpu and request.query.dtype not in _HALVES
    if not (is_whole and is_small and position.is_of_distance_alone):
        return "the bias is a rule of distances, which is not to become an N×M matrix"
    return None


def _bias_of(request: Request) -> Tensor | None:
    """Tensor that is added to the scores."""
    query, position = request.query, request.position
    if position is None:
        return request.bias
    N, M = query.shape[2], request.key.shape[2]
    steps = position.steps(range(N), range(M), (N, M), query.device)
    bias = position.tile(query, steps, *position.tensors())
    return bias.reshape((1,) * (4 - bias.dim()) + bias.shape)


def _handed_over(request: Request) -> int:
    """How many numbers the mask becomes, together with the bias it is added to."""
    if request.mask is None or _is_flag(request):
        return 0
    if request.bias is None:
        return request.mask.size
    shapes = zip(request.mask.mask.extent(request.mask.grid), request.bias.shape, strict=True)
    return prod(max(one, other) for one, other in shapes)


def _is_narrow(mask: BoundMask, request: Request) -> bool:
    N, M = request.query.shape[2], request.key.shape[2]
    if request.query.device.type != "cpu" or N * M < FEWEST_PAIRS_OF_A_BAND:
        return False
    return (mask.width + BAND_ROWS) * BAND_COST < M


def refuse_unless_plain(request: Request, *, may_drop: bool = False) -> str | None:
    """Why it is not the softmax of a dot product and nothing else, or None if it is."""
    if request.form() is None:
        return "the score is not a dot product"
    if type(request.weighting) is not Softmax:
        return "the weighting is not softmax"
    if request.return_lse:
        return "the log-sum-exp is wanted, with its gradient"
    if request.dropout and not may_drop:
        return "dropout must not depend on tile sizes"
    return None


def _widths(request: Request) -> tuple[int, int]:
    """The width that the kernel sees in keys, and that of values."""
    form = request.form()
    assert form is not None
    return form.key.shape[-1] + (form.of_keys is not None), request.value.shape[-1]


def _are_unlike(one: int, other: int) -> bool:
    # Up to eight columns fit in a vector of the processor: padding to them costs nothing.
    return max(one, other) > max(8, 2 * min(one, other))


def _width(request: Request) -> int:
    """The width of keys and values in the kernel: with different ones, it would hold N×M."""
    width = max(_widths(request))
    return -(-width // 8) * 8 if request.query.is_cuda else width


def is_double(request: Request) -> bool:
    """Whether the score as a dot product is in float64."""
    form = request.form()
    return form is not None and form.query.dtype == torch.float64


def _attend(request: Request, form: DotForm, value: Tensor) -> Tensor:
    query, key, scale, _ = form
    dtype = torch.float32 if query.dtype in _HALVES and _upcasts(request) else query.dtype
    is_fit = key.shape == value.shape and dtype == query.dtype == key.dtype == value.dtype
    if is_fit and key.is_cpu:
        kernel = _kernel_of(request, query, key, scale)
        if (
            query is request.query
            and key is request.key
            and request.bias is None
            and request.position is None
        ):
            request.cache[Kernel] = kernel  # without a bias, which is another each time
        return kernel(query, key, value)
    is_masked = request.mask is not None or request.bias is not None
    # Of a GPU's kernels, the one for masks and float32 knows no groups.
    knows_groups = not query.is_cuda or (dtype in _HALVES and not is_masked)
    heads = max((key if knows_groups else query).shape[1], value.shape[1])
    key, value = with_heads(key, heads), with_heads(value, heads)
    width, wide = value.shape[-1], _width(request)
    query, key, value = (padded(t.to(dtype), wide) for t in (query, key, value))
    with kernels(query.is_cuda, is_masked=is_masked):
        out = _kernel_of(request, query, key, scale)(query, key, value)
    return (out[..., :width] if out.shape[-1] > width else out).to(request.query.dtype)


class Kernel(partial[Tensor]):
    """torch's kernel for requests of one kind: of queries, keys and values alone."""


def _kernel_of(request: Request, query: Tensor, key: Tensor, scale: float) -> Kernel:
    is_causal, penalty = _is_flag(request), None
    if request.mask is not None and not is_causal:
        penalty = request.mask.penalty(query.dtype)
    if (bias := _bias_of(request)) is not None:
        bias = bias.to(query.dtype)
        penalty = bias if penalty is None else bias + penalty
    return Kernel(
        F.scaled_dot_product_attention,
        attn_mask=penalty,
        dropout_p=request.dropout,
        is_causal=is_causal,
        scale=scale,
        enable_gqa=query.shape[1] != key.shape[1],
    )


def kernels(is_cuda: bool, *, is_masked: bool) -> AbstractContextManager[None]:
    """Restrict torch's kernels on a GPU to those that do not hold N×M."""
    if not is_cuda:
        return nullcontext()
    # cuDNN's gradient may be NaN under a mask or a bias:
    # https://github.com/pytorch/pytorch/issues/196678.
    fused = [SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION]
    return sdpa_kernel(fused if is_masked else [*fused, SDPBackend.CUDNN_ATTENTION])


def with_heads(tensor: Tensor, heads: int) -> Tensor:
    """Repeat shared heads of keys or values, so that each query head has its own."""
    own = tensor.shape[1]
    return tensor if own == heads else tensor.repeat_interleave(heads // own, dim=1)


def padded(tensor: Tensor, width: int) -> Tensor:
    """Append zero columns up to a width."""
    missing = width - tensor.shape[-1]
    return F.pad(tensor, (0, missing)) if missing else tensor


def _upcasts(request: Request) -> bool:
    return (
        request.query.dtype in _HALVES
        and request.query.device.type == "cpu"
        and request.needs_grad()
    )
