"""README of an export: the model, its data, its figures, its use."""

from collections.abc import Iterator, Mapping

from regard.config import JsonValue
from regard.inference import Predictor
from regard.runs import Run
from regard.version import __version__


def readme_of(run: Run, predictor: Predictor, *, usage: str) -> str:
    """A page in Markdown.

    Args:
        run: What is exported.
        predictor: The same, loaded.
        usage: How it is used, in Markdown.
    """
    parts = {
        "What it is": _items(_what(predictor)),
        "Data": _items(_data(run.recipe.get("data"))),
        "Training": _items(_training(run.summary)),
        "Figures on the validation set": _items(_figures(run.summary)),
        "How to use it": usage,
    }
    text = "\n\n".join(f"## {title}\n\n{part}" for title, part in parts.items() if part)
    return (
        f"# A run of regard: {predictor.recipe.task}\n\nMade by regard {__version__}.\n\n{text}\n"
    )


def _what(predictor: Predictor) -> Iterator[tuple[str, object]]:
    parameters = sum(each.numel() for each in predictor.model.parameters())
    yield "task", predictor.recipe.task
    yield "model", f"{predictor.recipe.model_type}, {parameters:,} parameters"
    for fact in predictor.task.facts():
        yield "", fact


def _data(table: JsonValue) -> Iterator[tuple[str, object]]:
    if not isinstance(table, Mapping):
        return
    for name, title in (
        ("source_language", "source language"),
        ("target_language", "target language"),
        ("language", "language"),
        ("train", "trained on"),
        ("valid", "validated on"),
    ):
        if value := table.get(name):
            yield title, ", ".join(map(str, value)) if isinstance(value, list) else value


def _training(summary: JsonValue) -> Iterator[tuple[str, object]]:
    if isinstance(summary, Mapping):
        for name, value in summary.items():
            if isinstance(value, int | float | str):
                yield name.replace("_", " "), _written(value)


def _figures(summary: JsonValue) -> Iterator[tuple[str, object]]:
    figures = summary.get("validation") if isinstance(summary, Mapping) else None
    if isinstance(figures, Mapping):
        for name, value in figures.items():
            if isinstance(value, int | float):
                yield name, _written(value)


def _written(value: float | str) -> str:
    if isinstance(value, str):
        return value
    return f"{value:,}" if isinstance(value, int) else f"{value:.4g}"


def _items(facts: Iterator[tuple[str, object]]) -> str:
    return "\n".join(f"- {title}: {said}" if title else f"- {said}" for title, said in facts)
