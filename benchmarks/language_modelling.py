"""Language models: characters beside nanoGPT, books and the Brown corpus beside n-grams.

    python -m benchmarks.language_modelling --work FOLDER --nanogpt FOLDER [STAGE ...]

Stages, each of which leaves a file in ``--work`` and is not done again while that is there:

- ``nanogpt``: its CPU recipe (4 layers, 128 wide, context 64, batch 12, 2,000 iterations) by its
  own script; ``same`` and ``fast``: two recipes of ours on the same characters,
  ``language-model-characters``, which has its settings, and ``language-model-characters-fast``,
  with rotary positions and Muon. The loss is over the *whole* validation part, in the same
  windows, asked of each side's own model.
- ``speed``: milliseconds of an iteration of the three, 300 at a time, in turn; the first ten and
  all validation left out, on an idle machine: a quarter of an hour.
- ``words``: subword models of ``gutenberg-books`` and ``brown``, a Transformer by three seeds and
  an LSTM by one, for the same CPU minutes, beside interpolated Kneser-Ney on the same tokens. A
  training that has ended is not done again either.

The record is written once the first four are there, with what there is of words.
"""

import argparse
import json
import statistics
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch

from benchmarks import measuring
from benchmarks.equal_budgets import cpu_clock
from benchmarks.measuring import Figure, Spread
from benchmarks.peers import nanogpt, regard_characters
from benchmarks.training import train
from regard.inference.evaluation.evaluate import evaluate_task
from regard.tasks import Recipe, read_parts, recipe_from_table

SAME, FAST = "language-model-characters", "language-model-characters-fast"
OURS = "benchmarks.peers.regard_characters"
SEEDS = {"Transformer": measuring.sized((1, 2, 3), (1,)), "LSTM": (1,)}
UPDATES = measuring.sized({SAME: 2000, FAST: 400}, {SAME: 4, FAST: 4})
TIMED, ROUNDS, SETTLING = measuring.sized((300, 5, 10), (4, 1, 1))
CORPORA = measuring.sized({"gutenberg-books": "gutenberg", "brown": "brown"}, {"brown": "brown"})
MODELS: dict[str, dict[str, Any]] = {
    "Transformer": {
        "type": "decoder",
        "model_dim": 192,
        "num_heads": 6,
        "num_layers": 3,
        "ffn_dim": 768,
        "dropout": 0.1,
        "positions": "rotary",
    },
    "LSTM": {"type": "recurrent", "cell": "lstm", "embed_dim": 192, "hidden_dim": 512},
}


def main() -> None:
    """Go through the stages asked for, and write the record when all are there."""
    parser = measuring.command(__doc__, work="folder outside the repository", threads=2)
    parser.add_argument("stages", nargs="*", default=[*STAGES])
    parser.add_argument("--nanogpt", type=Path, help="folder of its scripts")
    parser.add_argument("--minutes", type=float, default=8, help="CPU minutes of each word model")
    given = parser.parse_args()
    before = measuring.machine()
    given.work.mkdir(parents=True, exist_ok=True)
    if given.nanogpt is None:
        print("left out: nanoGPT, as --nanogpt names no folder with its train.py. No record.")
    for name in given.stages:
        if given.nanogpt is None and name == "nanogpt":
            continue
        path = given.work / f"{name}.json"
        if not path.exists():
            found = STAGES[name](given)
            path.write_text(json.dumps({"machine": before, **found}, indent=1), "utf-8")
        print(path.read_text("utf-8")[:2000])
    done = [name for name in STAGES if (given.work / f"{name}.json").exists()]
    if given.dry or not set(STAGES) - {"words"} <= set(done):
        return
    write({name: json.loads((given.work / f"{name}.json").read_text("utf-8")) for name in done})


