"""The recipe of a command line, inferred from files or asked on a terminal."""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

from cyclopts import Parameter

from regard.checks import choose
from regard.cli.output import note
from regard.config import JsonValue
from regard.errors import SettingError
from regard.training.recipes import InferredTask, InferredTasks
from regard.training.recipes.resolving import (
    are_pairs,
    is_recipe,
    packaged_recipes,
    resolve,
)

if TYPE_CHECKING:
    from regard.tasks import Recipe

# The files of a split, as options take them.
Files = Annotated[tuple[str, ...], Parameter(consume_multiple=True, show_default=False)]


class Arguments(NamedTuple):
    """A recipe by name or path, and files to train on over the recipe's; None infers the recipe."""

    recipe: str | None
    files: Sequence[str]

    @property
    def name(self) -> str:
        """The recipe, or the first file; empty where nothing is named."""
        return self.recipe or next(iter(self.files), "")

    def resolve(self, settings: Mapping[str, JsonValue]) -> "Recipe":
        """The recipe, with values by their dotted names over it."""
        if not self.name:
            raise SettingError(
                "what to train must be a recipe or files of text; got nothing. "
                "`regard recipes` lists the recipes."
            )
        is_known = self.recipe is not None or are_pairs(self.files, settings)
        task = None if is_known else infer_task(self.files)
        return resolve(self.recipe, self.files, settings, task=task, report=note)


def parse_arguments(words: Sequence[str]) -> Arguments:
    """The recipe, if one is named first, and the files."""
    recipe = words[0] if words and is_recipe(words[0]) else None
    files = words if recipe is None else words[1:]
    if recipe is None:
        _refuse_recipe(files)
    return Arguments(recipe, tuple(files))


def _refuse_recipe(files: Sequence[str]) -> None:
    """Raise SettingError if a recipe stands behind files."""
    for name in files[1:]:
        is_packaged = name in packaged_recipes() and not Path(name).exists()
        if is_packaged or name.endswith(".toml"):
            others = " ".join(file for file in files if file != name)
            raise SettingError(
                f"a recipe must stand before the files; got {name!r} behind {files[0]!r}. "
                f"Say: regard train {name} {others}"
            )


def infer_task(files: Sequence[str], verb: str = "train") -> InferredTask:
    """Infer the task of files; ask on a terminal where several are likely."""
    from regard.training.recipes.inferring import infer_tasks

    tasks = infer_tasks(Path(files[0]))
    task = tasks.best if tasks.is_sure else _ask(tasks, files, verb)
    note(f"{files[0]} is taken for {task.description}: {task.reason}")
    if task.recipe is not None or task.settings:
        note(f"the command that says so: {task.command(files, verb)}", is_command=True)
    return task


def _ask(tasks: InferredTasks, files: Sequence[str], verb: str) -> InferredTask:
    """Ask the user for the task of files."""
    note(f"{files[0]} may be for several jobs: {tasks.best.reason}")
    for number, task in enumerate(tasks.candidates, 1):
        command = task.command(files, verb)
        note(f"  {number}  {task.description}: {command}", is_command=True)
    if sys.stdin is None or not (sys.stdin.isatty() and sys.stderr.isatty()):
        doubt = f"it may be for {len(tasks.candidates)}. Give one of the commands above."
        if len(tasks.candidates) == 1:
            doubt = "it is not clear that it is for this one. Give the command above if it is."
        raise SettingError(f"{files[0]} must be for one job; {doubt}")
    sys.stderr.write("Which number? ")
    sys.stderr.flush()
    numbers = {str(number): task for number, task in enumerate(tasks.candidates, 1)}
    return choose("the number", sys.stdin.readline().strip(), numbers)
