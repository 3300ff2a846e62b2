"""Interface of export forms, and the README of each."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

from regard.config import JsonValue
from regard.inference import Predictor
from regard.runs import Run
from regard.version import __version__

# Settings of [data] that a README names, and their titles.
_DATA = {
    "source_language": "source language",
    "target_language": "target language",
    "language": "language",
    "train": "trained on",
    "valid": "validated on",
}


def spelled(value: object) -> str:
    """A value as a recipe spells it."""
    return str(value).lower() if isinstance(value, bool) else repr(value)


def trained_with(setting: str, value: object) -> str:
    """The cure of a refusal: the option of ``regard train`` that a form holds."""
    if value is None:
        return f"train without {setting}"
    text = spelled(value).strip("'")
    return f"train with --set {setting}={text}"


class ExportForm(ABC):
    """One way to write a run down for others.

    Attributes:
        purpose: Its purpose, in a line.
        precisions: Those the weights can be written in; empty where they stay as they are.
        precision: The one they are written in.

    Example:
        One that hands on the recipe alone:

        >>> import json, tempfile
        >>> class RecipeAlone(ExportForm):
        ...     purpose = "the settings, as JSON"
        ...     def usage(self, predictor, name):
        ...         return f"Read {name}."
        ...     def refuse(self, predictor):
        ...         return None
        ...     def write(self, run, predictor, out, *, readme):
        ...         out.write_text(json.dumps(run.recipe), "utf-8")
        >>> home = Path(tempfile.mkdtemp())
        >>> with Run.create(home / "run", {"task": "translation"}, "translation") as run:
        ...     RecipeAlone().write(run, None, home / "recipe.json", readme="")
        >>> (home / "recipe.json").read_text("utf-8")
        '{"task": "translation"}'
    """

    purpose: ClassVar[str]
    precisions: ClassVar[tuple[str, ...]] = ()
    precision: str = "float32"

    @abstractmethod
    def refuse(self, predictor: Predictor) -> str | None:
        """Why this form cannot hold the run, by the option of its recipe; None if it can."""

    @abstractmethod
    def usage(self, predictor: Predictor, name: str) -> str:
        """How the export is used, in Markdown; a program in it runs as it stands.

        Args:
            predictor: The run, loaded.
            name: Of the file or folder.
        """

    @abstractmethod
    def write(self, run: Run, predictor: Predictor, out: Path, *, readme: str) -> None:
        """Write it, whole or not at all.

        Args:
            run: The run.
            predictor: The run, loaded.
            out: The file or folder, which does not exist.
            readme: The README, in Markdown.
        """


def readme_of(run: Run, predictor: Predictor, *, usage: str) -> str:
    """The README of an export in Markdown: the model, its data, its figures, its use."""
    summary = run.summary if isinstance(run.summary, Mapping) else {}
    data, figures = run.recipe.get("data", {}), summary.get("validation")
    training = {
        name.replace("_", " "): value
        for name, value in summary.items()
        if isinstance(value, int | float | str)
    }
    parts = {
        "What it is": _description(predictor),
        "Data": _items({title: data[name] for name, title in _DATA.items() if data.get(name)}),
        "Training": _items(training),
        "Figures on the validation set": _items(figures if isinstance(figures, Mapping) else {}),
        "How to use it": usage,
    }
    text = "\n\n".join(f"## {title}\n\n{part}" for title, part in parts.items() if part)
    return (
        f"# A run of regard: {predictor.recipe.task}\n\nMade by regard {__version__}.\n\n{text}\n"
    )


def _description(predictor: Predictor) -> str:
    recipe = predictor.recipe
    parameters = sum(each.numel() for each in predictor.model.parameters())
    items = _items(
        {"task": recipe.task, "model": f"{recipe.model_type}, {parameters:,} parameters"}
    )
    return "\n".join([items, *(f"- {fact}" for fact in predictor.task.describe())])


def _items(values: Mapping[str, JsonValue]) -> str:
    return "\n".join(f"- {title}: {_written(value)}" for title, value in values.items())


def _written(value: JsonValue) -> str:
    if isinstance(value, list):
        return ", ".join(map(str, value))
    if isinstance(value, float):
        return f"{value:.4g}"
    return f"{value:,}" if isinstance(value, int) else str(value)
