"""The engine on a CUDA GPU: additive attention, and dot products beside torch's own kernels.

    python -m benchmarks.gpu_attention [--rounds 5] [--only additive window] [--dry]

Times are those of CUDA events around calls, forward and backward apart, after warming up; the two
sides of a task alternate. Before anything is timed, additive attention is checked against float64.
Without a GPU it ends and says so; a tiny run then goes on on the CPU, where it shows that the
script runs and times nothing that counts.
"""

import statistics
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, NamedTuple

from benchmarks.measuring import (
    TINY,
    Figure,
    Measured,
    Spread,
    alternate,
    measure_speed,
    paired_ratio,
    sized,
)

WARM_UPS, REPEATS = sized((3, 20), (0, 1))
# Positions of a long input and of a shorter one, and documents in a row.
LONG, SHORT, DOCUMENTS = sized((8192, 2048, 64), (256, 32, 2))
LARGEST_ERROR = 1e-4


class Side(NamedTuple):
    """One way to do a task."""

    inputs: list[Any]  # what gradients are asked of
    call: Callable[..., Any]  # gives the mixed values for the inputs
    plan: str = ""  # how ``attend`` serves it; empty for a peer


@dataclass(frozen=True, kw_only=True, slots=True)
class Task:
    """A measured call."""

    what: str  # in words, for docs/measured.md
    make: Callable[[], dict[str, Side]]  # gives the sides, ours first
    peer: str = ""  # what the other side is, in words; empty if there is none
    # what is asked for: our time over the peer's at most, or milliseconds forward and backward
    # where there is no peer
    goal: tuple[float, ...] = ()


def _inputs(*shapes: tuple[int, ...], dtype: str = "bfloat16") -> list[Any]:
    import torch

    torch.manual_seed(0)
    kind = getattr(torch, dtype)
    return [torch.randn(s, device=_device(), dtype=kind).requires_grad_() for s in shapes]


def _device() -> str:
    import torch

    return "cuda" if torch.cuda.is_available() else "cpu"


def _ours(inputs: list[Any], **options: Any) -> Side:
    from regard.attention import attend, explain

    return Side(inputs, partial(attend, **options), str(explain(*inputs[:3], **options)))


def _additive() -> dict[str, Side]:
    from regard.attention import Additive, attend, explain

    shape = (8, 1, SHORT, 128)
    inputs = _inputs(shape, shape, shape, (128,), dtype="float32")

    def call(query: Any, key: Any, value: Any, w: Any) -> Any:
        return attend(query, key, value, score=Additive(w))

    return {"ours": Side(inputs, call, str(explain(*inputs[:3], score=Additive(inputs[3]))))}


def _dot() -> dict[str, Side]:
    from torch.nn.functional import scaled_dot_product_attention

    inputs = _inputs(*[(8, 16, SHORT, 64)] * 3)
    return {"ours": _ours(inputs), "theirs": Side(inputs, scaled_dot_product_attention)}


def _window() -> dict[str, Side]:
    from regard.attention import causal, window

    N, before = LONG, LONG // 32
    inputs = _inputs(*[(2, 16, N, 64)] * 3)
    flex = _flex(N, lambda b, h, query, key: (key <= query) & (key >= query - before))
    return {
        "ours": _ours(inputs, mask=causal() & window(before=before)),
        "theirs": Side(inputs, flex),
    }


def _documents() -> dict[str, Side]:
    import torch

    from regard.attention import documents

    sizes = torch.randint(20, 501, (DOCUMENTS,), generator=torch.Generator().manual_seed(0))
    ids = torch.repeat_interleave(torch.arange(DOCUMENTS), sizes).to(_device())
    inputs = _inputs(*[(1, 16, len(ids), 64)] * 3)
    flex = _flex(len(ids), lambda b, h, query, key: ids[query] == ids[key])
    return {"ours": _ours(inputs, mask=documents(ids)), "theirs": Side(inputs, flex)}


def _flex(N: int, visible: Callable[..., Any]) -> Callable[..., Any]:
    import torch
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention
    from torch.nn.functional import scaled_dot_product_attention

    mask = create_block_mask(visible, None, None, N, N, device=_device())
    if not torch.cuda.is_available():  # it has no backward there
        return scaled_dot_product_attention
    return partial(torch.compile(flex_attention), block_mask=mask)


TASKS = {
    "additive": Task(
        what="Additive, B 8, N = M = 2,048, h 128, float32, on a GPU",
        make=_additive,
        goal=(1.2, 3.0),
    ),
    "dot": Task(
        what="Dot product, B 8, H 16, N 2,048, D 64, bfloat16, on a GPU, forward + backward",
        peer="torch's fused kernel",
        make=_dot,
        goal=(1.03,),
    ),
    "window": Task(
        what="Window of 256, N = 8,192, B 2, H 16, D 64, bfloat16, on a GPU, forward + backward",
        peer="flex_attention, compiled",
        make=_window,
        goal=(1.2,),
    ),
    "documents": Task(
        what="64 documents of 20 to 500 tokens in a row, H 16, D 64, bfloat16, on a GPU, "
        "forward + backward",
        peer="flex_attention, compiled",
        make=_documents,
        goal=(1.2,),
    ),
}


