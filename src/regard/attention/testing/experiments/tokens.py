"""Experiments with other tokens and other rows: changes of outputs that should stay."""

import re
from collections.abc import Iterator

import torch
from torch import Tensor

from regard.attention.testing.call import Call
from regard.attention.testing.evidence import Traced, is_flags, lines_of
from regard.attention.testing.inputs import Slot, along, is_square
from regard.attention.testing.report import Fault

_ALL_POSITIONS = 16  # up to so many, each one is changed by itself
_CAUSAL = "rg.attend(query, key, value, mask=rg.causal())"


def future(call: Call, traced: Traced, causal: bool | None, notes: list[str]) -> Iterator[Fault]:
    """A later token that changes an earlier output."""
    axis, slots = call.out_axis, call.output_slots
    length = 0 if axis is None else call.base.out.shape[axis]
    if axis is None or not slots or length < 3:
        if causal:
            notes.append("causal: the output has no entry for each token, so no earlier one.")
        yield from _multiplied(traced, notes, is_causal=bool(causal))
        return
    moves = min((influence(call, group, axis) for group in _groups(slots)), key=_leak)
    positions = sorted(moves)
    ahead = {j: row[:j] for j, row in moves.items() if j > 0}
    leak = _leak(moves)
    behind = [float(moves[j][j + 1 :].max()) for j in positions if j + 1 < length]
    one_ahead = all(not bool(row[:-1].any()) for row in ahead.values()) and leak > 0
    far = max((float(moves[j][j + 3 :].max()) for j in positions if j + 3 < length), default=0.0)
    lines = lines_of(traced, masks=True)
    if leak > 0 and max(behind, default=0.0) == 0.0 and (causal or traced.attentions):
        yield Fault(
            "polarity",
            leak,
            "The mask hides the past and shows the future: a later token changes earlier outputs "
            f"(by up to {leak:.2g} of the largest), an earlier token changes no later one.",
            lines,
            "visible = torch.ones(n, n, dtype=torch.bool).tril()  # True where a query may look",
        )
    elif leak > 0 and one_ahead and far > 0 and causal is not False:
        yield Fault(
            "future",
            leak,
            f"Each output sees one token too many: token t+1 changes output t by up to {leak:.2g} "
            "of the largest, token t+2 does not. The causal mask is shifted by one.",
            lines,
            "visible = torch.ones(n, n, dtype=torch.bool).tril(diagonal=0)",
        )
        return
    if causal and leak > 0:
        pair = next((j, int(row.argmax())) for j, row in sorted(ahead.items()) if row.any())
        yield Fault(
            "future",
            leak,
            f"A later token changes an earlier output: token {pair[0]} changes output {pair[1]} "
            f"and others, by up to {leak:.2g} of the largest.",
            lines,
            _CAUSAL,
        )
        return
    if causal is None:
        kind = "a later token changes earlier outputs" if leak > 0 else "the output is causal"
        kind = kind if leak > 0 or any(behind) else "no token changes the output of another"
        notes.append(f"future: {kind}; causal=True or causal=False says what it should be.")
    yield from _multiplied(traced, notes, is_causal=bool(causal))


def _multiplied(traced: Traced, notes: list[str], *, is_causal: bool) -> Iterator[Fault]:
    """Scores that a mask of zeros and ones multiplies: masked keys keep exp(0) of the weight."""
    for attention in traced.attentions:
        for name, mask, line in attention.origin.steps if attention.origin is not None else ():
            if name not in ("multiplied", "tril") or attention.softmax is None:
                continue
            weights = attention.softmax.weights
            is_triangle = name == "tril"
            by = torch.ones_like(weights).tril() if is_triangle else mask
            if by is None or by.dim() < 1 or not is_flags(by):
                continue
            try:
                hidden = (by == 0).expand(weights.shape)
            except RuntimeError:
                continue
            weight = float(weights[hidden].max()) if bool(hidden.any()) else 0.0
            if weight < 1e-6:
                continue
            N, M = hidden.shape[-2:]
            triangle = torch.ones(N, M, dtype=torch.bool, device=hidden.device).triu(1)
            kind = "future" if N == M > 1 and bool((hidden == triangle).all()) else "padding"
            yield Fault(
                kind,
                weight,
                "A mask multiplies the scores by zero, and exp(0) is not zero: a key that it hides "
                f"gets a weight of {weight:.2g}.",
                (line,),
                "scores = scores.masked_fill(~visible, float('-inf'))",
            )
            return


