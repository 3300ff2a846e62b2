"""Trainings by processes forked from one that has torch loaded; prints what came of them.

``python processes.py FOLDER`` runs as a process of its own, because forking is safe only from a
process with one thread. It reads names of scenarios, and answers each by a line of JSON.
"""

import json
import os
import random
import shutil
import signal
import socket
import sys
import time
import traceback
import warnings
from pathlib import Path

import torch
import torch.utils.tensorboard  # loaded once, not in each child
from rich.console import Console

from regard.errors import Interrupted, RegardError, ReportedElsewhere
from regard.runs import Run, is_run
from regard.tasks import recipe_from_table
from regard.training import ConsoleReporter
from regard.training.distributed import synchronizing
from regard.training.distributed.world import process_group
from regard.training.session import fit as train

NAMES = ["model.safetensors", "metrics.jsonl", "run.json", "recipe.toml"]


def write_corpus(folder):
    dice = random.Random(1)
    words = ["".join(dice.choices("abcdefgh", k=dice.randint(1, 4))) for _ in range(40)]
    lines = [" ".join(dice.choices(words, k=dice.randint(2, 9))) for _ in range(120)]
    text = "".join(f"{line}\t{line[::-1]}\n" for line in sorted(set(lines)))
    (folder / "pairs.tsv").write_text(text, encoding="utf-8")
    (folder / "text.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")


def recipe(folder, task="translation", model=(), **training):
    """A tiny one; batches are of some ten examples, three to an update."""
    sizes = {"model_dim": 16, "num_heads": 2, "ffn_dim": 32, "dropout": 0.0}
    models = {
        "translation": {"type": "transformer", "num_encoder_layers": 1, "num_decoder_layers": 1},
        "language_modelling": {"type": "decoder", "num_layers": 1},
        "masked_language_modelling": {"type": "transformer", "num_layers": 1},
    }
    is_pairs = task == "translation"
    table = {
        "task": task,
        "data": {"train": "pairs.tsv"} if is_pairs else {"train": "text.txt", "context": 16},
        "tokenizer": {"type": "words"} if is_pairs else {"type": "characters"},
        "model": {**sizes, **models[task], **dict(model)},
        "training": {
            "updates": 50,
            "batch_tokens": 130,
            "accumulate": 3,
            "learning_rate": 0.003,
            "warmup": 5,
            "validate_every": 25,
            "validation_pairs": 0,
            "precision": "float32",
            **training,
        },
    }
    return recipe_from_table(table, folder=folder)


