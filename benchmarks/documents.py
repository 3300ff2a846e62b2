"""Answers written from a story: FairytaleQA, copying or not, beside sentences of the story.

The packaged recipes are trained from scratch for the same CPU time each, on the train part; figures
are those of the test part, ROUGE-L first, the best of its references for each answer. Beside them:
the first sentence of the passage, and the one that shares most words with the question.

    python -m benchmarks.documents --work W [--minutes 6] [--threads 1] [--dry]

Run again after an interruption, it goes on where it was.
"""

import random
from pathlib import Path
from typing import Any

import torch

from benchmarks import measuring
from benchmarks.equal_budgets import argument_parser, folder_name, train_for
from regard.cli.recipes import packaged_recipe
from regard.inference import Predictor
from regard.metrics import bleu, exact_match, rouge_l, sentence_rouge_l
from regard.tasks import Recipe, read_recipe, recipe_from_table
from regard.tasks.sequences.documents import extracts, read_documents, source_of
from regard.tasks.sequences.generation import DocumentExample

CORPUS = "fairytaleqa"
# What the table calls each: its recipe, and model settings that differ from it.
SYSTEMS: dict[str, tuple[str, dict[str, Any]]] = {
    "RNN, copying": ("generation-copy", {"coverage": False}),
    "RNN, copying, coverage": ("generation-copy", {}),
    "RNN, no copying": ("generation-copy", {"copy": False, "coverage": False}),
    "Transformer, copying": ("generation-transformer", {}),
}
# A tiny run's: one of each kind.
_TINY = ["RNN, copying, coverage", "Transformer, copying"]
_SHOWN = {"best": 3, "worst": 3, "random": 4}


def recipe_table(name: str, minutes: float) -> dict[str, Any]:
    """The recipe of one system on the corpus, with minutes instead of epochs."""
    recipe, changes = SYSTEMS[name]
    table = read_recipe(packaged_recipe(recipe)).table()
    table["model"] = {
        key: value for key, value in {**table["model"], **changes}.items() if value is not None
    }
    folder = measuring.corpora() / CORPUS
    files = {"train": "train", "valid": "val", "test": "test"}
    for split, file in files.items():
        table["data"][split] = [str(folder / f"{file}.jsonl.gz")]
    table["data"] |= {"source_language": "en", "target_language": "en"}
    table["decoding"]["max_ratio"] = 0.1  # and ten tokens: an answer is no summary
    table["training"] = {**table["training"], "minutes": minutes}
    del table["training"]["epochs"]
    return table


def trainings(work: Path) -> dict[str, Recipe]:
    """The trainings of the record, by the names of its rows."""
    return {name: recipe_from_table(recipe_table(name, 1)) for name in SYSTEMS}


def figures_of(answers: list[str], documents: list[DocumentExample]) -> dict[str, float]:
    """The metrics of some answers."""
    right = [document.answers for document in documents]
    return {
        "rouge_l": round(rouge_l(answers, right).value, 2),
        "margin": round(
            rouge_l(answers, right, resamples=measuring.sized(1000, 10)).margin or 0.0, 2
        ),
        "bleu": round(bleu(answers, right, target_language="en").value, 2),
        "exact_match": round(exact_match(answers, right).value, 2),
        "words": round(sum(len(answer.split()) for answer in answers) / len(answers), 1),
    }


def answer(predictor: Predictor, documents: list[DocumentExample]) -> list[str]:
    sources = [source_of(document, predictor.recipe.data) for document in documents]
    return [found[0].text for found in predictor.translate(sources)]


def to_read(answers: list[str], documents: list[DocumentExample]) -> list[dict[str, Any]]:
    """Ten answers: the best, the worst, and some at random."""
    example_score = sentence_rouge_l(answers, [document.answers for document in documents])
    order = sorted(range(len(answers)), key=lambda place: -example_score[place])
    best, worst = order[: _SHOWN["best"]], order[-_SHOWN["worst"] :]
    rest = sorted(set(order) - set(best) - set(worst))
    drawn = random.Random(0).sample(rest, min(_SHOWN["random"], len(rest)))
    return [
        {
            "kind": kind,
            "question": documents[place].question,
            "answer": answers[place],
            "references": list(documents[place].answers),
            "rouge_l": round(example_score[place], 1),
        }
        for kind, places in (("best", best), ("worst", worst), ("random", drawn))
        for place in places
    ]


def figures(results: dict[str, Any], trivial: dict[str, Any], minutes: float) -> list[Any]:
    """One line for each system."""
    beside = ", ".join(f"{name} {found['rouge_l']:.1f}" for name, found in trivial.items())
    return [
        measuring.Figure(
            what=f"FairytaleQA test, answers from the story, ROUGE-L: {name}",
            ours=f"{found['measured']['rouge_l']:.1f} ± {found['measured']['margin']:.1f}",
            beside=beside,
            note=f"{minutes:g} CPU minutes from scratch, {found['training']['updates']:,} updates, "
            f"{found['training']['parameters']:,} parameters",
            parts=[name],
        )
        for name, found in results.items()
    ]


def without_paths(table: dict[str, Any]) -> dict[str, Any]:
    """A recipe with the files' names only."""
    data = {
        key: [name.rpartition("/")[2] for name in table["data"][key]]
        for key in ("train", "valid", "test")
    }
    return {**table, "data": {**table["data"], **data}}


def main() -> None:
    """Train and measure each, write the record."""
    parser = argument_parser(__doc__ or "", minutes=6)
    parser.add_argument("--only", nargs="+", choices=list(SYSTEMS), help="some of them; no record")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    before, minutes = measuring.machine(), arguments.minutes
    results: dict[str, Any] = {}
    trivial: dict[str, Any] = {}
    for name in arguments.only or measuring.sized([*SYSTEMS], _TINY):
        table = recipe_table(name, minutes)
        predictor, facts = train_for(table, arguments.work / folder_name(name))
        documents = read_documents(predictor.recipe.files("test"), predictor.recipe.data)
        trivial = trivial or {
            way: figures_of(found, documents) for way, found in extracts(documents).items()
        }
        answers = answer(predictor, documents)
        results[name] = {
            "training": facts,
            "recipe": without_paths(table),
            "measured": figures_of(answers, documents),
            "to_read": to_read(answers, documents),
        }
        print(results[name]["measured"], *results[name]["to_read"], sep="\n", flush=True)
        print(figures({name: results[name]}, trivial, minutes)[0], flush=True)
    if arguments.dry or arguments.only:
        return
    measuring.write_record(
        "documents",
        title="Answers from a story, FairytaleQA: copying or not, equal budgets in CPU minutes",
        figures=figures(results, trivial, minutes),
        details={
            "cpu_minutes_each": minutes,
            "threads": arguments.threads,
            "baselines": trivial,
            "systems": results,
        },
        started_on=before,
    )


if __name__ == "__main__":
    main()