def theirs(given: argparse.Namespace) -> dict[str, Any]:
    """Their script to its end, and the loss of its model."""
    home, _ = nanogpt.texts(given.work, given.nanogpt)
    iterations = int(nanogpt.CPU_FLAGS["max_iters"])
    nanogpt.train(home, iterations=iterations, threads=given.threads)
    threads = given.threads
    found = measuring.apart("benchmarks.peers.nanogpt", home, "--threads", threads, threads=threads)
    return {"updates": iterations, **found}


def ours(given: argparse.Namespace, name: str) -> dict[str, Any]:
    """A recipe of ours to its end, and its loss."""
    _, text = nanogpt.texts(given.work, given.nanogpt)
    found = _ours(name, text, given, run=f"run-{name}", updates=UPDATES[name])
    return {"updates": UPDATES[name], **found, "milliseconds": None}


def speed(given: argparse.Namespace) -> dict[str, Any]:
    """The median milliseconds of an iteration of each side, round by round."""
    home, text = nanogpt.texts(given.work, given.nanogpt)

    def their_pace() -> float:
        found = nanogpt.train(home, iterations=TIMED, threads=given.threads)
        return statistics.median(found["milliseconds"][SETTLING:])

    def our_pace(name: str) -> float:
        run = f"timed-{name}-{len(list(given.work.glob('timed-*')))}"
        found = _ours(name, text, given, run=run, updates=TIMED)
        return statistics.median(found["milliseconds"][SETTLING:])

    sides = {"nanoGPT": their_pace, SAME: lambda: our_pace(SAME), FAST: lambda: our_pace(FAST)}
    if given.nanogpt is None:
        del sides["nanoGPT"]
    before = measuring.before_timing(ROUNDS, is_dry=given.dry)
    samples = measuring.alternate(sides, ROUNDS)
    return {
        "machine": before,
        "milliseconds": {name: Spread.of(each).table() for name, each in samples.items()},
        "threads": given.threads,
    }


def words(given: argparse.Namespace) -> dict[str, Any]:
    """Subword models of two corpora, beside n-grams."""
    torch.set_num_threads(1)
    found: dict[str, Any] = {"minutes": given.minutes}
    for folder, name in CORPORA.items():
        found[name] = {kind: {} for kind in MODELS}
        for kind, seed in [(kind, seed) for kind, seeds in SEEDS.items() for seed in seeds]:
            table = word_table(measuring.corpora() / folder, MODELS[kind], given.minutes, seed)
            run = given.work / f"{name}-{kind.lower()}-{seed}"
            with cpu_clock():
                trained = train(recipe_from_table(table), run)
            job, summary = trained.predictor.task, trained.summary
            known = read_parts(job.recipe).train if kind == "LSTM" else ()  # of baselines, once
            report = evaluate_task(trained.predictor, job.read(job.recipe, "test"), known)
            figures = {figure.name: figure.value for figure in report.figures}
            parameters = sum(p.numel() for p in trained.predictor.model.parameters())
            sizes = {"updates": summary["updates"], "tokens": summary["target_tokens"]}
            found[name][kind][str(seed)] = {**figures, "parameters": parameters, **sizes}
            found[name] |= report.baselines
            print(name, kind, seed, figures, sizes, flush=True)
    return found


def trainings(work: Path) -> dict[str, Recipe]:
    """The trainings of the record, by the names of its rows."""
    _, text = nanogpt.texts(work, None)
    words = {
        f"words {name} {kind}": recipe_from_table(
            word_table(measuring.corpora() / folder, model, 1)
        )
        for folder, name in CORPORA.items()
        for kind, model in MODELS.items()
    }
    characters = {
        stage: regard_characters.recipe_of(name, text, updates=UPDATES[name])
        for stage, name in (("same", SAME), ("fast", FAST))
    }
    return {**characters, **words}


