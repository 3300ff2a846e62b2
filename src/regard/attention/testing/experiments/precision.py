"""Experiments with half precision and large inputs."""

import traceback
from collections.abc import Iterator
from types import TracebackType

import torch
from torch import Tensor

from regard.attention.testing.call import Call
from regard.attention.testing.evidence import TORCH, line_of
from regard.attention.testing.inputs import CallFailed, modules_of
from regard.attention.testing.report import Fault
from regard.attention.testing.trace import Trace


def overflow(call: Call, notes: list[str]) -> Iterator[Fault]:
    """Numbers that half precision or large inputs push out of range."""
    cure = "scores.masked_fill(~visible, torch.finfo(scores.dtype).min)  # or float('-inf')"
    base = call.base.out
    if not bool(base.isfinite().all()):
        return  # see ``empty``
    yield from _large(call)
    if base.dtype not in (torch.float32, torch.float64):
        return
    if call.modules and not call.owns_modules:
        notes.append("overflow: half precision is not tried where modules are in a closure.")
        return
    module = call.copy()
    for part in modules_of(module):
        part.half()

    def halved(tensor: Tensor) -> Tensor:
        return tensor.half() if tensor.is_floating_point() else tensor

    trace = Trace()
    try:
        out = call.run(module=module, convert=halved, mode=trace).out
    except CallFailed as failed:
        if "overflow" not in str(failed):
            notes.append(f"overflow: in half precision the call fails ({failed}).")
            return
        yield Fault(
            "overflow",
            65504.0,
            "In half precision the call fails: a number is written into float16 that is beyond "
            f"its largest, 65504 ({failed.error}).",
            line_of_error(failed.error.__traceback__),
            cure,
        )
        return
    bad = int((~out.isfinite()).sum())
    if bad:
        yield Fault(
            "overflow",
            float(bad),
            f"In half precision {bad:,} of {out.numel():,} numbers of the output are NaN or "
            "infinite, and in float32 none: something grows beyond 65504.",
            (trace.seen.first_bad,) if trace.seen.first_bad else (),
            cure,
        )


def _large(call: Call) -> Iterator[Fault]:
    floats = [slot for slot in call.content if slot.role == "states"]
    if not floats:
        return
    trace = Trace()
    try:
        out = call.run({id(s.tensor): s.tensor * 100 for s in floats}, mode=trace).out
    except CallFailed:
        return
    by_hand = [softmax for softmax in trace.seen.softmaxes if softmax.is_by_hand]
    if not bool(out.isfinite().all()) and by_hand:
        yield Fault(
            "overflow",
            100.0,
            "Of inputs a hundred times as large the output is NaN: exp() of the scores overflows "
            "where the largest score of the row is not subtracted first.",
            tuple(dict.fromkeys(softmax.line for softmax in by_hand))[:2],
            "weights = scores.softmax(dim=-1)",
        )


def line_of_error(trace: TracebackType | None) -> tuple[str, ...]:
    """The innermost line of a traceback that is not torch's."""
    frames = [
        frame for frame in traceback.extract_tb(trace) if not frame.filename.startswith(TORCH)
    ]
    return (line_of(frames[-1].filename, frames[-1].lineno or 0),) if frames else ()
