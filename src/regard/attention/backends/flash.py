"""torch's variable-length flash attention on a GPU, for windows and packed documents."""

from collections.abc import Callable
from functools import cache, partial
from importlib import import_module
from inspect import signature
from typing import NamedTuple

import torch
from torch import Tensor

from regard.attention.backends.base import Answer, Backend, Offer, Refusal, padded, with_heads
from regard.attention.engine.numerics import without_unseen
from regard.attention.engine.request import Request
from regard.attention.masks.grid import Band, Segment

_HALVES = (torch.bfloat16, torch.float16)
_OLDEST_GPU = (8, 0)
_WIDEST = 256
_EVERYTHING = Band(None, None, is_exact=True)


class Flash(Backend):
    """A call of torch's flash kernel for all rows of a batch and all documents in them."""

    device = "cuda"
    ignores_numbers = True

    def offer(self, request: Request) -> Offer | Refusal:
        form = _why_not_tensor(request.query) or request.plain_form()
        if isinstance(form, str):
            return Refusal(form)
        if form.of_keys is not None or form.query.dtype != request.query.dtype:
            return Refusal("as a dot product the score needs float32")
        if request.bias is not None or request.position is not None:
            return Refusal("there is a bias")
        if max(form.query.shape[-1], request.value.shape[-1]) > _WIDEST:
            return Refusal(f"heads are wider than {_WIDEST}")
        if request.mask is None or request.mask.is_causal:
            return Refusal("torch's attention has a flag for the mask")
        sequences = _sequences_of(request)
        if sequences is None:
            return Refusal("the mask is neither a window nor packed documents")
        if sequences.window != (-1, -1) and "window_size" not in _kernel()[1]:
            return Refusal("this torch's kernel knows no windows")
        return Offer(partial(_run, sequences), _bytes_beyond, differentiates_once=True)


def _bytes_beyond(request: Request) -> int:
    width = max(request.key.shape[-1], request.value.shape[-1])
    rows = sum(t.shape[:-1].numel() for t in (request.query, request.key, request.value))
    return rows * width * request.query.element_size() + request.query.shape[:3].numel() * 4


def _run(sequences: "_Sequences", request: Request) -> Answer:
    form = request.form()
    assert form is not None
    B, H, N, _ = request.query.shape
    query, key, scale, _ = form
    value, width = request.value, request.value.shape[-1]
    if sequences.window != (-1, -1):
        key, value = without_unseen(request.mask, key, value)
    kernel, options = _kernel()
    if "enable_gqa" not in options:
        key, value = with_heads(key, H), with_heads(value, H)
    keywords = {"scale": scale, "enable_gqa": key.shape[1] != H, "window_size": sequences.window}
    wide = -(-max(query.shape[-1], width) // 8) * 8
    out = kernel(
        *(_by_position(padded(t, wide)) for t in (query, key, value)),
        *sequences.starts,
        *sequences.longest,
        **{name: keywords[name] for name in keywords if name in options},
    )
    return out[..., :width].reshape(B, N, H, width).transpose(1, 2), None


def _why_not_tensor(query: Tensor) -> str | None:
    if torch.version.hip is not None:
        return "it is for NVIDIA GPUs"
    if query.dtype not in _HALVES:
        return "it computes in half precision"
    if torch.cuda.get_device_capability(query.device) < _OLDEST_GPU:
        return "the GPU is older than the kernel"
    return None


@cache
def _kernel() -> tuple[Callable[..., Tensor], frozenset[str]]:
    """Torch's function, and the names of its options, which differ between versions."""
    function = import_module("torch.nn.attention.varlen").varlen_attn
    return function, frozenset(signature(function).parameters)


class _Sequences(NamedTuple):
    """Runs of queries and their keys, all rows of a batch one after the other."""

    starts: tuple[Tensor, Tensor]  # the first query and key of each, and the total at the end
    longest: tuple[int, int]  # the most queries and the most keys
    # Keys before and after a query's own, where the last query and the last key of a sequence
    # meet; −1 for all.
    window: tuple[int, int]

    @classmethod
    def of(
        cls, segments: list[Segment], sizes: tuple[int, int], band: Band, device: torch.device
    ) -> "_Sequences | None":
        """The sequences of segments, or None if one window does not fit them all."""
        queries, keys, shifts = [0], [0], set[int]()
        for batch, rows, keys_seen in segments:
            queries.append(batch * sizes[0] + rows.stop)
            keys.append(batch * sizes[1] + keys_seen.stop)
            shifts.add(keys_seen.stop - rows.stop)
        if band == _EVERYTHING:
            window = (-1, -1)
        elif len(shifts) > 1:
            return None
        else:
            (shift,) = shifts
            before = -1 if band.least is None else shift - band.least
            after = -1 if band.most is None else band.most - shift
            if (band.least is not None and before < 0) or (band.most is not None and after < 0):
                return None
            window = (before, after)
        longest = (
            max(len(segment.rows) for segment in segments),
            max(len(segment.keys) for segment in segments),
        )
        first, second = (
            torch.tensor(starts, dtype=torch.int32, device=device) for starts in (queries, keys)
        )
        return cls((first, second), longest, window)


def _sequences_of(request: Request) -> _Sequences | None:
    """The sequences of a request's mask, or None if it is not made of such."""
    assert request.mask is not None
    form = request.mask.form
    B, _, N, _ = request.query.shape
    M = request.key.shape[2]
    if form is None or not form.is_exact or not N or not M:
        return None
    if isinstance(form, Band):
        whole = [Segment(b, range(N), range(M)) for b in range(B)]
        return _Sequences.of(whole, (N, M), form, request.query.device)
    if not form.are_in_order(N, M):
        return None
    segments = form.segments
    if form.batch == 1:
        segments = tuple(part._replace(batch=b) for b in range(B) for part in form.segments)
    band = form.band or _EVERYTHING
    return _Sequences.of(list(segments), (N, M), band, request.query.device)


def _by_position(tensor: Tensor) -> Tensor:
    """(B, H, N, D) as (B·N, H, D)."""
    return tensor.transpose(1, 2).flatten(0, 1)
