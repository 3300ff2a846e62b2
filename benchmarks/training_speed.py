"""Target tokens per second of training: Joey NMT, plain ``nn.Transformer`` and regard, in turn.

    python -m benchmarks.training_speed --work FOLDER --joey VENV/bin/python

All sides train Transformer-tiny on the very same Multi30k batches, in processes of their own,
with the same number of threads, in float32, and where the processor multiplies it regard and
``nn.Transformer`` in bfloat16 too. All drop .3 of embeddings, attention weights and sublayers'
outputs; Joey NMT also inside its feed-forward layers, which it has no setting for. Start-up and
the first updates are not timed. There are two sets
of batches of 4,096 tokens, padding included: *drawn*, sentences in random order, which is how
Joey NMT makes its own batches (more than half is padding), and *sorted*, windows sorted by
length, which is how regard does. So there are two ratios to Joey NMT: each program with its own
way of batching, and both on identical batches.
"""

import argparse
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks import measuring
from benchmarks.measuring import Figure, Spread
from benchmarks.peers import joey, prepare_multi30k

PLAIN, OURS, JOEY = "nn_transformer", "regard", "joey"
_MODULES = {PLAIN: "benchmarks.peers.nn_transformer", OURS: "benchmarks.peers.regard_speed"}
_WORK = "Training, Multi30k en→de, Transformer-tiny"

Sample = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True, slots=True)
class Setting:
    """How much is measured, and with what."""

    work: Path  # folder for the prepared corpus and Joey NMT's output
    joey_python: Path | None  # python of Joey NMT's environment; None leaves it out
    updates: int  # batches a side trains on in one round
    warmup: int  # how many of them are not timed
    rounds: int  # how often each side is measured
    threads: int  # of every side


def main() -> None:
    """Read the arguments, measure, and write the record."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--corpora", type=Path, default=measuring.corpora())
    parser.add_argument("--work", type=Path, required=True, help="folder outside the repository")
    parser.add_argument("--joey", type=Path, help="python of Joey NMT's environment")
    parser.add_argument("--updates", type=int, default=14)
    parser.add_argument("--warmup", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--dry", action="store_true", help="print, and write no record")
    given = parser.parse_args()
    setting = Setting(
        work=given.work.resolve(),
        joey_python=given.joey.absolute() if given.joey else None,
        updates=given.updates,
        warmup=given.warmup,
        rounds=given.rounds,
        threads=given.threads,
    )
    prepare_multi30k.prepare(given.corpora, setting.work)
    before = measuring.machine()
    samples = measure(setting)
    figures, details = summarise(samples, setting)
    for figure in figures:
        print(f"{figure.what}: {figure.ours}; {figure.beside}; {figure.note}")
    if not given.dry:
        path = measuring.write_record(
            "training_speed",
            title="Target tokens per second of training, beside Joey NMT and nn.Transformer",
            figures=figures,
            details=details,
            packages=("torch", "regard", "sentencepiece"),
            started_on=before,
        )
        print(path)


def measure(setting: Setting) -> dict[str, list[Sample]]:
    """The samples of every side, by ``side/batches``."""
    sides: dict[str, Callable[[], Sample]] = {}
    for sort in (False, True):
        file = prepare_multi30k.write_batches(setting.work, updates=setting.updates, sort=sort)
        kind = file.stem.split("-")[0]
        if setting.joey_python is not None:
            sides[f"{JOEY}/{kind}"] = partial(_joey, setting, setting.joey_python, file)
        for name in _MODULES:
            sides[f"{name}/{kind}"] = partial(_own, name, setting, file)
            if sort and "avx512_bf16" in measuring.machine()["flags"]:
                sides[f"{name}/bfloat16"] = partial(_own, name, setting, file, "bfloat16")
    return measuring.alternate(sides, setting.rounds)


def summarise(
    samples: Mapping[str, Sequence[Sample]], setting: Setting
) -> tuple[list[Figure], dict[str, Any]]:
    """The lines of docs/measured.md and the record's details, from the samples of every side."""
    rates = {
        name: [sample["tokens"] / sample["seconds"] for sample in taken]
        for name, taken in samples.items()
    }
    wanted = (
        (
            f"{_WORK}, each with its own batches",
            f"{OURS}/sorted",
            f"{JOEY}/drawn",
            "Joey NMT 2.3.0",
        ),
        *(
            (f"{_WORK}, identical batches, {how}", f"{OURS}/{kind}", f"{theirs}/{kind}", peer)
            for kind, how in (("sorted", "sorted by length"), ("drawn", "drawn at random"))
            for theirs, peer in ((JOEY, "Joey NMT 2.3.0"), (PLAIN, "`nn.Transformer`"))
        ),
        (f"{_WORK}, bfloat16", f"{OURS}/bfloat16", f"{PLAIN}/bfloat16", "`nn.Transformer`"),
    )
    figures = [
        _figure(what, rates[ours], rates[theirs], peer, setting.threads)
        for what, ours, theirs, peer in wanted
        if ours in rates and theirs in rates
    ]
    pairs = [(f"{OURS}/sorted", f"{JOEY}/drawn")] + [
        (f"{upper}/{kind}", f"{lower}/{kind}")
        for kind in ("drawn", "sorted")
        for upper, lower in ((OURS, JOEY), (OURS, PLAIN), (PLAIN, JOEY))
    ]
    ratios = {
        f"{upper} : {lower}": measuring.paired_ratio(rates[upper], rates[lower]).table()
        for upper, lower in pairs
        if upper in rates and lower in rates
    }
    details = {
        "threads": setting.threads,
        "updates_timed": setting.updates - setting.warmup,
        "updates_before": setting.warmup,
        "rounds": setting.rounds,
        "target_tokens_per_second": {n: Spread.of(r).table() for n, r in rates.items()},
        "ratios": ratios,
        "mean_loss": {name: taken[-1]["loss"] for name, taken in samples.items()},
        "target_tokens_per_update": {
            name: round(taken[-1]["tokens"] / taken[-1]["updates"], 1)
            for name, taken in samples.items()
        },
        "losses": "Joey NMT's is the divergence from the smoothed target, so it lacks its entropy",
    }
    return figures, details


def _figure(
    what: str, ours: Sequence[float], theirs: Sequence[float], peer: str, threads: int
) -> Figure:
    ratio = measuring.paired_ratio(ours, theirs)
    mine, other = Spread.of(ours), Spread.of(theirs)
    return Figure(
        what=what,
        ours=f"{ratio.median:.2f} × ({mine.median:,.0f} target tokens/s)",
        beside=f"{peer}: {other.median:,.0f} target tokens/s",
        note=f"{threads} threads, ±{ratio.relative:.0%}",
    )


def _joey(setting: Setting, python: Path, file: Path) -> Sample:
    updates, given = joey.train(
        python, file, model_dir=setting.work / "joey-speed", threads=setting.threads
    )
    return joey.speed(updates, given, warmup=setting.warmup)


def _own(name: str, setting: Setting, file: Path, precision: str = "float32") -> Sample:
    amount = ("--updates", setting.updates, "--warmup", setting.warmup, "--precision", precision)
    threads = setting.threads
    sample: Sample = measuring.apart(
        _MODULES[name], file, *amount, "--threads", threads, threads=threads
    )
    return sample


if __name__ == "__main__":
    main()
