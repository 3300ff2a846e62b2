"""Queries and rows of a batch with nothing to see."""

from collections.abc import Iterator

import torch

from regard.attention.testing.call import Call
from regard.attention.testing.evidence import Attention, Traced, lines_of
from regard.attention.testing.experiments.padding import (
    is_of_padded,
    padding_of,
    spread,
    spread_out,
)
from regard.attention.testing.inputs import along
from regard.attention.testing.report import Fault


def empty(call: Call, traced: Traced, notes: list[str]) -> Iterator[Fault]:
    """Queries with nothing to see: NaN, or the mean of masked values."""
    cure = "weights = rg.masked_softmax(scores, mask=visible)  # a row with nothing to see is zero"
    nan = ~call.base.out.isfinite()
    rows = [
        softmax
        for softmax in traced.softmaxes
        if bool((softmax.scores == -torch.inf).all(-1).any())
    ]
    if bool(nan.any()):
        count = int(nan.sum())
        lines = tuple(dict.fromkeys(softmax.line for softmax in rows))[:2]
        lines = lines or ((traced.first_bad,) if traced.first_bad else lines_of(traced))
        name = "empty" if rows or any(map(_hides_rows, traced.attentions)) else "overflow"
        reason = "a query may see no key at all" if name == "empty" else "0 × ∞, or ∞ − ∞"
        cure = cure if name == "empty" else "scores.masked_fill(~visible, float('-inf'))"
        yield Fault(
            name,
            float(count),
            f"{count:,} of {nan.numel():,} numbers of the output are NaN: {reason}.",
            lines,
            cure,
        )
        return
    yield from _of_rows(call, traced, cure)
    yield from _of_masks(call, traced, cure)


def _hides_rows(attention: Attention) -> bool:
    mask = attention.mask
    if mask is None or mask.dim() < 2:
        return False
    return bool((~mask if mask.dtype == torch.bool else mask == -torch.inf).all(-1).any())


def _of_rows(call: Call, traced: Traced, cure: str) -> Iterator[Fault]:
    """Rows of the batch that are all padding in the call as it was given."""
    padded = None if call.pads_by_id else padding_of(call, [])
    if padded is None or padded.is_real.shape[0] != call.batch:
        return
    rows = (~padded.is_real.any(1)).nonzero()[:, 0].tolist()
    if not rows:
        return
    last = along(padded.is_real, 1, [padded.is_real.shape[1] - 1])
    where = {row: along(padded.is_real, 0, [row]) & last for row in rows}
    for row, which in where.items():
        out = call.run(call.changed(padded.slots, lambda t: spread(call, which, t))).out  # noqa: B023
        moved = call.moved(call.base.out, out)
        if call.out_axis is not None and is_of_padded(call, padded):
            moved = torch.where(spread_out(call, last, moved), 0.0, moved)
        moved = moved.select(call.out_batch_axis, row)
        if float(moved.max()) > 0:
            yield Fault(
                "empty",
                float(moved.max()),
                f"Row {row} of the batch is all padding and gets an answer made of it: other "
                f"padding moves it by up to {float(moved.max()):.2g} of the largest.",
                lines_of(traced, masks=True),
                cure,
            )
            return


def _of_masks(call: Call, traced: Traced, cure: str) -> Iterator[Fault]:
    """Queries that a mask hides everything from, in every row and head: it is the mask's doing."""
    for attention in traced.attentions:
        made = attention.softmax
        if made is None or made.scores.dim() < 2 or made.axis != made.scores.dim() - 1:
            continue
        hidden = (made.scores <= -1e4).all(-1) & (made.weights > 0).any(-1)
        flat = hidden.flatten(0, -2) if hidden.dim() > 1 else hidden[None]
        # Where padding is known, its queries may see nothing; one in every row is no padding.
        queries = flat.any(0) if call.padding is None else flat.all(0)
        if bool(queries.any()) and not bool(queries.all()) and made.scores.shape[-1] > 1:
            query = int(queries.long().argmax())
            uniform = float(made.weights[hidden].max())
            yield Fault(
                "empty",
                uniform,
                f"Query {query} may see no key, and gets weights of {uniform:.2g} on those that it "
                "should not see: the mean of everything.",
                (made.line,),
                cure,
            )
            return
