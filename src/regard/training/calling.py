"""Training from Python: what ``regard train`` does, in one call."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import cast

from regard.choices import choose
from regard.config import JsonValue, read_toml
from regard.errors import SettingError
from regard.tasks import Recipe, recipe_from_table
from regard.training.callbacks import Callback
from regard.training.packaged import packaged_recipe, packaged_recipes
from regard.training.progress import Reporter
from regard.training.start import Trained, with_test
from regard.training.start import train as start

Settings = Mapping[str, JsonValue]


def train(
    recipe: str | Path | Recipe | Settings,
    run: str | Path,
    *,
    data: str | Path | Sequence[str | Path] = (),
    settings: Settings | None = None,
    callbacks: Sequence[Callback] = (),
    reporter: Reporter | None = None,
) -> Trained:
    """Train a model into a run folder, or go on with one that was stopped: ``regard train``.

    A part of the training text is held out to test on, where the recipe names no test text.

    Args:
        recipe: The name of a recipe that comes with regard (``regard recipes`` lists them),
            the path of a TOML file, the same as a table (``{"task": …, "model": {…}}``), or a
            ``Recipe``.
        run: The run folder, made if it does not exist. One that holds a run goes on with it, by the
            settings that it was begun with.
        data: What to train on, over the recipe's ``data.train``: a file, or two of lines.
        settings: Over the recipe's, by dotted names: ``{"training.updates": 100}``.
        callbacks: Who is called after updates and validations, and may end the training.
        reporter: Who is told how it goes; None prints to stderr.

    Returns:
        The trained model, to ask and to look into, and what the training came to.

    Raises:
        SettingError: No recipe has that name, or a setting is unknown or out of range.
        DataError: The text cannot be used.
        RunError: The folder holds another recipe's run, is damaged, or is in use.
        TrainingError: The loss was not finite.
        Interrupted: Asked to stop; the same call goes on.
    """
    given = with_test(find_recipe(recipe, data=data, settings=settings), run)
    return start(given, run, callbacks=callbacks, reporter=reporter)


def find_recipe(
    recipe: str | Path | Recipe | Settings,
    *,
    data: str | Path | Sequence[str | Path] = (),
    settings: Settings | None = None,
) -> Recipe:
    """The recipe that is meant, with what goes over it; the arguments are those of ``train``.

    Raises:
        SettingError: No recipe has that name, or a setting is not known.

    Example:
        >>> find_recipe("rnn-attention", settings={"model.hidden_dim": 8}).model.hidden_dim
        8
    """
    files = [data] if isinstance(data, str | Path) else list(data)
    over: dict[str, JsonValue] = dict(settings or {})
    if files:
        over["data.train"] = [os.path.realpath(file) for file in files]
    if isinstance(recipe, Recipe):
        if not over:
            return recipe
        found = recipe_from_table(_assigned(cast(Settings, recipe.table()), over))
        return replace(found, name=recipe.name)
    if isinstance(recipe, Mapping):
        return recipe_from_table(_assigned(recipe, over))
    path, folder = _place(recipe)
    found = recipe_from_table(_assigned(read_toml(path), over), folder=folder)
    return replace(found, name=path.stem)


def _place(recipe: str | Path) -> tuple[Path, Path]:
    """The file of a recipe, and the folder that its relative paths start from."""
    name = str(recipe)
    if not name.endswith(".toml"):
        choose("recipe", name, packaged_recipes())
        return packaged_recipe(name), Path()
    path = Path(name)
    if not path.is_file():
        raise SettingError(f"{path} must be a recipe file; there is none.")
    return path, path.parent


def _assigned(table: Settings, over: Settings) -> dict[str, JsonValue]:
    """A table with settings by their dotted names over it."""
    found: dict[str, JsonValue] = dict(table)
    for name, value in over.items():
        section, dot, key = name.partition(".")
        if not dot:
            found[section] = value
            continue
        inner = found.get(section, {})
        if not isinstance(inner, Mapping):
            raise SettingError(f"{name} must be a setting of a section; {section} is a value.")
        found[section] = {**inner, key: value}
    return found
