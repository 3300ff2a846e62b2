"""Documents packed into one row, each attended by itself: pairs across documents cost nothing."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import groupby

import torch
from torch import Tensor

from regard.attention.backends.base import Answer, Backend, Offer, Refusal
from regard.attention.engine.request import Request
from regard.attention.masks.bound import BoundMask
from regard.attention.masks.grid import Band, Segment, Segments
from regard.attention.masks.rules import window
from regard.checks import counted


class Packed(Backend):
    """Documents packed into one row.

    Attributes:
        kernel: The backend that must be able to serve the attention within documents.
        offer_of_part: The offer for the queries and keys of one document.
    """

    ignores_numbers = True

    def __init__(self, kernel: Backend, offer_of_part: Callable[[Request], Offer]) -> None:
        self.kernel, self.offer_of_part = kernel, offer_of_part

    def offer(self, request: Request) -> Offer | Refusal:
        form = None if request.mask is None else request.mask.form
        if not isinstance(form, Segments) or not form.is_exact:
            return Refusal("the mask is not one of documents")
        if not form.are_in_order(request.query.shape[2], request.key.shape[2]):
            return Refusal("queries and keys do not go through the documents in the same order")
        if not form.segments or (form.band is not None and form.band.is_empty):
            return Refusal("nothing is visible")
        if request.bias is not None or request.position is not None:
            return Refusal("there is a bias")
        of_kernel = self.kernel.offer(replace(request, mask=None))
        if isinstance(of_kernel, Refusal):
            return of_kernel
        documents = counted(len(form.segments), "documents")
        longest = counted(max(len(segment.rows) for segment in form.segments), "queries")
        return Offer(
            partial(self._run, form),
            _bytes_beyond,
            (f"{documents}, the longest of {longest}",),
            differentiates_once=True,
        )

    def _run(self, form: Segments, request: Request) -> Answer:
        if form.batch == 1:
            return self._row(request, form.segments, form.band), None
        rows = []
        for b, segments in groupby(form.segments, key=lambda segment: segment.batch):
            one = replace(
                request,
                query=request.query[b : b + 1],
                key=request.key[b : b + 1],
                value=request.value[b : b + 1],
            )
            rows.append(self._row(one, tuple(segments), form.band))
        return torch.cat(rows), None

    def _row(self, request: Request, segments: tuple[Segment, ...], band: Band | None) -> Tensor:
        # Split and joined, not sliced: the gradient of a slice is a tensor as long as the row.
        queries = torch.split(request.query, [len(segment.rows) for segment in segments], dim=2)
        sizes = [len(segment.keys) for segment in segments]
        keys, values = (torch.split(t, sizes, dim=2) for t in (request.key, request.value))
        parts = []
        for segment, query, key, value in zip(segments, queries, keys, values, strict=True):
            one = replace(request, query=query, key=key, value=value, mask=None)
            one.mask = _mask_of(one, segment, band)
            parts.append(self.offer_of_part(one).run(one)[0])
        return torch.cat(parts, dim=2)


def _bytes_beyond(request: Request) -> int:
    parts = request.query.shape[:3].numel() * request.value.shape[-1] * request.query.element_size()
    return parts + request.query.shape[:3].numel() * 4


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
