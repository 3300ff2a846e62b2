"""Summaries and titles: each corpus by each model, beside sentences of the document.

Four corpora: ``acl-titles`` (abstract to title), ``csl-titles`` (the same in Chinese),
``dialogsum`` (dialogue to summary) and ``scitldr`` (abstract to one sentence). Four models, by the
packaged recipes, from scratch: the Transformer that copies, the pointer-generator with coverage,
the Transformer whose encoder has guessed masked words of the documents first, and the tagger that
takes sentences out. Figures are those of the test part: ROUGE-L, -1 and -2, the best of the
references for each, Chinese by characters; with what chance alone would do (paired) beside the
first sentences, the first words, the sentences nearest to all, and TextRank's.

    python -m benchmarks.summarisation --work W [--corpus NAME …] [--model NAME …] [--threads 1]

A row is trained in some 40 minutes on one core, or taken from ``W/CORPUS-MODEL`` where a training
of the same recipe is. Run again after an interruption, it goes on where it was. With ``--corpus``
or ``--model`` a part is done: its rows go into the record beside those of the same recipes that are
there, and the record says what is not in it. Of corpora that may not be quoted the record has
outputs only.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import torch

from benchmarks import measuring
from benchmarks.training import train
from regard.cli.recipes import packaged_recipe
from regard.config import read_toml
from regard.inference import Predictor
from regard.inference.evaluation.report import TextReport
from regard.inference.evaluation.texts import evaluate
from regard.tasks import Recipe, recipe_from_table
from regard.tasks.sequences.documents import extracts, read_documents
from regard.tasks.sequences.generation import DocumentData, DocumentExample
from regard.tasks.sequences.translations import Translations


@dataclass(frozen=True, kw_only=True)
class Corpus:
    """A corpus of documents and summaries."""

    title: str  # what a table calls it
    language: str = "en"  # of both
    # of training, validation and test
    files: tuple[str, str, str] = ("train.jsonl.gz", "valid.jsonl.gz", "test.jsonl.gz")
    epochs: int = 12  # how often its documents are read
    is_quoted: bool = True  # whether its licence lets its text be quoted


CORPORA = {
    "acl-titles": Corpus(title="Abstract to title (ACL Anthology)"),
    "csl-titles": Corpus(
        title="Abstract to title, Chinese (CSL)",
        language="zh",
        files=("train.jsonl.gz", "valid.jsonl", "test.jsonl"),
        epochs=30,
        is_quoted=False,
    ),
    "dialogsum": Corpus(title="Dialogue to summary (DialogSum)", is_quoted=False),
    "scitldr": Corpus(
        title="Abstract to one sentence (SciTLDR)",
        files=("train.jsonl.gz", "valid.jsonl", "test.jsonl.gz"),
        epochs=40,
    ),
}


@dataclass(frozen=True, kw_only=True)
class System:
    """A model by its recipe."""

    recipe: str  # the packaged one
    chinese: str | None = None  # the one for Chinese
    reads_first: bool = False  # whether its encoder guesses masked words before


MODELS = {
    "Transformer, copying": System(recipe="summarisation", chinese="summarisation-chinese"),
    "pointer-generator with coverage": System(recipe="summarisation-pointer"),
    "Transformer, masked words first": System(recipe="summarisation-pretrained", reads_first=True),
    "sentences taken out": System(recipe="sentence-extraction"),
}
# How text is cut, of Chinese: see recipes/summarisation-chinese.toml.
_CHARACTERS = {"type": "words"}
_MASKED = {"en": "masked-language-model-words", "zh": "masked-language-model-chinese"}
_MASKED_MINUTES = 12


def settings_of(corpus: str, model: str) -> dict[str, Any]:
    """The recipe of one row, without files."""
    facts, system = CORPORA[corpus], MODELS[model]
    is_chinese = facts.language == "zh"
    name = system.chinese if is_chinese and system.chinese else system.recipe
    table = read_toml(packaged_recipe(name))
    if is_chinese and not system.chinese and "tokenizer" in table:
        table["tokenizer"] = {**table["tokenizer"], **_CHARACTERS}
    if table["task"] == "generation":
        table["data"] |= {"source_language": facts.language, "target_language": facts.language}
        table["training"] = {**table["training"], "epochs": facts.epochs}
    return table


def recipe_table(corpus: str, model: str) -> dict[str, Any]:
    """The recipe of one row."""
    table, folder = settings_of(corpus, model), measuring.corpora() / corpus
    files = CORPORA[corpus].files
    table["data"] |= {
        split: [str(folder / file)]
        for split, file in zip(("train", "valid", "test"), files, strict=True)
    }
    return table


def trainings(work: Path) -> dict[str, Recipe]:
    """The trainings of the record, by the names of its rows."""
    return {
        f"{corpus}, {model}": recipe_from_table(recipe_table(corpus, model))
        for corpus in CORPORA
        for model, system in MODELS.items()
        if not system.reads_first
    }


def masked_first(corpus: str, work: Path) -> Path:
    """The run of an encoder that has guessed masked words of the training documents."""
    facts = CORPORA[corpus]
    text = work / f"{corpus}.txt"
    if not text.exists():
        documents = read_documents(
            [measuring.corpora() / corpus / facts.files[0]], DocumentData(on_bad_line="skip")
        )
        work.mkdir(parents=True, exist_ok=True)
        text.write_text("".join(f"{one}\n" for one in _distinct(documents)), "utf-8")
    table = read_toml(packaged_recipe(_MASKED[facts.language]))
    table["data"] |= {"train": [str(text)]}
    table["training"] = {**table["training"], "minutes": _MASKED_MINUTES}
    run = work / f"{corpus}-masked"
    train(recipe_from_table(table), run)
    return run


def _distinct(documents: Sequence[DocumentExample]) -> list[str]:
    return list(dict.fromkeys(document.text for document in documents))


def folder_of(corpus: str, model: str, work: Path) -> Path:
    """Where a row's run is."""
    return work / f"{corpus}-{MODELS[model].recipe.removeprefix('summarisation-')}"


