"""Guessed classifiers beside TF-IDF and logistic regression, with few examples and with many.

python -m benchmarks.simple_methods --work FOLDER [--only NAME ...] [--sizes 200 2000 all]

Each table is written as CSV and trained as `regard train TABLE` guesses it; the peer is a pipeline
of scikit-learn, fitted to the same training part with C chosen by the same validation part. Test
parts are read once. Of tags there is the regression that `regard evaluate` fits in seconds. A part
that is measured has a file in the work folder and is not measured again; the record names the
missing ones.
"""

import csv
import json
import math
import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn.linear_model import LogisticRegression

from benchmarks import linear_text, measuring
from benchmarks.measuring import sized
from benchmarks.training import train
from regard.cli.jobs import parse_arguments
from regard.config import parse_settings
from regard.inference import Predictor
from regard.tasks import read_parts
from regard.tasks.labels.baselines import TFIDF, TfidfClassifier
from regard.tasks.labels.label_task import LabelledText
from regard.tasks.labels.tag_baselines import REGRESSION, LocalTagger
from regard.tasks.labels.tagging import Tagging
from regard.tasks.labels.tags import Tags
from regard.text import read_lines

Row = tuple[str, str]  # a text and its label
COSTS = sized((0.3, 1.0, 3.0, 10.0, 30.0), (1.0,))
SIZES = ("200", "2000", "all")
BINS = 10  # of confidence
SEED = 1


def columns(folder: str, names: Sequence[str], text: int, label: int) -> list[list[Row]]:
    """The rows of a training and of a test file of tab-separated columns."""
    parts = []
    for name in names:
        lines = read_lines(measuring.corpora() / folder / name)
        rows = [line.text.split("\t") for line in lines]
        parts.append([(row[text], row[label]) for row in rows])
    return parts


def objects(folder: str, text: str, label: str) -> list[list[Row]]:
    """The rows of a training and of a test file of JSON objects."""
    parts = []
    for name in ("train", "test"):
        lines = read_lines(measuring.corpora() / folder / f"{name}.jsonl.gz")
        records = [json.loads(line.text) for line in lines]
        # A number as a label would be one to be predicted from the text.
        parts.append([(record[text], f"{label} {record[label]}") for record in records])
    return parts


@dataclass(frozen=True)
class Corpus:
    """A table of texts and labels, and where it is from."""

    what: str
    read: Callable[[], list[list[Row]]]
    is_spaced: bool = True


_GOODS = ("online-shopping-10cats", ("train.tsv.gz", "test.tsv.gz"), 2)
_HOTELS = ("chnsenticorp-htl", ("train.tsv.gz", "test.tsv"), 1)
CORPORA = {
    "sst2": Corpus("SST-2, polarity", lambda: columns("sst2", ("train.tsv", "dev.tsv"), 0, 1)),
    "hotel": Corpus("hotel reviews, polarity", lambda: columns(*_HOTELS, 0), is_spaced=False),
    "shopping": Corpus("shop reviews, polarity", lambda: columns(*_GOODS, 0), is_spaced=False),
    "goods": Corpus("shop reviews, kind of goods", lambda: columns(*_GOODS, 1), is_spaced=False),
    "questions": Corpus(
        "FairytaleQA, what is asked", lambda: objects("fairytaleqa", "question", "attribute")
    ),
    "abstracts": Corpus(
        "ACL abstracts, the year", lambda: objects("acl-titles", "document", "year")
    ),
}
REVIEWS = ("sst2", "hotel", "shopping")
TAGGED = {
    "speech": ("tagging-words", "ud-english-ewt", "en_ewt-ud-{}.conllu.gz", "accuracy"),
    "wnut": ("tagging-entities", "wnut17", "{}.conll", "f1"),
    "msra": ("tagging-chinese-entities", "msra-ner-zh", "{}.txt.gz", "f1"),
}
SIMPLE = {
    **{f"simple-{name}": f"{CORPORA[name].what}, accuracy" for name in REVIEWS},
    "speech": "Parts of speech, English EWT, accuracy",
    "wnut": "Entities, WNUT-17, F1 of whole entities",
    "msra": "Entities, MSRA (Chinese), F1 of whole entities",
}


