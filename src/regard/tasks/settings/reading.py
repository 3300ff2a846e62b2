"""Recipes read from TOML files and tables, every key and value checked."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeVar, cast

from regard.checks import choose, nearest
from regard.config import JsonValue, as_saved, assign, build, read_toml
from regard.errors import SettingError
from regard.tasks.registry import TASKS
from regard.tasks.settings.recipe import Recipe, RecipeTable, SplitFiles

SettingsT = TypeVar("SettingsT")
# Tasks that old runs and recipes may name, and their replacements.
_REPLACED = {"word_answering": "sentence_selection"}
_OWN = "If it is one of your own, run the file that registers it: python FILE.py predict RUN."


def read_recipe(path: Path, settings: Mapping[str, JsonValue] | None = None) -> Recipe:
    r"""The recipe in a TOML file, with ``settings`` by their dotted names over it.

    Raises:
        SettingError: The file cannot be read or is no TOML, or a key or value is not known.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "small.toml"
        >>> _ = path.write_text('task = "translation"\n[model]\nmodel_dim = 64', encoding="utf-8")
        >>> recipe = read_recipe(path, {"model.num_heads": 4})
        >>> recipe.name, recipe.model_type, recipe.model.model_dim, recipe.model.num_heads
        ('small', 'transformer', 64, 4)
    """
    try:
        table = assign(read_toml(path), settings or {})
    except OSError as error:
        raise SettingError(f"{path} must be a recipe; got {error.strerror!r}.") from error
    if "task" not in table:
        raise SettingError(
            f"task must be one of {', '.join(TASKS)}; got none in {path}. Write it at the top: "
            'task = "translation".'
        )
    return replace(recipe_from_table(table, folder=path.parent), name=path.stem)


def recipe_from_table(table: Mapping[str, object], *, folder: Path | None = None) -> Recipe:
    """The recipe in a nested table, every key and value but ``[training]``'s checked.

    Raises:
        SettingError: A section, key or value is not known.

    Example:
        >>> recipe_from_table({"task": "translation", "modle": {}})
        Traceback (most recent call last):
        regard.errors.SettingError: modle is not a section of a recipe. Did you mean model?
    """
    task = table.get("task", "translation")
    if task in _REPLACED:
        raise SettingError(
            f"task must be one of those that there are; got {task!r}, which is gone. "
            f"{_REPLACED[task]!r} is in its place."
        )
    kind = choose("task", task, TASKS, _OWN)
    sections = _sections(table, kind.sections)
    model_table = dict(sections["model"])
    model_type = model_table.pop("type", next(iter(kind.models)))
    configs = {name: model.config for name, model in kind.models.items()}
    config = choose("model.type", model_type, configs, _OWN)

    def section(name: str, settings: type[SettingsT] | None) -> SettingsT | None:
        return None if settings is None else build(settings, sections[name], where=name)

    data = build(kind.data, sections["data"], where="data")
    assert isinstance(data, SplitFiles)
    cuts = kind.cuts or "tokenizer" in table
    tokenizer = section("tokenizer", kind.tokenizer if cuts else None)
    if tokenizer is not None and tokenizer.folder is not None:
        tokenizer = replace(tokenizer, folder=str((folder or Path()) / tokenizer.folder))
    decoding = section("decoding", kind.decoding)
    if decoding is not None:
        longest = getattr(data, "max_length", None)
        decoding.check_min_length(
            "decoding.max_tokens" if longest is None else "data.max_length",
            decoding.max_tokens if longest is None else longest,
        )
    return Recipe(
        task=str(task),
        data=data,
        tokenizer=tokenizer,
        model_type=str(model_type),
        model=build(config, model_table, where="model", kind=str(model_type), kinds=configs),
        head=section("head", kind.head),
        training=dict(sections["training"]),
        decoding=decoding,
        folder=folder or Path(),
        given={name: sections.get(name, {}) for name in ("tokenizer", "model", "head")},
    )


def saved_recipe(table: Mapping[str, JsonValue]) -> RecipeTable:
    """The table of a recipe that was saved with a run, whole.

    A setting that is newer than the run gets the value that it had in effect, which need not be the
    default of a new recipe. A table of an unknown task or model is left as it is.

    Example:
        >>> saved = {"task": "translation", "model": {"type": "rnn_seq2seq", "hidden_dim": 64}}
        >>> saved_recipe(saved)["model"]
        {'output_bias': False, 'beginning': 'both', 'type': 'rnn_seq2seq', 'hidden_dim': 64}
        >>> recipe_from_table({"model": {"type": "rnn_seq2seq"}}).model.beginning
        'backward'
    """
    kind = TASKS.get(str(table.get("task", "translation")))
    if kind is None:
        return cast(RecipeTable, dict(table))
    sections = {name: table for name, table in table.items() if isinstance(table, Mapping)}
    model_type = sections.get("model", {}).get("type", next(iter(kind.models)))
    model = kind.models.get(str(model_type))
    configs = {
        "data": kind.data,
        "tokenizer": kind.tokenizer,
        "model": model.config if model else None,
    }
    configs |= {"head": kind.head, "decoding": kind.decoding}
    given = {name: settings for name, settings in configs.items() if settings is not None}
    whole = {name: as_saved(given[name], sections[name]) for name in sections if name in given}
    return cast(RecipeTable, {**table, **whole})


def _sections(
    table: Mapping[str, object], names: Sequence[str]
) -> dict[str, Mapping[str, JsonValue]]:
    """The tables of a recipe by these names, empty where it says nothing."""
    sections: dict[str, Mapping[str, JsonValue]] = {name: {} for name in names}
    for name, section in table.items():
        if name == "task":
            continue
        if name not in names:
            hint = nearest(name, ("task", *names))
            cure = f"Did you mean {hint}?" if hint else f"There are: task, {', '.join(names)}."
            raise SettingError(f"{name} is not a section of a recipe. {cure}")
        if not isinstance(section, Mapping):
            raise SettingError(f"{name} must be a table: [{name}]; got {section!r}.")
        sections[name] = section
    return sections