def trained(corpus: str, model: str, work: Path) -> tuple[Predictor, dict[str, Any]]:
    """The model of a row, and what to remember of its training."""
    table = recipe_table(corpus, model)
    if MODELS[model].reads_first:
        table["training"]["pretrained"] = str(masked_first(corpus, work))
    found = train(recipe_from_table(table), folder_of(corpus, model, work))
    return found.predictor, {
        "parameters": sum(p.numel() for p in found.predictor.model.parameters()),
        "minutes": round(found.summary["seconds"] / 60, 1),
        "updates": found.summary["updates"],
        "weights": found.summary["weights"],
        "validation": found.summary["validation"],
    }


def measured(predictor: Predictor, corpus: str) -> TextReport:
    """How good its outputs for the test part are, beside sentences of the documents."""
    facts, folder = CORPORA[corpus], measuring.corpora() / corpus
    train_part, _, test_part = (
        read_documents([folder / file], DocumentData(on_bad_line="skip")) for file in facts.files
    )
    examples = [predictor.task.request({"document": one.text}, one.where) for one in test_part]
    # A tagger's answer is its text; a writer's may have an alignment behind it.
    outputs = [
        answer.best.text if isinstance(answer, Translations) else answer.text()
        for answer in predictor.answers(examples)
    ]
    known = [answer for one in train_part for answer in one.answers]
    return evaluate(
        outputs,
        [one.answers for one in test_part],
        sources=[one.text for one in test_part],
        languages=(facts.language, facts.language),
        resamples=measuring.sized(1000, 10),
        trivial=extracts(test_part, known),
        rouge=True,
    )


def kept(report: TextReport, corpus: str) -> dict[str, Any]:
    table: dict[str, Any] = json.loads(json.dumps(report.to_dict()))
    is_quoted = CORPORA[corpus].is_quoted
    for output in table["outputs"]:
        del output["source"]
        if not is_quoted:
            del output["references"]
    return table


def figure_of(corpus: str, model: str, row: Mapping[str, Any]) -> measuring.Figure:
    """A line of the table."""
    scores = {score["name"]: score for score in row["report"]["scores"]}
    rouge_l, *rest = (scores[name] for name in ("ROUGE-L", "ROUGE-1", "ROUGE-2"))
    best_first = sorted(row["report"]["baselines"], key=lambda one: -one["scores"][0]["value"])
    beside = "; ".join(
        f"{one['scores'][0]['value']:.1f} by {one['name']} (p = {one['p_value']:.4f})"
        for one in best_first
    )
    bigrams = row["report"]["tables"][0]["rows"][1]
    return measuring.Figure(
        what=f"{CORPORA[corpus].title}, test, ROUGE-L (-1 / -2): {model}",
        ours=f"{rouge_l['value']:.1f} ± {rouge_l['margin']:.1f} "
        f"({' / '.join(format(one['value'], '.1f') for one in rest)})",
        beside=beside,
        note=f"bigrams new to the document {bigrams[1]:.0f} % (references {bigrams[2]:.0f} %), "
        f"said before {bigrams[3]:.0f} %; {row['training']['updates']:,} updates, "
        f"{row['training']['parameters']:,} parameters",
        parts=[f"{corpus}, {model}"],
    )


def main() -> None:
    """Train or take each row, measure it, write the record."""
    parser = measuring.command(__doc__, work="folder of texts and runs")
    parser.add_argument("--corpus", nargs="+", choices=list(CORPORA), help="some")
    parser.add_argument("--model", nargs="+", choices=list(MODELS), help="some")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    for corpus, model in product(arguments.corpus or CORPORA, arguments.model or MODELS):
        before = measuring.machine()
        predictor, facts = trained(corpus, model, arguments.work)
        report = measured(predictor, corpus)
        row = {"training": facts, "report": kept(report, corpus)}
        print(f"{corpus}, {model}\n{report}\n{figure_of(corpus, model, row)}", flush=True)
        if not arguments.dry:
            record(corpus, model, row, threads=arguments.threads, started_on=before)


def record(
    corpus: str, model: str, row: Mapping[str, Any], *, threads: int, started_on: Mapping[str, Any]
) -> None:
    """Put a row into the record."""
    rows = {f"{one}, {other}": (one, other) for one, other in product(CORPORA, MODELS)}
    measuring.write_rows(
        "summarisation",
        {f"{corpus}, {model}": row},
        title="Summaries and titles beside sentences of the document, four corpora",
        recipes={name: settings_of(*place) for name, place in rows.items()},
        figures=lambda name, found: [figure_of(*rows[name], found)],
        details={"threads": threads},
        packages=("torch", "sentencepiece", "sacrebleu"),
        started_on=started_on,
    )


if __name__ == "__main__":
    main()
