"""Experiments on heads: where they take their part of a token from, and where it goes."""

from collections.abc import Iterator
from math import prod

from torch import Tensor

from regard.attention.testing.call import Call
from regard.attention.testing.evidence import Attention, Traced
from regard.attention.testing.experiments.tokens import by_index
from regard.attention.testing.inputs import CallFailed, along
from regard.attention.testing.report import Fault
from regard.attention.testing.trace import Trace


def heads(call: Call, traced: Traced) -> Iterator[Fault]:
    """Heads that see other positions than their own token's, or hand their context to others."""
    axis = call.out_axis
    if axis is None or call.is_unbatched or not traced.attentions:
        return
    yield from _over_heads(call, traced, axis)
    yield from _split(call, traced)
    yield from _twins(call, traced)
    last = traced.attentions[-1]
    N = call.base.out.shape[axis]
    if last.kind == "pooled" or len(last.shape) < 3 or last.shape[-2] != N or N < 3:
        return
    lead = prod(last.shape[:-2])
    if lead <= call.batch:
        return
    for head in {0, 1, lead // call.batch - 1}:
        for position in (1, N - 2):
            moved = _touched(call, last, head, position, axis)
            if moved is not None and bool(moved.any()) and not bool(moved[position]):
                target = int(moved.argmax())
                yield Fault(
                    "heads",
                    float(target - position),
                    f"Heads are merged by a reshape that moves positions: what head {head} found "
                    f"for token {position} arrives at token {target}.",
                    (last.line,),
                    "context.transpose(1, 2).reshape(B, N, H * D)  # heads beside each other again",
                )
                return


def _over_heads(call: Call, traced: Traced, axis: int) -> Iterator[Fault]:
    """Attention of the heads of one token to each other, where tokens were to attend."""
    N = call.base.out.shape[axis]
    products = [
        attention.origin.product for attention in traced.attentions if attention.origin is not None
    ]
    sides = [product.query.shape for product in products if product is not None]
    if not sides or N < 3 or any(N in shape[-2:-1] or N not in shape[:-2] for shape in sides):
        return
    base, rows = call.base.out, call.out_batch_axis
    out = call.run(call.changed(call.content, call.at(N // 2))).out
    moved = by_index(call.moved(base, out), axis)
    one_row = call.changed(call.content, lambda t: along(t, call.batch_axis, [0]))
    moved_rows = by_index(call.moved(base, call.run(one_row).out), rows)[1:]
    if bool(moved[N // 2]) and int((moved > 0).sum()) == 1 and not bool(moved_rows.any()):
        H = sides[0][-2]
        yield Fault(
            "heads",
            float(H),
            f"Attention runs over the {H} heads of a token, not over the {N} tokens: no token "
            "changes the output of another.",
            (traced.attentions[0].line,),
            "query = query.transpose(1, 2)  # (B, N, H, D) to (B, H, N, D), keys and values too",
        )


def _twins(call: Call, traced: Traced) -> Iterator[Fault]:
    """Heads that all compute the same."""
    for attention in traced.attentions:
        product = attention.origin.product if attention.origin is not None else None
        if product is None or product.query.dim() < 3:
            continue
        N, D = product.query.shape[-2:]
        flat = product.query.reshape(-1, N, D)
        if len(flat) <= call.batch or len(flat) % call.batch or product.key.dim() < 3:
            continue
        sides = (flat, product.key.reshape(-1, *product.key.shape[-2:]))
        alike = [
            len(side) == len(flat)
            and bool((side.view(call.batch, -1, *side.shape[1:]).std(1) == 0).all())
            for side in sides
        ]
        if all(alike) and bool(flat.any()):
            yield Fault(
                "heads",
                float(len(flat) // call.batch),
                f"All {len(flat) // call.batch} heads have the same queries and keys: each is "
                "given the same part of the width.",
                (product.line,),
                "x.view(B, N, H, D).transpose(1, 2)  # head h takes features h·D to h·D + D",
            )
            return


def _touched(call: Call, last: Attention, head: int, position: int, axis: int) -> Tensor | None:
    """Change of each output if the context of one head changes at one position."""

    def touch(context: Tensor) -> Tensor:
        flat = context.reshape(-1, *context.shape[-2:]).clone()
        flat[head, position] += 10 * float(flat.abs().max()) + 1
        return flat.reshape(context.shape)

    try:
        out = call.run(mode=Trace((last.index, touch))).out
    except CallFailed:
        return None
    return by_index(call.moved(call.base.out, out), axis)


def _split(call: Call, traced: Traced) -> Iterator[Fault]:
    # Without other inputs no row of the batch can be padding, which nothing would move.
    is_plain = len(call.content) == len(call.slots)
    for slot in call.content:
        N = call.length(slot.tensor) or 0
        if N < 4 or (slot.role == "states" and slot.tensor.dim() != 3):
            continue
        for position in (1, N - 2):
            trace = Trace()
            call.run(call.changed((slot,), call.at(position)), mode=trace)
            for before, after in zip(traced.attentions, trace.seen.attentions, strict=False):
                fault = _split_of(before, after, (position, N, call.batch), is_plain=is_plain)
                if fault is not None:
                    yield fault
                    return


def _split_of(
    before: Attention, after: Attention, where: tuple[int, int, int], *, is_plain: bool
) -> Fault | None:
    position, N, batch = where
    product = before.origin.product if before.origin is not None else None
    changed = after.origin.product if after.origin is not None else None
    if product is None or changed is None:
        return None
    sides = {"queries": (product.query, changed.query), "keys": (product.key.mT, changed.key.mT)}
    for name, (old, new) in sides.items():
        if old.dim() < 3 or old.shape != new.shape or old.shape[-2] != N:
            continue
        moved = (old - new).abs().flatten(0, -3).amax(-1) > 1e-6 * float(old.abs().max())
        if len(moved) <= batch or not bool(moved.any()):
            continue
        blind = ~moved[:, position] if is_plain else moved.any(1) & ~moved[:, position]
        if bool(blind.any()):
            at = (moved.any(0) & ~moved.all(0)).nonzero().flatten().tolist()
            return Fault(
                "heads",
                float(blind.float().mean()),
                f"Heads are split by a reshape that mixes tokens: token {position} is not at "
                f"position {position} of the {name} in {int(blind.sum())} of {len(blind)} heads, "
                f"but at {', '.join(map(str, at[:6])) or 'none'}.",
                (product.line,),
                "x.view(B, N, H, D).transpose(1, 2)  # (B, H, N, D): not view(B, H, N, D)",
            )
    return None
