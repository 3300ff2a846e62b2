"""torch's fused scaled dot product attention, for the calls that it can serve."""

from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import partial
from math import prod, sqrt

import torch
from torch import Tensor
from torch.nn import functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

from regard.attention.backends.base import (
    Answer,
    Backend,
    Kernel,
    Notes,
    Offer,
    Refusal,
    padded,
    with_heads,
)
from regard.attention.engine import tiled
from regard.attention.engine.numerics import is_finite, without_unseen
from regard.attention.engine.request import Request
from regard.attention.scores import DotForm
from regard.devices.finding import fails_in_tiles

# A mask that no flag can express is handed over as numbers: at most 64 MB of float32.
LARGEST_MASK = 2**24
# Up to so many scores of a batch row, a rule of distances is written out; up to twice as many where
# a gradient is wanted.
_MOST_PAIRS_OF_A_RULE = 2**14
_HALVES = (torch.bfloat16, torch.float16)


class Sdpa(Backend):
    """torch's fused scaled dot product attention."""

    ignores_numbers = True

    def offer(self, request: Request) -> Offer | Refusal:
        draws = request.query.is_cuda and request.generator is None and request.seed is None
        form = request.plain_form(may_drop=draws)
        why = form if isinstance(form, str) else _why_not(request, form)
        if why is not None:
            return Refusal(why)
        return Offer(
            _run,
            _bytes_beyond,
            _notes_of,
            differentiates_once=True,
            draws_dropout=draws,
            kernel=_bare_kernel,
        )


def _why_not(request: Request, form: DotForm) -> str | None:
    """Why the kernel cannot serve the softmax of a dot product, or None if it can."""
    query, mask = request.query, request.mask
    if request.bias is not None and request.bias.requires_grad:
        return "the bias needs a gradient"
    if request.position is not None and (why := _why_not_rule(request)) is not None:
        return why
    key_dim, value_dim = form.key.shape[-1] + (form.of_keys is not None), request.value.shape[-1]
    # Up to eight columns fit in a vector of the processor: padding to them costs nothing.
    if max(key_dim, value_dim) > max(8, 2 * min(key_dim, value_dim)):
        return "values and keys differ so much in width that padding would cost more"
    if query.dtype == torch.float64 and request.needs_grad():
        return "gradients in float64 are those of blocks"
    if query.is_cuda and form.query.dtype == torch.float64:
        return "in float64, the kernel of a GPU would hold the N×M matrix"
    pairs = query.shape[:3].numel() * request.key.shape[2]
    if mask is not None and pairs > LARGEST_MASK and _handed_over(request) > LARGEST_MASK:
        tensors = "mask" if request.bias is None else "mask and the bias together"
        return f"the {tensors} would be an N×M matrix of more than 64 MB"
    return None


def _notes_of(request: Request) -> Notes:
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


def _bytes_beyond(request: Request) -> int:
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


def _run(request: Request) -> Answer:
    key, value, mask = request.key, request.value, request.mask
    is_masked_here = mask is not None and key.is_cpu
    if key.is_cpu and not _may_be_finite(request):
        return tiled.run(request)  # There, a NaN reaches its query, and those that see its key.
    if mask is not None and not key.is_cpu:
        # 0 · NaN is NaN: keys that no query may see must not be in the tensors at all.
        key, value = without_unseen(mask, key, value)
    cleaned = request if key is request.key else replace(request, key=key)
    form = cleaned.dot()
    if form is None:  # a score that is a dot product up to rounding, and now is not
        return tiled.run(request)
    out = _attend(request, form, value)
    if is_masked_here and not is_finite(out):
        return tiled.run(request)  # Nor does a value, or a product that is too large.
    return out, None


def _bare_kernel(request: Request) -> Kernel | None:
    """Torch's kernel of queries, keys and values as they are, on a CPU; None if it takes more."""
    query, key, form = request.query, request.key, request.form()
    is_alone = request.bias is None and request.position is None and not request.dropout
    if not is_alone or not key.is_cpu or form is None or form.of_keys is not None:
        return None
    if form.query is not query or form.key is not key or key.shape != request.value.shape:
        return None
    if query.shape[1] != key.shape[1] or (query.dtype in _HALVES and _upcasts(request)):
        return None
    return _kernel_of(request, query, key, form.scale)


def _is_flag(request: Request) -> bool:
    """Whether a flag stands for the mask; a bias leaves no room for one."""
    has_bias = request.bias is not None or request.position is not None
    return request.mask is not None and request.mask.is_causal and not has_bias


