"""Attention rescues long sentences: quality by the length of the source, three models.

After figure 2 of Bahdanau et al. (2015), https://arxiv.org/abs/1409.0473: one fixed context vector
loses what it read as sentences grow, attention does not. Two texts that have long sentences:

- ``joined``: one to four random pairs of Tatoeba zh→en in one line, in training and in the test;
- ``classical``: Classical to modern Chinese, character by character, a sample of the corpus.

Three models train for the same CPU time on a text, on the second for
half of the first's. The record holds BLEU and chrF by length; ``docs/figures/long_sentences.svg``
shows BLEU.

    python -m benchmarks.long_sentences --work W [--minutes 12] [--texts joined] [--dry]

Run again after an interruption, it goes on where it was.
"""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from benchmarks import measuring
from benchmarks.equal_budgets import (
    SYSTEMS,
    argument_parser,
    folder_name,
    recipe_table,
    train_for,
    translate,
)
from regard.inference.evaluation import evaluate, quality_by_length
from regard.inference.report import Bucket, TextReport
from regard.plotting import new_figure
from regard.text import Pair, PairLayout, read_pairs

FIGURE = measuring.DRAWINGS / "long_sentences.svg"
MOST_JOINED = 4
SEED = 7


@dataclass(frozen=True, kw_only=True, slots=True)
class Text:
    """A text with long sentences."""

    title: str  # what the plot calls it
    folder: str  # where it lies among the corpora
    columns: tuple[int, int]  # its columns of source and target
    languages: tuple[str, str]  # codes of source and target
    joined: bool  # whether pairs are joined, one to ``MOST_JOINED`` in a line
    sizes: Mapping[str, int]  # lines of the training, validation and test part
    tokenizer: Mapping[str, Any]  # the ``[tokenizer]`` table
    edges: tuple[int, ...]  # the longest source of each bucket, in characters
    share: float = 1.0  # how much of the budget its models get


TEXTS = {
    "joined": Text(
        title="Tatoeba zh→en, 1 to 4 pairs joined",
        folder="cmn-eng",
        columns=(2, 1),
        languages=("zh", "en"),
        joined=True,
        sizes={"train": 40_000, "val": 400, "test": 1_200},
        # Every pair is in about four lines: this keeps what occurs twice in the pairs.
        tokenizer={"type": "words", "shared": False, "min_count": 8},
        edges=(10, 20, 30, 40, 50),
    ),
    "classical": Text(
        title="Classical to modern Chinese",
        folder="classical-modern-zh",
        columns=(1, 2),
        languages=("zh", "zh"),
        joined=False,
        sizes={"train": 60_000, "val": 400, "test": 1_200},
        tokenizer={"type": "characters", "shared": False, "min_count": 5},
        edges=(10, 20, 30, 40, 60),
        share=0.5,
    ),
}


def prepare(text: Text, corpora: Path, folder: Path) -> dict[str, Path]:
    """The three parts as TSV files of source and target; made once, the same each time."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = {}
    for split, full in text.sizes.items():
        size = measuring.sized(full, 60)
        paths[split] = folder / f"{split}.tsv"
        if paths[split].exists():
            continue
        name = f"{split}.tsv.gz" if split == "train" else f"{split}.tsv"
        layout = PairLayout(columns=text.columns, merge_references=split != "train")
        pairs = list(read_pairs(corpora / text.folder / name, layout=layout))
        lines = _lines(text, pairs, size, random.Random(f"{SEED} {split}"))
        half_written = paths[split].with_suffix(".part")
        half_written.write_text("".join(f"{line}\n" for line in lines), "utf-8")
        half_written.replace(paths[split])
    return paths


def _lines(text: Text, pairs: Sequence[Pair], size: int, rng: random.Random) -> list[str]:
    """As many lines of each count of pairs; where none are joined, a sample."""
    if not text.joined:
        drawn = rng.sample(range(len(pairs)), min(size, len(pairs)))
        return [f"{pairs[i].source}\t{pairs[i].target}" for i in sorted(drawn)]
    lines = []
    for number in range(size):
        group = rng.sample(pairs, 1 + number % MOST_JOINED)
        sides = (" ".join(p.source for p in group), " ".join(p.target for p in group))
        lines.append("\t".join(sides))
    return lines


def measure(text: Text, corpora: Path, work: Path, minutes: float) -> dict[str, Any]:
    """Train the three on one text; their reports, and their quality by length with intervals."""
    paths = prepare(text, corpora, work / "text")
    data = {
        "train": str(paths["train"]),
        "valid": str(paths["val"]),
        "source_language": text.languages[0],
        "target_language": text.languages[1],
        "max_length": 150,
    }
    test = list(read_pairs(paths["test"]))
    sources, references = [p.source for p in test], [p.references for p in test]
    targets = [pair.target for pair in read_pairs(paths["train"])]
    training: dict[str, Any] = {}
    reports: dict[str, TextReport] = {}
    buckets: dict[str, tuple[Bucket, ...]] = {}
    for system in SYSTEMS:
        table = recipe_table(
            system, data=data, tokenizer=text.tokenizer, minutes=minutes, batch_tokens=1536
        )
        predictor, facts = train_for(table, work / folder_name(system))
        training[system] = {**facts, "model": table["model"], "settings": table["training"]}
        outputs = translate(predictor, sources)
        languages = {"source_language": text.languages[0], "target_language": text.languages[1]}
        reports[system] = evaluate(
            outputs, references, sources=sources, training_targets=targets, **languages
        )
        buckets[system] = quality_by_length(
            outputs,
            references,
            sources,
            edges=text.edges,
            resamples=measuring.sized(1000, 10),
            **languages,
        )
        print(f"{text.title}, {system}\n{reports[system]}", flush=True)
        for bucket in buckets[system]:
            print(f"  {bucket.name} characters ({bucket.count}): {bucket.scores[0]}", flush=True)
    return {
        "cpu_minutes_each": minutes,
        "test_lines": len(test),
        "training": training,
        "reports": reports,
        "buckets": buckets,
    }


def draw(texts: Mapping[str, Mapping[str, Sequence[Bucket]]], path: Path) -> None:
    """BLEU of each system over the mean length of each bucket, a text beside the other."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with new_figure(figsize=(4 * len(texts), 3)) as figure:
        panels = figure.subplots(1, len(texts), squeeze=False)[0]
        for axes, (title, systems) in zip(panels, texts.items(), strict=True):
            for system, found in systems.items():
                scores = [bucket.scores[0] for bucket in found]
                axes.errorbar(
                    [bucket.mean_length for bucket in found],
                    [score.value for score in scores],
                    yerr=[score.margin or 0.0 for score in scores],
                    label=system,
                )
            axes.set(title=title, xlabel="characters of the source", ylabel="BLEU")
            axes.legend()
        figure.savefig(path)


