"""The engine against what users have otherwise: time of forward and backward, on a CPU.

    python -m benchmarks.attention [--rounds 5] [--threads 1 2] [--only window documents] [--dry]

Each task has two sides that give the same numbers: ``attend``, and the fastest plain way with
torch's fused kernel, or the formula written out. Every measurement is a process of its own, and
the sides alternate: with one thread, and with one for every core.
"""

import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

from benchmarks.measuring import (
    Figure,
    Measured,
    Spread,
    alternate,
    apart,
    measure_speed,
    paired_ratio,
    sized,
)

SIDES = ("ours", "theirs")
REPEATS = sized(3, 1)
# Positions of a long input and of a shorter one, documents in a row, calls of the cheapest.
LONG, SHORT, DOCUMENTS, CALLS = sized((4096, 1024, 64, 1000), (64, 32, 2, 3))
WINDOW = sized(256, 16)


@dataclass(frozen=True, kw_only=True, slots=True)
class Task:
    """A measured call."""

    what: str  # in words, for docs/measured.md
    peer: str  # what the other side is, in words
    # gives, for a side, the inputs and the call on them
    make: Callable[[str], tuple[list[Any], Callable[..., Any]]]
    # our time over theirs that is asked for at most; of calls so small that they are made many
    # times, the microseconds that one may take beyond theirs
    goal: float
    has_backward: bool = True  # whether gradients are part of it
    calls: int = 1  # how often the call is made, where that is more than once


def _inputs(*shapes: tuple[int, ...]) -> list[Any]:
    import torch

    torch.manual_seed(0)
    return [torch.randn(shape).requires_grad_() for shape in shapes]


