"""Experiments with padding: its effects, its polarity, and rows of padding alone."""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from regard.attention.testing.call import Call
from regard.attention.testing.evidence import Traced, is_flags, lines_of
from regard.attention.testing.inputs import QUERIES, CallFailed, Slot
from regard.attention.testing.report import Fault

_LENGTHS = "rg.attend(query, key, value, mask=rg.lengths(lengths))"
_HIDE = "scores = scores.masked_fill(~is_real[:, None, :], float('-inf'))  # columns: the keys"


@dataclass(frozen=True, slots=True)
class Padding:
    """The padding of a call.

    Attributes:
        value: The argument that says it.
        is_real: (B, M): which positions are no padding.
        slots: The inputs that it is about.
    """

    value: Tensor
    is_real: Tensor
    slots: tuple[Slot, ...]


def padding_of(call: Call, notes: list[str]) -> Padding | None:
    """The padding that a call has, or one made where its argument says that there is none."""
    if call.padding is None:
        return None
    slot = next(slot for slot in call.slots if slot.key == call.padding)
    value, rows = slot.tensor, call.batch
    if call.pads_by_id:
        is_padding = torch.isin(value, torch.tensor([*(call.padding_ids or {0})]).to(value))
        is_padding = is_padding if call.batch_axis == 0 else is_padding.T
        return Padding(value, ~is_padding, (slot,))
    lengths = {call.length(content.tensor) for content in call.content} - {None}
    is_length = not value.is_floating_point() and value.dtype != torch.bool
    is_length = is_length and (value.dim() == 1 or bool((value > 1).any()))
    M = max((length for length in lengths if length is not None), default=0)
    if not is_length:
        M = value.shape[-1]
        if value.dim() == 1 and rows > 1:
            notes.append("padding: a mask of one axis has no row of the batch; not looked into.")
            return None
    slots = _slots(call, slot, M)
    if M < 3 or not slots:
        notes.append("padding: no input has the positions that it speaks of; not looked into.")
        return None
    if is_length:
        longest = value.reshape(value.shape[0], -1).amax(1).clamp(max=M)
        if bool((longest == M).all()):
            longest = _shorter(longest, M)
            value = value.minimum(longest.view(-1, *[1] * (value.dim() - 1)).to(value.dtype))
        return Padding(value, torch.arange(M, device=value.device) < longest[:, None], slots)
    return _of_mask(call, slot, slots)


