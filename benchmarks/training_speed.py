"""Tokens per second of training beside plain torch modules, in turn.

    python -m benchmarks.training_speed --work W [--rounds 5] [--threads 1 2] [--only rnn] [--dry]

Four models of one size on both sides: a translator beside ``nn.Transformer``, and, where
``JOEYNMT_PYTHON`` names a python that has it, Joey NMT with its own batches; a recurrent one beside
``nn.GRU`` and the formula of additive attention, step by step; a classifier beside
``nn.TransformerEncoder``; a tagger beside ``nn.LSTM``. All sides train on the very same Multi30k
batches, in processes of their own, with the same number of threads and with .3 dropped of the same
things: in float32, and where the processor multiplies it in bfloat16. Batches are of 4,096 tokens,
padding included, of sentences that are sorted by length. Start-up and the first updates are not
timed.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
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
from benchmarks.peers import joey, prepare_multi30k
from benchmarks.peers.batches import MODELS

OURS, PLAIN, JOEY = "regard", "plain_torch", "joey"
_MODULES = {PLAIN: "benchmarks.peers.plain_torch", OURS: "benchmarks.peers.regard_speed"}
UPDATES, WARMUP = sized((9, 3), (2, 1))  # of one round, and how many of them are not timed
PRECISIONS = ["float32"] + ["bfloat16"] * ("avx512_bf16" in machine()["flags"])
_FORMULA = "`nn.GRU` and the formula, step by step"
_SORTED = "identical batches, sorted by length"
# What each model does, the plain torch beside it, and the tokens that are counted.
_NAMES = {
    "transformer": ("Multi30k en→de, Transformer-tiny", "`nn.Transformer`", "target tokens/s"),
    "rnn": ("Multi30k en→de, GRU with additive attention", _FORMULA, "target tokens/s"),
    "classifier": ("labels by a Transformer", "`nn.TransformerEncoder`", "tokens/s"),
    "tagger": ("tags by a BiLSTM", "`nn.LSTM` on packed sentences", "tokens/s"),
}


def measure(model: str, threads: int, rounds: int, work: Path) -> Iterator[Measured]:
    """All sides of a model in each precision, with so many threads."""
    for precision in PRECISIONS:
        amount = ("--updates", UPDATES, "--warmup", WARMUP, "--threads", threads)
        file = write_batches(work, UPDATES)
        sides = both_sides(model, precision, file, *amount, threads=threads)
        if joey.PYTHON and (model, precision) == ("transformer", PRECISIONS[0]):
            sides[JOEY] = partial(joey.speed, work, updates=UPDATES, warmup=WARMUP, threads=threads)
        rates, ratios, details = speeds(sides, rounds)
        note = f"{threads} thread{'s' if threads > 1 else ''}"
        lines = [
            figure(model, precision, note, name, ratio, rates) for name, ratio in ratios.items()
        ]
        yield f"{model}, {precision}, threads: {threads}", details, lines


def write_batches(work: Path, updates: int) -> Path:
    """The file of batches that all sides train on."""
    prepare_multi30k.prepare(corpora(), work)
    return prepare_multi30k.write_batches(work, updates=updates)


def both_sides(
    model: str, precision: str, file: Path, *amount: object, threads: int
) -> dict[str, Callable[[], Any]]:
    """Ours and plain torch, each in a process of its own."""
    said = ("--model", model, "--precision", precision, *amount)
    return {
        name: partial(apart, module, file, *said, threads=threads)
        for name, module in _MODULES.items()
    }


def speeds(
    sides: Mapping[str, Callable[[], Any]], rounds: int
) -> tuple[dict[str, list[float]], dict[str, Spread], dict[str, Any]]:
    """Tokens a second of each side in each round, our ratios to the others, and the samples."""
    samples: Mapping[str, Sequence[Mapping[str, Any]]] = alternate(sides, rounds)
    rates = {name: [one["tokens"] / one["seconds"] for one in samples[name]] for name in sides}
    ratios = {name: paired_ratio(rates[OURS], rates[name]) for name in sides if name != OURS}
    details = {
        "tokens_per_second": {name: Spread.of(each).table() for name, each in rates.items()},
        "ratios": {name: ratio.table() for name, ratio in ratios.items()},
        "mean_loss": {name: taken[-1]["loss"] for name, taken in samples.items()},
    }
    return rates, ratios, details


def figure(
    model: str,
    precision: str,
    note: str,
    name: str,
    ratio: Spread,
    rates: Mapping[str, Sequence[float]],
) -> Figure:
    """The line of one peer."""
    work, plain, unit = _NAMES[model]
    mine, theirs = (Spread.of(rates[each]).median for each in (OURS, name))
    batches = f"{_SORTED} (Joey NMT: its own)" if name == JOEY else _SORTED
    return Figure(
        what=f"Training, {work}, {batches}"
        + (f", {precision}" if precision != PRECISIONS[0] else ""),
        ours=f"{ratio.median:.2f} × ({mine:,.0f} {unit})",
        beside=f"{'Joey NMT' if name == JOEY else plain}: {theirs:,.0f} {unit}",
        note=f"{note}, ±{ratio.relative:.0%}",
    )


if __name__ == "__main__":
    measure_speed(
        "training_speed",
        title="Tokens per second of training, beside plain torch modules",
        about=__doc__,
        rounds=5,
        measure=measure,
        works=list(MODELS),
        packages=("torch", "regard", "sentencepiece"),
        details={"updates_timed": UPDATES - WARMUP, "updates_before": WARMUP},
        needs_folder=True,
    )
