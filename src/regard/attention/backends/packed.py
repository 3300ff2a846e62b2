"""Documents packed into one row, each attended by itself: what they do not see costs nothing."""

from dataclasses import replace
from itertools import groupby

import torch
from torch import Tensor

from regard.attention.backends.base import LARGEST_SHARE_OF_DOCUMENTS, Backend, Tiled
from regard.attention.backends.dot_cpu import DotCpu
from regard.attention.backends.sdpa import Sdpa
from regard.attention.backends.short import Short
from regard.attention.engine.request import Request
from regard.attention.masks.bound import BoundMask
from regard.attention.masks.grid import Band, Segment, Segments
from regard.attention.masks.rules import window

_SHORT, _SDPA, _TILED, _LOOPS = Short(), Sdpa(), Tiled(), DotCpu()


class Packed(Backend):
    """Documents packed into one row."""

    judges_by_kind = True
    differentiates_once = True

    def refuse(self, request: Request) -> str | None:
        form = None if request.mask is None else request.mask.form
        if not isinstance(form, Segments) or not form.is_exact:
            return "the mask is not one of documents"
        if not are_in_order(form, request.query.shape[2], request.key.shape[2]):
            return "queries and keys do not go through the documents in the same order"
        if form.band is not None and form.band.is_empty:
            return "nothing is visible"
        if request.bias is not None or request.position is not None:
            return "there is a bias"
        return _SDPA.refuse(replace(request, mask=None))

    def decline(self, request: Request) -> str | None:
        # In one pass, and of the hidden pairs within documents none is worked out.
        if _form_of(request).band is not None and _LOOPS.refuse(request) is None:
            return "compiled loops are faster with a mask inside documents"
        if (
            _form_of(request).pairs
            > LARGEST_SHARE_OF_DOCUMENTS * request.query.shape[2] * request.key.shape[2]
        ):
            return "the documents are most of the row"
        return None

    def notes(self, request: Request) -> tuple[str, ...]:
        form = _form_of(request)
        longest = max(len(segment.rows) for segment in form.segments)
        return (f"{len(form.segments)} documents, the longest of {longest} queries",)

    def bytes_beyond(self, request: Request) -> int:
        parts = (
            request.query.shape[:3].numel() * request.value.shape[-1] * request.query.element_size()
        )
        return parts + request.query.shape[:3].numel() * 4

    def run(self, request: Request) -> tuple[Tensor, Tensor | None]:
        form = _form_of(request)
        if form.batch == 1:
            return _row(request, form.segments, form.band), None
        rows = []
        for b, segments in groupby(form.segments, key=lambda segment: segment.batch):
            one = replace(
                request,
                query=request.query[b : b + 1],
                key=request.key[b : b + 1],
                value=request.value[b : b + 1],
            )
            rows.append(_row(one, tuple(segments), form.band))
        return torch.cat(rows), None


def _row(request: Request, segments: tuple[Segment, ...], band: Band | None) -> Tensor:
    # Split and joined, not sliced: the gradient of a slice is a tensor as long as the row.
    queries = torch.split(request.query, [len(segment.rows) for segment in segments], dim=2)
    sizes = [len(segment.keys) for segment in segments]
    keys, values = (torch.split(t, sizes, dim=2) for t in (request.key, request.value))
    parts = []
    for segment, query, key, value in zip(segments, queries, keys, values, strict=True):
        one = replace(request, query=query, key=key, value=value, mask=None)
        one.mask = _mask_of(one, segment, band)
        backend = next(
            (m for m in (_SHORT, _SDPA) if not (m.refuse(one) or m.decline(one))), _TILED
        )
        parts.append(backend.run(one)[0])
    return torch.cat(parts, dim=2)


def _mask_of(request: Request, segment: Segment, band: Band | None) -> BoundMask | None:
    """Mask within a document, bound to its sizes; None if all keys are visible."""
    if band is None:
        return None
    # Counted from the document's own first key, and so that both sides are at least zero.
    shift = segment.rows.start - segment.keys.start
    least = None if band.least is None else band.least + shift
    most = None if band.most is None else band.most + shift
    first = most if least is None else least
    assert first is not None
    mask = window(
        before=None if least is None else 0,
        after=None if most is None else most - first,
        first=first,
    )
    B, H, N, _ = request.query.shape
    return mask.bind(B, H, N, request.key.shape[2], request.query.device)


def _form_of(request: Request) -> Segments:
    assert request.mask is not None
    form = request.mask.form
    assert isinstance(form, Segments)
    return form


def are_in_order(form: Segments, queries: int, keys: int) -> bool:
    """Whether the pieces of each row hold every query and every key, one after the other."""
    for _, segments in groupby(form.segments, key=lambda segment: segment.batch):
        row = key = 0
        for segment in segments:
            if segment.rows.start != row or segment.keys.start != key or not len(segment.keys):
                return False
            row, key = segment.rows.stop, segment.keys.stop
        if (row, key) != (queries, keys):
            return False
    return True