def _shorter(lengths: Tensor, M: int) -> Tensor:
    cut = torch.arange(len(lengths), device=lengths.device) % 2 == len(lengths) % 2
    cut = cut if len(lengths) > 1 else torch.ones_like(cut)
    return torch.where(cut, lengths - max(1, M // 3), lengths)


def _slots(call: Call, padding: Slot, M: int) -> tuple[Slot, ...]:
    """The inputs of so many positions, without queries that are no keys besides."""
    fits = [slot for slot in call.content if call.length(slot.tensor) == M]
    is_of_target = QUERIES.match(padding.name) is not None
    if len({id(slot.tensor) for slot in fits}) > 1 and not is_of_target:
        queries = {id(slot.tensor) for slot in fits if QUERIES.match(slot.name)}
        keys = {id(slot.tensor) for slot in fits if not QUERIES.match(slot.name)}
        fits = [slot for slot in fits if id(slot.tensor) in (keys or queries)]
    return tuple(fits)


def _of_mask(call: Call, slot: Slot, slots: tuple[Slot, ...]) -> Padding | None:
    mask, rows = slot.tensor, call.batch
    flat = mask.reshape(mask.shape[0] if mask.shape[0] == rows else 1, -1, mask.shape[-1])
    if mask.is_floating_point() and not is_flags(mask) and bool((mask < -1).any()):
        flat = flat > -1
    first, last = flat[:, 0, 0], flat[:, 0, -1]
    by_name = "attention" in slot.name or "keep" in slot.name or "valid" in slot.name
    real = torch.tensor(by_name, device=mask.device).to(flat.dtype)
    if len({*first.tolist()}) > 1:
        real = last[0]
    elif (
        bool((flat == first[0]).all())
        or bool((last == first[0]).any())
        or ("key_padding" not in slot.name and not by_name)
    ):
        real = first[0]
    # A key that any query may see is real: a causal part hides the others from the first ones.
    is_real = (flat == real).any(1).expand(rows, -1)
    if bool(is_real.all()):
        lengths = torch.full((rows,), mask.shape[-1], device=mask.device)
        is_real = (
            torch.arange(mask.shape[-1], device=mask.device)
            < (_shorter(lengths, mask.shape[-1])[:, None])
        )
        if mask.shape[0] != rows or (mask.is_floating_point() and not is_flags(mask) and real != 0):
            return None
        shape = (rows, *[1] * (mask.dim() - 2), mask.shape[-1])
        hidden = _hidden_value(mask, real)
        mask = torch.where(is_real.view(shape), mask, hidden)
    return Padding(mask, is_real, slots)


def _hidden_value(mask: Tensor, real: Tensor) -> Tensor:
    if mask.dtype == torch.bool:
        return ~real.to(torch.bool)
    return (1 - real).to(mask.dtype)


def padding(call: Call, traced: Traced, notes: list[str]) -> Iterator[Fault]:
    """Padding that changes an answer or receives weight, and masks of it the wrong way round."""
    padded = padding_of(call, notes)
    if padded is None:
        return
    given = next(slot.tensor for slot in call.slots if slot.key == call.padding)
    if padded.is_real.shape[0] != call.batch or bool(padded.is_real.all()):
        return
    if call.pads_by_id:  # other ids in the place of padding would be words
        yield from _more_padding(call, padded, given, call.base.out, lines_of(traced, masks=True))
        return
    try:
        base = call.run({id(given): padded.value}).out
        hidden = call.run(_changed(call, padded, given, is_real=False)).out
        shown = call.run(_changed(call, padded, given, is_real=True)).out
    except CallFailed as failed:
        notes.append(f"padding: the call fails with padding ({failed}).")
        return
    moved = _of_real(call, padded, call.moved(base, hidden))
    answer = _of_real(call, padded, _without_changed(call, padded, call.moved(base, shown)))
    lines = lines_of(traced, masks=True)
    if moved > 0 and answer == 0 and _has_several_real(call, padded):
        yield Fault(
            "polarity",
            moved,
            "The mask of padding is the wrong way round: what stands in padding changes the answer "
            f"(by up to {moved:.2g} of the largest), and real tokens do not.",
            lines,
            "is_padding = ~is_real  # True hides in torch's key_padding_mask, and shows in "
            "F.scaled_dot_product_attention",
        )
        yield _fault(moved, lines)
    elif moved > 0:
        yield _fault(moved, lines)
        yield from _of_queries(traced, padded)
    else:
        yield from _more_padding(call, padded, given, base, lines)


def _fault(moved: float, lines: tuple[str, ...]) -> Fault:
    return Fault(
        "padding",
        moved,
        f"What stands in padding changes the answer for real tokens, by up to {moved:.2g} of the "
        "largest output.",
        lines,
        _LENGTHS,
    )


def _changed(call: Call, padded: Padding, given: Tensor, *, is_real: bool) -> dict[int, Tensor]:
    """Different content in padding, or in the last real token of each row that has padding."""
    which = ~padded.is_real
    if is_real:
        last = padded.is_real.long().cumsum(1).argmax(1, keepdim=True)
        which = torch.arange(which.shape[1], device=which.device) == last
    changes = {id(given): padded.value}
    return {**changes, **call.changed(padded.slots, lambda t: spread(call, which, t))}


def spread(call: Call, which: Tensor, tensor: Tensor) -> Tensor:
    """A mask of (B, M) as one of an input's shape."""
    axis = call.axis(tensor)
    assert axis is not None
    if which.shape[0] == 1 and tensor.dim() < 3:
        which = which[0]
        shape = [1] * tensor.dim()
        shape[axis] = len(which)
        return which.reshape(shape).expand(tensor.shape)
    shape = [1] * tensor.dim()
    batch_axis = call.batch_axis if tensor.dim() < 4 else 0
    shape[batch_axis], shape[axis] = which.shape
    which = which.T if batch_axis > axis else which
    return which.reshape(shape).expand(tensor.shape)


def is_of_padded(call: Call, padded: Padding) -> bool:
    """Whether the output has an entry for each position of the padded sequence."""
    of_output = {id(slot.tensor) for slot in call.output_slots}
    return bool(of_output & {id(slot.tensor) for slot in padded.slots})


def _of_real(call: Call, padded: Padding, moved: Tensor) -> float:
    """The largest move of real tokens, in rows that have some."""
    kept = moved
    rows = padded.is_real.any(1)
    axis = call.out_axis
    if axis is not None and is_of_padded(call, padded):
        mask = spread_out(call, padded.is_real, moved)
        kept = torch.where(mask, moved, 0.0)
    if kept.shape[call.out_batch_axis] == len(rows):
        kept = kept.index_select(call.out_batch_axis, rows.nonzero()[:, 0].cpu())
    return float(kept.max()) if kept.numel() else 0.0


def spread_out(call: Call, which: Tensor, out: Tensor) -> Tensor:
    """Flags of positions, on the axes of an output."""
    axis, batch_axis = call.out_axis, call.out_batch_axis
    assert axis is not None
    shape = [1] * out.dim()
    shape[axis] = which.shape[1]
    if not call.is_unbatched:
        shape[batch_axis] = which.shape[0]
        which = which.T if batch_axis > axis else which
    return which.cpu().reshape(shape).expand(out.shape)


def _without_changed(call: Call, padded: Padding, moved: Tensor) -> Tensor:
    """Moves without those of the changed token itself, which its own state carries."""
    if call.out_axis is None or not is_of_padded(call, padded):
        return moved
    last = padded.is_real.long().cumsum(1).argmax(1, keepdim=True)
    which = torch.arange(padded.is_real.shape[1], device=last.device) == last
    return torch.where(spread_out(call, which, moved), 0.0, moved)


def _has_several_real(call: Call, padded: Padding) -> bool:
    return bool(padded.is_real.sum(1).max() > 1)


def _of_queries(traced: Traced, padded: Padding) -> Iterator[Fault]:
    """A mask over rows where one over columns belongs: it hides queries in place of keys."""
    for attention in traced.attentions:
        scores = None if attention.softmax is None else attention.softmax.scores
        if scores is None or scores.dim() < 3 or scores.shape[-1] != padded.is_real.shape[1]:
            continue
        hidden = scores <= -1e4
        if not bool(hidden.any()) or scores.shape[-2] != scores.shape[-1]:
            continue
        of_rows, of_columns = hidden.all(-1), hidden.all(-2)
        if bool(of_rows.any()) and not bool(of_columns.any()):
            number = int(of_rows.sum())
            lines = (
                tuple(line for name, _, line in attention.origin.steps if name != "mul")
                if (attention.origin is not None)
                else ()
            )
            yield Fault(
                "polarity",
                float(number),
                f"The mask of padding hides queries, not keys: {number:,} whole rows of scores are "
                "masked and no column is.",
                lines[:2],
                _HIDE,
            )
            return


def _more_padding(
    call: Call, padded: Padding, given: Tensor, base: Tensor, lines: tuple[str, ...]
) -> Iterator[Fault]:
    """The answer for a row without its padding, which must be the answer for it with padding."""
    counts = padded.is_real.sum(1)
    at_end = torch.arange(padded.is_real.shape[1], device=counts.device) < counts[:, None]
    rows = [
        row
        for row in range(len(counts))
        if 1 < int(counts[row]) < padded.is_real.shape[1]
        and bool((at_end[row] == padded.is_real[row]).all())
    ]
    if not rows or call.is_unbatched:
        return
    row, length = rows[-1], int(counts[rows[-1]])
    changes = call.cut(length, row)
    if padded.value is not given:
        made = padded.value.narrow(0, row, 1)
        for axis in range(1, made.dim()):
            if made.shape[axis] == padded.is_real.shape[1]:
                made = made.narrow(axis, 0, length)
        changes[id(given)] = made
    try:
        out = call.run(changes).out
    except CallFailed:
        return
    whole = base.narrow(call.out_batch_axis, row, 1)
    if call.out_axis is not None and is_of_padded(call, padded):
        whole = whole.narrow(call.out_axis, 0, length)
    if out.shape != whole.shape:
        return
    moved = float(call.moved(whole, out, loose=10).max())
    if moved > 0:
        yield Fault(
            "padding",
            moved,
            f"Of a row of {length} tokens the answer with {padded.is_real.shape[1] - length} of "
            f"padding is not the answer without: it moves by up to {moved:.2g} of the largest. "
            "Padding receives weight, or counts in a mean.",
            lines,
            _LENGTHS,
        )


def as_bias(traced: Traced) -> Iterator[Fault]:
    """Masks of zeros and ones that are added to scores."""
    for attention in traced.attentions:
        for name, mask, line in attention.origin.steps if attention.origin is not None else ():
            if name == "add" and mask is not None and mask.numel() > 1 and is_flags(mask):
                yield Fault(
                    "polarity",
                    1.0,
                    "A mask of zeros and ones is added to the scores: a key that it should hide "
                    "loses 1 of its score, and keeps weight.",
                    (line,),
                    "scores = scores.masked_fill(~visible, float('-inf'))  # visible is boolean",
                )
                return
