"""Recipes read from TOML files and tables, every key and value checked."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from regard.choices import choose, nearest
from regard.config import as_saved, assign, build, read_toml
from regard.errors import SettingError
from regard.tasks.recipe import Recipe, RecipeTable
from regard.tasks.registry import TASKS


def read_recipe(path: Path, settings: Sequence[str] = ()) -> Recipe:
    """The recipe in a TOML file.

    Args:
        path: The file.
        settings: ``key.path=value`` texts that go over what the file says.

    Raises:
        SettingError: The file cannot be read or is no TOML, or a key or value is not known.
    """
    try:
        table = read_toml(path)
    except OSError as error:
        raise SettingError(f"{path} must be a recipe; got {error.strerror!r}.") from error
    assign(table, settings)
    if "task" not in table:
        raise SettingError(
            f"task must be one of {', '.join(TASKS)}; got none in {path}. Write it at the top: "
            'task = "translation".'
        )
    return recipe_from_table(table, folder=path.parent)


def recipe_from_table(table: Mapping[str, Any], *, folder: Path | None = None) -> Recipe:
    """The recipe in a nested table, every key and value but ``[training]``'s checked.

    Raises:
        SettingError: A section, key or value is not known.

    Example:
        >>> recipe_from_table({"task": "translation", "modle": {}})
        Traceback (most recent call last):
        regard.errors.SettingError: modle is not a section of a recipe. Did you mean model?
    """
    task = table.get("task", "translation")
    kind = choose("task", task, TASKS)
    _check_sections(table, kind.sections)
    model_table = dict(table.get("model", {}))
    model_type = model_table.pop("type", next(iter(kind.models)))
    config = choose("model.type", model_type, kind.models).config

    def section(name: str, settings: type[Any] | None) -> Any:
        return None if settings is None else build(settings, table.get(name, {}), where=name)

    cuts = kind.cuts or "tokenizer" in table
    tokenizer = section("tokenizer", kind.tokenizer if cuts else None)
    if tokenizer is not None and tokenizer.folder is not None:
        tokenizer = replace(tokenizer, folder=str((folder or Path()) / tokenizer.folder))
    return Recipe(
        task=task,
        data=section("data", kind.data),
        tokenizer=tokenizer,
        model_type=model_type,
        model=build(config, model_table, where="model"),
        head=section("head", kind.head),
        training=dict(table.get("training", {})),
        decoding=section("decoding", kind.decoding),
        folder=folder or Path(),
        given={name: dict(table.get(name, {})) for name in ("tokenizer", "model")},
    )


def saved_recipe(table: Mapping[str, Any]) -> RecipeTable:
    """The table of a recipe that was saved with a run, whole.

    A setting that is newer than the run says what the run meant without it, which need not be what
    a new recipe means. A table of an unknown task or model is left as it is.
    """
    kind = TASKS.get(table.get("task", "translation"))
    if kind is None:
        return cast(RecipeTable, dict(table))
    model_type = table.get("model", {}).get("type", next(iter(kind.models)))
    model = kind.models.get(model_type)
    configs = {
        "data": kind.data,
        "tokenizer": kind.tokenizer,
        "model": model.config if model else None,
    }
    configs |= {"head": kind.head, "decoding": kind.decoding}
    known = {name: settings for name, settings in configs.items() if settings is not None}
    whole = {
        name: as_saved(known[name], section) if name in known else section
        for name, section in table.items()
    }
    return cast(RecipeTable, whole)


def _check_sections(table: Mapping[str, Any], sections: Sequence[str]) -> None:
    for name, section in table.items():
        if name == "task":
            continue
        if name not in sections:
            hint = nearest(name, ("task", *sections))
            cure = f"Did you mean {hint}?" if hint else f"There are: task, {', '.join(sections)}."
            raise SettingError(f"{name} is not a section of a recipe. {cure}")
        if not isinstance(section, Mapping):
            raise SettingError(f"{name} must be a table: [{name}]; got {section!r}.")
