"""What pretraining brings: reviews with few and with all examples, pretrained and from scratch.

    python -m benchmarks.pretraining --work FOLDER [SIDE ...] [--minutes 12] [--threads 1]

A small encoder guesses masked words, then the same encoder classifies, with a few hundred and with
all examples, a fixed number of epochs: once from its weights, once from new ones, with the same
tokenizer and settings. Accuracy is that of the last weights; beside it, naive Bayes.
Sides:

- ``sst2``: the words are those of ``gutenberg-books``, ``brown`` (its tokens joined as they are
  written), the passages of ``squadshifts`` and the texts of ``sst2`` without their labels: train
  parts only.
- ``hotel`` and ``shopping``: those of the reviews of ``online-shopping-10cats`` and
  ``chnsenticorp-htl`` without their labels: train parts only, and no review that stands in the
  hotels' dev or test part, as many of the shops' do.

Each training leaves its run in ``--work``, each side its figures; run again, the script goes on.
"""

import argparse
import gzip
import json
import re
import statistics
import tomllib
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from benchmarks import measuring
from benchmarks.measuring import Figure
from regard.cli.recipes import packaged_recipe
from regard.inference.job_evaluation import evaluate_job
from regard.tasks import recipe_from_table
from regard.training import train

WAYS = ("pretrained", "from scratch")
MODEL: dict[str, Any] = {
    "type": "transformer",
    "model_dim": 128,
    "num_heads": 4,
    "num_layers": 3,
    "ffn_dim": 512,
    "dropout": 0.0,
    "norm": "pre",
    "positions": "rotary",
}


@dataclass(frozen=True)
class Side:
    """A corpus of reviews, and how they are read.

    Attributes:
        language: Whose masked words it begins with: a name in ``LANGUAGES``.
        folder: Where it lies.
        train: Its file to train on.
        held_out: Its other files by the names of their splits.
        columns: Of text and label.
        epochs: How often examples are seen, by their number: so few are seen more often.
        max_length: Most tokens of a review.
        batch_tokens: Of classification.
        seeds: Of classification.
        title: What the README calls it.
    """

    language: str
    folder: str
    train: str
    held_out: dict[str, str]
    columns: dict[str, int]
    epochs: dict[int, int]
    max_length: int
    batch_tokens: int
    seeds: tuple[int, ...]
    title: str


SIDES = {
    "sst2": Side(
        language="english",
        folder="sst2",
        train="train.tsv",
        held_out={"dev": "dev.tsv"},
        columns={"text": 1, "label": 2},
        epochs={100: 20, 500: 12, 2000: 6, 6920: 4},
        max_length=80,
        batch_tokens=1024,
        seeds=(1, 2, 3),
        title="sst2 dev accuracy with 100 / 500 / 2,000 / all examples, pretrained encoder",
    ),
    "hotel": Side(
        language="chinese",
        folder="chnsenticorp-htl",
        train="train.tsv.gz",
        held_out={"dev": "dev.tsv", "test": "test.tsv"},
        columns={"text": 2, "label": 1},
        epochs={500: 8, 5965: 3},
        max_length=256,
        batch_tokens=2048,
        seeds=(1, 2, 3),
        title="chnsenticorp-htl accuracy, dev and test, with 500 / all examples, "
        "pretrained encoder",
    ),
    "shopping": Side(
        language="chinese",
        folder="online-shopping-10cats",
        train="train.tsv.gz",
        held_out={"dev": "dev.tsv", "test": "test.tsv.gz"},
        columns={"text": 3, "label": 1},
        epochs={2000: 4, 53720: 2},
        max_length=256,
        batch_tokens=4096,
        seeds=(1,),
        title="online-shopping-10cats polarity, dev and test, with 2,000 / all examples, "
        "pretrained encoder",
    ),
}
# What each language's masked words are counted in.
TOKENIZERS: dict[str, dict[str, Any]] = {
    "english": {"type": "bpe", "vocab_size": 8000},
    "chinese": {"type": "characters", "min_count": 2},
}


