"""Target tokens per second of training: Joey NMT, plain ``nn.Transformer`` and regard, in turn.

    python -m benchmarks.training_speed --work FOLDER --joey VENV/bin/python

All sides train Transformer-tiny on the very same Multi30k batches, in processes of their own,
with the same number of threads, in float32, and where the processor multiplies it regard and
``nn.Transformer`` in bfloat16 too. All drop .3 of embeddings, attention weights and sublayers'
outputs; Joey NMT also inside its feed-forward layers, which it has no setting for. Start-up and
the first updates are not timed. Batches are of 4,096 tokens, padding included, of sentences that
are sorted by length, as regard sorts them and Joey NMT does not. Joey NMT is measured with the most
threads alone.
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
    threads: tuple[int, ...]  # of every side, one after the other


def main() -> None:
    """Read the arguments, measure, and write the record."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--corpora", type=Path, default=measuring.corpora())
    parser.add_argument("--work", type=Path, required=True, help="folder outside the repository")
    parser.add_argument("--joey", type=Path, help="python of Joey NMT's environment")
    parser.add_argument("--updates", type=int, default=14)
    parser.add_argument("--warmup", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--dry", action="store_true", help="print, and write no record")
    given = parser.parse_args()
    setting = Setting(
        work=given.work.resolve(),
        joey_python=given.joey.absolute() if given.joey else None,
        updates=given.updates,
        warmup=given.warmup,
        rounds=given.rounds,
        threads=tuple(sorted(set(given.threads))),
    )
    prepare_multi30k.prepare(given.corpora, setting.work)
    is_dry = given.dry or setting.joey_python is None
    before = measuring.before_timing(setting.rounds, is_dry=is_dry)
    samples = measure(setting)
    figures, details = summarise(samples, setting)
    for figure in figures:
        print(f"{figure.what}: {figure.ours}; {figure.beside}; {figure.note}")
    if setting.joey_python is None:
        print("Joey NMT is left out, and no record is written: --joey names no python.")
    if not is_dry or measuring.TINY:
        path = measuring.write_record(
            "training_speed",
            title="Target tokens per second of training, beside Joey NMT and nn.Transformer",
            figures=figures,
            details=details,
            packages=("torch", "regard", "sentencepiece"),
            threads=setting.threads,
            rounds=setting.rounds,
            started_on=before,
        )
        print(path)


def measure(setting: Setting) -> dict[str, list[Sample]]:
    """The samples of every side, by ``side/precision/threads``."""
    file = prepare_multi30k.write_batches(setting.work, updates=setting.updates)
    samples: dict[str, list[Sample]] = {}
    for threads in setting.threads:
        sides: dict[str, Callable[[], Sample]] = {}
        if setting.joey_python is not None and threads == setting.threads[-1]:
            sides[f"{JOEY}/float32/{threads}"] = partial(_joey, setting, threads, file)
        for name in _MODULES:
            train = partial(_own, name, setting, threads, file)
            sides[f"{name}/float32/{threads}"] = train
            if "avx512_bf16" in measuring.machine()["flags"]:
                sides[f"{name}/bfloat16/{threads}"] = partial(train, "bfloat16")
        samples |= measuring.alternate(sides, setting.rounds)
    return samples


def summarise(
    samples: Mapping[str, Sequence[Sample]], setting: Setting
) -> tuple[list[Figure], dict[str, Any]]:
    """The lines of docs/measured.md and the record's details, from the samples of every side."""
    rates = {
        name: [sample["tokens"] / sample["seconds"] for sample in taken]
        for name, taken in samples.items()
    }
    alike = "identical batches, sorted by length"
    pairs = (
        (alike, "float32", JOEY, "Joey NMT 2.3.0"),
        (alike, "float32", PLAIN, "`nn.Transformer`"),
        (f"{alike}, bfloat16", "bfloat16", PLAIN, "`nn.Transformer`"),
    )
    figures = [
        _figure(f"{_WORK}, {what}", rates[ours], rates[theirs], peer, threads)
        for threads in setting.threads
        for what, kind, side, peer in pairs
        if (ours := f"{OURS}/{kind}/{threads}") in rates
        and (theirs := f"{side}/{kind}/{threads}") in rates
    ]
    details = {
        "updates_timed": setting.updates - setting.warmup,
        "updates_before": setting.warmup,
        "target_tokens_per_second": {n: Spread.of(r).table() for n, r in rates.items()},
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
        note=f"{threads} thread{'s' if threads > 1 else ''}, ±{ratio.relative:.0%}",
    )


def _joey(setting: Setting, threads: int, file: Path) -> Sample:
    assert setting.joey_python is not None
    updates, given = joey.train(
        setting.joey_python, file, model_dir=setting.work / "joey-speed", threads=threads
    )
    return joey.speed(updates, given, warmup=setting.warmup)


def _own(
    name: str, setting: Setting, threads: int, file: Path, precision: str = "float32"
) -> Sample:
    amount = ("--updates", setting.updates, "--warmup", setting.warmup, "--precision", precision)
    sample: Sample = measuring.apart(
        _MODULES[name], file, *amount, "--threads", threads, threads=threads
    )
    return sample


if __name__ == "__main__":
    main()