def figures(results: Mapping[str, Mapping[str, Any]]) -> list[measuring.Figure]:
    """For each text, how much of its BLEU on short sources a system keeps on long ones."""
    lines = []
    for name, result in results.items():
        told = []
        for system, found in result["buckets"].items():
            short, long = found[0], found[-1]
            told.append(f"{system} {short.scores[0].value:.1f} → {long.scores[0].value:.1f}")
        first = next(iter(result["buckets"].values()))
        minutes = result["cpu_minutes_each"]
        lines.append(
            measuring.Figure(
                what=f"{TEXTS[name].title}: BLEU on sources of {first[0].name} characters → of "
                f"{first[-1].name}",
                ours="; ".join(told[1:]),
                beside=f"{told[0]}; {_best_baseline(result['reports'])}",
                note=f"{minutes:g} CPU minutes each, {result['test_lines']:,} test lines",
            )
        )
    return lines


def _best_baseline(reports: Mapping[str, TextReport]) -> str:
    baselines = next(iter(reports.values())).baselines
    best = max(baselines, key=lambda baseline: baseline.scores[0].value)
    name = best.name if len(best.name) < 40 else "always one sentence"
    return f"{name}: {best.scores[0].value:.1f} over all"


def main() -> None:
    """Train on both texts, draw the figure, write the record."""
    parser = argument_parser(__doc__ or "", minutes=12)
    parser.add_argument("--texts", nargs="+", choices=list(TEXTS), default=list(TEXTS))
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    before, corpora, minutes = measuring.machine(), measuring.corpora(), arguments.minutes
    results = {
        name: measure(TEXTS[name], corpora, arguments.work / name, TEXTS[name].share * minutes)
        for name in arguments.texts
    }
    lines = figures(results)
    for line in lines:
        print(line)
    buckets = {TEXTS[name].title: result["buckets"] for name, result in results.items()}
    draw(buckets, arguments.work / FIGURE.name if arguments.dry else FIGURE)
    if arguments.dry:
        return
    measuring.write_record(
        "long_sentences",
        title="Quality by length of the source, three models with equal budgets in CPU minutes",
        figures=lines,
        details={
            "threads": arguments.threads,
            "figure": f"docs/figures/{FIGURE.name}",
            **{name: _plain(result) for name, result in results.items()},
        },
        packages=("torch", "sacrebleu"),
        started_on=before,
    )


def _plain(result: Mapping[str, Any]) -> dict[str, Any]:
    """A text's results as JSON can hold them."""
    return {
        **result,
        "reports": {name: report.to_dict() for name, report in result["reports"].items()},
        "buckets": {
            system: [
                {
                    "characters": b.name,
                    "count": b.count,
                    "mean_length": b.mean_length,
                    "scores": [score.to_dict() for score in b.scores],
                }
                for b in found
            ]
            for system, found in result["buckets"].items()
        },
    }


if __name__ == "__main__":
    main()
