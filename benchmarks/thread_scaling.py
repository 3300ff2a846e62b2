"""Compiled loops with one thread and with more, and what is left to one thread alone.

    python -m benchmarks.thread_scaling [--rounds 5] [--threads 1 2] [--dry]

Each kernel is timed with every number of threads, in turn, beside a loop of arithmetic that shares
nothing: no more can be had of the machine. With one thread, its tasks are timed one by one. From
them, and from the time that passes outside of them, what more cores would give is said on paper:
each task goes to the first core that is free, and whatever else is done waits for all of them.
"""

import argparse
import json
import os
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import cache, partial
from heapq import heapreplace
from itertools import product
from typing import Any
from unittest.mock import patch

from benchmarks.measuring import (
    Figure,
    Spread,
    alternate,
    apart,
    machine,
    paired_ratio,
    sized,
    write_record,
)

NAME = "thread_scaling"
REPEATS = sized(3, 1)
ADDITIVE, LONG, SHORT, STEPS = sized((512, 4096, 1024, 200_000), (8, 64, 32, 10))
ON_PAPER = (16, 64)
# Who hands out tasks.
SHARED_BY = (
    "regard.attention.backends.additive_cpu",
    "regard.attention.engine.rows",
    "regard.attention.engine.dot",
    "regard.attention.inspect.softmax_statistics",
)
Call = Callable[[], object]
Shapes = Sequence[tuple[int, ...]]


def _with_gradients(call: Callable[..., Any], shapes: Shapes) -> Call:
    import torch

    torch.manual_seed(0)
    inputs = [torch.randn(shape).requires_grad_() for shape in shapes]
    grad = torch.randn_like(call(*inputs))
    return lambda: torch.autograd.grad(call(*inputs), inputs, grad)


def _arithmetic() -> Call:
    from regard.kernels import threads

    return lambda: threads.share_out(64, lambda task: _loop()(STEPS))


@cache
def _loop() -> Callable[[int], None]:
    """A loop of products and sums in a few registers, which lets go of the interpreter's lock."""
    import numba
    import numpy as np

    def loop(steps: int) -> float:
        numbers = np.ones(64, np.float32)
        for _ in range(steps):
            for i in range(64):
                numbers[i] = numbers[i] * np.float32(0.5) + np.float32(0.5)
        return float(numbers.sum())

    compiled: Callable[[int], None] = numba.njit(nogil=True, fastmath=True)(loop)
    return compiled


def _additive() -> Call:
    from regard.attention import Additive, attend

    def call(query: Any, key: Any, value: Any, w: Any) -> Any:
        return attend(query, key, value, score=Additive(w))

    return _with_gradients(call, [*[(8, ADDITIVE, 128)] * 3, (128,)])


def _softmax() -> Call:
    from regard.attention import attend

    return _with_gradients(partial(attend, backend="dot_cpu"), [(1, 8, LONG, 64)] * 3)


def _summary() -> Call:
    import torch

    from regard.attention import summarize

    torch.manual_seed(0)
    query, key = torch.randn(2, 1, 8, LONG, 64)
    return partial(summarize, query, key, top=8, map=64)


def _sparsemax() -> Call:
    import torch

    from regard.attention import Sparsemax
    from regard.attention.engine.rows import gradient_of, weights_of

    torch.manual_seed(0)
    scores, grad = torch.randn(2, 8, SHORT, SHORT)
    return lambda: gradient_of(Sparsemax(), weights_of(Sparsemax(), scores), grad)


ALONE = "arithmetic"
KERNELS: dict[str, tuple[str, Callable[[], Call]]] = {
    ALONE: ("A loop of arithmetic that shares nothing", _arithmetic),
    "additive": (
        f"Additive attention, B 8, N = M = {ADDITIVE}, h 128, forward + backward",
        _additive,
    ),
    "softmax": (f"Softmax, N = {LONG:,}, H 8, D 64, forward + backward", _softmax),
    "summarize": (f"`summarize`, N = {LONG:,}, H 8, D 64", _summary),
    "sparsemax": (f"Rows of sparsemax, N = M = {SHORT:,}, H 8, and their gradient", _sparsemax),
}


def measure_here(name: str) -> dict[str, Any]:
    """Median seconds of a kernel in this process; with one thread, those of every task as well."""
    import torch

    call = KERNELS[name][1]()
    call()
    seconds = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - start)
    found: dict[str, Any] = {"seconds": statistics.median(seconds)}
    if torch.get_num_threads() == 1:
        with _tasks_timed() as passes:
            start = time.perf_counter()
            call()
            found |= {"whole": time.perf_counter() - start, "passes": passes}
    return found


