"""Gains from pretraining: reviews with few and with all examples, pretrained and from scratch.

    python -m benchmarks.pretraining --work FOLDER [SIDE ...] [--updates 5600] [--threads 1]

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

import gzip
import json
import re
import statistics
import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import torch

from benchmarks import measuring
from benchmarks.classification import CORPORA, Bench
from benchmarks.measuring import Figure
from benchmarks.training import train
from regard.cli.recipes import packaged_recipe
from regard.tasks import Recipe, recipe_from_table
from regard.tasks.labels.classification import LabelledText
from regard.training.fine_tuning import fine_tuning

T = TypeVar("T")
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
    """How a corpus of ``classification`` is read by an encoder."""

    language: str  # whose masked words it begins with: a name in ``LANGUAGES``
    # how often examples are seen, by their number: so few are seen more often
    epochs: dict[int, int]
    max_length: int  # most tokens of a review
    batch_tokens: int  # of classification
    seeds: tuple[int, ...]  # of classification
    title: str  # what docs/measured.md calls it


SIDES = {
    "sst2": Side(
        language="english",
        epochs={100: 20, 500: 12, 2000: 6, 6920: 4},
        max_length=80,
        batch_tokens=1024,
        seeds=(1, 2, 3),
        title="sst2 dev accuracy with 100 / 500 / 2,000 / all examples, pretrained encoder",
    ),
    "hotel": Side(
        language="chinese",
        epochs={500: 8, 5965: 3},
        max_length=256,
        batch_tokens=2048,
        seeds=(1, 2, 3),
        title="chnsenticorp-htl accuracy, dev and test, with 500 / all examples, "
        "pretrained encoder",
    ),
    "shopping": Side(
        language="chinese",
        epochs={2000: 4, 53720: 3},
        max_length=256,
        batch_tokens=4096,
        seeds=(1,),
        title="online-shopping-10cats polarity, dev and test, with 2,000 / all examples, "
        "pretrained encoder",
    ),
}
UPDATES = 5600  # of pretraining
if measuring.TINY is not None:
    SIDES = {name: replace(side, epochs={20: 1}, seeds=(1,)) for name, side in SIDES.items()}
# What each language's masked words are counted in.
TOKENIZERS: dict[str, dict[str, Any]] = {
    "english": {"type": "bpe", "vocab_size": 8000},
    "chinese": {"type": "characters", "min_count": 2},
}


def main() -> None:
    """Pretrain, fine-tune, and write the record."""
    parser = measuring.command(__doc__, work="folder of texts and runs")
    parser.add_argument("sides", nargs="*", default=[*SIDES], help=f"of {', '.join(SIDES)}")
    parser.add_argument("--updates", type=int, default=UPDATES, help="updates of pretraining")
    given = parser.parse_args()
    torch.set_num_threads(given.threads)
    before, work = measuring.machine(), given.work.resolve()
    done = measuring.parts_in(
        work, SIDES, given.sides, lambda name: measure(name, work, given.updates)
    )
    if not given.dry:
        write(done, before)


def trainings(work: Path) -> dict[str, Recipe]:
    """The trainings on masked words, by the first of the sides that begin with each."""
    recipes = {}
    for name in ("sst2", "hotel"):
        side, masked = SIDES[name], work / SIDES[name].language
        texts = LANGUAGES[side.language](masked / "text", Bench(work / name, measuring.corpora()))
        recipes[name] = recipe_from_table(pretraining_table(texts, UPDATES, side))
    return recipes


def measure(name: str, work: Path, updates: int) -> dict[str, Any]:
    """Pretrain once, then classify with each number of examples, both ways."""
    side, masked = SIDES[name], work / SIDES[name].language
    bench = Bench(work / name, measuring.corpora())
    texts = LANGUAGES[side.language](masked / "text", bench)
    pretrained = train(recipe_from_table(pretraining_table(texts, updates, side)), masked / "run")
    found: dict[str, Any] = {
        "pretraining": pretrained.summary,
        "pretraining recipe": pretraining_table([], updates, side),
        "epochs": {str(size): count for size, count in side.epochs.items()},
    }
    every = bench.examples(name, "train")
    for size in side.epochs:
        known = _spread(every, size)
        write_examples(bench.work / f"{size}.jsonl", known)
        found[str(size)] = {}
        for way in WAYS:
            scores = [accuracy(bench, name, size, way, seed) for seed in side.seeds]
            found[str(size)][way] = scores
            print(name, size, way, scores, flush=True)
        found[str(size)]["naive Bayes"] = [naive_bayes(bench, name, known)]
        print(name, size, found[str(size)]["naive Bayes"], flush=True)
    return found


def english_texts(folder: Path, bench: Bench) -> list[Path]:
    """The text to pretrain on, one file a corpus; of sst2 last, whose end is validated on."""
    folder.mkdir(parents=True, exist_ok=True)
    corpora = bench.data
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


def chinese_texts(folder: Path, bench: Bench) -> list[Path]:
    """The reviews to pretrain on; of hotels last, whose end is validated on."""
    folder.mkdir(parents=True, exist_ok=True)
    held_out = {
        _beginning(each.text)
        for split in ("dev", "test")
        for each in bench.examples("hotel", split)
    }
    made = [folder / f"{name}.txt" for name in ("shopping", "hotel")]
    for path in made:
        texts = (each.text for each in bench.examples(path.stem, "train"))
        kept = [text for text in texts if _beginning(text) not in held_out]
        path.write_text("".join(text + "\n" for text in kept), "utf-8")
    return made


LANGUAGES = {"english": english_texts, "chinese": chinese_texts}


def _beginning(text: str) -> str:
    return "".join(text.split())[:20]


def pretraining_table(texts: list[Path], updates: int, side: Side) -> dict[str, Any]:
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
            "updates": updates,
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


def classifying_table(bench: Bench, name: str, size: int, way: str, seed: int) -> dict[str, Any]:
    """The shipped recipe with these examples; the ways differ in the weights they begin with."""
    shipped = tomllib.loads(packaged_recipe("classification-pretrained").read_text("utf-8"))
    side, corpus = SIDES[name], CORPORA[name]
    fitting = fine_tuning("classification", MODEL["model_dim"])  # of both ways, for a fair match
    masked = bench.work.parent / side.language / "run"
    beginning = {"pretrained": str(masked)} if way == "pretrained" else {}
    training = {name: each for name, each in shipped["training"].items() if name != "pretrained"}
    tokenizer = {
        "type": TOKENIZERS[side.language]["type"],
        "folder": str(masked / "tokenizer" / "text"),
    }
    return {
        "task": "classification",
        "data": {
            "train": [str(bench.work / f"{size}.jsonl")],
            "valid": [str(bench.data / corpus.folder / corpus.dev)],
            "max_length": side.max_length,
            **{column: corpus.columns[column] for column in ("text", "label")},
        },
        "tokenizer": {} if beginning else tokenizer,
        "model": {**MODEL, **fitting["model"], **shipped["model"]},
        "head": {**fitting["head"], **shipped["head"]},
        "training": {
            **fitting["training"],
            **training,
            "epochs": side.epochs[size],
            "least_updates": 0,
            "batch_tokens": side.batch_tokens,
            "validate_every": 100_000,
            "seed": seed,
            **beginning,
        },
    }


def accuracy(bench: Bench, name: str, size: int, way: str, seed: int) -> dict[str, float]:
    """On the parts held out, after a fixed number of epochs."""
    table = classifying_table(bench, name, size, way, seed)
    run = bench.folder(f"{size}-{way.replace(' ', '-')}-{seed}")
    scores = bench.scores(train(recipe_from_table(table), run).predictor, name)
    return {split: scores[f"{split} accuracy"] for split in bench.splits(name)}


def naive_bayes(bench: Bench, name: str, known: Sequence[LabelledText]) -> dict[str, float]:
    """Of the same examples."""
    scores = bench.bayes(name, known)
    return {split: scores[f"{split} accuracy"] for split in bench.splits(name)}


def write_examples(path: Path, examples: Iterable[LabelledText]) -> None:
    """Texts and labels as a file to train on."""
    rows = ({"text": each.text, "label": each.label} for each in examples)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")


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
    for split in found[str(next(iter(side.epochs)))][of][0]:
        every = [found[str(size)][of] for size in side.epochs]
        means = [statistics.mean(one[split] for one in each) for each in every]
        parts.append(" / ".join(f"{mean:.1f}" for mean in means))
    return " and ".join(parts)


def _spread(rows: Sequence[T], size: int) -> list[T]:
    """So many, evenly over the file."""
    return [rows[place * len(rows) // size] for place in range(size)]


if __name__ == "__main__":
    main()
