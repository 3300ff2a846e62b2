"""How time and memory grow with the length: additive attention and a window, against formulas.

    python -m benchmarks.attention_growth [--rounds 3] [--threads 1] [--dry]

Forward and backward on a CPU, float32. Every point is a process of its own, so that the peak of its
memory is its own. Draws ``docs/figures/attention_growth.svg``.
"""

import argparse
import json
import resource
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from benchmarks.line_plot import Curve, Panel, draw
from benchmarks.measuring import (
    DRAWINGS,
    Figure,
    Spread,
    alternate,
    apart,
    machine,
    sized,
    write_record,
)

PLOT = DRAWINGS / "attention_growth.svg"
# Long enough for one call of the shortest to be measured, short enough for the longest to be one.
LONGEST_S = sized(5.0, 0.0)
# Lengths are divided by it.
_PART = sized(1, 128)


@dataclass(frozen=True, kw_only=True, slots=True)
class Side:
    """One line of a plot.

    Attributes:
        task: Which panels it belongs to.
        name: What the legend calls it.
        lengths: N, and M alike.
        make: Gives, for a length, the inputs and the call on them.
    """

    task: str
    name: str
    lengths: tuple[int, ...]
    make: Callable[[int], tuple[list[Any], Callable[..., Any]]]


def _additive_inputs(length: int) -> list[Any]:
    import torch

    torch.manual_seed(0)
    shapes = [(8, length, 128)] * 3 + [(128,)]
    return [torch.randn(shape).requires_grad_() for shape in shapes]


def _additive(length: int) -> tuple[list[Any], Callable[..., Any]]:
    from regard.attention import Additive, attend

    return _additive_inputs(length), lambda q, k, v, w: attend(q, k, v, score=Additive(w))


def _additive_formula(length: int) -> tuple[list[Any], Callable[..., Any]]:
    import torch

    def formula(query: Any, key: Any, value: Any, w: Any) -> Any:
        scores = (query.unsqueeze(-2) + key.unsqueeze(-3)).tanh() @ w
        return torch.softmax(scores, dim=-1) @ value

    return _additive_inputs(length), formula


def _window_inputs(length: int) -> list[Any]:
    import torch

    torch.manual_seed(0)
    return [torch.randn(1, 8, length, 64).requires_grad_() for _ in range(3)]


def _window(length: int) -> tuple[list[Any], Callable[..., Any]]:
    from regard.attention import attend, causal, window

    return _window_inputs(length), partial(attend, mask=causal() & window(before=256))


def _window_as_a_dense_mask(length: int) -> tuple[list[Any], Callable[..., Any]]:
    import torch
    from torch.nn.functional import scaled_dot_product_attention

    mask = torch.ones(length, length, dtype=torch.bool).tril().triu(-256)
    return _window_inputs(length), partial(scaled_dot_product_attention, attn_mask=mask)


