"""Additive attention against its formula written out: time and memory of forward and backward.

    python -m benchmarks.additive_attention [--rounds 5] [--threads 1 2] [--dry]

Every measurement is a process of its own, so that the peak of its memory is its own, and the two
sides alternate: with one thread, and with one for every core. The naive side is
``softmax(tanh(q + k) @ w) @ v`` in plain torch.
"""

import resource
import statistics
import time
from collections.abc import Iterator
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

SIDES = ("regard", "naive")
SIZES = sized({"B": 8, "N": 512, "M": 512, "h": 128}, {"B": 2, "N": 7, "M": 7, "h": 4})
REPEATS = sized(3, 1)


def measure_here(side: str) -> dict[str, float]:
    """Median seconds and extra peak memory of one side, in this process."""
    import torch

    from regard.attention import Additive, attend

    torch.manual_seed(0)
    B, N, M, h = SIZES.values()
    shapes = [(B, N, h), (B, M, h), (B, M, h), (h,)]

    def naive(query: Any, key: Any, value: Any, w: Any) -> Any:
        scores = (query.unsqueeze(-2) + key.unsqueeze(-3)).tanh() @ w
        return torch.softmax(scores, dim=-1) @ value

    def ours(query: Any, key: Any, value: Any, w: Any) -> Any:
        return attend(query, key, value, score=Additive(w))

    run = naive if side == "naive" else ours
    small = [torch.randn(1, 4, h).requires_grad_() for _ in range(3)]
    run(*small, torch.randn(h)).sum().backward()
    inputs = [torch.randn(shape).requires_grad_() for shape in shapes]
    grad = torch.randn(B, N, h)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    forward, backward = [], []
    for _ in range(REPEATS):
        start = time.perf_counter()
        out = run(*inputs)
        middle = time.perf_counter()
        torch.autograd.grad(out, inputs, grad)
        forward.append(middle - start)
        backward.append(time.perf_counter() - middle)
        del out
    peak = max(1, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)  # a ratio's part
    return {
        "forward_s": statistics.median(forward),
        "backward_s": statistics.median(backward),
        "both_s": statistics.median(map(sum, zip(forward, backward, strict=True))),
        "peak_extra_mib": peak / 1024,
    }


def measure(_: str, threads: int, rounds: int) -> Iterator[Measured]:
    """Both sides, in processes of their own, with so many threads."""
    module = "benchmarks.additive_attention"
    sides = {side: partial(apart, module, "--side", side, threads=threads) for side in SIDES}
    samples = alternate(sides, rounds)
    columns = {
        side: {name: [sample[name] for sample in taken] for name in taken[0]}
        for side, taken in samples.items()
    }
    ours, naive = columns["regard"], columns["naive"]
    faster = paired_ratio(naive["both_s"], ours["both_s"])
    smaller = paired_ratio(naive["peak_extra_mib"], ours["peak_extra_mib"])
    spreads = {
        side: {name: Spread.of(values).table() for name, values in column.items()}
        for side, column in columns.items()
    }
    sizes = ", ".join(f"{name} {size}" for name, size in SIZES.items())
    figures = [
        Figure(
            what=f"Additive attention, forward + backward ({sizes}, float32, CPU)",
            ours=f"{Spread.of(ours['both_s']).median:.2f} s",
            beside=f"the formula written out: {Spread.of(naive['both_s']).median:.2f} s",
            note=f"{faster.median:.1f} times as fast; asked for: 25; threads: {threads}",
        ),
        Figure(
            what=f"Additive attention, peak memory beyond inputs ({sizes})",
            ours=f"{Spread.of(ours['peak_extra_mib']).median:.0f} MiB",
            beside=f"the formula written out: {Spread.of(naive['peak_extra_mib']).median:.0f} MiB",
            note=f"{smaller.median:.0f} times smaller; threads: {threads}",
        ),
    ]
    details = {"sides": spreads, "times_as_fast": faster.table(), "times_smaller": smaller.table()}
    yield f"threads: {threads}", details, figures


if __name__ == "__main__":
    measure_speed(
        "additive_attention",
        title="Additive attention against its formula written out",
        about=__doc__,
        rounds=5,
        side=measure_here,
        measure=measure,
        details={"sizes": SIZES, "repeats_per_process": REPEATS},
    )