def _leak(moves: dict[int, Tensor]) -> float:
    """The largest change of outputs before a changed position."""
    return max((float(row[:j].max()) for j, row in moves.items() if j > 0), default=0.0)


def _groups(slots: tuple[Slot, ...]) -> list[tuple[Slot, ...]]:
    """The inputs that change together: queries, keys and values, but no source and target."""
    alone = {id(slot.tensor): slot for slot in slots}
    is_pair = len(alone) == 2 and not any(_KEYS.match(slot.name) for slot in slots)
    return [(slot,) for slot in alone.values()] if is_pair else [slots]


_KEYS = re.compile(r"(?i)^(q|k|v|kv|quer|key|value)")


def influence(call: Call, slots: tuple[Slot, ...], axis: int) -> dict[int, Tensor]:
    """Change of each output position when one position of the inputs changes, by position."""
    length = call.base.out.shape[axis]
    few = {0, 1, 2, length // 2 - 1, length // 2, length // 2 + 1, *range(length - 3, length)}
    moves = dict[int, Tensor]()
    for j in range(length) if length <= _ALL_POSITIONS else sorted(few):
        out = call.run(call.changed(slots, call.at(j))).out
        moves[j] = by_index(call.moved(call.base.out, out), axis)
    return moves


def by_index(moved: Tensor, axis: int) -> Tensor:
    """The largest of each index of one axis."""
    return moved.movedim(axis, 0).flatten(1).amax(1) if moved.dim() > 1 else moved


def batch(call: Call, traced: Traced, notes: list[str]) -> Iterator[Fault]:
    """Another row of the batch that changes this one."""
    rows = call.batch
    if rows < 2 or call.base.out.shape[call.out_batch_axis] != rows:
        notes.append("batch: the call has but one row; pass two or more to look for this.")
        return
    base, axis = call.base.out, call.out_batch_axis
    for changed, kept in ((range(1, rows), 0), (range(rows - 1), rows - 1)):
        where = lambda t: along(t, call.batch_axis, [*changed])  # noqa: B023, E731
        out = call.run(call.changed(call.content, where)).out
        moved = float(call.moved(base, out).select(axis, kept).max())
        if moved > 0:
            case = f"row {changed[0]} changes row {kept}"
            yield Fault(
                "batch",
                moved,
                f"Rows of the batch are mixed: {case}, by up to {moved:.2g} of the largest output. "
                "An axis is taken for another one.",
                lines_of(traced),
                "nn.MultiheadAttention(dim, heads, batch_first=True)  # inputs of (batch, tokens, "
                "dim)",
            )
            return


def rows_alike(call: Call) -> Iterator[Fault]:
    """Rows of a batch with the same content that get different answers."""
    rows = call.batch
    if rows < 2 or call.base.out.shape[call.out_batch_axis] != rows:
        return
    changes = dict[int, Tensor]()
    # A mask of all heads of all rows has no axis of the batch: rows differ by it.
    shapes = [slot.tensor.shape for slot in call.slots if slot.role == "other"]
    if any(len(shape) > 2 and shape[0] not in (1, rows) for shape in shapes):
        return
    for slot in call.slots:
        tensor, axis = slot.tensor, call.batch_axis
        if slot.role == "other":
            axis = 0 if tensor.dim() == 1 or slot.key == call.padding else call.batch_axis
        if tensor.dim() > axis and tensor.shape[axis] == rows and not is_square(slot):
            first = tensor.narrow(axis, 0, 1)
            changes[id(tensor)] = first.expand_as(tensor).clone()
    out = call.run(changes).out
    first_row, *remaining_rows = out.unbind(call.out_batch_axis)
    moved = max(float(call.moved(first_row, row, loose=5).max()) for row in remaining_rows)
    if moved > 0:
        yield Fault(
            "positions",
            moved,
            "Two rows of a batch with the same content get different answers, by up to "
            f"{moved:.2g} of the largest: what should go by the position of a token goes by the "
            "row of the batch.",
            (),
            "states = states + positions[: states.shape[1]]  # of (batch, tokens, dim)",
        )