def measure_table(corpus: Corpus, size: str, work: Path, seconds: float) -> dict[str, Any]:
    """Accuracy on the test part of the guessed run, of its baseline and of the peer."""
    rows, test = corpus.read()
    random.Random(7).shuffle(rows)
    rows = rows if size == "all" else rows[: int(size)]
    known = {label for _, label in rows}
    files = {"train": rows, "test": [row for row in test if row[1] in known]}
    for name, each in files.items():
        with (work / f"{name}.csv").open("w", encoding="utf-8", newline="") as file:
            csv.writer(file).writerows([("text", "label"), *each])
    settings = [f"data.test={work / 'test.csv'}", f"training.seed={SEED}"]
    if size == "all" and len(rows) > 10_000 and seconds:
        settings.append(f"training.minutes={seconds / 60}")
    recipe = parse_arguments([str(work / "train.csv")]).resolve(parse_settings(settings))
    trained = train(recipe, work / "run")
    task = trained.predictor.task
    parts = read_parts(task.recipe)
    examples = task.read(task.recipe, "test")
    shares = shares_of(trained.predictor, examples)
    right = np.array([task.labels.index(each.label) for each in examples])
    own = TfidfClassifier([(each.text, each.label) for each in parts.train])
    ours = np.mean(
        [
            a == e.label
            for a, e in zip(own.labels([e.text for e in examples]), examples, strict=True)
        ]
    )
    accuracy = float((shares.argmax(1) == right).mean())
    return {
        "recipe": recipe.table()["model"],
        "labels": len(task.labels),
        "examples": {"train": len(parts.train), "valid": len(parts.valid), "test": len(examples)},
        "seconds": round(trained.summary["seconds"], 1),
        "scales": trained.summary.get("scales"),
        "accuracy": round(100 * accuracy, 2),
        "calibration error": round(calibration_error(shares, right), 4),
        "baseline of regard": round(100 * float(ours), 2),
        "scikit-learn": peer(corpus, parts.train, parts.valid, examples),
    }


def shares_of(predictor: Predictor, examples: Sequence[LabelledText]) -> np.ndarray:
    """The probabilities of the labels."""
    labels = predictor.task.labels
    answers = predictor.answers(examples)
    return np.array([[answer.probabilities[label] for label in labels] for answer in answers])


def calibration_error(shares: np.ndarray, right: np.ndarray) -> float:
    """Expected calibration error of the likeliest labels: Guo et al. (2017), equation 3."""
    sure, hits = shares.max(1), shares.argmax(1) == right
    bins = np.minimum((sure * BINS).astype(int), BINS - 1)
    gaps = [
        abs((hits[bins == n].mean() - sure[bins == n].mean()) * (bins == n).sum())
        for n in set(bins)
    ]
    return float(sum(gaps) / len(sure))


def peer(
    corpus: Corpus,
    train_part: Sequence[LabelledText],
    valid: Sequence[LabelledText],
    test: Sequence[LabelledText],
) -> dict[str, Any]:
    """Accuracy of TF-IDF and logistic regression, C by the validation part; its standard error."""
    vectors = linear_text.SPACED if corpus.is_spaced else linear_text.UNSPACED
    began = time.perf_counter()
    vectorizer = [*vectors.values()][-1]().fit([each.text for each in train_part])
    inputs = [
        vectorizer.transform([each.text for each in part]) for part in (train_part, valid, test)
    ]
    labels = [[each.label for each in part] for part in (train_part, valid, test)]
    found = []
    for cost in COSTS:
        model = LogisticRegression(
            C=cost, max_iter=300, solver="liblinear" if len({*labels[0]}) == 2 else "lbfgs"
        )
        model.fit(inputs[0], labels[0])
        found.append((model.score(inputs[1], labels[1]), cost, model.score(inputs[2], labels[2])))
    _, cost, accuracy = max(found, key=lambda each: each[0])
    error = math.sqrt(accuracy * (1 - accuracy) / len(test))
    return {
        "C": cost,
        "accuracy": round(100 * accuracy, 2),
        "standard error": round(100 * error, 2),
        "seconds": round(time.perf_counter() - began, 1),
    }


