"""Training as the scripts do it: the recipe's, or in a tiny run two updates of it."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from benchmarks import measuring
from regard.inference import Predictor
from regard.tasks import Recipe
from regard.training import Trained
from regard.training.session import fit

_ENDS = ("minutes", "epochs", "updates", "patience")
_SHORT: Mapping[str, Any] = {"updates": 2, "validate_every": 2, "warmup": 1, "keep": 1}
# Settings that name files and folders.
PLACES: Mapping[str, Sequence[str]] = {
    "data": ("train", "valid", "test"),
    "training": ["pretrained"],
    "tokenizer": ["folder"],
}
_TOKENS, _PIECES, _LINES, _RATIO = 256, 800, 60, 0.01
_SHOWN = 8  # answers to read, the worst, and of all


def train(recipe: Recipe, run: str | Path) -> Trained:
    """Train by a recipe into a run folder, or go on with what is there."""
    return fit(recipe if measuring.TINY is None else shortened(recipe), run)


def settings_of(recipe: Recipe) -> dict[str, Any]:
    """A recipe as a record has it, without files and folders."""
    table: dict[str, Any] = {**recipe.table()}
    for part, names in PLACES.items():
        if part in table:
            table[part] = {k: v for k, v in table[part].items() if k not in names}
    return table


def held_out(predictor: Predictor, known: Sequence[Any], split: str) -> dict[str, Any]:
    """Scores of a part beside those of baselines, tables, and answers to read."""
    task = predictor.task
    examples = task.read(task.recipe, split)
    answers = predictor.answers(examples)
    example_score = [task.example_score(a, e) for a, e in zip(answers, examples, strict=True)]
    order = sorted(range(len(examples)), key=example_score.__getitem__)
    baselines = task.baselines(known, examples)
    found = {
        "count": len(examples),
        "score": task.score(answers, examples),
        "baselines": {name: task.score(given, examples) for name, given in baselines.items()},
        "tables": [asdict(table) for table in task.tables(answers, examples)],
        "worst": [task.show(examples[i], answers[i]) for i in order[:_SHOWN]],
        "random": [
            task.show(examples[i], answers[i]) for i in order[:: max(1, len(order) // _SHOWN)]
        ],
    }
    files = [str(file) for file in task.recipe.files(split)]
    for file in files if len(files) > 1 else ():  # each domain by itself
        rows = [i for i, example in enumerate(examples) if example.where.startswith(file)]
        score = task.score([answers[i] for i in rows], [examples[i] for i in rows])
        found[Path(file).name] = score
    return found


def shortened(recipe: Recipe) -> Recipe:
    """The recipe with two small updates, short outputs, and as many pieces as few lines have."""
    kept = {name: value for name, value in recipe.training.items() if name not in _ENDS}
    tokens = min(_TOKENS, kept.get("batch_tokens", _TOKENS))
    pieces = getattr(recipe.tokenizer, "vocab_size", None)
    tokenizer = recipe.tokenizer
    if pieces is not None:
        tokenizer = replace(tokenizer, vocab_size=min(_PIECES, pieces))
    data = recipe.data
    if recipe.uses_phrasebook:
        data = replace(data, train=(str(_phrases()),), valid=())
    decoding = recipe.decoding
    if decoding is not None:  # what has learned nothing hardly ever ends an output
        decoding = replace(decoding, max_ratio=_RATIO)
    settings = {**kept, **_SHORT, "batch_tokens": tokens}
    return replace(recipe, data=data, tokenizer=tokenizer, training=settings, decoding=decoding)


def _phrases() -> Path:
    """A file of a few phrases, as all of them take seconds to read."""
    from regard.text.phrasebook import phrases

    assert measuring.TINY is not None
    path = measuring.TINY / "phrases.tsv"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        pairs = phrases("train")[:_LINES]
        path.write_text("".join(f"{each.source}\t{each.target}\n" for each in pairs), "utf-8")
    return path