def word_table(
    home: Path, model: Mapping[str, Any], minutes: float, seed: int = 1
) -> dict[str, Any]:
    """The recipe of one model of one corpus; all but the model is the same."""
    return {
        "task": "language_modelling",
        "data": {
            "train": [str(home / "train.txt.gz")],
            "valid": [str(home / "valid.txt")],
            "test": [str(home / "test.txt")],
            "context": 128,
            "overlap": 64,
        },
        "tokenizer": {"type": "bpe", "vocab_size": 4000},
        "model": dict(model),
        "training": {
            "seed": seed,
            "minutes": minutes,
            "batch_tokens": 2048,
            "optimizer": "muon",
            "learning_rate": 5e-3,
            "schedule": "linear",
            "warmup": 50,
            "weight_decay": 0.05,
            "clip_norm": 1.0,
            "label_smoothing": 0.0,
            "validate_every": 1000,
            "keep": 1,
        },
    }


# Each leaves a file of its name.
STAGES: dict[str, Callable[[argparse.Namespace], dict[str, Any]]] = {
    "nanogpt": theirs,
    "same": lambda given: ours(given, SAME),
    "fast": lambda given: ours(given, FAST),
    "speed": speed,
    "words": words,
}


def write(found: Mapping[str, Any]) -> None:
    """The record of all stages."""
    sides = {"nanoGPT": found["nanogpt"], SAME: found["same"], FAST: found["fast"]}
    loss = {name: side["loss"] for name, side in sides.items()}
    pace = found["speed"]["milliseconds"]

    def share(name: str) -> Spread:
        ratio = measuring.paired_ratio(pace[name]["samples"], pace["nanoGPT"]["samples"])
        updates = sides[name]["updates"] / sides["nanoGPT"]["updates"]
        return Spread.of(each * updates for each in ratio.samples)

    figures = [
        Figure(
            what=f"Tiny Shakespeare, {title}: loss of the whole validation part / training time",
            ours=f"{loss[name]:.3f} / {share(name).median:.2f} ×",
            beside=f"nanoGPT: {loss['nanoGPT']:.3f} / 1",
            note=f"{UPDATES[name]:,} updates to its 2,000; {found['speed']['threads']} threads, "
            f"±{100 * share(name).relative:.0f} %",
        )
        for name, title in ((SAME, "nanoGPT's CPU recipe"), (FAST, "our own recipe"))
    ]
    figures += _word_figures(found["words"]) if "words" in found else []
    measuring.write_record(
        "language_modelling",
        title="Language models of characters and of subwords",
        figures=figures,
        details={
            **found,
            "time beside nanoGPT": {name: share(name).table() for name in (SAME, FAST)},
            "nanoGPT's flags": nanogpt.CPU_FLAGS,
            "words recipe": word_table(Path("$REGARD_DATA"), MODELS["Transformer"], 0),
        },
        packages=("torch", "numpy"),
        threads=[found["speed"]["threads"]],
        rounds=ROUNDS,
        started_on=found["speed"]["machine"],
    )


def _word_figures(words: Mapping[str, Any]) -> list[Figure]:
    figures = []
    seeds = f"{len(SEEDS['Transformer'])} seeds (LSTM: one)"
    for folder, name in CORPORA.items():
        each = words[name]
        beside = next(label for label in each if label.startswith("Kneser-Ney"))
        figures.append(
            Figure(
                what=f"{folder}, bits per byte of the test part: Transformer / LSTM",
                ours=" / ".join(_bits(each[kind]) for kind in MODELS),
                beside=f"{beside}: {each[beside]['bits per byte']:.3f}",
                note=f"{words['minutes']:g} CPU minutes each, {seeds}, 4,000 subwords",
            )
        )
    return figures


def _bits(seeds: Mapping[str, Mapping[str, float]]) -> str:
    return measuring.mean_of_seeds([each["bits per byte"] for each in seeds.values()], 3)


def _ours(
    name: str, text: Path, given: argparse.Namespace, *, run: str, updates: int
) -> dict[str, Any]:
    sample: dict[str, Any] = measuring.apart(
        *(OURS, name, "--text", text, "--run", (given.work / run).resolve()),
        *("--updates", updates, "--threads", given.threads),
        threads=given.threads,
    )
    return sample


if __name__ == "__main__":
    main()
