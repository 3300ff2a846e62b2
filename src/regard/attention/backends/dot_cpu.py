"""Dot products on a CPU: products by BLAS, and a compiled pass over each tile's rows.

A score is brought to a dot product and a rule of distances to a number for each distance, by
operations that autograd knows; ``engine.dot`` does the rest.
"""

from functools import partial

import torch
from torch import Tensor

from regard.attention.backends.base import (
    Answer,
    Backend,
    LoopPass,
    Offer,
    Refusal,
    with_heads,
)
from regard.attention.engine import tiled
from regard.attention.engine.blocks import BlockInputs, BlockPass, Sizes
from regard.attention.engine.dot import DotLoops, gradient_parts, tile_size
from regard.attention.engine.numerics import is_finite
from regard.attention.engine.request import Request
from regard.attention.masks.bound import BoundMask
from regard.attention.masks.grid import KeyRanges
from regard.attention.scores import DotForm
from regard.attention.weighting import Softmax
from regard.kernels import threads, why_not

# Pairs of a block of a mask, for each of which it takes two bytes, and the most queries of it.
_PAIRS, _ROWS = 2**24, 256
_NOTES = ("products by BLAS, and a compiled pass over rows",)


class DotCpu(Backend):
    """Attention over dot products on a CPU."""

    device = "cpu"
    ignores_numbers = True

    def offer(self, request: Request) -> Offer | Refusal:
        if type(request.weighting) is not Softmax and request.weighting.compiled_as is None:
            return Refusal("the weighting is neither softmax nor compiled")
        if request.position is not None and not request.position.is_of_distance_alone:
            return Refusal("the bias is a rule of more than distances")
        if request.bias is not None and request.bias.shape[-1] != request.key.shape[2]:
            return Refusal("the bias is the same for all keys")
        if (why := _why_not_numbers(request) or _why_not_score(request)) is not None:
            return Refusal(why)
        return Offer(_run, _bytes_beyond, _NOTES, differentiates_once=True)


def _bytes_beyond(request: Request) -> int:
    B, H, N, D = request.query.shape
    G, M, E = request.value.shape[1:]
    form = request.form()
    assert form is not None
    sums = 3 * B * H * N
    parts = gradient_parts(B * G, request.query, request.key, request.value) - 1
    copies = 0
    if request.query.dtype is not torch.float32 or form.key is not request.key:
        copies = B * (H * N * D + G * M * (D + E))
    of_bias = 0 if request.bias is None else request.bias.numel()
    of_bias += 0 if form.of_keys is None else B * H * M
    rows, keys = tile_size(request.weighting, M, M)
    tiles = 8 * torch.get_num_threads() * rows * keys
    of_keys = parts * B * G * M * (D + E)
    return 4 * (sums + of_keys + copies + of_bias) + tiles + 2 * _pairs_at_once(request.mask)


def _run(request: Request) -> Answer:
    key, value = request.key, request.value
    if request.mask is not None and not (is_finite(key) and is_finite(value)):
        return tiled.run(request)  # There, a NaN reaches only the queries that may see it.
    form, bias = _with_bias(_form_of(request), request.bias)
    value = value.to(torch.float32)
    heads = max(form.key.shape[1], value.shape[1])
    key, value = with_heads(form.key, heads), with_heads(value, heads)
    inputs = BlockInputs(form.query, key, value, bias, tensors=_by_step(request))
    job = BlockPass.of(request, Sizes(_PAIRS, _ROWS, None, splits_heads=False))
    loops = partial(DotLoops, job, form.scale, _ranges_of(request.mask))
    out, lse = LoopPass.apply(loops, *inputs.flat())  # type: ignore[no-untyped-call]
    return out.to(request.query.dtype), lse if request.return_lse else None


def _why_not_numbers(request: Request) -> str | None:
    if request.query.dtype is torch.float64:
        return "it is for float32 and less"
    if not (request.query.numel() and request.key.numel() and request.value.numel()):
        return "there is nothing to multiply"
    if not threads.address_of_products():
        return "torch has another BLAS than Intel's"
    return why_not()


def _why_not_score(request: Request) -> str | None:
    form = request.form()
    if form is None:
        return "the score is not a dot product"
    if form.query.dtype is torch.float64:
        return "as a dot product the score needs float64"
    if request.return_lse and not request.score.is_dot_product:
        return "the score is a dot product but for a number of each query, which its sum needs"
    return None


def _form_of(request: Request) -> DotForm:
    """The score as a dot product of float32, and a number of each key."""
    form = request.form()
    if request.query.dtype is not torch.float32:
        wide = (t.to(torch.float32) for t in (request.query, request.key))
        form = request.score.as_dot(*wide)
    assert form is not None
    return form


def _with_bias(form: DotForm, bias: Tensor | None) -> tuple[DotForm, Tensor | None]:
    """A score as a dot product alone, and its bias, (B or 1, H or 1, N or 1, M)."""
    bias = None if bias is None else bias.to(torch.float32)
    if form.of_keys is None:
        return form, bias
    if bias is not None and bias.shape[2] > 1:  # a sum of both would be a matrix of its own
        return form.in_one_more_dimension(), bias
    heads = form.query.shape[1] // form.of_keys.shape[1]
    of_keys = form.of_keys.repeat_interleave(heads, 1).unsqueeze(2)
    return form._replace(of_keys=None), of_keys if bias is None else of_keys + bias


def _by_step(request: Request) -> tuple[Tensor, ...]:
    """Position bias at each distance, (1, H or 1, N + M − 1), if there is one."""
    position = request.position
    if position is None:
        return ()
    N, M = request.query.shape[2], request.key.shape[2]
    # As of the last query, with keys beyond the last that stand for those of other queries.
    steps = position.steps(range(N - 1, N), range(N + M - 1), (N, M), request.query.device)
    tensors = (tensor.to(torch.float32) for tensor in position.tensors())
    by_step = position.tile(request.query.to(torch.float32), steps, *tensors)
    return (by_step.reshape(1, -1, N + M - 1),)


def _pairs_at_once(mask: BoundMask | None) -> int:
    """Pairs of a mask that are laid out at once: none, where it is a range for each query."""
    if mask is None or mask.is_range or _keys_of_all(mask) is not None:
        return 0
    _, heads, queries, keys = mask.mask.extent(mask.grid)
    return min(_PAIRS, heads * min(_ROWS, queries) * keys)


def _keys_of_all(mask: BoundMask) -> KeyRanges | None:
    """The keys of each batch row, if all its queries see the same, one next to the other."""
    if mask.mask.extent(mask.grid)[1:3] != (1, 1):
        return None
    N, M = mask.grid.queries, mask.grid.keys
    visible = mask.dense()
    visible = visible.expand(*visible.shape[:-1], M).reshape(-1, M)
    ranges = KeyRanges.of_all(visible, N, M)
    lengths = (ranges.stop - ranges.first).clamp_min(0)[:, 0]
    return ranges if torch.equal(lengths.long(), visible.sum(dim=1)) else None


def _ranges_of(mask: BoundMask | None) -> KeyRanges | None:
    """Range of keys that each query sees, if a range says it all."""
    if mask is None:
        return None
    if mask.form is not None and mask.is_range:
        return KeyRanges.of(mask.form, mask.grid.queries, mask.grid.keys, mask.grid.device)
    return _keys_of_all(mask)