def measure_simple(name: str) -> dict[str, Any]:
    """The baselines of `regard evaluate`, fitted to the whole training part, on the test part."""
    if name in TAGGED:
        return measure_tags(name)
    rows, test = CORPORA[name.removeprefix("simple-")].read()
    began = time.perf_counter()
    labels = TfidfClassifier(rows).labels([text for text, _ in test])
    right = np.mean([label == true for label, (_, true) in zip(labels, test, strict=True)])
    seconds = time.perf_counter() - began
    return {"score": round(100 * float(right), 2), "seconds": round(seconds, 1), "method": TFIDF}


def measure_tags(name: str) -> dict[str, Any]:
    """The regression on the words around, on the test part."""
    recipe_name, folder, pattern, metric = TAGGED[name]
    path = measuring.corpora() / folder
    test = path / pattern.format("test")
    files = [
        str(path / pattern.format("train")),
        str(test if test.exists() else path / "test.conll"),
    ]
    recipe = parse_arguments([recipe_name, files[0]]).resolve(
        parse_settings([f"data.test={files[1]}"])
    )
    known, examples = Tagging.read(recipe, "train"), Tagging.read(recipe, "test")
    began = time.perf_counter()
    tagged = LocalTagger(known).tags([example.words for example in examples])
    seconds = time.perf_counter() - began
    task = Tagging.learn(recipe, known)
    answers = [Tags(e.words, tags) for e, tags in zip(examples, tagged, strict=True)]
    score = round(task.score(answers, examples)[metric], 2)
    return {"score": score, "seconds": round(seconds, 1), "method": REGRESSION}


def figures_of(
    tables: Mapping[str, Mapping[str, Any]], simple: Mapping[str, Any]
) -> list[measuring.Figure]:
    found = []
    for name, sizes in tables.items():
        runs = [sizes[size] for size in SIZES if size in sizes]
        peers = [run["scikit-learn"] for run in runs]

        def row(values: Sequence[float], digits: int = 1) -> str:
            return " / ".join(f"{value:.{digits}f}" for value in values)

        found.append(
            measuring.Figure(
                what=f"{CORPORA[name].what}: accuracy, {' / '.join(sizes)} examples, guessed",
                ours=row([run["accuracy"] for run in runs]),
                beside=f"{TFIDF}: {row([each['accuracy'] for each in peers])}",
                note=f"± {row([each['standard error'] for each in peers])}; calibration error "
                f"{row([run['calibration error'] for run in runs], 3)}; one seed",
            )
        )
    found += [
        measuring.Figure(
            what=f"{SIMPLE[name]}, test, by what `regard evaluate` fits",
            ours=f"{each['score']:.2f}",
            beside=each["method"],
            note=f"{each['seconds']:.0f} s",
        )
        for name, each in simple.items()
    ]
    return found


def main() -> None:
    """Measure what is missing, and write the record."""
    parser = measuring.command(__doc__, work="folder of runs and results")
    parser.add_argument(
        "--only", nargs="+", choices=[*CORPORA, *SIMPLE], default=[*CORPORA, *SIMPLE]
    )
    parser.add_argument("--sizes", nargs="+", choices=SIZES, default=sized(SIZES, ("200",)))
    parser.add_argument(
        "--seconds",
        type=float,
        default=0,
        help="of a training on more than 10,000 texts; 0 as its recipe",
    )
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    before = measuring.machine()
    work: Path = arguments.work
    tables: dict[str, dict[str, Any]] = {}
    for name, corpus in CORPORA.items():
        for size in SIZES:
            folder = work / f"{name}-{size}"
            path = folder / "result.json"
            if (name in arguments.only and size in arguments.sizes) or path.exists():
                folder.mkdir(parents=True, exist_ok=True)
                measure = partial(measure_table, corpus, size, folder, arguments.seconds)
                found = tables.setdefault(name, {})[size] = measuring.once(path, measure)
                print(name, size, found, flush=True)
    simple = measuring.parts_in(work, SIMPLE, arguments.only, measure_simple)
    print(simple, flush=True)
    if arguments.dry:
        return
    missing = [
        f"{name} {size}" for name in CORPORA for size in SIZES if size not in tables.get(name, {})
    ]
    missing += [name for name in SIMPLE if name not in simple]
    measuring.write_record(
        "simple_methods",
        title="Guessed classifiers beside TF-IDF and logistic regression",
        figures=figures_of(tables, simple),
        details={"tables": tables, "simple": simple, "not measured": missing},
        started_on=before,
    )


if __name__ == "__main__":
    main()
