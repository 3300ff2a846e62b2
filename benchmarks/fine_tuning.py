"""Fine-tuning of pretrained encoders: quality by job, and a step beside transformers.

    python -m benchmarks.fine_tuning --work FOLDER [--pretrained FOLDER] [--only JOB ...]
        [--seeds 1 2 3] [--threads 1]

``--pretrained`` holds the encoders in Hugging Face's layout: ``minilm-en`` (English, uncased) and
``roberta-zh`` (Chinese). Every job is trained by its shipped recipe, on large corpora for an epoch
or less; its weights are chosen by the validation part, and the test part is read once at the end.
Beside it stands the record of the same job from scratch, with its simple baselines.

Of sst2 the sentences of the training file whose SHA-1 ends in a 0 (in decimal) are kept apart as a
second test part; a part of what is left is validated on, and its development file is a test.

``step`` times an update on the very same batches of sst2 and of hotel, and its peak memory, in
processes of their own: ours, a plain loop over transformers' model, and its Trainer where
accelerate is installed, all in bfloat16 where the processor multiplies it. It is timed on an idle
machine, after the record of all else is written. Run again, the script goes on where it was.
"""

import argparse
import hashlib
import json
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch

from benchmarks import linear_text, measuring
from benchmarks.encoders import encoder
from benchmarks.measuring import Figure, Spread, sized
from benchmarks.occasion import FEWEST_ROUNDS
from benchmarks.peers.fine_tuning_updates import IN_BFLOAT16, OURS, SIDES, TRAINER, write_batches
from benchmarks.question_answering import FILES
from benchmarks.training import settings_of, train
from regard.config import JsonValue, parse_settings
from regard.inference import Predictor
from regard.tasks import Recipe
from regard.tasks.questions.question_answering import SpanAnswer
from regard.tasks.sentence_baselines import sentences_of
from regard.text.reading.questions import Question
from regard.training.recipes.resolving import resolve

STEP, STEPS = "step", ("sst2", "hotel")
ENGLISH, CHINESE = "minilm-en", "roberta-zh"
SEEDS = sized((1, 2, 3), (1,))
ROUNDS = sized(FEWEST_ROUNDS, 1)
SENTENCES = sized(None, 400)  # of sst2, all of them
ONCE = ("training.epochs=1",)  # of corpora of tens of thousands of examples


@dataclass(frozen=True, kw_only=True)
class Job:
    """A corpus, the recipe that is fine-tuned on it, and the record that it stands beside."""

    what: str
    recipe: str
    encoder: str
    files: Mapping[str, Sequence[str]]
    metrics: Sequence[str]
    settings: Sequence[str] = ()
    beside: str = ""  # the beginning of a record's figure, behind the record's name


def _files(folder: str, *names: str) -> dict[str, list[str]]:
    splits = zip(("train", "valid", "test"), names, strict=True)
    return {split: [f"{folder}/{name}"] for split, name in splits}


