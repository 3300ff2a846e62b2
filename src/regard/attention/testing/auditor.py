"""The audit of a module: one call, repeated with the changes of each experiment."""

from collections.abc import Callable, Iterator
from typing import Any

import torch

from regard.attention.observing import observe
from regard.attention.testing.call import Call
from regard.attention.testing.evidence import Traced, sizes
from regard.attention.testing.experiments import (
    empty_rows,
    heads,
    learning,
    padding,
    positions,
    precision,
    repeats,
    scoring,
    tokens,
    weighting,
)
from regard.attention.testing.inputs import CallFailed, Key, modules_of
from regard.attention.testing.report import LOOKED_FOR, Audit, Fault
from regard.attention.testing.trace import Trace
from regard.checks import check_whole
from regard.errors import SettingError


def audit(
    module: Callable[..., Any],
    *inputs: Any,
    causal: bool | None = None,
    padding: Key | None = None,
    batch_axis: int = 0,
    **keywords: Any,
) -> Audit:
    """Look for silent faults in attention: a layer, a model or a function.

    The call that is given is repeated with changed inputs (another token, another row, more
    padding, half precision), and its operations are read: divisions, masks, normalisations, sums. A
    fault is reported when such an experiment shows it, a note where no experiment can decide. The
    module is copied and put in evaluation first; functions run as they are.

    Args:
        module: Whatever takes tensors and gives one, or several of which the first is its output.
        inputs: Positional arguments of one right call: states (B, N, C), heads (B, H, N, D) or
            token ids (B, N).
        causal: Whether no output may depend on later tokens. None finds it out and says so.
        padding: The position or the name of the argument that carries lengths, or a mask of
            padding; or that of the token ids, where a model finds the padding in them by itself.
            None takes one by its usual names, such as ``key_padding_mask``.
        batch_axis: The axis of the rows of the batch: 0, or 1 of tokens first.
        keywords: Keyword arguments of the call.

    Returns:
        The report, with a line of code that is right for each fault.

    Raises:
        SettingError: The module fails on its inputs, none of them has tokens, or ``padding`` is
            none of them.

    Example:
        >>> def attention(query, key, value):
        ...     scores = query @ key.transpose(-2, -1) / key.shape[-1] ** 0.5
        ...     return scores.softmax(dim=1) @ value
        >>> states = torch.randn(2, 5, 8, generator=torch.Generator().manual_seed(0))
        >>> report = audit(attention, states, states, states)
        >>> [fault.name for fault in report.faults]
        ['rows']
        >>> audit(torch.nn.MultiheadAttention(8, 2, batch_first=True), *[states] * 3).faults
        ()
    """
    check_whole("batch_axis", batch_axis)
    call = Call(module, inputs, keywords, padding, batch_axis)
    if not call.content:
        raise SettingError(
            "inputs must have a tensor of states or token ids; got "
            f"{', '.join(type(value).__name__ for value in inputs) or 'none'}."
        )
    _enliven(call)
    traced = trace_of(call)
    notes = [f"trace: {traced.failed}"] if traced.failed else list[str]()
    faults = list[Fault]()
    for name, experiment in _experiments(call, traced, causal, notes):
        try:
            faults += experiment()
            if name == "state" and call.keeps:
                call.module = call.copy()
                _enliven(call)
                vars(traced).update(vars(trace_of(call)))
        except CallFailed as failed:
            notes.append(f"{name}: the call fails on changed inputs ({failed}).")
        except Exception as error:
            notes.append(f"{name}: not looked into ({type(error).__name__}: {error}).")
    if not traced.attentions:
        engine = "regard's own engine" if traced.engine else "none that could be read"
        notes.append(f"attention: {engine}, so that weights and scores were not looked into.")
    order = list(LOOKED_FOR)
    by_name = {fault.name: fault for fault in reversed(faults)}
    faults = sorted(by_name.values(), key=lambda fault: order.index(fault.name))
    unseen = {note.partition(":")[0] for note in notes} | _not_there(call, traced)
    passed = tuple(name for name in order if name not in by_name and name not in unseen)
    return Audit(_subject(call), tuple(faults), tuple(dict.fromkeys(notes)), passed)


def _experiments(
    call: Call, traced: Traced, causal: bool | None, notes: list[str]
) -> Iterator[tuple[str, Callable[[], list[Fault]]]]:
    """The experiments, each under the fault that it looks for first."""
    yield "empty", lambda: list(empty_rows.empty(call, traced, notes))
    yield "dropout", lambda: list(repeats.dropout(call, traced, notes))
    yield "state", lambda: list(repeats.state(call, traced, notes))
    yield "rows", lambda: list(weighting.rows(call, traced))
    yield "future", lambda: list(tokens.future(call, traced, causal, notes))
    yield "batch", lambda: list(tokens.batch(call, traced, notes))
    yield "padding", lambda: list(padding.padding(call, traced, notes))
    yield "polarity", lambda: list(padding.as_bias(traced))
    yield "scale", lambda: list(scoring.scale(call, traced, notes))
    yield "overflow", lambda: list(precision.overflow(call, notes))
    if not traced.random:
        yield "positions", lambda: list(tokens.rows_alike(call))
    yield "positions", lambda: list(positions.order(call, traced, notes))
    yield "heads", lambda: list(heads.heads(call, traced))
    yield "weights", lambda: list(weighting.weights(call, traced, notes))
    yield "gradients", lambda: list(learning.gradients(call, traced, notes))
    yield "memory", lambda: list(scoring.memory(call, traced))


def _not_there(call: Call, traced: Traced) -> set[str]:
    """Faults that a call has no occasion for, so that their absence says nothing."""
    names = set() if call.padding is not None else {"padding"}
    steps = [
        name for e in traced.attentions if e.origin is not None for name, _, _ in e.origin.steps
    ]
    has_mask = bool({"masked_fill", "where", "index_put", "add", "multiplied", "tril"} & {*steps})
    has_mask = has_mask or any(attention.is_causal for attention in traced.attentions)
    if not has_mask and not traced.engine and call.padding is None:
        names |= {"polarity", "empty"}
    if not traced.attentions:
        names |= {"rows", "scale", "heads", "weights", "memory"}
    if len(call.base.tensors) < 2:
        names.add("weights")
    return names


def trace_of(call: Call) -> Traced:
    """Run the call once and read its operations."""
    trace = Trace()
    with observe(trace.seen.engine.append):
        call.run(mode=trace)
    return trace.seen


def _enliven(call: Call) -> None:
    """Fill parameters of zeros with small noise, in the copy: zeros hide their factors."""
    if not call.owns_modules:
        return
    generator = torch.Generator().manual_seed(2)
    for module in modules_of(call.module):
        for parameter in module.parameters():
            is_still = parameter.requires_grad and parameter.numel() > 1
            if is_still and bool((parameter == 0).all()):
                with torch.no_grad():
                    noise = torch.randn(parameter.shape, generator=generator) * 0.05
                    parameter.copy_(noise.to(parameter.dtype))
    call.base = call.run()


def _subject(call: Call) -> str:
    given = call.given
    name = getattr(given, "__name__", type(given).__name__)
    shapes = [sizes(slot.tensor.shape) for slot in call.slots]
    return f"{name}({', '.join(shapes)})"
