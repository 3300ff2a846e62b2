"""Looking inside: what it costs beside the same work without.

    python -m benchmarks.inspection [--only summary ...] [--rounds 5] [--threads 1 2] [--dry]

Each measurement is a row of ``MEASUREMENTS``: its sides are functions that give samples, named in
words, and one that reads a figure off them. Every sample is taken in a process of its own, and the
sides alternate: with one thread, and with one for every core.
"""

import resource
import statistics
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from benchmarks.measuring import (
    Figure,
    Measured,
    alternate,
    apart,
    measure_speed,
    paired_ratio,
    sized,
)

Sample = dict[str, float]
Samples = Mapping[str, list[Sample]]
NAME = "inspection"
SHORT, LONG, LONGEST = sized((512, 8192, 16384), (16, 128, 256))
LAYERS, HEADS, HEAD_DIM = sized((4, 8, 64), (2, 2, 8))
# A forward of fewer tokens is so short that the first pays for what is made once: repeat it.
_BRIEF, _REPEATS = 4096, sized(9, 1)


@dataclass(frozen=True, kw_only=True, slots=True)
class Measurement:
    """One row of the record."""

    # what is measured, by name; each gives one sample in its own process
    sides: Mapping[str, Callable[[], Sample]]
    # the line of docs/measured.md, from all sides' samples and the number of threads
    figure: Callable[[Samples, int], Figure]


def median_seconds(call: Callable[[], object], repeats: int = 3) -> float:
    """The median time of a call, after one that does not count."""
    call()
    seconds = []
    for _ in range(repeats):
        start = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - start)
    return statistics.median(seconds)


def peak_bytes() -> float:
    """The most memory that this process has held."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024.0


def _inputs(N: int) -> list[Any]:
    import torch

    torch.manual_seed(0)
    return [torch.randn(1, 8, N, 64) for _ in range(3)]


def _fused(N: int, *, is_causal: bool = False) -> Sample:
    import torch
    from torch.nn.functional import scaled_dot_product_attention

    tensors = _inputs(N)
    with torch.inference_mode():
        call = partial(scaled_dot_product_attention, *tensors, is_causal=is_causal)
        return {"seconds": median_seconds(call)}


def _summary(N: int, *, is_causal: bool = False) -> Sample:
    import torch

    from regard.attention import causal, summarize

    query, key, _ = _inputs(N)
    mask = causal() if is_causal else None
    with torch.inference_mode():
        summarize(query[:, :, :64], key[:, :, :64], mask=mask)
        before = peak_bytes()
        call = partial(summarize, query, key, mask=mask, top=8, map=64)
        return {"seconds": median_seconds(call), "bytes": peak_bytes() - before}


def plain(length: int) -> dict[str, float]:
    """Seconds of a forward of the model as it is, and the most bytes that the process held."""
    model, ids = _model_and_ids(length)
    return _sample(lambda: model(input_ids=ids, use_cache=False), length)


def watched(length: int) -> dict[str, float]:
    import regard as rg

    model, ids = _model_and_ids(length)

    def look() -> None:
        with rg.watch(model) as seen:
            model(input_ids=ids, use_cache=False)
        assert len(seen) == LAYERS

    return _sample(look, length)


def _model_and_ids(length: int) -> tuple[Any, Any]:
    import torch
    import transformers

    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        vocab_size=1000,
        hidden_size=HEADS * HEAD_DIM,
        num_hidden_layers=LAYERS,
        num_attention_heads=HEADS,
        intermediate_size=1376,
        max_position_embeddings=length,
        attn_implementation="sdpa",
    )
    return transformers.LlamaModel(config).eval(), torch.randint(0, 1000, (1, length))


def _sample(call: Callable[[], object], length: int) -> dict[str, float]:
    import torch

    seconds = []
    with torch.no_grad():
        for _ in range(1 + _REPEATS if length < _BRIEF else 1):
            start = time.perf_counter()
            call()
            seconds.append(time.perf_counter() - start)
    # In kilobytes, on Linux.
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024.0
    return {"seconds": statistics.median(seconds[1:] or seconds), "bytes": peak}


def _summary_figure(what: str, samples: Samples, threads: int) -> Figure:
    ours, theirs = ([each["seconds"] for each in samples[side]] for side in ("summary", "fused"))
    ratio = paired_ratio(ours, theirs)
    peak = max(each["bytes"] for each in samples["summary"])
    return Figure(
        what=f"Summary (entropy, received mass, top 8, map of 64 × 64), {what}, H 8, D 64, float32",
        ours=f"{statistics.median(ours):.2f} s, {peak / 1e9:.2f} GB",
        beside=f"torch's fused kernel alone: {statistics.median(theirs):.2f} s",
        note=f"{ratio.median:.2f} × its time, ±{ratio.relative:.0%}; asked for: at most 1.3 × and "
        f"0.25 GB; threads: {threads}",
    )


def _watch_figure(N: int, bar: str, samples: Samples, threads: int) -> Figure:
    ours, theirs = ([each["seconds"] for each in samples[side]] for side in ("watched", "plain"))
    ratio = paired_ratio(ours, theirs)
    peak = max(each["bytes"] for each in samples["watched"])
    return Figure(
        what=f"`watch` on a Llama-shaped model (4 layers, 8 heads of 64, random), N = {N:,}",
        ours=f"{statistics.median(ours):.2f} s, {peak / 1e9:.2f} GB held by the process",
        beside=f"its plain forward, with torch's fused kernel: {statistics.median(theirs):.2f} s",
        note=f"{ratio.median:.2f} × its time, ±{ratio.relative:.0%}; asked for: {bar}; "
        f"threads: {threads}",
    )


MEASUREMENTS = {
    "summary": Measurement(
        sides={"summary": partial(_summary, LONG), "fused": partial(_fused, LONG)},
        figure=partial(_summary_figure, "N = 8,192"),
    ),
    "summary_causal": Measurement(
        sides={
            "summary": partial(_summary, LONG, is_causal=True),
            "fused": partial(_fused, LONG, is_causal=True),
        },
        figure=partial(_summary_figure, "N = 8,192, causal"),
    ),
    "watch_512": Measurement(
        sides={"watched": partial(watched, SHORT), "plain": partial(plain, SHORT)},
        figure=partial(_watch_figure, SHORT, "at most 1.3 ×"),
    ),
    "watch_16384": Measurement(
        sides={"watched": partial(watched, LONGEST), "plain": partial(plain, LONGEST)},
        figure=partial(_watch_figure, LONGEST, "at most 1.7 × and 1.5 GB"),
    ),
}


def measure_here(name: str, side: str) -> Sample:
    """One sample, in this process."""
    return MEASUREMENTS[name].sides[side]()


def measure(name: str, threads: int, rounds: int) -> Iterator[Measured]:
    """A row: every side in processes of its own."""
    sides = {
        side: partial(apart, f"benchmarks.{NAME}", "--side", name, side, threads=threads)
        for side in MEASUREMENTS[name].sides
    }
    samples = alternate(sides, rounds)
    yield f"{name}, threads: {threads}", samples, [MEASUREMENTS[name].figure(samples, threads)]


if __name__ == "__main__":
    measure_speed(
        NAME,
        title="Looking inside, beside the same work without",
        about=__doc__,
        rounds=5,
        side=measure_here,
        measure=measure,
        works=list(MEASUREMENTS),
        packages=("torch", "transformers"),
    )
