"""torch's fused scaled dot product attention, wherever it gives what was asked."""

import torch
from torch import Tensor
from torch.nn import functional as F

from regard.attention.request import Request
from regard.attention.weighting import Softmax

# A mask that no flag can express is handed over as numbers: at most 64 MB of float32.
_LARGEST_MASK = 2**24
_HALVES = (torch.bfloat16, torch.float16)


def refuse(request: Request) -> str | None:
    """Why this backend cannot serve, or None if it can."""
    reason = refuse_unless_plain(request)
    if reason is not None:
        return reason
    mask = request.mask
    if request.bias is not None and request.bias.requires_grad:
        reason = "the bias needs a gradient"
    elif request.value.shape[-1] != request.key.shape[-1]:
        reason = "values are not as wide as keys, so that the kernel would hold N×M"
    elif request.query.dtype == torch.float64 and request.needs_grad():
        reason = "float64 gradients may be differentiated again"
    elif mask is not None and not mask.is_causal and mask.size > _LARGEST_MASK:
        reason = "the mask would be an N×M matrix of more than 64 MB"
    return reason


def refuse_unless_plain(request: Request) -> str | None:
    """Why it is not the softmax of a dot product and nothing else, or None if it is."""
    if request.score.as_dot(request.query, request.key) is None:
        return "the score is not a dot product"
    if type(request.weighting) is not Softmax:
        return "the weighting is not softmax"
    if request.return_lse:
        return "the log-sum-exp is wanted, with its gradient"
    if request.dropout:
        return "dropout must not depend on tile sizes"
    return None


def notes(request: Request) -> tuple[str, ...]:
    """What is done on the way, in words."""
    said = []
    if _upcasts(request):
        said.append("in float32: the CPU's half-precision backward pass is far slower")
    if request.mask is not None and request.mask.is_causal:
        said.append("the mask is a flag")
    elif request.mask is not None:
        said.append(f"the mask is a tensor of {request.mask.size} elements")
    return tuple(said)


def bytes_beyond(request: Request) -> int:
    """Memory taken beyond inputs and output."""
    item = 4 if _upcasts(request) else request.query.element_size()
    total = request.query.shape[:3].numel() * 4  # log-sum-exp, kept for the backward pass
    if request.mask is not None and not request.mask.is_causal:
        total += request.mask.size * (item + 1)
    if request.bias is not None:
        total += request.bias.numel() * item
    if _upcasts(request):
        total += 4 * sum(t.numel() for t in (request.query, request.key, request.value))
    return total


def run(request: Request) -> tuple[Tensor, Tensor | None]:
    """The mixed values (B, H, N, E), and no log-sum-exp."""
    query, key, value, mask = request.query, request.key, request.value, request.mask
    dtype = query.dtype
    if dtype in _HALVES and _upcasts(request):
        query, key, value = query.float(), key.float(), value.float()
    out = _attend(request, query, key, value)
    hidden = None if mask is None else mask.hidden_of(key)
    if hidden is not None and may_be_poisoned(out):
        # 0 · NaN is NaN: what no query may see must not be in the tensors at all.
        key, value = key.masked_fill(hidden, 0), value.masked_fill(hidden, 0)
        out = _attend(request, query, key, value)
    return out if out.dtype == dtype else out.to(dtype), None


def _attend(request: Request, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    form = request.score.as_dot(query, key)
    assert form is not None
    mask = request.mask
    is_causal = mask is not None and mask.is_causal and request.bias is None
    penalty = None
    if mask is not None and not is_causal:
        penalty = mask.penalty(query.dtype)
    if request.bias is not None:
        bias = request.bias.to(query.dtype)
        penalty = bias if penalty is None else bias + penalty
    return F.scaled_dot_product_attention(
        form.query,
        form.key,
        value,
        attn_mask=penalty,
        is_causal=is_causal,
        scale=form.scale,
        enable_gqa=query.shape[1] != key.shape[1],
    )


def _upcasts(request: Request) -> bool:
    return (
        request.query.dtype in _HALVES
        and request.query.device.type == "cpu"
        and request.needs_grad()
    )


def may_be_poisoned(out: Tensor) -> bool:
    """Whether the answer holds a NaN; where asking would wait for a device, yes."""
    if out.device.type != "cpu" or torch.compiler.is_compiling():
        return True
    total = float(out.detach().sum())
    return total - total != 0
