"""One recipe from a name, a file or a table, from the files to train on, and settings over it."""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from glob import has_magic
from importlib.resources import as_file, files
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias, cast

from regard.checks import choose, nearest
from regard.config import JsonValue, assign
from regard.errors import SettingError
from regard.training.recipes import InferredTask, Settings
from regard.training.settings import epoch_defaults

if TYPE_CHECKING:
    from regard.tasks import Recipe

_FOLDER = files("regard") / "recipes"
# Recipes of before, and those that are in their place.
_REPLACED = {"word-answering": "sentence-selection"}
# Files of which two are read as two of the same, not as a source's and a target's lines.
_WHOLE = (".conll", ".conllu", ".csv", ".json", ".jsonl", ".tsv")
RecipeSource: TypeAlias = "str | Path | Recipe | Settings"


def packaged_recipes() -> dict[str, str]:
    """Purpose of each recipe, by its name."""
    purposes = {}
    for file in _FOLDER.iterdir():
        if file.name.endswith(".toml"):
            first = file.read_text(encoding="utf-8").partition("\n")[0]
            purposes[file.name.removesuffix(".toml")] = first.lstrip("# ")
    return dict(sorted(purposes.items()))


def packaged_recipe(name: str) -> Path:
    """The file of a packaged recipe."""
    choose("recipe", name, packaged_recipes())
    with as_file(_FOLDER / f"{name}.toml") as path:
        return path


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


def infer_task(files: Sequence[str]) -> InferredTask:
    """The task of files, inferred from the first; SettingError lists a call for each if unsure."""
    from regard.training.recipes.inferring import infer_tasks

    tasks = infer_tasks(Path(files[0]))
    if tasks.is_sure:
        return tasks.best
    calls = [
        f"regard.train({task.recipe!r}, data=…, settings={dict(task.settings)}) "
        f"for {task.description}"
        for task in tasks.candidates
    ]
    raise SettingError(f"{files[0]} must be for one job; it may be for {'; or '.join(calls)}.")


def resolve(
    recipe: "RecipeSource | None",
    files: Sequence[str] = (),
    settings: Settings | None = None,
    *,
    task: InferredTask | None = None,
    report: Callable[[str], None] = lambda line: None,
) -> "Recipe":
    """The recipe of a training, resolved once from a source, files and settings over it.

    Without a recipe ``task`` says what the files are for; without either they are sentence pairs.
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
    if recipe is not None:
        return _named_recipe(recipe, over)
    from regard.training.recipes.sentence_pairs import choose_recipe

    chosen = choose_recipe(over)
    for reason in chosen.reasons:
        report(reason)
    return chosen.recipe


def are_pairs(files: Sequence[str], settings: Mapping[str, object]) -> bool:
    """Whether files are sentence pairs for sure: two of lines, or with columns of pairs."""
    from regard.text.reading.forms import text_suffix

    is_two = len(files) == 2 and not all(text_suffix(Path(name)) in _WHOLE for name in files)
    return is_two or "data.columns" in settings


def file_settings(split: str, files: Sequence[str]) -> dict[str, JsonValue]:
    """The setting that names the files of a split, by their absolute paths."""
    from regard.tasks.settings.recipe import PHRASEBOOKS

    if not files:
        return {}
    if list(files) in (["held out"], *([name] for name in PHRASEBOOKS)):
        return {f"data.{split}": files[0]}
    # Not resolve(), which raises RuntimeError on a loop of links; the reader names the file.
    return {f"data.{split}": [os.path.realpath(file) for file in files]}


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
