"""One recipe from a name, a file or a table, from the files to train on, and settings over it."""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias, cast

from regard.config import JsonValue, assign, read_toml
from regard.errors import SettingError
from regard.training.recipes.packaged import (
    are_pairs,
    packaged_recipe,
    packaged_recipes,
)

if TYPE_CHECKING:
    from regard.tasks import Recipe
    from regard.training.recipes.inferred_task import InferredTask, InferredTasks

Settings = Mapping[str, JsonValue]
RecipeSource: TypeAlias = "str | Path | Recipe | Settings"
# Infers the task of files.
Infer: TypeAlias = "Callable[[Sequence[str]], InferredTask]"


def infer_task(files: Sequence[str]) -> "InferredTask":
    """The task of files, inferred from the first.

    Raises:
        DataError: The file cannot be used.
        SettingError: It may be for several tasks; the message has a call for each.
    """
    tasks = candidate_tasks(files[0])
    if tasks.is_sure:
        return tasks.best
    calls = [
        f"regard.train({task.recipe!r}, data=…, settings={dict(task.settings)}) "
        f"for {task.description}"
        for task in tasks.candidates
    ]
    raise SettingError(f"{files[0]} must be for one job; it may be for {'; or '.join(calls)}.")


def candidate_tasks(file: str) -> "InferredTasks":
    """The tasks that a file, a folder or a pattern may be for.

    Raises:
        DataError: It cannot be used.
    """
    from regard.text.shards import shards
    from regard.training.recipes.inferring import infer_tasks

    tasks: InferredTasks = infer_tasks(shards(Path(file))[0])
    return tasks


def resolve(
    recipe: "RecipeSource | None",
    files: Sequence[str] = (),
    settings: Settings | None = None,
    *,
    infer: Infer = infer_task,
    report: Callable[[str], None] = lambda line: None,
) -> "Recipe":
    """The recipe of a training, resolved once.

    Args:
        recipe: The name of a packaged recipe, a TOML file, a table, or a recipe. None infers it
            from the first of the files.
        files: Training files, over the recipe's ``data.train``.
        settings: Values by their dotted names, over the recipe's.
        infer: Infers the task of files.
        report: Called with each reason for what is inferred.

    Raises:
        SettingError: No recipe has that name, a setting is not known, or the files may be for
            several tasks.
        DataError: The files cannot be used.

    Example:
        >>> resolve("rnn-attention", settings={"model.hidden_dim": 8}).model.hidden_dim
        8
    """
    over = {**file_settings("train", files), **(settings or {})}
    if recipe is not None:
        return _named_recipe(recipe, over)
    if not are_pairs(files, over):
        task = infer(files)
        over = {**over, **task.settings, **(settings or {})}
        if task.recipe is not None:
            return _named_recipe(task.recipe, over)
    from regard.training.recipes.sentence_pairs import choose_recipe

    chosen = choose_recipe(files, over)
    for reason in chosen.reasons:
        report(reason)
    return chosen.recipe


def file_settings(split: str, files: Sequence[str]) -> dict[str, JsonValue]:
    """The setting that names the files of a split, by their absolute paths.

    Example:
        >>> file_settings("test", ["held out"]), file_settings("valid", [])
        ({'data.test': 'held out'}, {})
    """
    if not files:
        return {}
    if list(files) in (["held out"], ["phrasebook"]):
        return {f"data.{split}": files[0]}
    # Not resolve(), which raises RuntimeError on a loop of links; the reader names the file.
    return {f"data.{split}": [os.path.realpath(file) for file in files]}


def _named_recipe(recipe: RecipeSource, settings: Settings) -> "Recipe":
    """The recipe of a name, file, table or recipe, with settings over it."""
    if isinstance(recipe, str | Path):
        return _read(str(recipe), settings)
    from regard.tasks import recipe_from_table

    if isinstance(recipe, Mapping):
        return recipe_from_table(assign(recipe, settings))
    if not settings:
        return recipe
    table = cast(Settings, recipe.table())
    return replace(recipe_from_table(assign(table, settings)), name=recipe.name)


def _read(name: str, settings: Settings) -> "Recipe":
    """The packaged recipe or recipe file of a name."""
    is_file = name.endswith(".toml")
    if is_file and not Path(name).is_file():
        stem = Path(name).name.removesuffix(".toml")
        cure = f" {stem} comes with regard: leave out the ending."
        raise SettingError(
            f"{name} must be a recipe file; there is none.{cure * (stem in packaged_recipes())}"
        )
    path = Path(name) if is_file else packaged_recipe(name)
    read_toml(path)  # faults of a file are reported before torch is loaded
    from regard.tasks import read_recipe

    recipe = read_recipe(path, settings)
    return recipe if is_file else replace(recipe, folder=Path())