def main() -> None:
    """Pretrain, fine-tune, and write the record."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("sides", nargs="*", default=[*SIDES], help=f"of {', '.join(SIDES)}")
    parser.add_argument("--work", type=Path, required=True, help="folder of texts and runs")
    parser.add_argument("--minutes", type=float, default=12, help="minutes of pretraining")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--dry", action="store_true", help="write no record")
    given = parser.parse_args()
    torch.set_num_threads(given.threads)
    before, work = measuring.machine(), given.work.resolve()
    for name in given.sides:
        path = work / f"{name}.json"
        if not path.exists():
            found = measure(name, work, given.minutes)
            found["measured"] = measuring.occasion(before)
            path.write_text(json.dumps(found, indent=1), "utf-8")
    done = {
        name: json.loads((work / f"{name}.json").read_text("utf-8"))
        for name in SIDES
        if (work / f"{name}.json").exists()
    }
    if not given.dry:
        write(done, before)


def measure(name: str, work: Path, minutes: float) -> dict[str, Any]:
    """Pretrain once, then classify with each number of examples, both ways."""
    side, masked = SIDES[name], work / SIDES[name].language
    texts = LANGUAGES[side.language](masked / "text", measuring.corpora())
    pretrained = train(recipe_from_table(pretraining_table(texts, minutes, side)), masked / "run")
    work = work / name
    work.mkdir(exist_ok=True)
    found: dict[str, Any] = {
        "pretraining": pretrained.summary,
        "pretraining recipe": pretraining_table([], minutes, side),
        "epochs": {str(size): count for size, count in side.epochs.items()},
    }
    rows = _lines(measuring.corpora() / side.folder / side.train)
    for size in side.epochs:
        part = work / f"{size}.tsv"
        part.write_text("".join(_spread(rows, size)), "utf-8")
        found[str(size)] = {}
        for way in WAYS:
            scores = [accuracy(side, work, size, way, seed) for seed in side.seeds]
            found[str(size)][way] = scores
            print(name, size, way, scores, flush=True)
        found[str(size)]["naive Bayes"] = [naive_bayes(side, work, size)]
        print(name, size, found[str(size)]["naive Bayes"], flush=True)
    return found


def english_texts(folder: Path, corpora: Path) -> list[Path]:
    """The text to pretrain on, one file a corpus; of sst2 last, whose end is validated on."""
    folder.mkdir(parents=True, exist_ok=True)
    made = {name: folder / f"{name}.txt" for name in ("squad", "gutenberg", "brown", "sst2")}
    with gzip.open(corpora / "gutenberg-books" / "train.txt.gz", "rt") as file:
        made["gutenberg"].write_text(file.read(), "utf-8")
    with gzip.open(corpora / "brown" / "train.txt.gz", "rt") as file:
        text = file.read().replace("``", '"').replace("''", '"')
    text = re.sub(r" ([,.;:?!)])", r"\1", text)
    text = re.sub(r"\( ", "(", text)
    made["brown"].write_text(
        re.sub(r" (n't|'s|'re|'ve|'ll|'d|'m)\b", r"\1", text), encoding="utf-8"
    )
    rows = (corpora / "sst2" / "train.tsv").read_text("utf-8").splitlines()
    made["sst2"].write_text("".join(row.split("\t")[0] + "\n" for row in rows), "utf-8")
    passages = []
    for part in ("wiki", "reddit", "amazon"):
        with gzip.open(corpora / "squadshifts" / f"{part}.train.json.gz") as file:
            articles = json.load(file)["data"]
        passages += [each["context"] for article in articles for each in article["paragraphs"]]
    lines = (" ".join(passage.split()) + "\n" for passage in passages)
    made["squad"].write_text("".join(lines), "utf-8")
    return list(made.values())


def chinese_texts(folder: Path, corpora: Path) -> list[Path]:
    """The reviews to pretrain on; of hotels last, whose end is validated on."""
    folder.mkdir(parents=True, exist_ok=True)
    hotels = corpora / "chnsenticorp-htl"
    held_out = {
        _beginning(row.split("\t")[1])
        for file in ("dev", "test")
        for row in _lines(hotels / f"{file}.tsv")
    }
    made = []
    for name, file, column in (
        ("shops", corpora / "online-shopping-10cats" / "train.tsv.gz", 2),
        ("hotels", hotels / "train.tsv.gz", 1),
    ):
        texts = (row.rstrip("\n").split("\t")[column] for row in _lines(file))
        kept = [text for text in texts if _beginning(text) not in held_out]
        path = folder / f"{name}.txt"
        path.write_text("".join(" ".join(text.split()) + "\n" for text in kept), "utf-8")
        made.append(path)
    return made


LANGUAGES = {"english": english_texts, "chinese": chinese_texts}


def _beginning(text: str) -> str:
    """What a review is known by, where copies differ in spaces or at their ends."""
    return "".join(text.split())[:20]


def pretraining_table(texts: list[Path], minutes: float, side: Side) -> dict[str, Any]:
    """The recipe of the masked language model."""
    return {
        "task": "masked_language_modelling",
        "data": {
            "train": [str(path) for path in texts],
            "valid_share": 0.01,
            "context": 128,
            "masking": "words",
        },
        "tokenizer": dict(TOKENIZERS[side.language]),
        "model": dict(MODEL),
        "training": {
            "minutes": minutes,
            "batch_tokens": 4096,
            "optimizer": "muon",
            "learning_rate": 6e-3,
            "schedule": "linear",
            "warmup": 100,
            "weight_decay": 0.01,
            "clip_norm": 1.0,
            "label_smoothing": 0.0,
            "validate_every": 400,
            "keep": 1,
        },
    }


def classifying_table(side: Side, work: Path, size: int, way: str, seed: int) -> dict[str, Any]:
    """The shipped recipe with these examples; the ways differ in the weights they begin with."""
    shipped = tomllib.loads(packaged_recipe("classification-pretrained").read_text("utf-8"))
    masked = work.parent / side.language / "run"
    beginning = {"pretrained": str(masked)} if way == "pretrained" else {}
    tokenizer = {
        "type": TOKENIZERS[side.language]["type"],
        "folder": str(masked / "tokenizer" / "text"),
    }
    return {
        "task": "classification",
        "data": {
            "train": [str(work / f"{size}.tsv")],
            "valid": [str(measuring.corpora() / side.folder / side.held_out["dev"])],
            "max_length": side.max_length,
            **side.columns,
        },
        "tokenizer": {} if beginning else tokenizer,
        "model": {**MODEL, **shipped["model"]},
        "head": shipped["head"],
        "training": {
            **shipped["training"],
            "epochs": side.epochs[size],
            "batch_tokens": side.batch_tokens,
            "validate_every": 100_000,
            "seed": seed,
            **beginning,
        },
    }


def accuracy(side: Side, work: Path, size: int, way: str, seed: int) -> dict[str, float]:
    """On the parts held out, after a fixed number of epochs."""
    labeller = _trained(side, work, size, way, seed)
    found = {}
    for split, file in side.held_out.items():
        examples = _examples(labeller, side, file)
        score = labeller.job.score(labeller.answers(examples), examples)
        found[split] = float(score["accuracy"])
    return found


def naive_bayes(side: Side, work: Path, size: int) -> dict[str, float]:
    """Of the same examples, as ``regard evaluate`` puts it beside the model."""
    labeller = _trained(side, work, size, "pretrained", 1)
    known = labeller.job.read(labeller.job.recipe, "train")
    found = {}
    for split, file in side.held_out.items():
        report = evaluate_job(labeller, _examples(labeller, side, file), known)
        found[split] = float(report.baselines["naive Bayes"]["accuracy"])
    return found


def _trained(side: Side, work: Path, size: int, way: str, seed: int) -> Any:
    run = work / "classifiers" / f"{size}-{way.replace(' ', '-')}-{seed}"
    return train(recipe_from_table(classifying_table(side, work, size, way, seed)), run).predictor


def _examples(labeller: Any, side: Side, file: str) -> Any:
    recipe = labeller.job.recipe
    path = str(measuring.corpora() / side.folder / file)
    held_out = replace(recipe, data=replace(recipe.data, valid=(path,)))
    return labeller.job.read(held_out, "valid")


def write(done: dict[str, Any], started_on: dict[str, Any]) -> None:
    """The record: the means of the seeds."""
    figures = []
    for name, found in done.items():
        side = SIDES[name]
        summary = found["pretraining"]
        figures.append(
            Figure(
                what=side.title,
                ours=_shown(side, found, WAYS[0]),
                beside=f"the same from scratch: {_shown(side, found, WAYS[1])}; "
                f"naive Bayes: {_shown(side, found, 'naive Bayes')}",
                note=f"seeds: {len(side.seeds)}; {summary['updates']:,} updates of masked "
                f"words before, masked accuracy "
                f"{summary['validation']['masked accuracy']:.1f} %",
            )
        )
    measuring.write_record(
        "pretraining",
        title="Masked language modelling, and what it brings to classification",
        figures=figures,
        details={**done, "not measured": [name for name in SIDES if name not in done]},
        started_on=started_on,
    )


def _shown(side: Side, found: dict[str, Any], of: str) -> str:
    """The means of each held-out part, by the number of examples."""
    parts = []
    for split in side.held_out:
        every = [found[str(size)][of] for size in side.epochs]
        means = [statistics.mean(one[split] for one in each) for each in every]
        parts.append(" / ".join(f"{mean:.1f}" for mean in means))
    return " and ".join(parts)


def _lines(path: Path) -> list[str]:
    """The lines of a file, gzipped or not, with their ends."""
    with (
        gzip.open(path, "rt", encoding="utf-8")
        if path.suffix == ".gz"
        else path.open(encoding="utf-8") as file
    ):
        return list(file)


def _spread(rows: list[str], size: int) -> list[str]:
    """So many rows, evenly over the file."""
    return [rows[place * len(rows) // size] for place in range(size)]


if __name__ == "__main__":
    main()
