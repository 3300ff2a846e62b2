"""A real training, tokenizer to final weights, killed over and over; prints a report as JSON.

``python killed_training.py FOLDER KILLS`` runs as a process of its own, because it forks one
process for each training and forking is safe only from a process with one thread.
"""

import json
import random
import shutil
import sys
import time
import warnings
from pathlib import Path

import torch
from rich.console import Console

from regard.runs import Run, is_run
from regard.tasks import Recipe, recipe_from_table
from regard.training import ConsoleReporter
from regard.training.session import fit as train


def write_corpus(folder: Path) -> None:
    dice = random.Random(1)
    words = ["".join(dice.choices("abcdefgh", k=dice.randint(1, 4))) for _ in range(40)]
    lines = [" ".join(dice.choices(words, k=dice.randint(2, 5))) for _ in range(90)]
    text = "".join(f"{line}\t{line[::-1]}\n" for line in sorted(set(lines)))
    (folder / "pairs.tsv").write_text(text, encoding="utf-8")


def recipe(folder: Path) -> Recipe:
    """Everything that carries state: drawn segmentations, dropout, moving average, accumulation."""
    sizes = {"embed_dim": 8, "hidden_dim": 8, "attention_dim": 8, "dropout": 0.2}
    table = {
        "data": {"train": "pairs.tsv", "max_length": 60},
        "tokenizer": {"type": "bpe", "vocab_size": 290, "dropout": 0.1},
        "model": {"type": "rnn_seq2seq", **sizes},
        "training": {
            "epochs": 5,
            "batch_tokens": 300,
            "accumulate": 2,
            "learning_rate": 0.01,
            "warmup": 5,
            "schedule": "linear",
            "validate_every": 3,
            "validation_pairs": 2,
            "keep": 3,
            "ema": 0.9,
        },
        "decoding": {"max_ratio": 0.5},
    }
    return recipe_from_table(table, folder=folder)


def fit(home: Path, path: Path) -> None:
    with (home / "log").open("a") as log:
        reporter = ConsoleReporter(Console(file=log, width=200), quiet=True)
        train(recipe(home), path, reporter=reporter)


def contents(path: Path) -> dict[str, bytes]:
    names = ["model.safetensors", "metrics.jsonl", "run.json", "recipe.toml"]
    return {name: (path / name).read_bytes() for name in names}


def main(home: Path, kills: int) -> None:
    torch.set_num_threads(1)
    warnings.simplefilter("error")
    write_corpus(home)
    fit(home, home / "warm")  # what is slow or writes files only the first time
    started = time.perf_counter()
    with Fault() as fault:
        fit(home, home / "whole")
    seconds = time.perf_counter() - started
    whole = contents(home / "whole")
    dice, path, failures = random.Random(2), home / "run", []
    done = in_a_row = 0

    def is_struck(at: int, moment: str, delay: float | None = None) -> bool:
        return is_killed(lambda: fit(home, path), at, moment, seconds=delay)

    while done < kills and not failures:
        by_clock = dice.random() < 0.3
        at = 0 if by_clock else dice.randint(1, len(fault.calls))
        moment = dice.choice(["before", "inside", "after"])
        died = is_struck(at, moment, dice.uniform(0, seconds) if by_clock else None)
        done += died
        in_a_row += died
        if not died or in_a_row == 3:  # after three in a row, the fourth may finish
            in_a_row = 0
            if contents_or_none(path) is None:
                is_struck(0, "before")
            if contents_or_none(path) != whole:
                failures.append(f"other bytes after {done} kills")
            shutil.rmtree(path, ignore_errors=True)
    sys.stdout.write(json.dumps({"kills": done, "failures": failures}))


def contents_or_none(path: Path) -> dict[str, bytes] | None:
    """The files of a finished training."""
    return contents(path) if is_run(path) and Run.open(path).is_finished else None


if __name__ == "__main__":
    from killing import Fault, is_killed

    main(Path(sys.argv[1]), int(sys.argv[2]))