def _may_be_finite(request: Request) -> bool:
    """Whether queries and keys are finite, and values if the answer would not tell."""
    # For a NaN query of few keys the kernel gives zeros. The answer tells where each value meets
    # some weight: even 0 · NaN is NaN. A flag leaves out keys after those of the last query.
    shows_nan = not _is_flag(request) or request.key.shape[2] <= request.query.shape[2]
    are_finite = is_finite(request.query) and is_finite(request.key)
    return are_finite and (shows_nan or is_finite(request.value))


def _why_not_rule(request: Request) -> str | None:
    """Why a rule of distances is not handed over as numbers, or None if it is."""
    position, (N, M) = request.position, (request.query.shape[2], request.key.shape[2])
    assert position is not None
    if any(tensor.requires_grad for tensor in position.tensors()):
        return "the bias needs a gradient"
    most = _MOST_PAIRS_OF_A_RULE * (2 if request.needs_grad() else 1)
    is_small = request.query.shape[1] * N * M <= most
    is_whole = request.query.is_cpu and request.query.dtype not in _HALVES
    if not (is_whole and is_small and position.is_of_distance_alone):
        return "the bias is a rule of distances, which is not to become an N×M matrix"
    return None


def _bias_of(request: Request) -> Tensor:
    """A rule of distances as a tensor that is added to the scores."""
    query, position = request.query, request.position
    assert position is not None
    N, M = query.shape[2], request.key.shape[2]
    steps = position.steps(range(N), range(M), (N, M), query.device)
    bias = position.tile(query, steps, *position.tensors())
    return bias.reshape((1,) * (4 - bias.dim()) + bias.shape)


def _handed_over(request: Request) -> int:
    """Number of elements of the mask, together with the bias it is added to."""
    if request.mask is None or _is_flag(request):
        return 0
    if request.bias is None:
        return request.mask.size
    shapes = zip(request.mask.mask.extent(request.mask.grid), request.bias.shape, strict=True)
    return prod(max(mask_size, bias_size) for mask_size, bias_size in shapes)


def _widths(request: Request) -> tuple[int, int]:
    """The width that the kernel sees in keys, and that of values."""
    form = request.form()
    assert form is not None
    return form.key.shape[-1] + (form.of_keys is not None), request.value.shape[-1]


def _width(request: Request) -> int:
    """The width of keys and values in the kernel: with different ones, it would hold N×M."""
    width = max(_widths(request))
    return -(-width // 8) * 8 if request.query.is_cuda else width


def _attend(request: Request, form: DotForm, value: Tensor) -> Tensor:
    query, key, scale, _ = form
    dtype = torch.float32 if query.dtype in _HALVES and _upcasts(request) else query.dtype
    is_fit = key.shape == value.shape and dtype == query.dtype == key.dtype == value.dtype
    if is_fit and key.is_cpu:
        return _kernel_of(request, query, key, scale)(query, key, value)
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


def _kernel_of(request: Request, query: Tensor, key: Tensor, scale: float) -> Kernel:
    bias = request.bias if request.position is None else _bias_of(request)
    is_causal = request.mask is not None and bias is None and request.mask.is_causal
    penalty = None
    if request.mask is not None and not is_causal:
        penalty = request.mask.penalty(query.dtype)
    if bias is not None:
        bias = bias.to(query.dtype)
        penalty = bias if penalty is None else bias + penalty
    # Defaults are left out: reading them takes time.
    options: dict[str, object] = {}
    if penalty is not None:
        options["attn_mask"] = penalty
    if request.dropout:
        options["dropout_p"] = request.dropout
    if is_causal:
        options["is_causal"] = True
    if scale != 1 / sqrt(max(1, query.shape[-1])):
        options["scale"] = scale
    if query.shape[1] != key.shape[1]:
        options["enable_gqa"] = True
    return partial(F.scaled_dot_product_attention, **options)  # type: ignore[arg-type]


def kernels(is_cuda: bool, *, is_masked: bool) -> AbstractContextManager[None]:
    """Restrict torch's kernels on a GPU to those that do not hold N×M."""
    if not is_cuda:
        return nullcontext()
    # cuDNN's gradient may be NaN under a mask or a bias:
    # https://github.com/pytorch/pytorch/issues/196678.
    fused = [SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION]
    return sdpa_kernel(fused if is_masked else [*fused, SDPBackend.CUDNN_ATTENTION])


def _upcasts(request: Request) -> bool:
    return (
        request.query.dtype in _HALVES
        and request.query.device.type == "cpu"
        and (request.needs_grad() or fails_in_tiles())
    )