JOBS = {
    "sst2": Job(
        what="sst2, accuracy of dev / of a tenth of the training sentences kept apart",
        recipe="classification-pretrained",
        encoder=ENGLISH,
        files={"train": ["WORK/sst2.train.tsv"], "test": ["sst2/dev.tsv", "WORK/sst2.test.tsv"]},
        metrics=("accuracy",),
        beside="classification: sst2",
    ),
    "hotel": Job(
        what="chnsenticorp-htl, accuracy of test",
        recipe="classification-pretrained",
        encoder=CHINESE,
        files=_files("chnsenticorp-htl", "train.tsv.gz", "dev.tsv", "test.tsv"),
        metrics=("accuracy",),
        settings=("data.text=2", "data.label=1", "head.ngram_scores=true"),
        beside="classification: chnsenticorp-htl",
    ),
    "shopping": Job(
        what="online-shopping-10cats polarity, accuracy of test",
        recipe="classification-pretrained",
        encoder=CHINESE,
        files=_files("online-shopping-10cats", "train.tsv.gz", "dev.tsv", "test.tsv.gz"),
        metrics=("accuracy",),
        settings=("data.text=3", "data.label=1", "head.ngram_scores=true", "training.updates=2000"),
        beside="classification: online-shopping-10cats",
    ),
    "entities": Job(
        what="Entities, WNUT-17, F1 of test",
        recipe="tagging-pretrained",
        encoder=ENGLISH,
        files=_files("wnut17", "train.conll", "dev.conll", "test.conll"),
        metrics=("f1",),
        beside="tagging: Entities, WNUT-17",
    ),
    "entities-chinese": Job(
        what="Entities, MSRA (Chinese), F1 of test",
        recipe="tagging-pretrained",
        encoder=CHINESE,
        files=_files("msra-ner-zh", "train.txt.gz", "dev.txt", "test.txt.gz"),
        metrics=("f1",),
        settings=ONCE,
        beside="tagging: Entities, MSRA",
    ),
    "words": Job(
        what="Parts of speech, English EWT, accuracy of test",
        recipe="tagging-pretrained",
        encoder=ENGLISH,
        files=_files(
            "ud-english-ewt", *(f"en_ewt-ud-{s}.conllu.gz" for s in ("train", "dev", "test"))
        ),
        metrics=("accuracy",),
        beside="tagging: Parts of speech",
    ),
    "spans": Job(
        what="Answers in English texts (squadshifts), exact match / F1 / right sentence, test",
        recipe="question-answering-pretrained",
        encoder=ENGLISH,
        files=FILES["squadshifts"],
        metrics=("exact_match", "f1", "sentence"),
        beside="question_answering: Answers in English",
    ),
    "spans-chinese": Job(
        what="Answers in Chinese texts (cmrc2018 dev, 1,002 trained on), exact match / F1",
        recipe="question-answering-pretrained",
        encoder=CHINESE,
        files=FILES["cmrc2018"],
        metrics=("exact_match", "f1"),
        settings=("data.on_bad_line=skip",),
        beside="question_answering: Answers in Chinese",
    ),
    "pairs": Job(
        what="Question with its passage or another (squadshifts), accuracy of test",
        recipe="pair-matching-pretrained",
        encoder=ENGLISH,
        files=FILES["squadshifts"],
        metrics=("accuracy",),
        settings=("data.on_bad_line=skip", *ONCE),
        beside="question_answering: Question with its passage or another, read",
    ),
    "choices": Job(
        what="Multiple choice among 4 (fairytaleqa), accuracy of test",
        recipe="multiple-choice-pretrained",
        encoder=ENGLISH,
        files=FILES["fairytaleqa"],
        metrics=("accuracy",),
        settings=ONCE,
        beside="question_answering: Multiple choice",
    ),
}


def keep_apart(work: Path) -> None:
    """Write the sentences of sst2 to train on, and those kept apart."""
    parts: dict[bool, list[str]] = {False: [], True: []}
    rows = (measuring.corpora() / "sst2" / "train.tsv").read_text("utf-8").splitlines()
    for row in rows[:SENTENCES]:
        digest = hashlib.sha1(row.split("\t")[0].encode()).hexdigest()
        parts[int(digest, 16) % 10 == 0].append(row)
    for name, rows in (("train", parts[False]), ("test", parts[True])):
        (work / f"sst2.{name}.tsv").write_text("".join(f"{row}\n" for row in rows), "utf-8")


def recipe_of(job: Job, work: Path, pretrained: Path | None, seed: int = 1) -> Recipe:
    """The shipped recipe on a job's files, initialised from its encoder."""
    folders = {"WORK": work}
    files: dict[str, JsonValue] = {
        f"data.{split}": [
            str(
                (folders.get(name.split("/")[0]) or measuring.corpora())
                / name.removeprefix("WORK/")
            )
            for name in names
        ]
        for split, names in job.files.items()
    }
    settings = {
        **files,
        "training.pretrained": str(encoder(job.encoder, pretrained)),
        "training.seed": seed,
        **parse_settings(list(job.settings)),
    }
    return resolve(job.recipe, settings=settings)