def _lengths(*full: int) -> tuple[int, ...]:
    return tuple(length // _PART for length in full)


SIDES = {
    "additive": Side(
        task="Additive attention, B 8, h 128",
        name="regard",
        lengths=_lengths(256, 512, 1024, 2048),
        make=_additive,
    ),
    "additive_formula": Side(
        task="Additive attention, B 8, h 128",
        name="its formula",
        lengths=_lengths(128, 256, 512),
        make=_additive_formula,
    ),
    "window": Side(
        task="Window of 256, H 8, D 64",
        name="regard",
        lengths=_lengths(2048, 4096, 8192, 16384, 32768, 65536),
        make=_window,
    ),
    "window_as_a_dense_mask": Side(
        task="Window of 256, H 8, D 64",
        name="dense mask",
        lengths=_lengths(2048, 4096, 8192),
        make=_window_as_a_dense_mask,
    ),
}


def measure_here(name: str, length: int) -> dict[str, float]:
    """Median seconds and extra peak memory of one point, in this process."""
    import torch

    side = SIDES[name]

    def once(inputs: list[Any], call: Callable[..., Any]) -> float:
        start = time.perf_counter()
        torch.autograd.grad(call(*inputs).sum(), inputs)
        return time.perf_counter() - start

    once(*side.make(64))
    inputs, call = side.make(length)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    seconds = [once(inputs, call)]
    peak = max(1, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)  # a ratio's part
    while len(seconds) < 5 and sum(seconds) < LONGEST_S:
        seconds.append(once(inputs, call))
    # The first call of a length pays for fresh memory; where there are others, they are meant.
    return {"seconds": statistics.median(seconds[1:] or seconds), "mib": peak / 1024}


def measure_apart(name: str, length: int, threads: int) -> dict[str, float]:
    """The same in a process of its own."""
    found: dict[str, float] = apart(
        "benchmarks.attention_growth", "--point", name, length, threads=threads
    )
    return found


def panels(samples: dict[str, list[dict[str, float]]]) -> list[Panel]:
    """Time and memory of each task."""
    made = []
    for task in dict.fromkeys(side.task for side in SIDES.values()):
        for unit, up in (("seconds", "seconds"), ("mib", "MiB beyond inputs")):
            lines = []
            for name, side in SIDES.items():
                if side.task != task:
                    continue
                spreads = [_spread(samples, name, length, unit) for length in side.lengths]
                points = zip(side.lengths, (spread.median for spread in spreads), strict=True)
                margins = tuple((spread.high - spread.low) / 2 for spread in spreads)
                lines.append(Curve(name=side.name, points=tuple(points), margins=margins))
            made.append(Panel(title=task, across="N", up=up, lines=tuple(lines)))
    return made


def figures(samples: dict[str, list[dict[str, float]]], threads: int) -> list[Figure]:
    """The lines of docs/measured.md."""
    small, large = (_spread(samples, "additive", n, "seconds").median for n in _lengths(512, 2048))
    memory = _spread(samples, "additive", *_lengths(2048), "mib").median
    short, long = (_spread(samples, "window", n, "seconds").median for n in _lengths(4096, 65536))
    window_memory = _spread(samples, "window", *_lengths(65536), "mib").median
    return [
        Figure(
            what="Additive attention at N = M = 2,048 (B 8, h 128), forward + backward",
            ours=f"{large:.1f} s, {memory:.0f} MiB",
            beside=f"16 × its time at N = 512: {16 * small:.1f} s; the formula would need 51 GB",
            note=f"{large / small / 16:.2f} × that; goal 1.3 ×, 0.3 GB; threads: {threads}",
        ),
        Figure(
            what="Window of 256 at N = 65,536 (H 8, D 64), forward + backward",
            ours=f"{long:.1f} s, {window_memory:.0f} MiB",
            beside=f"16 × its time at N = 4,096: {16 * short:.1f} s",
            note=f"{long / short / 16:.2f} × that; threads: {threads}",
        ),
    ]


def _spread(
    samples: dict[str, list[dict[str, float]]], name: str, length: int, unit: str
) -> Spread:
    return Spread.of(sample[unit] for sample in samples[f"{name}, N = {length}"])


def main() -> None:
    """Measure all points, draw them, and write the record."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--dry", action="store_true", help="write no record and no plot")
    parser.add_argument("--point", nargs=2, metavar=("SIDE", "N"), help="measure one point here")
    options = parser.parse_args()
    if options.point:
        name, length = options.point
        print(json.dumps(measure_here(name, int(length))))
        return
    before = machine()
    points = {
        f"{name}, N = {length}": partial(measure_apart, name, length, options.threads)
        for name, side in SIDES.items()
        for length in side.lengths
    }
    samples = alternate(points, options.rounds)
    found = figures(samples, options.threads)
    for figure in found:
        print(figure)
    if options.dry:
        return
    write_record(
        "attention_growth",
        title="Time and memory of attention against the length",
        figures=found,
        details={"threads": options.threads, "rounds": options.rounds, "samples": samples},
        started_on=before,
    )
    PLOT.parent.mkdir(parents=True, exist_ok=True)
    PLOT.write_text(draw(panels(samples)), "utf-8")


if __name__ == "__main__":
    main()
