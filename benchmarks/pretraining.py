"""What pretraining brings: sst2 with few and with all examples, with new weights and pretrained.

    python -m benchmarks.pretraining --work FOLDER [--minutes 12] [--threads 1]

A small encoder guesses masked words of ``gutenberg-books``, ``brown`` (its tokens joined as they
are written), the passages of ``squadshifts`` and the texts of ``sst2`` without their labels: train
parts only. Then the same encoder classifies sst2 with 100, 500, 2,000 and all examples, three seeds
each, a fixed number of epochs: once from its weights, once from new ones, with the same tokenizer
and settings. Accuracy is that on ``sst2``'s dev part, of the last weights. Beside it: naive Bayes.

Each training leaves its run in ``--work``; run again, the script goes on.
"""

import argparse
import gzip
import json
import re
import statistics
from pathlib import Path
from typing import Any

import torch

from benchmarks import measuring
from benchmarks.measuring import Figure
from regard.inference import Run
from regard.inference.job_evaluation import evaluate_job
from regard.tasks import recipe_from_table
from regard.training import train

SIZES = (100, 500, 2000, 6920)
SEEDS = (1, 2, 3)
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
# So few examples are seen more often.
EPOCHS = {100: 20, 500: 12, 2000: 6, 6920: 4}


def main() -> None:
    """Pretrain, fine-tune, and write the record."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--work", type=Path, required=True, help="folder of texts and runs")
    parser.add_argument("--minutes", type=float, default=12, help="minutes of pretraining")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--dry", action="store_true", help="write no record")
    given = parser.parse_args()
    torch.set_num_threads(given.threads)
    before, work = measuring.machine(), given.work.resolve()
    texts = write_texts(work / "pre_text", measuring.corpora())
    table = pretraining_table(texts, given.minutes)
    pretrained = train(recipe_from_table(table), work / "pre_en")
    found: dict[str, Any] = {"pretraining": Run.open(work / "pre_en").summary}
    for size in SIZES:
        rows = measuring.corpora() / "sst2" / "train.tsv"
        part = work / f"sst2-{size}.tsv"
        part.write_text("".join(_spread(rows.read_text("utf-8").splitlines(True), size)), "utf-8")
        found[str(size)] = {}
        for way in WAYS:
            scores = [accuracy(work, part, size, way, seed) for seed in SEEDS]
            found[str(size)][way] = scores
            print(size, way, [round(score, 2) for score in scores], flush=True)
        found[str(size)]["naive Bayes"] = naive_bayes(work, part, size)
    del pretrained
    if given.dry:
        return
    write(found, before, given.minutes)


def write_texts(folder: Path, corpora: Path) -> list[Path]:
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


def pretraining_table(texts: list[Path], minutes: float) -> dict[str, Any]:
    """The recipe of the masked language model."""
    return {
        "task": "masked_language_modelling",
        "data": {
            "train": [str(path) for path in texts],
            "valid_share": 0.01,
            "context": 128,
            "masking": "words",
        },
        "tokenizer": {"type": "bpe", "vocab_size": 8000},
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


def classifying_table(work: Path, part: Path, size: int, way: str, seed: int) -> dict[str, Any]:
    """The recipe of one classifier; the two ways differ in the weights they begin with."""
    beginning = {"pretrained": str(work / "pre_en")} if way == "pretrained" else {}
    tokenizer = {"type": "bpe", "folder": str(work / "pre_en" / "tokenizer" / "text")}
    return {
        "task": "classification",
        "data": {
            "train": [str(part)],
            "valid": [str(measuring.corpora() / "sst2" / "dev.tsv")],
            "max_length": 80,
        },
        "tokenizer": {} if beginning else tokenizer,
        "model": {**MODEL, "dropout": 0.2},
        "head": {"pooling": "mean", "dropout": 0.3},
        "training": {
            "epochs": EPOCHS[size],
            "batch_tokens": 1024,
            "learning_rate": 1e-3,
            "schedule": "linear",
            "warmup": 20,
            "weight_decay": 0.05,
            "clip_norm": 1.0,
            "label_smoothing": 0.1,
            "validate_every": 100_000,
            "keep": 1,
            "seed": seed,
            **beginning,
        },
    }


def accuracy(work: Path, part: Path, size: int, way: str, seed: int) -> float:
    """On the dev part, after a fixed number of epochs."""
    run = work / "sst2" / f"{size}-{way.replace(' ', '-')}-{seed}"
    table = classifying_table(work, part, size, way, seed)
    trained = train(recipe_from_table(table), run)
    return float(trained.summary["validation"]["accuracy"])


def naive_bayes(work: Path, part: Path, size: int) -> float:
    """Of the same examples, as ``regard evaluate`` puts it beside the model."""
    run = work / "sst2" / f"{size}-pretrained-1"
    trained = train(recipe_from_table(classifying_table(work, part, size, "pretrained", 1)), run)
    job = trained.predictor.job
    dev, known = job.read(job.recipe, "valid"), job.read(job.recipe, "train")
    return float(evaluate_job(trained.predictor, dev, known).baselines["naive Bayes"]["accuracy"])


def write(found: dict[str, Any], started_on: dict[str, Any], minutes: float) -> None:
    """The record: the means of the seeds."""
    means = {size: {way: statistics.mean(found[str(size)][way]) for way in WAYS} for size in SIZES}
    ends = [" / ".join(f"{means[size][way]:.1f}" for size in SIZES) for way in WAYS]
    bayes = " / ".join(f"{found[str(size)]['naive Bayes']:.1f}" for size in SIZES)
    summary = found["pretraining"]
    figure = Figure(
        what="sst2 dev accuracy with 100 / 500 / 2,000 / all examples, pretrained encoder",
        ours=ends[0],
        beside=f"the same from scratch: {ends[1]}; naive Bayes: {bayes}",
        note=f"means of {len(SEEDS)} seeds; {summary['updates']:,} updates of masked words before, "
        f"masked accuracy {summary['validation']['masked accuracy']:.1f} %",
    )
    measuring.write_record(
        "pretraining",
        title="Masked language modelling, and what it brings to classification",
        figures=[figure],
        details={
            **found,
            "pretraining recipe": pretraining_table([], minutes),
            "epochs": {str(size): count for size, count in EPOCHS.items()},
        },
        started_on=started_on,
    )


def _spread(rows: list[str], size: int) -> list[str]:
    """So many rows, evenly over the file."""
    return [rows[place * len(rows) // size] for place in range(size)]


if __name__ == "__main__":
    main()