@contextmanager
def _tasks_timed() -> Iterator[list[list[float]]]:
    """While it lasts, gathers the seconds of the tasks of every pass."""
    from regard.kernels import threads

    passes: list[list[float]] = []
    share_out = threads.share_out

    def timed(tasks: int, work: Callable[[int], None]) -> None:
        passes.append([])

        def one(task: int) -> None:
            start = time.perf_counter()
            work(task)
            passes[-1].append(time.perf_counter() - start)

        share_out(tasks, one)

    with ExitStack() as patches:
        for module in (threads.__name__, *SHARED_BY):
            patches.enter_context(patch(f"{module}.share_out", timed))
        yield passes


def on_paper(whole: float, passes: Sequence[Sequence[float]], cores: int) -> float:
    """How many times as fast so many cores are as one.

    Args:
        whole: Seconds of one thread.
        passes: Those of the tasks of every pass, in the order in which they are handed out.
        cores: How many.

    Example:
        >>> on_paper(9.0, [[1.0, 1.0, 1.0, 1.0], [2.0, 2.0]], 2)
        1.8
    """
    seconds = whole - sum(map(sum, passes))
    for tasks in passes:
        busy = [0.0] * cores
        for task in tasks:
            heapreplace(busy, busy[0] + task)
        seconds += max(busy)
    return whole / seconds


def measure_apart(name: str, threads: int) -> dict[str, Any]:
    """The same in a process of its own."""
    found: dict[str, Any] = apart(f"benchmarks.{NAME}", "--kernel", name, threads=threads)
    return found


def measured(samples: dict[int, list[dict[str, Any]]]) -> dict[str, Any]:
    """What the samples of a kernel say, by the number of threads; one is among them."""
    seconds = {n: [sample["seconds"] for sample in taken] for n, taken in samples.items()}
    alone = [(sample["whole"], sample["passes"]) for sample in samples[1]]
    left = Spread.of(1 - sum(map(sum, passes)) / whole for whole, passes in alone)
    return {
        "seconds": {n: Spread.of(taken).table() for n, taken in seconds.items()},
        "gain": {n: paired_ratio(seconds[1], taken).table() for n, taken in seconds.items()},
        "left_to_one_thread": left.table(),
        "tasks": [len(tasks) for tasks in alone[0][1]],
        "on_paper": {
            n: Spread.of(on_paper(*each, n) for each in alone).table()
            for n in (*seconds, *ON_PAPER)
        },
    }


def figure(name: str, found: dict[str, Any], machines: dict[str, Any], threads: int) -> Figure:
    """One line of docs/measured.md."""
    said = ", ".join(f"{n} cores: {found['on_paper'][n]['median']:.1f} ×" for n in ON_PAPER)
    return Figure(
        what=KERNELS[name][0],
        ours=f"{found['gain'][threads]['median']:.2f} × as fast with {threads} threads as with one",
        beside=f"arithmetic that shares nothing: {machines['gain'][threads]['median']:.2f} ×",
        note=f"{found['left_to_one_thread']['median']:.1%} is left to one thread; on paper "
        f"{said}; {found['seconds'][1]['median'] * 1000:.0f} ms with one thread",
    )


def main() -> None:
    """Measure all kernels, and write the record."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, nargs="+", default=[os.cpu_count() or 1])
    parser.add_argument("--only", nargs="+", choices=list(KERNELS), default=list(KERNELS))
    parser.add_argument("--dry", action="store_true", help="write no record")
    parser.add_argument("--kernel", choices=list(KERNELS), help="measure it here")
    options = parser.parse_args()
    if options.kernel:
        print(json.dumps(measure_here(options.kernel)))
        return
    before = machine()
    threads = sorted({1, *options.threads})
    names = list(dict.fromkeys([ALONE, *options.only]))
    sides = {
        f"{name}, threads: {n}": partial(measure_apart, name, n)
        for name, n in product(names, threads)
    }
    samples = alternate(sides, options.rounds, report=lambda line: print(line[:100]))
    found = {
        name: measured({n: samples[f"{name}, threads: {n}"] for n in threads}) for name in names
    }
    figures = [figure(name, found[name], found[ALONE], threads[-1]) for name in names[1:]]
    print(*figures, sep="\n")
    if options.dry:
        return
    write_record(
        NAME,
        title="Compiled loops on more cores",
        figures=figures,
        details={"rounds": options.rounds, "kernels": found},
        started_on=before,
    )


if __name__ == "__main__":
    main()
