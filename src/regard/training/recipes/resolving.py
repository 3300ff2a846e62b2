"""One recipe from a name, a file or a table, from the files to train on, and settings over it."""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from glob import has_magic
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias, cast

from regard.checks import check_path, nearest
from regard.config import JsonValue, assign
from regard.errors import SettingError
from regard.training.recipes import InferredTask, Settings
from regard.training.recipes.beginning import pretrained_recipe
from regard.training.recipes.packaged import packaged_recipe, packaged_recipes
from regard.training.settings import epoch_defaults

if TYPE_CHECKING:
    from regard.tasks import Recipe

# Old recipes, and their replacements.
_REPLACED = {"word-answering": "sentence-selection"}
PRETRAINED = "training.pretrained"
# Files of which two are read as two of the same, not as a source's and a target's lines.
_WHOLE = (".conll", ".conllu", ".csv", ".json", ".jsonl", ".tsv")
RecipeSource: TypeAlias = "str | Path | Recipe | Settings"


def is_recipe(name: str) -> bool:
    """Whether an argument names a recipe; a file of that name hides a packaged recipe."""
    if name.endswith(".toml"):
        return True
    if Path(name).is_file():
        return False
    if name in packaged_recipes():
        return True
    if Path(name).suffix or Path(name).name != name or Path(name).is_dir() or has_magic(name):
        return False
    close = _REPLACED.get(name) or nearest(name, packaged_recipes())
    raise SettingError(
        f"{name!r} must be a recipe or a file; there is neither. "
        f"{f'Did you mean {close!r}? ' if close else ''}`regard recipes` lists them."
    )


def default_run(name: str) -> Path:
    """Run folder of a recipe or file where none is named: ``runs/`` and the stem."""
    path = Path(name)
    stem = path.parent.name if has_magic(path.name) else path.name
    return Path("runs") / (stem.partition(".")[0] or "run")


def resolve(
    recipe: "RecipeSource | None",
    files: Sequence[str] = (),
    settings: Settings | None = None,
    *,
    task: InferredTask | None = None,
    report: Callable[[str], None] = lambda line: None,
) -> "Recipe":
    """The recipe of a training, resolved once from a source, files and settings over it.

    Without a recipe ``task`` names the task of the files; without either they are sentence pairs.
    """
    if settings is not None and not isinstance(settings, Mapping):
        raise SettingError(
            "settings must be a table of values by dotted names, "
            f'{{"training.updates": 100}}; got a {type(settings).__name__}.'
        )
    settings = {**epoch_defaults(settings or {}), **(settings or {})}
    over = {**file_settings("train", files), **settings}
    if task is not None:
        recipe, over = task.recipe, {**over, **task.settings, **settings}
    elif isinstance(recipe, str) and recipe in packaged_recipes() and PRETRAINED in settings:
        begun = pretrained_recipe(str(recipe))
        if begun is not None and begun[0] != recipe:
            report(f"{begun[0]} is the recipe of {recipe}'s job for a pretrained model")
            recipe, over = begun[0], {**begun[1], **over}
    if recipe is not None:
        return _named_recipe(recipe, over)
    from regard.training.recipes.sentence_pairs import choose_recipe

    chosen = choose_recipe(over)
    for reason in chosen.reasons:
        report(reason)
    return chosen.recipe


def are_pairs(files: Sequence[str], settings: Mapping[str, object]) -> bool:
    """Whether files are sentence pairs for sure: two of lines, or with columns of pairs."""
    from regard.text.reading.forms import BRAT, text_suffix

    if any(Path(name).suffix == BRAT for name in files):
        return False
    is_two = len(files) == 2 and not all(text_suffix(Path(name)) in _WHOLE for name in files)
    return is_two or "data.columns" in settings


def file_settings(split: str, files: Sequence[str]) -> dict[str, JsonValue]:
    """The setting that names the files of a split, by their absolute paths."""
    from regard.tasks.settings.recipe import PHRASEBOOKS

    for file in files:
        check_path(f"data.{split}", file)
    if not files:
        return {}
    if list(files) in (["held out"], *([name] for name in PHRASEBOOKS)):
        return {f"data.{split}": files[0]}
    # Not resolve(), which raises RuntimeError on a loop of links; the reader names the file.
    return {f"data.{split}": [os.path.realpath(file) for file in files]}


def pretrained_settings(name: str | None) -> dict[str, JsonValue]:
    """The setting that names a run or a checkpoint, a folder by its absolute path."""
    if name is None:
        return {}
    from regard.interop.checkpoints.hub import is_hub_name

    check_path(PRETRAINED, name)
    return {PRETRAINED: name if is_hub_name(name) else os.path.realpath(name)}


def with_minutes(minutes: float | None, settings: Settings) -> Settings:
    """The settings, with minutes in place of the updates and epochs that they do not name."""
    if minutes is None:
        return settings
    unlimited = {"training.updates": None, "training.epochs": None}
    return {**unlimited, **settings, "training.minutes": float(minutes)}


def _named_recipe(recipe: RecipeSource, settings: Settings) -> "Recipe":
    """The recipe of a table, a recipe, a file or a name, with settings over it."""
    from regard.tasks import read_recipe, recipe_from_table

    if isinstance(recipe, Mapping):
        return recipe_from_table(assign(recipe, settings))
    if not isinstance(recipe, str | Path):
        if not settings:
            return recipe
        table = cast(Settings, recipe.table())
        return replace(recipe_from_table(assign(table, settings)), name=recipe.name)
    name = str(recipe)
    if not name.endswith(".toml"):
        return replace(read_recipe(packaged_recipe(name), settings), folder=Path())
    if not Path(name).is_file():
        stem = Path(name).name.removesuffix(".toml")
        cure = f" {stem} comes with regard: leave out the ending."
        raise SettingError(
            f"{name} must be a recipe file; there is none.{cure * (stem in packaged_recipes())}"
        )
    return read_recipe(Path(name), settings)