def trainings(work: Path) -> dict[str, Recipe]:
    """The trainings of the record, by the names of its rows."""
    work.mkdir(parents=True, exist_ok=True)
    keep_apart(work)
    return {name: recipe_of(job, work, None) for name, job in JOBS.items()}


def quality(name: str, work: Path, pretrained: Path | None, seed: int) -> dict[str, Any]:
    """Figures of one training: of the validation part, and of each test part."""
    trained = train(recipe_of(JOBS[name], work, pretrained, seed), work / "runs" / f"{name}-{seed}")
    task, summary = trained.predictor.task, trained.summary
    files = task.recipe.files("test")
    parts = [[file] for file in files] if name == "sst2" else [files]
    return {
        "recipe": settings_of(task.recipe),
        "updates": summary["updates"],
        "epochs": summary["epochs"],
        "weights": summary["weights"],
        "minutes": round(summary["seconds"] / 60, 1),
        "valid": summary["validation"],
        "test": [scores(trained.predictor, part) for part in parts],
    }


def scores(predictor: Predictor, files: Sequence[Path]) -> dict[str, float]:
    """Figures of the examples of test files; of spans, also how many lie in the right sentence."""
    task = predictor.task
    data = replace(task.recipe.data, test=tuple(map(str, files)))
    examples = task.read(replace(task.recipe, data=data), "test")
    answers = predictor.answers(examples)
    found = {"count": len(examples), **task.score(answers, examples)}
    if task.recipe.task == "question_answering":
        found["sentence"] = right_sentences(answers, examples)
    return found


def right_sentences(answers: Sequence[SpanAnswer], examples: Sequence[Question]) -> float:
    """Share of answers that begin in a sentence with a right answer, in percent."""
    right = 0
    for answer, example in zip(answers, examples, strict=True):
        spans = sentences_of(example.context)
        right += any(
            start <= answer.start < end
            and any(start <= each.start < end for each in example.answers)
            for start, end in spans
        )
    return 100 * right / len(examples)


def simple_sst2(work: Path) -> dict[str, Any]:
    """TF-IDF with linear models on the same sentences of sst2, chosen by cross-validation."""

    def columns(file: Path) -> linear_text.Labelled:
        rows = [line.split("\t") for line in file.read_text("utf-8").splitlines()]
        return [row[0] for row in rows], [row[1] for row in rows]

    tests = {"dev": measuring.corpora() / "sst2" / "dev.tsv", "apart": work / "sst2.test.tsv"}
    parts = {name: columns(file) for name, file in tests.items()}
    return linear_text.measure(columns(work / "sst2.train.tsv"), parts, valid=None, spaced=True)


def step(work: Path, pretrained: Path | None, threads: int, *, is_dry: bool) -> dict[str, Any]:
    """Seconds and peak memory of an update, in turn, each side in a process of its own."""
    started_on = measuring.before_timing(ROUNDS, is_dry=is_dry)
    names = [name for name in SIDES if name != TRAINER or find_spec("accelerate")]
    return {
        **{job: _step(job, names, work, pretrained, threads) for job in STEPS},
        "left out": [name for name in SIDES if name not in names],
        "bfloat16": IN_BFLOAT16,
        "rounds": ROUNDS,
        "measured": measuring.occasion(started_on),
    }


