"""Tagging with the shipped recipes: parts of speech, English entities, Chinese entities.

Each recipe is trained from scratch on the corpus' training file, its weights are chosen by the
validation file, and both that and the test file are read once at the end. Entities are trained
twice, with the conditional random field on top and with a linear layer alone, all else equal; what
the field costs is a ratio of training steps taken in turn. Beside the models stand each word's most
frequent tag and, of entities, those met in training wherever their words occur.

    python -m benchmarks.tagging --work FOLDER [--only NAME ...] [--threads 2]

Run again after an interruption, it goes on where it was; with ``--only``, it does a part of the
work. The record names the parts that are not there yet.
"""

import time
from pathlib import Path
from typing import Any

import torch

from benchmarks import measuring
from benchmarks.training import held_out, settings_of, train
from regard.cli.jobs import parse_arguments
from regard.config import parse_settings
from regard.tasks import Recipe, read_parts
from regard.tasks.labels.tagging import Tagging
from regard.text import Batches

FILES = {
    "ud-english-ewt": (
        "en_ewt-ud-train.conllu.gz",
        "en_ewt-ud-dev.conllu.gz",
        "en_ewt-ud-test.conllu.gz",
    ),
    "wnut17": ("train.conll", "dev.conll", "test.conll"),
    "msra-ner-zh": ("train.txt.gz", "dev.txt", "test.txt.gz"),
}
# Name of a run: recipe, corpus, and what is set besides.
RUNS: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "words": ("tagging-words", "ud-english-ewt", ()),
    "entities-crf": ("tagging-entities", "wnut17", ()),
    "entities-linear": ("tagging-entities", "wnut17", ("head.crf=false",)),
    "chinese-crf": ("tagging-chinese-entities", "msra-ner-zh", ()),
    "chinese-linear": ("tagging-chinese-entities", "msra-ner-zh", ("head.crf=false",)),
}
STEPS = "steps"
ROUNDS, BATCHES = measuring.sized((9, 6), (1, 1))


def recipe_of(name: str, *more: str) -> Recipe:
    shipped, corpus, settings = RUNS[name]
    train_file, valid, test = (str(measuring.corpora() / corpus / file) for file in FILES[corpus])
    files = (f"data.valid={valid}", f"data.test={test}")
    return parse_arguments([shipped, train_file]).resolve(
        parse_settings([*files, *settings, *more])
    )


def trainings(work: Path) -> dict[str, Recipe]:
    """The trainings of the record, by the names of its rows."""
    return {name: recipe_of(name) for name in RUNS}


def trained_figures(name: str, work: Path) -> dict[str, Any]:
    """Train one run and read both held-out files."""
    recipe = recipe_of(name)
    began = time.perf_counter()
    trained = train(recipe, work / name)
    seconds = time.perf_counter() - began
    known = read_parts(recipe).train
    return {
        "recipe": {"name": RUNS[name][0], "set": list(RUNS[name][2]), **settings_of(recipe)},
        "parameters": sum(p.numel() for p in trained.predictor.model.parameters()),
        "summary": trained.summary,
        "seconds_with_reading_and_validation": round(seconds, 1),
        **{split: held_out(trained.predictor, known, split) for split in ("valid", "test")},
    }


def step_ratios() -> dict[str, Any]:
    """Seconds of training steps with the field and without it, taken in turn."""
    return {
        corpus: _steps(crf, linear)
        for corpus, crf, linear in (
            ("wnut17", "entities-crf", "entities-linear"),
            ("msra-ner-zh", "chinese-crf", "chinese-linear"),
        )
    }