@cache
def largest_error() -> float:
    """Of additive attention and its gradients on this GPU, relative to float64; exits if large."""
    import torch

    from regard.attention import Additive, attend, causal

    shapes = [(2, 4, 300, 96), (2, 2, 333, 96), (2, 2, 333, 80), (4, 96)]
    narrow = _inputs(*shapes, dtype="float32")
    wide = [t.detach().double().requires_grad_() for t in narrow]
    answers = []
    kernel = "additive_triton" if torch.cuda.is_available() else None
    for inputs, backend in ((narrow, kernel), (wide, "tiled")):
        *qkv, w = inputs
        out = attend(*qkv, score=Additive(w), mask=causal(), backend=backend)
        grads = torch.autograd.grad(out.square().sum(), inputs)
        answers.append([out, *grads])
    pairs = zip(*answers, strict=True)
    error = max(float((one - other).abs().max() / other.abs().max()) for one, other in pairs)
    print(f"largest error of additive attention beside float64: {error:.1e}")
    if error > LARGEST_ERROR:
        sys.exit(f"That is more than {LARGEST_ERROR}: its times would mean nothing.")
    return error


class _Moment:
    """A CUDA event's like on a CPU, for tiny runs."""

    def record(self) -> None:
        self.at = time.perf_counter()

    def synchronize(self) -> None:
        """Nothing: a CPU's work is done when the call is."""

    def elapsed_time(self, end: "_Moment") -> float:
        return 1000 * (end.at - self.at)


def _event() -> Any:
    import torch

    return torch.cuda.Event(enable_timing=True) if torch.cuda.is_available() else _Moment()


def milliseconds(side: Side) -> dict[str, float]:
    """Median milliseconds of a side, forward and backward."""
    import torch

    samples: dict[str, list[float]] = {"forward": [], "backward": []}
    for turn in range(WARM_UPS + REPEATS):
        start, middle, end = (_event() for _ in range(3))
        start.record()
        out = side.call(*side.inputs)
        middle.record()
        torch.autograd.grad(out, side.inputs, torch.ones_like(out))
        end.record()
        end.synchronize()
        if turn >= WARM_UPS:
            samples["forward"].append(start.elapsed_time(middle))
            samples["backward"].append(middle.elapsed_time(end))
    return {name: statistics.median(taken) for name, taken in samples.items()}


def figure(task: Task, samples: dict[str, list[dict[str, float]]]) -> Figure:
    """One line of docs/measured.md."""
    if not task.peer:
        forward, backward = (
            Spread.of(each[name] for each in samples["ours"]) for name in ("forward", "backward")
        )
        return Figure(
            what=task.what,
            ours=f"{forward.median:.2f} ms forward, {backward.median:.2f} ms backward",
            beside=f"asked for: {task.goal[0]} ms and {task.goal[1]} ms",
            note=f"±{forward.relative:.0%} and ±{backward.relative:.0%}",
        )
    totals = {name: [sum(each.values()) for each in taken] for name, taken in samples.items()}
    ratio = paired_ratio(totals["ours"], totals["theirs"])
    ours, theirs = (statistics.median(totals[name]) for name in ("ours", "theirs"))
    return Figure(
        what=task.what,
        ours=f"{ours:.2f} ms",
        beside=f"{task.peer}: {theirs:.2f} ms",
        note=f"{ratio.median:.2f} × its time, ±{ratio.relative:.0%}; "
        f"asked for: {task.goal[0]:.2f} × its time",
    )


def measure(name: str, _: int, rounds: int) -> Iterator[Measured]:
    """All sides of a task in turn."""
    error, sides = largest_error(), TASKS[name].make()
    calls = {which: partial(milliseconds, side) for which, side in sides.items()}
    samples = alternate(calls, rounds)
    details = {"goal": TASKS[name].goal, "plan": sides["ours"].plan, "samples": samples}
    yield name, {**details, "error of additive attention": error}, [figure(TASKS[name], samples)]


def main() -> None:
    """Measure all tasks, and write the record."""
    import torch

    if not (torch.cuda.is_available() or TINY):
        sys.exit("benchmarks.gpu_attention needs a CUDA GPU, and torch sees none. Nothing written.")
    measure_speed(
        "gpu_attention",
        title="The engine on a GPU, beside torch's fused kernel and flex_attention",
        about=__doc__,
        rounds=5,
        threads=(1,),
        measure=measure,
        works=list(TASKS),
        packages=("torch", "triton"),
        details={"cuda": torch.version.cuda},
    )


if __name__ == "__main__":
    main()
