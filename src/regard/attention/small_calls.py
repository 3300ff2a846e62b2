"""Small calls of ``attend`` that are like an earlier one, and need no plan of their own.

To check and plan a call takes several times as long as torch's kernel over a few queries. So the
kernel of a plain call, a softmax of scaled dot products on a CPU, is kept by the shapes, dtypes and
mask, and calls alike go to it at once. What is not finite is left to the whole path, as there.
"""

from collections.abc import Hashable
from functools import partial
from typing import NamedTuple

import torch
from torch import Tensor

from regard.attention.backends.sdpa import Kernel
from regard.attention.engine.kinds import keep
from regard.attention.engine.options import CallOptions
from regard.attention.engine.request import Request, make_request
from regard.attention.masks.base import Mask
from regard.attention.observing import current_editor, current_observer
from regard.attention.plan import BACKENDS, differentiable_twice
from regard.attention.scores import ScaledDot, Score
from regard.attention.weighting import Softmax

# The most numbers of queries, keys and values: of more, the kernel takes far longer than a plan.
# And those of a mask, which stay in memory.
_MOST_NUMBERS, _MOST_OF_MASK = 2**16, 2**14
# Backends of one's own are tried before these.
_FIRST, _SDPA = BACKENDS["short"], BACKENDS["sdpa"]


class _Planned(NamedTuple):
    """Kernel of calls of one kind."""

    kernel: Kernel
    is_masked: bool


# Of calls without a mask; a mask has those under it.
_KERNELS: dict[Hashable, _Planned] = {}


def is_plain(options: CallOptions) -> bool:
    """Whether it is a softmax of scaled dot products and nothing else, on whatever backend."""
    score, _, bias, weighting, dropout, _, backend, return_lse = options
    if type(score) is not ScaledDot or type(weighting) is not Softmax or bias is not None:
        return False
    if score.softcap is not None or weighting.sink is not None or backend is not None:
        return False
    return not (dropout or return_lse)


def attend_small(query: Tensor, key: Tensor, value: Tensor, options: CallOptions) -> Tensor | None:
    """The mixed values of a plain call like an earlier one; None if it has to be planned."""
    mask = options.mask
    kernels = _KERNELS if mask is None else getattr(mask, "kernels", None)
    if not kernels or current_editor() is not None or current_observer() is not None:
        return None
    planned = kernels.get(_signature_of(query, key, value, options.score))
    if planned is None or next(iter(BACKENDS.values())) is not _FIRST:
        return None
    if torch._C._is_any_autocast_enabled():
        return None
    out: Tensor = planned.kernel(query, key, value)
    # One sum for all: each is a call that takes as long as the numbers.
    read = (query, key, value, out) if planned.is_masked else (query, key)
    total = torch.cat(read, -2).sum().item()
    if total - total != 0:
        return None
    if out.requires_grad:
        request_of = partial(make_request, query, key, value, options)
        out, _ = differentiable_twice(request_of, out, None, (query, key, value))
    return out


def remember_kernel(request: Request, mask: Mask | Tensor | None) -> None:
    """Keep the kernel of a plain call that was planned, if torch's served it and it is small."""
    kernel = request.cache.get(Kernel)
    if not isinstance(kernel, Kernel) or request.cache.get(_SDPA, "") is not None:
        return
    query, key, value = request.query, request.key, request.value
    penalty, is_causal = kernel.keywords["attn_mask"], kernel.keywords["is_causal"]
    if (
        query.numel() + key.numel() + value.numel() > _MOST_NUMBERS
        or kernel.keywords["enable_gqa"]
        or (penalty is not None and penalty.numel() > _MOST_OF_MASK)
    ):
        return
    signature = _signature_of(query, key, value, request.score)
    if signature is not None and not isinstance(mask, Tensor):
        planned = _Planned(kernel, is_causal or penalty is not None)
        keep(_KERNELS if mask is None else mask.kernels, signature, planned)


def _signature_of(query: Tensor, key: Tensor, value: Tensor, score: Score) -> Hashable:
    """Signature that calls of one kernel share; None where the whole path has to look."""
    if not type(query) is type(key) is type(value) is Tensor:
        return None
    if query.is_nested or key.is_nested or value.is_nested:
        return None
    if not (query.is_cpu and key.is_cpu and value.is_cpu):
        return None
    wants_grad = torch.is_grad_enabled() and (
        query.requires_grad or key.requires_grad or value.requires_grad
    )
    shapes, dtypes = (query.shape, key.shape, value.shape), (query.dtype, key.dtype, value.dtype)
    return (shapes, dtypes, score, wants_grad)
