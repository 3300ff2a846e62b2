"""The recipe of a command line, inferred from files or asked on a terminal."""

import sys
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

from cyclopts import Parameter

from regard.checks import check_path, choose
from regard.cli.output import note
from regard.config import JsonValue
from regard.errors import SettingError
from regard.training.recipes import InferredTask, InferredTasks
from regard.training.recipes.beginning import pretrained_hint
from regard.training.recipes.packaged import packaged_recipes
from regard.training.recipes.resolving import are_pairs, is_recipe, resolve

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

    def resolve(self, settings: Mapping[str, JsonValue], options: Sequence[str] = ()) -> "Recipe":
        """The recipe, with values by their dotted names over it; ``options`` say them as typed."""
        if not self.name:
            raise SettingError(
                "what to train must be a recipe or files of text; got nothing. "
                "`regard recipes` lists the recipes."
            )
        has_task = self.recipe is not None or are_pairs(self.files, settings)
        task = None if has_task else task_of(self.files, settings, options=options)
        return resolve(self.recipe, self.files, settings, task=task, report=note)


def parse_arguments(words: Sequence[str]) -> Arguments:
    """The recipe, if one is named first, and the files."""
    for word in words:
        check_path("the file", word)
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
            following = " ".join(file for file in files if file != name)
            raise SettingError(
                f"a recipe must stand before the files; got {name!r} behind {files[0]!r}. "
                f"Say: regard train {name} {following}"
            )


def task_of(
    files: Sequence[str],
    settings: Mapping[str, JsonValue],
    verb: str = "train",
    options: Sequence[str] = (),
) -> InferredTask:
    """Infer the task of files; ask on a terminal where several are likely."""
    from regard.training.recipes.previewing import infer_task

    ask = partial(_ask, files=files, verb=verb, options=options)
    task = infer_task(files, settings, report=note, ask=ask)
    if task.recipe is not None or task.settings:
        command = task.command(files, verb, options)
        note(f"the command that says so: {command}", is_command=True)
    if verb == "train" and (hint := pretrained_hint(task, files)) is not None:
        note(hint, is_command=True)
    return task


def typed_options(**options: object) -> list[str]:
    """The words of a command line for options by their names; none of those that are not given.

    Example:
        >>> typed_options(minutes=5.0, test=("a.tsv",), settings=("training.seed=2",), run=None)
        ['--minutes', '5.0', '--test', 'a.tsv', '--set', 'training.seed=2']
    """
    words = []
    for name, value in options.items():
        option = "--set" if name == "settings" else f"--{name.replace('_', '-')}"
        for item in value if isinstance(value, tuple) else () if value is None else (value,):
            words += [option, str(item)]
    return words


def _ask(
    tasks: InferredTasks, files: Sequence[str], verb: str, options: Sequence[str]
) -> InferredTask:
    """Ask the user for the task of files."""
    from regard.training.recipes.previewing import format_examples

    note(f"{files[0]} may be for several jobs: {tasks.best.reason}")
    for number, task in enumerate(tasks.candidates, 1):
        command = task.command(files, verb, options)
        note(f"{number}  {task.description}: {command}", is_command=True)
        for line in format_examples(task):
            note(line)
    if sys.stdin is None or not (sys.stdin.isatty() and sys.stderr.isatty()):
        doubt = f"it may be for {len(tasks.candidates)}. Give one of the commands above."
        if len(tasks.candidates) == 1:
            doubt = "it is not clear that it is for this one. Give the command above if it is."
        raise SettingError(f"{files[0]} must be for one job; {doubt}")
    sys.stderr.write("Which number? ")
    sys.stderr.flush()
    numbers = {str(number): task for number, task in enumerate(tasks.candidates, 1)}
    return choose("the number", sys.stdin.readline().strip(), numbers)
