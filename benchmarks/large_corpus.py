"""Training from a corpus that does not fit into memory: memory, seconds to the first update.

    python -m benchmarks.large_corpus [--pairs 20000000] [--updates 50] [--work FOLDER]

Makes up a corpus of pairs in a temporary folder, encodes a part of it with one process and with
two, then all of it, and trains some updates from what was encoded. Every step is a process of its
own, whose memory is what the system says was resident at most. With ``--work`` the corpus and the
cache stay there, and a second call goes on with them.
"""

import argparse
import json
import os
import random
import resource
import shutil
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.measuring import Figure, Spread, alternate, apart, machine, sized, write_record

NAME = "large_corpus"
PAIRS = sized(20_000_000, 400)
# Pairs of a file; and those that are encoded with one process and with two.
SHARD, ENCODED = sized((1_000_000, 200_000), (150, 300))
VALID = sized(200, 5)
WORDS, PHRASES = sized((20_000, 50_000), (50, 100))
RECIPE: Mapping[str, Any] = {
    "task": "translation",
    "tokenizer": {"type": "bpe", "vocab_size": sized(8000, 300), "may_shrink": True},
    "model": {
        "type": "transformer",
        "model_dim": sized(128, 8),
        "ffn_dim": sized(256, 8),
        "num_heads": sized(4, 2),
        "num_encoder_layers": sized(2, 1),
        "num_decoder_layers": sized(2, 1),
    },
}