def _step(
    job: str, names: Sequence[str], work: Path, pretrained: Path | None, threads: int
) -> dict[str, Any]:
    recipe, batches = recipe_of(JOBS[job], work, pretrained), work / f"batches-{job}.json"
    write_batches(recipe, batches)
    folder = () if pretrained is None else ("--pretrained", pretrained)
    sides = {
        name: partial(
            measuring.apart,
            "benchmarks.fine_tuning",
            *("--work", work, *folder, "--side", name, job),
            threads=threads,
        )
        for name in names
    }
    samples = measuring.alternate(sides, ROUNDS)
    seconds = {name: [one["seconds"] for one in samples[name]] for name in names}
    megabytes = {name: [one["megabytes"] for one in samples[name]] for name in names}
    return {
        "batch_tokens": recipe.training["batch_tokens"],
        "seconds": {name: Spread.of(each).table() for name, each in seconds.items()},
        "megabytes": {name: Spread.of(each).table() for name, each in megabytes.items()},
        "faster": {
            name: measuring.paired_ratio(seconds[name], seconds[OURS]).table() for name in names[1:]
        },
    }


def figures_of(parts: Mapping[str, Any], records: Sequence[Mapping[str, Any]]) -> list[Figure]:
    """The lines of docs/measured.md."""
    every = [
        job_figure(name, job, part, records)
        for name, job in JOBS.items()
        if (part := parts.get(name)) is not None
    ]
    timed = parts.get(STEP)
    return [*every, *(step_figure(job, timed) for job in STEPS if timed)]


def job_figure(
    name: str, job: Job, part: Mapping[str, Any], records: Sequence[Mapping[str, Any]]
) -> Figure:
    """The means of the seeds of a job, beside the record of the same from scratch."""
    seeds = list(part["seeds"].values())
    means = [
        measuring.mean_of_seeds([seed["test"][number][metric] for seed in seeds], 1)
        for number in range(len(seeds[0]["test"]))
        for metric in job.metrics
    ]
    beside = scratch(job, records)
    if simple := part.get("simple"):
        each = (
            f"{way} {found['dev accuracy']:.1f} / {found['apart accuracy']:.1f}"
            for way, found in simple.items()
            if way != "measured"
        )
        beside += f"; the same sentences: {', '.join(each)}"
    minutes = statistics.mean(seed["minutes"] for seed in seeds)
    epochs = seeds[0]["epochs"]
    learned = f"{epochs} epoch{'s'[: epochs > 1]}" if epochs else "less than an epoch"
    count = f"{len(seeds)} seeds" if len(seeds) > 1 else "one seed"
    named = [job.encoder, *(each for each in job.settings if not each.startswith("data."))]
    return Figure(
        what=job.what,
        ours=" / ".join(means),
        beside=beside,
        note=f"`{job.recipe}`, {', '.join(named)}, {count}, {learned} in {minutes:.0f} min",
        parts=[name],
    )


def scratch(job: Job, records: Sequence[Mapping[str, Any]]) -> str:
    """Figures of the same job from scratch, and of its simple baselines."""
    name, _, beginning = job.beside.partition(": ")
    for record in records:
        for figure in record["figures"]:
            if record["name"] == name and figure["what"].startswith(beginning):
                return f"from scratch ({figure['what']}): {figure['ours']}; {figure['beside']}"
    return "not measured from scratch"


def step_figure(job: str, timed: Mapping[str, Any]) -> Figure:
    """The line of an update's speed and memory."""
    part = timed[job]
    faster, memory = part["faster"], part["megabytes"]
    ratios = " / ".join(f"{each['median']:.2f} ×" for each in faster.values())
    sides = {
        name: f"{1000 * seconds['median']:.0f} ms, {memory[name]['median'] / 1024:.2f} GB"
        for name, seconds in part["seconds"].items()
    }
    spread = max(each["relative"] for each in faster.values())
    missing = "".join(f", {name} not measured: no accelerate" for name in timed["left out"])
    dtype = "bfloat16" if timed["bfloat16"] else "float32"
    return Figure(
        what=f"Update of fine-tuning ({JOBS[job].encoder}, {part['batch_tokens']:,} tokens of "
        f"{job}), speed beside {' / '.join(faster)} over transformers",
        ours=f"{ratios} ({sides[OURS]})",
        beside="; ".join(f"{name}: {sides[name]}" for name in faster),
        note=f"one thread, {dtype}, ±{spread:.0%}{missing}",
    )


