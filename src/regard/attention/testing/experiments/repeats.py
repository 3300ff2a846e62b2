"""Experiments that repeat a call: randomness, and state from one call to the next."""

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor

from regard.attention.testing.call import Call
from regard.attention.testing.evidence import Traced
from regard.attention.testing.inputs import CallFailed, held
from regard.attention.testing.report import Fault


def dropout(call: Call, traced: Traced, notes: list[str]) -> Iterator[Fault]:
    """Random numbers in evaluation."""
    moved = float(call.moved(call.base.out, call.run(seed=1).out).max())
    if moved == 0:
        return
    is_dropout = [line for name, line in traced.random if name in _DROPS]
    promised = {
        str(value) for key, value in call.kwargs.items() if "drop" in key or key == "training"
    } - {"0", "0.0", "False"}
    if not is_dropout or (promised and not call.modules):
        notes.append(f"dropout: the call is random (outputs move by {moved:.2g} of the largest).")
        return
    yield Fault(
        "dropout",
        moved,
        "The module is in evaluation, and two calls on the same inputs differ by up to "
        f"{moved:.2g} of the largest output: dropout is on.",
        tuple(dict.fromkeys(is_dropout))[:3],
        "F.dropout(weights, self.p, training=self.training)",
    )


_DROPS = ("bernoulli", "native_dropout", "_fused_dropout", "rand", "rand_like", "uniform")


def state(call: Call, traced: Traced, notes: list[str]) -> Iterator[Fault]:
    """Find state that a call leaves for the next, and inputs that a call changes."""
    fault = "A call depends on the calls before it: {}. Something is kept between calls."
    cure = "return output, state  # and take the state as an argument: nothing kept on self"
    used = call.copy()
    first = call.run(module=used).out
    again = float(call.moved(first, call.run(module=used).out).max())
    if again > 0:
        text = f"the same call twice gives outputs that differ by {again:.2g} of the largest"
        call.keeps = True
        yield Fault("state", again, fault.format(text), (), cure)
        return
    changes = [call.changed(call.content, lambda t: torch.ones_like(t, dtype=torch.bool))]
    length = max((call.length(slot.tensor) or 0 for slot in call.content), default=0)
    changes += [call.cut(length - 2)] if length > 4 else []
    for change in changes:
        try:
            fresh = call.run(change, module=call.copy()).out
        except CallFailed:
            continue  # it serves no other lengths
        late = call.copy()
        call.run(change, module=late)
        after, before = _moved(call, fresh, used, change), _moved(call, first, late, None)
        for (moved, state), which in ((after, "other inputs after"), (before, "after others,")):
            if moved > 0:
                call.keeps = True
                yield Fault("state", moved, fault.format(f"{which} these inputs {state}"), (), cure)
                return
    sizes = [held(used)]
    for _ in range(2):
        call.run(module=used)
        sizes.append(held(used))
    if sizes[0] < sizes[1] < sizes[2]:
        more = sizes[2] - sizes[1]
        text = f"each call leaves {more:,} more numbers on the module"
        yield Fault("state", float(more), f"The module grows: {text}.", (), cure)
    if call.touched:
        lines = tuple(dict.fromkeys(traced.in_place))[:3]
        yield Fault(
            "state",
            float(len(call.touched)),
            f"The call changes its own input in place: {', '.join(call.touched)}.",
            lines,
            "states = states + positions  # not +=, which writes into the caller's tensor",
        )


def _moved(
    call: Call, alone: Tensor, module: Callable[..., Any], change: dict[int, Tensor] | None
) -> tuple[float, str]:
    """Change of an answer that a module gives after another one, and a word on it."""
    try:
        moved = float(call.moved(alone, call.run(change, module=module).out).max())
    except CallFailed as failed:
        return 1.0, f"fail ({failed})"
    return moved, f"give outputs that differ by {moved:.2g} of the largest"