def _window(side: str) -> tuple[list[Any], Callable[..., Any]]:
    import torch
    from torch.nn.functional import scaled_dot_product_attention

    from regard.attention import attend, causal, window

    shape = (1, 8, LONG, 64)
    mask = causal() & window(before=WINDOW)
    if side == "ours":
        return _inputs(shape, shape, shape), partial(attend, mask=mask)
    rows = torch.arange(WINDOW)[:, None] + WINDOW
    keys = torch.arange(2 * WINDOW)
    visible = ((keys <= rows) & (keys >= rows - WINDOW)).repeat(LONG // WINDOW, 1, 1, 1)
    visible[0, ..., :WINDOW] = False

    def in_blocks(query: Any, key: Any, value: Any) -> Any:
        """Each block of queries with its own block of keys and the one before."""
        query, key, value = (t[0].unflatten(1, (-1, WINDOW)) for t in (query, key, value))
        before = (torch.cat([torch.zeros_like(t[:, :1]), t[:, :-1]], 1) for t in (key, value))
        keys, values = (torch.cat(p, 2) for p in zip(before, (key, value), strict=True))
        blocks = (t.transpose(0, 1) for t in (query, keys, values))
        out = scaled_dot_product_attention(*blocks, attn_mask=visible)
        return out.transpose(0, 1).flatten(1, 2)[None]

    return _inputs(shape, shape, shape), in_blocks


def _gaussian(side: str) -> tuple[list[Any], Callable[..., Any]]:
    from torch.nn.functional import scaled_dot_product_attention

    from regard.attention import Gaussian, attend

    shape = (1, 4, SHORT, 64)
    call = partial(attend, score=Gaussian(8.0)) if side == "ours" else scaled_dot_product_attention
    return _inputs(shape, shape, shape), call


def _documents(side: str) -> tuple[list[Any], Callable[..., Any]]:
    import torch
    from torch.nn.functional import scaled_dot_product_attention

    from regard.attention import attend, documents

    sizes = torch.randint(20, 501, (DOCUMENTS,), generator=torch.Generator().manual_seed(0))
    ids = torch.repeat_interleave(torch.arange(DOCUMENTS), sizes)
    packed = _inputs(*[(1, 8, len(ids), 64)] * 3)
    if side == "ours":
        return packed, partial(attend, mask=documents(ids))

    def one_by_one(*packed: Any) -> Any:
        parts = zip(*(tensor.split(sizes.tolist(), dim=2) for tensor in packed), strict=True)
        return torch.cat([scaled_dot_product_attention(*part) for part in parts], 2)

    return packed, one_by_one


def _own_softmax(side: str) -> tuple[list[Any], Callable[..., Any]]:
    from torch.nn.functional import scaled_dot_product_attention

    from regard.attention import attend

    shape = (1, 8, LONG, 64)
    call = partial(attend, backend="dot_cpu") if side == "ours" else scaled_dot_product_attention
    return _inputs(shape, shape, shape), call


def _sparse(name: str, side: str) -> tuple[list[Any], Callable[..., Any]]:
    import entmax

    from regard.attention import Entmax15, Sparsemax, attend

    shape = (1, 8, SHORT, 64)
    weighting = Sparsemax() if name == "sparsemax" else Entmax15()
    formula = getattr(entmax, name)

    def theirs(query: Any, key: Any, value: Any) -> Any:
        return formula(query @ key.mT / 8, dim=-1) @ value

    call = partial(attend, weighting=weighting) if side == "ours" else theirs
    return _inputs(shape, shape, shape), call


def _multi_head(side: str) -> tuple[list[Any], Callable[..., Any]]:
    from torch import nn

    from regard.layers import MultiHeadAttention

    (states,) = _inputs((8, SHORT // 2, 512))
    if side == "ours":
        layer = MultiHeadAttention(512, 8)
        return [states], lambda states: layer(states)[0]
    peer = nn.MultiheadAttention(512, 8, batch_first=True)
    return [states], lambda states: peer(states, states, states, need_weights=False)[0]


def _multi_head_with_autocast(side: str) -> tuple[list[Any], Callable[..., Any]]:
    import torch

    inputs, call = _multi_head(side)

    def with_autocast(*tensors: Any) -> Any:
        with torch.autocast("cpu", torch.bfloat16):
            return call(*tensors)

    return inputs, with_autocast


def _small(side: str) -> tuple[list[Any], Callable[..., Any]]:
    from torch.nn.functional import scaled_dot_product_attention

    from regard.attention import attend

    inputs = [tensor.detach() for tensor in _inputs(*[(1, 4, 8, 64)] * 3)]
    return inputs, attend if side == "ours" else scaled_dot_product_attention


def _small_masked(side: str) -> tuple[list[Any], Callable[..., Any]]:
    from torch.nn.functional import scaled_dot_product_attention

    from regard.attention import attend, lengths

    inputs, mask = _inputs(*[(1, 4, 8, 64)] * 3), lengths([5])
    if side == "ours":
        return inputs, partial(attend, mask=mask)
    return inputs, partial(scaled_dot_product_attention, attn_mask=mask.bind(1, 4, 8, 8).dense())


TASKS = {
    "window": Task(
        what="Window of 256, N = 4,096, H 8, D 64, forward + backward",
        peer="torch's fused kernel over blocks with the block before",
        make=_window,
        goal=1 / 1.5,
    ),
    "documents": Task(
        what="64 documents of 20 to 500 tokens in a row, H 8, D 64, forward + backward",
        peer="one call of torch's fused kernel a document",
        make=_documents,
        goal=1.15,
    ),
    "gaussian": Task(
        what="Gaussian kernel, N = 1,024, H 4, D 64, forward + backward",
        peer="torch's fused kernel on plain dot products",
        make=_gaussian,
        goal=1.2,
    ),
    "own_softmax": Task(
        what="The engine's own softmax, on plain dot products, N = 4,096, H 8, forward + backward",
        peer="torch's fused kernel",
        make=_own_softmax,
        goal=1.15,
    ),
    "sparsemax": Task(
        what="Sparsemax, N = 1,024, H 8, D 64, forward + backward",
        peer="the entmax package",
        make=partial(_sparse, "sparsemax"),
        goal=1 / 5,
    ),
    "entmax15": Task(
        what="Entmax-1.5, N = 1,024, H 8, D 64, forward + backward",
        peer="the entmax package",
        make=partial(_sparse, "entmax15"),
        goal=1 / 5,
    ),
    "multi_head": Task(
        what="Multi-head layer, B 8, N 512, 8 heads of 64, float32, forward + backward",
        peer="nn.MultiheadAttention without weights",
        make=_multi_head,
        goal=1 / 1.15,
    ),
    "multi_head_autocast": Task(
        what="The same with automatic precision, bfloat16",
        peer="nn.MultiheadAttention without weights",
        make=_multi_head_with_autocast,
        goal=1 / 2.3,
    ),
    "overhead": Task(
        what="One call at B 1, H 4, N 8, forward",
        peer="torch's fused kernel called itself",
        make=_small,
        goal=25,
        has_backward=False,
        calls=CALLS,
    ),
    "overhead_masked": Task(
        what="One call at B 1, H 4, N 8, under lengths() used again, forward + backward",
        peer="torch's fused kernel called itself with a dense mask",
        make=_small_masked,
        goal=60,
        calls=CALLS,
    ),
}


def measure_here(name: str, side: str) -> dict[str, float]:
    """Median seconds of a call, of one side of a task, in this process."""
    import torch

    task = TASKS[name]
    inputs, call = task.make(side)

    def once() -> None:
        out = call(*inputs)
        if task.has_backward:
            torch.autograd.grad(out.sum(), inputs)

    once()
    seconds = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        for _ in range(task.calls):
            once()
        seconds.append((time.perf_counter() - start) / task.calls)
    return {"seconds": statistics.median(seconds)}


def measure(name: str, threads: int, rounds: int) -> Iterator[Measured]:
    """One task, both sides in processes of their own."""
    module = "benchmarks.attention"
    sides = {side: partial(apart, module, "--side", name, side, threads=threads) for side in SIDES}
    samples = alternate(sides, rounds)
    ours, theirs = ([sample["seconds"] for sample in samples[side]] for side in SIDES)
    ratio = paired_ratio(ours, theirs)
    line = figure(TASKS[name], Spread.of(ours), Spread.of(theirs), ratio, threads)
    details = {"ratio": ratio.table(), "goal": TASKS[name].goal, "samples": samples}
    yield f"{name}, threads: {threads}", details, [line]


def figure(task: Task, ours: Spread, theirs: Spread, ratio: Spread, threads: int) -> Figure:
    """One line of docs/measured.md."""
    per_second, unit = (1e3, "ms") if task.calls == 1 else (1e6, "µs")
    if task.calls == 1:
        faster = 1 / ratio.median
        told = f"{faster:.1f} × as fast" if faster >= 1 else f"{ratio.median:.2f} × its time"
        told, goal = f"{told}, ±{ratio.relative:.0%}", _goal(task.goal)
    else:
        told = f"{(ours.median - theirs.median) * per_second:.0f} µs above"
        goal = f"at most {task.goal:.0f}"
    return Figure(
        what=task.what,
        ours=f"{ours.median * per_second:.0f} {unit}",
        beside=f"{task.peer}: {theirs.median * per_second:.0f} {unit}",
        note=f"{told}; asked for: {goal}; threads: {threads}",
    )


def _apt() -> list[str]:
    """The tasks for this processor: bfloat16 only where it is multiplied."""
    import torch

    from regard.devices.finding import multiplies_bfloat16

    is_apt = multiplies_bfloat16(torch.device("cpu"))
    return [name for name in TASKS if is_apt or name != "multi_head_autocast"]


def _goal(goal: float) -> str:
    return f"{1 / goal:.1f} × as fast" if goal < 1 else f"{goal:.1f} × its time"


if __name__ == "__main__":
    measure_speed(
        "attention",
        title="The engine against torch's fused kernel and its own formulas",
        about=__doc__,
        rounds=5,
        side=measure_here,
        measure=measure,
        works=_apt(),
    )