def main() -> None:
    """Train what is missing, and write the record."""
    parser = measuring.command(__doc__, work="where runs and figures are kept")
    parser.add_argument("--pretrained", type=Path, help="their folder, where not the usual one")
    parser.add_argument("--only", nargs="*", choices=[*JOBS, STEP], default=[*JOBS, STEP])
    parser.add_argument("--seeds", type=int, nargs="+", default=SEEDS)
    parser.add_argument("--side", nargs=2, help=argparse.SUPPRESS)
    given = parser.parse_args()
    torch.set_num_threads(given.threads)
    work = given.work.resolve()
    pretrained = given.pretrained.resolve() if given.pretrained else None
    if given.side:
        name, job = given.side
        recipe, batches = recipe_of(JOBS[job], work, pretrained), work / f"batches-{job}.json"
        print(json.dumps(SIDES[name](recipe, encoder(JOBS[job].encoder, pretrained), batches)))
        return
    started_on = measuring.machine()
    results = work / "results"
    results.mkdir(parents=True, exist_ok=True)
    keep_apart(work)
    for name in (name for name in given.only if name != STEP):
        for seed in given.seeds:
            measure = partial(quality, name, work, pretrained, seed)
            measuring.once(results / f"{name}-{seed}.json", measure)
        if name == "sst2":
            measuring.once(results / "sst2-simple.json", partial(simple_sst2, work))
    write(results, started_on, is_dry=given.dry)
    if STEP in given.only:
        measure = partial(step, work, pretrained, given.threads, is_dry=given.dry)
        measuring.once(results / f"{STEP}.json", measure)
        write(results, started_on, is_dry=given.dry)


def write(results: Path, started_on: Mapping[str, Any], *, is_dry: bool) -> None:
    """The record of all figures that there are, those that it has from before among them."""
    found = {path.stem: json.loads(path.read_text("utf-8")) for path in results.glob("*.json")}
    records = measuring.read_records()
    [before] = [each["details"] for each in records if each["name"] == "fine_tuning"] or [{}]
    parts: dict[str, Any] = {}
    for name in JOBS:
        part = before.get(name, {"seeds": {}})
        now = {str(seed): found[f"{name}-{seed}"] for seed in SEEDS if f"{name}-{seed}" in found}
        seeds = {**of_same_recipe(part["seeds"], now), **now}
        simple = found.get(f"{name}-simple", part.get("simple"))
        if seeds:
            parts[name] = {"seeds": seeds, **({"simple": simple} if simple else {})}
    if timed := found.get(STEP, before.get(STEP)):
        parts[STEP] = timed
    figures = figures_of(parts, records)
    print(*figures, sep="\n")
    if not is_dry:
        measuring.write_record(
            "fine_tuning",
            title="Fine-tuning of pretrained encoders, beside the same from scratch",
            figures=figures,
            details={**parts, "not measured": [n for n in (*JOBS, STEP) if n not in parts]},
            packages=("torch", "transformers", "accelerate"),
            threads=[1],
            rounds=ROUNDS if STEP in parts else None,
            started_on=started_on,
        )


def of_same_recipe(before: Mapping[str, Any], now: Mapping[str, Any]) -> dict[str, Any]:
    """Seeds of before, without those whose settings are not those of now."""

    def settings(seed: Mapping[str, Any]) -> Any:
        return {**seed["recipe"], "training": {**seed["recipe"]["training"], "seed": None}}

    same = [settings(seed) for seed in now.values()]
    return {n: seed for n, seed in before.items() if all(settings(seed) == each for each in same)}


if __name__ == "__main__":
    main()