def write_corpus(folder: Path, pairs: int) -> None:
    """Pairs of made-up sentences in files of a million; the target has the words spelled back."""
    folder.mkdir(parents=True, exist_ok=True)
    dice = random.Random(1)
    letters = "aeiouklmnprst"
    words = ["".join(dice.choices(letters, k=dice.randint(2, 8))) for _ in range(WORDS)]
    phrases = [dice.choices(words, k=dice.randint(1, 5)) for _ in range(PHRASES)]
    sides = [(" ".join(each), " ".join(word[::-1] for word in each)) for each in phrases]
    count = -(-pairs // SHARD)
    for number in range(count):
        path = folder / f"pairs-{number:05}-of-{count:05}.tsv"
        lines = min(SHARD, pairs - number * SHARD)
        if not path.exists():
            temporary = path.with_suffix(".new")
            with temporary.open("w", encoding="utf-8") as file:
                file.writelines(_line(sides, dice) for _ in range(lines))
            temporary.rename(path)
    with (folder.parent / "valid.tsv").open("w", encoding="utf-8") as file:
        file.writelines(_line(sides, dice) for _ in range(VALID))


def _line(sides: Sequence[tuple[str, str]], dice: random.Random) -> str:
    chosen = dice.choices(sides, k=dice.randint(1, 5))
    return "{}\t{}\n".format(*(" ".join(each) for each in zip(*chosen, strict=True)))


def _recipe(work: Path, train: str, updates: int = 1) -> Any:
    from regard.tasks import recipe_from_table

    training = {
        "updates": updates,
        "batch_tokens": sized(4096, 64),
        "validate_every": 10 * updates,
        "validation_pairs": 0,
        "corpus": "disk",
        "cache": str(work / "cache"),
    }
    data = {"train": train, "valid": str(work / "valid.tsv")}
    return recipe_from_table({**RECIPE, "data": data, "training": training})


def encode_here(work: Path, train: str, processes: int) -> dict[str, float]:
    """Seconds that encoding takes, tokenizer and all lines known, and pairs a second."""
    from regard.tasks import TASKS
    from regard.training.corpora.stored_text import StoredText

    recipe = _recipe(work, train)
    text = StoredText.of(recipe, cache=work / "cache")
    task = text.learned(recipe)
    shutil.rmtree(text.folder / "encoded", ignore_errors=True)
    started = time.perf_counter()
    stored = text.encoded(task, processes=processes)
    seconds = time.perf_counter() - started
    assert isinstance(task, TASKS["translation"].task)
    return {"seconds": seconds, "pairs": len(stored), "pairs_a_second": len(stored) / seconds}


def train_here(work: Path, updates: int, began: float) -> dict[str, float]:
    """Seconds from the process's start to its first update, and what was resident at most."""
    from regard.training import ConsoleReporter, Update
    from regard.training.session import fit as train

    class Clock(ConsoleReporter):
        first = 0.0

        def on_update(self, update: Update) -> None:
            self.first = self.first or time.time() - began

    reporter = Clock(quiet=True)
    run = work / "run"
    shutil.rmtree(run, ignore_errors=True)
    train(_recipe(work, str(work / "corpus"), updates), run, reporter=reporter)
    return {"seconds_to_first": reporter.first, "resident_mib": _resident_mib()}


def _resident_mib() -> float:
    """What this process had in memory at most."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def measure(work: Path, pairs: int, updates: int, rounds: int, threads: int) -> dict[str, Any]:
    """All figures."""
    write_corpus(work / "corpus", pairs)
    part = str(work / "part.tsv")
    with Path(part).open("w", encoding="utf-8") as out:
        for number, line in enumerate(_lines(work / "corpus")):
            if number == min(ENCODED, pairs):
                break
            out.write(line)

    def encoding(processes: int) -> float:
        told = ("--encode", part, "--processes", processes, "--work", work)
        return float(apart(f"benchmarks.{NAME}", *told, threads=threads)["pairs_a_second"])

    speeds = alternate(
        {"one process": lambda: encoding(1), "two processes": lambda: encoding(2)}, rounds
    )
    corpus = str(work / "corpus")
    told = ("--encode", corpus, "--processes", os.cpu_count() or 1, "--work", work)
    whole = apart(f"benchmarks.{NAME}", *told, threads=threads)
    trained = apart(
        f"benchmarks.{NAME}",
        *("--train", "--updates", updates, "--work", work),
        threads=threads,
    )
    return {"speeds": speeds, "whole": whole, "trained": trained}


def _lines(folder: Path) -> Any:
    for path in sorted(folder.iterdir()):
        with path.open(encoding="utf-8") as file:
            yield from file


def _figures(found: Mapping[str, Any], pairs: int, updates: int) -> list[Figure]:
    one, two = (Spread.of(found["speeds"][name]) for name in ("one process", "two processes"))
    trained = found["trained"]
    text = f"{pairs:,} pairs of sentences"
    return [
        Figure(
            what=f"{text}: memory of a training, {updates} updates",
            ours=f"{trained['resident_mib']:,.0f} MiB",
            beside="at most 1,024 MiB",
            note="most that was resident, Python and PyTorch included",
        ),
        Figure(
            what=f"{text}: from the start of the process to the first update",
            ours=f"{trained['seconds_to_first']:.1f} s",
            beside="at most 60 s",
            note="text, tokenizer and ids in the cache",
        ),
        Figure(
            what="encoding, two processes",
            ours=f"{two.median:,.0f} pairs/s",
            beside=f"{one.median:,.0f} pairs/s with one",
            note=f"{ENCODED:,} pairs, 8,000 subwords",
        ),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=PAIRS)
    parser.add_argument("--updates", type=int, default=sized(50, 2))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--work", type=Path, help="a folder to keep corpus and cache in")
    parser.add_argument("--processes", type=int, default=1, help=argparse.SUPPRESS)
    parser.add_argument("--encode", help=argparse.SUPPRESS)
    parser.add_argument("--train", action="store_true", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    began = time.time()
    if asked.encode:
        print(json.dumps(encode_here(asked.work, asked.encode, asked.processes)))
        return
    if asked.train:
        print(json.dumps(train_here(asked.work, asked.updates, began)))
        return
    started_on = machine()
    with tempfile.TemporaryDirectory() as temporary:
        work = asked.work or Path(temporary)
        found = measure(work, asked.pairs, asked.updates, asked.rounds, asked.threads)
    path = write_record(
        NAME,
        title="Training from a corpus that does not fit into memory",
        figures=_figures(found, asked.pairs, asked.updates),
        details={**found, "pairs": asked.pairs, "updates": asked.updates},
        packages=("torch", "sentencepiece", "numpy"),
        started_on=started_on,
    )
    print(f"wrote {path}")


if __name__ == "__main__":
    main()
