"""Recipe of a command line: a named one, or one inferred from its files."""

import json
import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

from cyclopts import Parameter

from regard.choices import choose
from regard.cli.output import note
from regard.config import read_toml
from regard.errors import SettingError
from regard.training.packaged import are_pairs, is_recipe, packaged_recipe, packaged_recipes

if TYPE_CHECKING:
    from regard.tasks import Recipe
    from regard.training.guess import Guess, Guesses

FileT = TypeVar("FileT", str, Path)
# The files of a part of the text, as options take them.
Files = Annotated[tuple[str, ...], Parameter(consume_multiple=True, show_default=False)]
# What the text of a part may be besides files.
_NO_FILES = ("held out", "phrasebook")


def find_recipe(
    what: Sequence[str], settings: Sequence[str] = (), *, minutes: float | None = None
) -> "Recipe":
    """The recipe that the words of a command line name.

    Args:
        what: A recipe's name or path, files to train on, or a recipe and then files.
        settings: ``key.path=value`` texts, which go over the recipe.
        minutes: Time to train, where no recipe says.

    Raises:
        SettingError: Nothing is named, no recipe has that name, a setting is not known, or files
            may be for several jobs and nobody is there to say which.
        DataError: No recipe is named, and the files cannot be used.
    """
    if not what:
        raise SettingError(
            "what to train must be a recipe or files of text; got nothing. "
            "`regard recipes` lists the recipes."
        )
    first, *files = what
    if not is_recipe(first):
        _refuse_recipe_behind(first, files)
        return _recipe_of_files(what, settings, minutes)
    data = split_settings("train", files)
    if first.endswith(".toml"):
        path = Path(first)
        if not path.is_file():
            raise SettingError(f"{path} must be a recipe file; there is none.{_offer(path)}")
    else:
        path = packaged_recipe(first)
    read_toml(path)  # what can be wrong with a name or a file is said before torch is loaded
    from regard.tasks import read_recipe

    recipe = read_recipe(path, [*data, *settings])
    return recipe if first.endswith(".toml") else replace(recipe, folder=Path())


def _refuse_recipe_behind(first: str, others: Sequence[str]) -> None:
    """Refuse a recipe that stands behind files."""
    for name in others:
        is_packaged = name in packaged_recipes() and not Path(name).exists()
        if is_packaged or name.endswith(".toml"):
            files = " ".join(other for other in (first, *others) if other != name)
            raise SettingError(
                f"a recipe must stand before the files; got {name!r} behind {first!r}. "
                f"Say: regard train {name} {files}"
            )


def split_settings(split: str, names: Sequence[str]) -> list[str]:
    """Settings for the files of a split, by their absolute paths.

    Example:
        >>> split_settings("test", ["held out"]), split_settings("valid", [])
        (["data.test='held out'"], [])
    """
    if not names:
        return []
    if len(names) == 1 and names[0] in _NO_FILES:
        return [f"data.{split}={names[0]!r}"]
    # Not resolve(), which raises RuntimeError on a loop of links; the reader names the file.
    paths = [os.path.realpath(name) for name in names]
    return [f"data.{split}={json.dumps(paths, ensure_ascii=False)}"]


def with_sides(
    files: Sequence[FileT], source: FileT | None, target: FileT | None
) -> tuple[FileT, ...]:
    """Files of a command line, by position or, as other tools have them, by --source and --target.

    Raises:
        SettingError: Files are named both ways, the source is missing, or one is no file.

    Example:
        >>> with_sides([], "README.md", "LICENSE")
        ('README.md', 'LICENSE')
        >>> with_sides([], "en", None)
        Traceback (most recent call last):
        regard.errors.SettingError: --source must name a file; got 'en'. A language goes into --set
        data.source_language=en, columns go into --set 'data.columns=[…]'.
    """
    if files and (source or target):
        raise SettingError(
            "--source and --target must be left out where files are named without them; "
            f"got {' '.join(map(str, files))}."
        )
    if target is not None and source is None:
        raise SettingError("--target must go with --source; got no --source.")
    for side, file in (("source", source), ("target", target)):
        if str(file).isidentifier() and file is not None and not Path(file).exists():
            raise SettingError(
                f"--{side} must name a file; got {str(file)!r}. A language goes into --set "
                f"data.{side}_language={file}, columns go into --set 'data.columns=[…]'."
            )
    return (*files, *(file for file in (source, target) if file is not None))


def recipe_and_files(what: Sequence[str], source: str | None, target: str | None) -> Sequence[str]:
    """A recipe, if one is named, and the files; see ``with_sides``."""
    if source is None and target is None:
        return what
    recipe = what[:1] if what and is_recipe(what[0]) else ()
    return (*recipe, *with_sides(what[len(recipe) :], source, target))


def guessed(files: Sequence[str], verb: str = "train") -> "Guess":
    """Infer the task of a file; ask on a terminal where it is unsure.

    Args:
        files: Of which the first is looked at.
        verb: The command to say it with.

    Raises:
        DataError: The file cannot be used.
        SettingError: It may be for several jobs, and nobody is there to ask.
    """
    from regard.text.shards import shards
    from regard.training.guessing import guess_jobs

    guesses = guess_jobs(shards(Path(files[0]))[0])
    guess = guesses.best if guesses.is_sure else _asked(guesses, files, verb)
    note(f"{files[0]} is taken for {guess.what}: {guess.why}")
    if guess.recipe is not None or guess.settings:
        note(f"the command that says so: {guess.command(files, verb)}", is_command=True)
    return guess


def _recipe_of_files(
    files: Sequence[str], settings: Sequence[str], minutes: float | None
) -> "Recipe":
    if not are_pairs(files, settings):
        guess = guessed(files)
        settings = [*guess.settings, *settings]
        if guess.recipe is not None:
            return find_recipe([guess.recipe, *files], settings)
    from regard.training.automatic import choose_recipe

    chosen = choose_recipe([Path(name) for name in files], minutes=minutes, settings=settings)
    for reason in chosen.reasons:
        note(reason)
    return chosen.recipe


def _asked(guesses: "Guesses", files: Sequence[str], verb: str) -> "Guess":
    """Ask the user for the task of a file."""
    note(f"{files[0]} may be for several jobs: {guesses.best.why}")
    for number, guess in enumerate(guesses.found, 1):
        note(f"  {number}  {guess.what}: {guess.command(files, verb)}", is_command=True)
    if sys.stdin is None or not (sys.stdin.isatty() and sys.stderr.isatty()):
        several = len(guesses.found) > 1
        raise SettingError(
            f"{files[0]} must be for one job; "
            + (
                f"it may be for {len(guesses.found)}. Give one of the commands above."
                if several
                else "it is not clear that it is for this one. Give the command above if it is."
            )
        )
    sys.stderr.write("Which number? ")
    sys.stderr.flush()
    numbers = {str(number): guess for number, guess in enumerate(guesses.found, 1)}
    return choose("the number", sys.stdin.readline().strip(), numbers)


def _offer(path: Path) -> str:
    name = path.name.removesuffix(".toml")
    if name in packaged_recipes():
        return f" {name} comes with regard: leave out the ending."
    return ""
