"""Target tokens per second of training beside plain ``nn.Transformer``, in turn.

    python -m benchmarks.training_speed --work W [--rounds 5] [--threads 1 2] [--dry]

Both sides train Transformer-tiny on the very same Multi30k batches, in processes of their own, with
the same number of threads: in float32, and where the processor multiplies it in bfloat16. Both drop
.3 of embeddings, attention weights and sublayers' outputs. Batches are of 4,096 tokens, padding
included, of sentences that are sorted by length. Start-up and the first updates are not timed.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.measuring import (
    Figure,
    Measured,
    Spread,
    alternate,
    apart,
    corpora,
    machine,
    measure_speed,
    paired_ratio,
    sized,
)
from benchmarks.peers import prepare_multi30k

PLAIN, OURS = "nn_transformer", "regard"
_MODULES = {PLAIN: "benchmarks.peers.nn_transformer", OURS: "benchmarks.peers.regard_speed"}
UPDATES, WARMUP = sized((14, 4), (2, 1))  # of one round, and how many of them are not timed
PRECISIONS = ["float32"] + ["bfloat16"] * ("avx512_bf16" in machine()["flags"])


def measure(precision: str, threads: int, rounds: int, work: Path) -> Iterator[Measured]:
    """Both sides in one precision, with so many threads."""
    prepare_multi30k.prepare(corpora(), work)
    file = prepare_multi30k.write_batches(work, updates=UPDATES)
    amount = ("--updates", UPDATES, "--warmup", WARMUP, "--precision", precision)
    sides = {
        name: partial(apart, module, file, *amount, "--threads", threads, threads=threads)
        for name, module in _MODULES.items()
    }
    samples: Mapping[str, Sequence[Mapping[str, Any]]] = alternate(sides, rounds)
    rates = {name: [each["tokens"] / each["seconds"] for each in samples[name]] for name in sides}
    ratio = paired_ratio(rates[OURS], rates[PLAIN])
    mine, theirs = (Spread.of(rates[name]) for name in (OURS, PLAIN))
    line = Figure(
        what="Training, Multi30k en→de, Transformer-tiny, identical batches, sorted by length"
        + (f", {precision}" if precision != PRECISIONS[0] else ""),
        ours=f"{ratio.median:.2f} × ({mine.median:,.0f} target tokens/s)",
        beside=f"`nn.Transformer`: {theirs.median:,.0f} target tokens/s",
        note=f"{threads} thread{'s' if threads > 1 else ''}, ±{ratio.relative:.0%}",
    )
    details = {
        "target_tokens_per_second": {name: Spread.of(each).table() for name, each in rates.items()},
        "ratio": ratio.table(),
        "mean_loss": {name: taken[-1]["loss"] for name, taken in samples.items()},
    }
    yield f"{precision}, threads: {threads}", details, [line]


if __name__ == "__main__":
    measure_speed(
        "training_speed",
        title="Target tokens per second of training, beside nn.Transformer",
        about=__doc__,
        rounds=5,
        measure=measure,
        works=PRECISIONS,
        packages=("torch", "regard", "sentencepiece"),
        details={"updates_timed": UPDATES - WARMUP, "updates_before": WARMUP},
        needs_folder=True,
    )