class Processes:
    """Children that train together, each with a file for what it prints."""

    def __init__(self, home, recipes, path, *, folders=None, stop_at=(0, 0)):
        self.home, self.path, self.stop_at = home, path, stop_at
        with socket.socket() as listener:
            listener.bind(("127.0.0.1", 0))
            port = listener.getsockname()[1]
        address = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
        self.children = []
        # The first comes last, so that it knows the others.
        for rank, each in reversed([*enumerate(recipes)]):
            folder = None if folders is None else folders[rank]
            environment = {**address, "RANK": str(rank), "WORLD_SIZE": str(len(recipes))}
            (home / f"came{rank}").unlink(missing_ok=True)
            child = os.fork()
            if child == 0:
                self._train(each, environment, rank, folder)
            self.children.insert(0, child)

    def _train(self, each, environment, rank, folder):
        os.environ.update(environment)
        if folder is not None:
            os.chdir(folder)
        log = os.open(self.home / f"log{rank}", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(log, 2)
        code = 1
        try:
            with process_group() as world:
                (self.home / f"came{rank}").touch()
                update, index = self.stop_at
                # Only the first is told of updates.
                pid = [os.getpid(), *self.children][index] if world.is_first else 0
                train(each, self.path, reporter=Stopping(update, pid))
            code = 0
        except Interrupted:
            code = 3
        except RegardError as error:
            code = 2
            if not isinstance(error, ReportedElsewhere):
                sys.stderr.write(f"error: {type(error).__name__}: {error}\n")
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stderr.flush()
            os._exit(code)

    def wait_until_all_came(self):
        """Others wait long for one that is gone before: it might only be slow."""
        while not all((self.home / f"came{rank}").exists() for rank in range(len(self.children))):
            time.sleep(0.01)

    def wait(self):
        return [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in self.children]

    def errors(self):
        logs = [(self.home / f"log{rank}").read_text() for rank in range(len(self.children))]
        lines = [line for log in logs for line in log.splitlines()]
        return [line for line in lines if line.startswith(("error", "Traceback"))]


class Stopping(ConsoleReporter):
    """Asks a process to stop after an update."""

    def __init__(self, update, pid):
        super().__init__(Console(file=sys.stderr, width=200), quiet=True)
        self.update, self.pid = update, pid

    def on_update(self, update):
        """Ask, after that one."""
        super().on_update(update)
        if update.number == self.update:
            os.kill(self.pid, signal.SIGTERM)


def run(home, size, path, table, **options):
    """Train by so many processes; their exit codes and outputs."""
    began = time.monotonic()
    processes = Processes(home, [table] * size, path, **options)
    codes = processes.wait()
    return {"codes": codes, "errors": processes.errors(), "seconds": time.monotonic() - began}


def curve(path):
    return [record["loss"] for record in Run.open(path).metrics()]


def contents(path):
    return {name: (path / name).read_bytes() for name in NAMES}


def curves(home):
    """Losses of each task by one process and by several."""
    results = {}
    for task, *counts in (("translation", 1, 4), ("masked_language_modelling", 1, 3)):
        table = recipe(home, task, updates=20, validate_every=10)
        paths = {size: home / f"{task}{size}" for size in counts}
        ends = {size: run(home, size, path, table) for size, path in paths.items()}
        losses = {size: curve(path) for size, path in paths.items()}
        results[task] = {"ends": ends, "losses": losses}
    return results


def resumed(home):
    steps = {"updates": 24, "validate_every": 8, "accumulate": 2}
    table = recipe(home, model={"dropout": 0.2}, ema=0.9, **steps)
    ends = [
        run(home, 4, home / "whole", table),
        run(home, 4, home / "begun", table, stop_at=(11, 0)),
    ]
    results = {"ends": ends, "curve": curve(home / "whole"), "same": {}, "curves": {}}
    results["stopped"] = Run.open(home / "begun").newest_checkpoint().step
    for size in (1, 2, 4):
        path = home / f"by{size}"
        shutil.copytree(home / "begun", path)
        ends.append(run(home, size, path, table))
        results["curves"][size] = curve(path)
        results["same"][size] = contents(path) == contents(home / "whole")
    return results


def sharded(home):
    """Losses by one process, and by two that have parts; stopped and resumed."""
    settings = {"updates": 20, "batch_tokens": 60, "accumulate": 1, "validate_every": 10}
    plain = recipe(home, encoder_rate=0.001, **settings)
    table = recipe(home, encoder_rate=0.001, **settings, shard=True)
    paths = {name: home / name for name in ("one", "two", "begun")}
    ends = [
        run(home, 1, paths["one"], plain),
        run(home, 2, paths["two"], table),
        run(home, 2, paths["begun"], table, stop_at=(11, 1)),
    ]
    results = {"same": {}, "curves": {name: curve(paths[name]) for name in paths}, "ends": ends}
    for size in (1, 2):
        path = home / f"by{size}"
        shutil.copytree(home / "begun", path)
        ends.append(run(home, size, path, table))
        results["curves"][f"by{size}"] = curve(path)
        results["same"][size] = contents(path) == contents(home / "two")
    return results


def killed(home, kills=3):
    """A training whose processes are killed at random moments, until it has finished."""
    table = recipe(home, updates=20, validate_every=4, ema=0.9)
    baseline = run(home, 3, home / "whole", table)
    dice, num_kills, longest_wait, errors, failures = random.Random(5), 0, 0.0, [], []
    while num_kills < kills:
        path = home / "run"
        processes = Processes(home, [table] * 3, path)
        processes.wait_until_all_came()
        time.sleep(dice.uniform(0, baseline["seconds"]))
        chosen = dice.choice([*processes.children, None])
        for child in processes.children if chosen is None else [chosen]:
            os.kill(child, signal.SIGKILL)
        began = time.monotonic()
        codes = processes.wait()
        longest_wait = max(longest_wait, time.monotonic() - began)
        num_kills += any(codes)
        errors.append((codes, processes.errors()))
        if is_run(path):
            Run.open(path)
        if not any(codes) or num_kills == kills:
            end = run(home, 3, path, table)
            if contents(path) != contents(home / "whole"):
                failures.append(f"other bytes after {num_kills} kills: {end}")
            shutil.rmtree(path)
    return {"kills": num_kills, "late": longest_wait, "errors": errors, "failures": failures}


def refused(home):
    synchronizing._VISIBLE_WITHIN = 1.0
    (home / "elsewhere").mkdir()
    (home / "here").mkdir()
    plain, many = recipe(home), recipe(home, batch_tokens=12, accumulate=1)
    missing = recipe_from_table(
        {"data": {"train": "none.tsv"}, "training": {"updates": 1}}, folder=home
    )
    cases = {
        "missing": ([missing] * 2, home / "run", None),
        "few": ([many] * 4, home / "run", None),
        "batch": ([recipe(home, model={"norm_kind": "batch"})] * 2, home / "run", None),
        "cuda": ([recipe(home, device="cuda")] * 2, home / "run", None),
        "muon": ([recipe(home, shard=True, optimizer="muon")] * 2, home / "run", None),
        "recipe": ([plain, recipe(home, seed=2)], home / "run", None),
        "folder": ([plain] * 2, Path("run"), [home / "here", home / "elsewhere"]),
    }
    results = {}
    for name, (recipes, path, folders) in cases.items():
        processes = Processes(home, recipes, path, folders=folders)
        codes = processes.wait()
        results[name] = {"codes": codes, "errors": processes.errors()}
        results[name]["left"] = is_run(home / "run")
    return results


SCENARIOS = {
    "curves": curves,
    "resumed": resumed,
    "killed": killed,
    "sharded": sharded,
    "refused": refused,
}


if __name__ == "__main__":
    torch.set_num_threads(1)
    warnings.simplefilter("error")
    folder = Path(sys.argv[1])
    write_corpus(folder)
    # Modules are loaded here, once, and not by every child.
    with (folder / "log").open("w") as log:
        reporter = ConsoleReporter(Console(file=log), quiet=True)
        train(recipe(folder, updates=2, validate_every=1), folder / "first", reporter=reporter)
    for line in sys.stdin:
        name, *numbers = line.split()
        home = folder / name
        home.mkdir()
        write_corpus(home)
        print(json.dumps(SCENARIOS[name](home, *map(int, numbers))), flush=True)
