"""Whether a model of token ids knows the order of its tokens."""

from collections.abc import Iterator

import torch
from torch import Tensor

from regard.attention.testing.call import Call
from regard.attention.testing.evidence import Attention, Traced, lines_of
from regard.attention.testing.experiments.padding import padding_of
from regard.attention.testing.inputs import CallFailed, Slot, modules_of
from regard.attention.testing.report import Fault
from regard.attention.testing.trace import Trace

_CURE = "states = embedding(ids) + positions(torch.arange(ids.shape[1]))"


def order(call: Call, traced: Traced, notes: list[str]) -> Iterator[Fault]:
    """Tokens that may change positions without any difference, before self-attention or at all."""
    slots = [slot for slot in call.content if slot.role == "ids" and slot.tensor.dim() == 2]
    for slot in slots:
        N = call.length(slot.tensor) or 0
        pair = _pair(call, slot, N)
        if pair is None:
            continue
        exchanged = _exchanged(call, slot, pair)
        trace = Trace()
        try:
            out = call.run({id(slot.tensor): exchanged}, mode=trace).out
        except CallFailed:
            continue
        is_self = any(_attends_itself(attention, N) for attention in traced.attentions) or any(
            engine_call.query.shape[-2] == engine_call.key.shape[-2] == N
            for engine_call in traced.engine
        )
        if not is_self:
            notes.append("positions: no self-attention was seen, so their order may not matter.")
            continue
        evidence = _unmoved(call, exchanged, out, slot, pair)
        if not evidence and len(slots) == 1:
            evidence = _blind(traced, trace.seen, pair, N)
        if evidence:
            yield Fault(
                "positions",
                0.0,
                f"The order of tokens does not matter: with tokens {pair[0]} and {pair[1]} "
                f"exchanged {evidence}.",
                lines_of(traced)[:1],
                _CURE,
            )
            return


def _pair(call: Call, slot: Slot, N: int) -> tuple[int, int] | None:
    """Two positions inside the text of every row, that differ in some row."""
    found = padding_of(call, []) if call.padding is not None else None
    stop = N
    if found is not None and slot in found.slots:
        stop = int(found.is_real.sum(1).min())
    ids = slot.tensor if call.batch_axis == 0 else slot.tensor.T
    pairs = [(i, j) for i in range(1, stop - 1) for j in range(stop - 2, i + 1, -1)]
    return next(((i, j) for i, j in pairs if bool((ids[:, i] != ids[:, j]).all())), None)


def _exchanged(call: Call, slot: Slot, pair: tuple[int, int]) -> Tensor:
    axis = call.axis(slot.tensor)
    assert axis is not None
    order = list(range(slot.tensor.shape[axis]))
    i, j = pair
    order[i], order[j] = j, i
    return slot.tensor.index_select(axis, torch.tensor(order, device=slot.tensor.device))


def _attends_itself(attention: Attention, N: int) -> bool:
    product = attention.origin.product if attention.origin is not None else None
    if product is not None:
        return product.query.shape[-2] == product.key.shape[-1] == N
    return attention.weights is not None and attention.weights.shape[-2:] == (N, N)


def _unmoved(call: Call, exchanged: Tensor, out: Tensor, slot: Slot, pair: tuple[int, int]) -> str:
    """Describe the unchanged part of the output; nothing if all of it moves."""
    i, j = pair
    base, axis = call.base.out.detach(), call.out_axis
    changed = call.changed((slot,), call.at(i))
    changed_out = call.run(changed).out
    # Exchanged tokens may matter little in a model of small numbers: compare with a new one.
    part, rounding = 1e-4, 5e-7
    if double := _in_double(call, {}, changed, {id(slot.tensor): exchanged}):
        base, changed_out, out = double
        part, rounding = 1e-6, 1e-9
    least = max(part * call.distance(base, changed_out), rounding * float(base.abs().max()))
    if axis is None or slot not in call.output_slots:
        return "no output changes" if call.distance(base, out) < least else ""
    order = list(range(out.shape[axis]))
    order[i], order[j] = j, i
    back = out.index_select(axis, torch.tensor(order, device=out.device))
    if call.distance(base, back) < least:
        return "outputs are exchanged, and no other changes"
    after = torch.arange(j + 1, out.shape[axis], device=out.device)
    outs_after = base.index_select(axis, after), out.index_select(axis, after)
    moves = changed_out.index_select(axis, after)
    return (
        "no output after them changes"
        if (
            call.distance(*outs_after) < max(part * call.distance(outs_after[0], moves), least / 10)
        )
        else ""
    )


def _in_double(call: Call, *changes: dict[int, Tensor]) -> list[Tensor]:
    """The outputs of changed calls in double precision; none of a module that has but one."""
    if not call.owns_modules:
        return []
    module = call.copy(call.module)
    for part in modules_of(module):
        part.double()

    def doubled(tensor: Tensor) -> Tensor:
        return tensor.double() if tensor.is_floating_point() else tensor

    try:
        return [call.run(inputs, module=module, convert=doubled).out.detach() for inputs in changes]
    except CallFailed:
        return []


def _blind(before: Traced, after: Traced, pair: tuple[int, int], N: int) -> str:
    """Whether the first self-attention scores tokens by their content alone."""
    for old, new in zip(before.attentions, after.attentions, strict=False):
        if not _attends_itself(old, N):
            continue
        scores = _scores(old), _scores(new)
        if scores[0] is None or scores[1] is None or scores[0].shape != scores[1].shape:
            return ""
        i, j = pair
        order = list(range(N))
        order[i], order[j] = j, i
        last = scores[0][..., N - 1, :]
        back = scores[1][..., N - 1, :][..., order]
        scale = float(last[last > -1e4].abs().max()) if bool((last > -1e4).any()) else 1.0
        is_blind = bool(
            ((last - back).abs() <= 1e-4 * (scale or 1.0)).logical_or(last == back).all()
        )
        moved = not torch.allclose(scores[0], scores[1])
        return (
            "their scores are exchanged, and no other changes in the first layer"
            if (is_blind and moved)
            else ""
        )
    return ""


def _scores(attention: Attention) -> Tensor | None:
    if attention.softmax is not None:
        return attention.softmax.scores.float()
    if attention.origin is None or attention.origin.product is None:
        return None
    product = attention.origin.product
    scores = (product.query @ product.key).float() * product.factor
    if attention.mask is not None and attention.mask.dtype != torch.bool:
        scores = scores + attention.mask
    return scores