def _steps(crf: str, linear: str) -> dict[str, Any]:
    examples = Tagging.read(recipe_of(crf), "train")
    jobs = {name: Tagging.learn(recipe_of(name), examples) for name in (crf, linear)}
    encoded = jobs[crf].encode(examples[:2000])
    lengths = jobs[crf].lengths(encoded)
    tokens = int(recipe_of(crf).training["batch_tokens"])
    plans = [*Batches(lengths, lengths, max_tokens=tokens, seed=1).epoch(0)][:BATCHES]
    batches = [jobs[crf].collate([encoded[i] for i in plan.indices]) for plan in plans]

    def stepping(name: str) -> Any:
        model = jobs[name].build_model()
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)

        def measure() -> float:
            began = time.perf_counter()
            for batch in batches:
                loss, _ = jobs[name].loss(model, batch)
                loss.backward()
                optimizer.step()
                optimizer.zero_grad()
            return (time.perf_counter() - began) / len(batches)

        measure()
        return measure

    sides = {"crf": stepping(crf), "linear": stepping(linear)}
    samples = measuring.alternate(sides, ROUNDS)
    return {
        "batch_tokens": tokens,
        "tags": len(jobs[crf].tags),
        "seconds": {side: measuring.Spread.of(taken).table() for side, taken in samples.items()},
        "ratio": measuring.paired_ratio(samples["crf"], samples["linear"]).table(),
    }


def figures_of(parts: dict[str, Any]) -> list[measuring.Figure]:
    found = []
    if words := parts.get("words"):
        baseline = "each word's most frequent tag"
        found.append(
            measuring.Figure(
                what="Parts of speech, English EWT, accuracy dev / test",
                ours=_both(words, "accuracy"),
                beside=f"{baseline}: {_both_baselines(words, baseline, 'accuracy')}",
                note=f"`tagging-words`, {_minutes(words)}",
                parts=["words"],
            )
        )
    baseline = "entities met in training"
    for corpus, name in (("WNUT-17", "entities"), ("MSRA (Chinese)", "chinese")):
        crf, linear = parts.get(f"{name}-crf"), parts.get(f"{name}-linear")
        if crf is None:
            continue
        beside = f"; with a linear layer {_both(linear, 'f1')}" if linear else ""
        found.append(
            measuring.Figure(
                what=f"Entities, {corpus}, F1 of whole entities dev / test, with a CRF",
                ours=_both(crf, "f1"),
                beside=f"{baseline}: {_both_baselines(crf, baseline, 'f1')}{beside}",
                note=f"`{crf['recipe']['name']}`, {_minutes(crf)}",
                parts=[f"{name}-crf", *([f"{name}-linear"] if linear else [])],
            )
        )
    if STEPS not in parts:
        return found
    ratios = [steps["ratio"] for steps in parts[STEPS].values()]
    found.append(
        measuring.Figure(
            what="Training step with a CRF over one without, WNUT-17 / MSRA",
            ours=" / ".join(f"{ratio['median']:.2f} ×" for ratio in ratios),
            beside="bar: at most 1.5 ×",
            note=f"±{100 * max(ratio['relative'] for ratio in ratios):.0f} %",
            parts=[STEPS],
        )
    )
    return found


def _both(run: dict[str, Any], metric: str) -> str:
    return " / ".join(f"{run[split]['score'][metric]:.2f}" for split in ("valid", "test"))


def _both_baselines(run: dict[str, Any], baseline: str, metric: str) -> str:
    scores = (run[split]["baselines"][baseline] for split in ("valid", "test"))
    return " / ".join(f"{score[metric]:.2f}" for score in scores)


def _minutes(run: dict[str, Any]) -> str:
    return f"{run['summary']['epochs']} epochs in {run['summary']['seconds'] / 60:.0f} min"


def main() -> None:
    parser = measuring.command(__doc__, work="where runs and figures are kept", threads=2)
    parser.add_argument("--only", nargs="+", choices=[*RUNS, STEPS], default=[*RUNS, STEPS])
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)

    def measure(name: str) -> dict[str, Any]:
        part = step_ratios() if name == STEPS else trained_figures(name, arguments.work)
        return {"threads": arguments.threads, "part": part}

    done = measuring.parts_in(arguments.work, (*RUNS, STEPS), arguments.only, measure)
    missing = [name for name in (*RUNS, STEPS) if name not in done]
    figures = figures_of({name: each["part"] for name, each in done.items()})
    print(*figures, sep="\n")
    if arguments.dry:
        return
    measuring.write_record(
        "tagging",
        title="Tagging from scratch: parts of speech, English and Chinese entities",
        figures=figures,
        details={**done, "not measured": missing},
    )


if __name__ == "__main__":
    main()
