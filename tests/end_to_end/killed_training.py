"""A real training, tokenizer to final weights, killed over and over; prints a report as JSON.

``python killed_training.py FOLDER KILLS`` runs as a process of its own, because it forks one
process for each training and forking is safe only from a process with one thread.
"""

import json
import os
import random
import shutil
import signal
import sys
import threading
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


class Reports:
    """What is compared, and what went wrong."""

    def __init__(self, home: Path) -> None:
        self.home, self.kills, self.failures = home, 0, []
        self.places: dict[str, int] = {}

    def train(self, path: Path) -> None:
        with (self.home / "log").open("a") as log:
            reporter = ConsoleReporter(Console(file=log, width=200), quiet=True)
            train(recipe(self.home), path, reporter=reporter)

    def forked(self, path: Path, at: int, moment: str, seconds: float | None) -> bool:
        """Train in a child that dies at a call to the disk or after a time; whether it died."""
        child = os.fork()
        if child == 0:
            try:
                with Fault(at, moment):
                    self.train(path)
            except BaseException as error:
                (self.home / "error").write_text(f"{type(error).__name__}: {error}")
                os._exit(1)
            os._exit(0)
        if seconds is not None:
            timer = threading.Timer(seconds, os.kill, (child, signal.SIGKILL))
            timer.start()
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        if seconds is not None:
            timer.cancel()
            timer.join()
        if status == 1:
            self.failures.append((self.home / "error").read_text())
        return status == -signal.SIGKILL


def contents(path: Path) -> dict[str, bytes]:
    names = ["model.safetensors", "metrics.jsonl", "run.json", "recipe.toml"]
    return {name: (path / name).read_bytes() for name in names}


def main(home: Path, kills: int) -> None:
    torch.set_num_threads(1)
    warnings.simplefilter("error")
    write_corpus(home)
    reports = Reports(home)
    reports.train(home / "warm")  # what is slow or writes files only the first time
    started = time.perf_counter()
    with Fault() as fault:
        reports.train(home / "whole")
    seconds = time.perf_counter() - started
    whole = contents(home / "whole")
    dice, path, in_a_row = random.Random(2), home / "run", 0
    while reports.kills < kills and not reports.failures:
        by_clock = dice.random() < 0.3
        at = 0 if by_clock else dice.randint(1, len(fault.calls))
        moment = dice.choice(["before", "inside", "after"])
        delay = dice.uniform(0, seconds) if by_clock else None
        died = reports.forked(path, at, moment, delay)
        reports.kills += died
        if died:
            name = "clock" if by_clock else f"{moment} {fault.calls[at - 1]}"
            reports.places[name] = reports.places.get(name, 0) + 1
        in_a_row += died
        if not died or in_a_row == 3:  # after three in a row, the fourth may finish
            in_a_row = 0
            if contents_or_none(path) is None:
                reports.forked(path, 0, "before", None)
            if not reports.failures and contents_or_none(path) != whole:
                reports.failures.append(f"other bytes after {reports.kills} kills")
            shutil.rmtree(path, ignore_errors=True)
    found = {"kills": reports.kills, "calls": len(fault.calls), "places": reports.places}
    sys.stdout.write(json.dumps(found | {"failures": reports.failures, "seconds": seconds}))


def contents_or_none(path: Path) -> dict[str, bytes] | None:
    """The files of a finished training."""
    return contents(path) if is_run(path) and Run.open(path).is_finished else None


if __name__ == "__main__":
    from killing import Fault

    main(Path(sys.argv[1]), int(sys.argv[2]))
