"""Training from Python: what ``regard train`` does, in one call."""

import json
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import cast

from regard.choices import choose
from regard.config import JsonValue, assign, read_toml
from regard.errors import DataError, RunError, SettingError
from regard.runs import is_run
from regard.runs.files import write_file
from regard.tasks import Recipe, recipe_from_table
from regard.text.in_memory import Row, is_files, rows_of, write_rows, write_table
from regard.text.shards import shards
from regard.training.automatic import choose_recipe
from regard.training.callbacks import Callback
from regard.training.guess import Guess
from regard.training.guessing import guess_jobs
from regard.training.packaged import (
    are_pairs,
    default_run,
    is_recipe,
    packaged_recipe,
    packaged_recipes,
)
from regard.training.progress import Reporter
from regard.training.start import Trained, with_test
from regard.training.start import train as start

Settings = Mapping[str, JsonValue]


def train(
    recipe: object = None,
    run: str | Path | None = None,
    *,
    data: object = (),
    settings: Settings | None = None,
    callbacks: Sequence[Callback] = (),
    reporter: Reporter | None = None,
) -> Trained:
    """Train a model into a run folder, or go on with one that was stopped: ``regard train``.

    ``train("reviews.csv", "runs/reviews")`` guesses from the data what it is for, and so does
    ``train(data=records)``. A part of the training text is held out to test on, where the recipe
    names no test text.

    Args:
        recipe: The name of a recipe that comes with regard (``regard recipes`` lists them),
            the path of a TOML file, the same as a table (``{"task": …, "model": {…}}``), or a
            ``Recipe``. Or the data: then, and with None, the recipe is guessed from it.
        run: The run folder, made if it does not exist. One that holds a run goes on with it, by the
            settings that it was begun with. None is a folder in runs/, called as the recipe or the
            file is.
        data: What to train on, over the recipe's ``data.train``: a file, or two of lines; or data
            in memory: a list of records or of rows, an array with a row a line, a pair (inputs,
            targets), or a data frame. What is in memory is written beside the run folder, so that
            the training can go on and be evaluated later.
        settings: Over the recipe's, by dotted names: ``{"training.updates": 100}``.
        callbacks: Who is called after updates and validations, and may end the training.
        reporter: Who is told how it goes; None prints to stderr.

    Returns:
        The trained model, to ask and to look into, and what the training came to.

    Raises:
        SettingError: No recipe has that name, a setting is unknown or out of range, or the data may
            be for several jobs.
        DataError: The text cannot be used.
        RunError: The folder holds another recipe's run, is damaged, or is in use.
        TrainingError: The loss was not finite.
        Interrupted: Asked to stop; the same call goes on.
    """
    recipe, data = _apart(recipe, data)
    name = recipe if isinstance(recipe, str | Path) else getattr(recipe, "name", None)
    if run is None:
        first = data if isinstance(data, str | Path) else next(iter(_names(data)), "data")
        run = default_run([str(name or first)])
    files = _names(data) or [_written(rows_of(data), Path(run))] if _is_given(data) else []
    if recipe is None:
        found, reasons = _guessed(files, settings or {})
        if reporter is None:
            sys.stderr.write("".join(f"{reason}\n" for reason in reasons))
    else:
        kind = cast("str | Path | Recipe | Settings", recipe)
        found = find_recipe(kind, data=files, settings=settings)
    return start(with_test(found, run), run, callbacks=callbacks, reporter=reporter)


def _apart(recipe: object, data: object) -> tuple[object, object]:
    """The recipe, None where it is to be guessed, and the data.

    Raises:
        SettingError: There is neither, or data twice.
    """
    is_one = isinstance(recipe, Recipe | Mapping)
    if isinstance(recipe, str | Path):
        is_one = is_recipe(str(recipe))
    if is_one:
        return recipe, data
    if recipe is None and not _is_given(data):
        raise SettingError("recipe or data must be given; got neither.")
    if recipe is not None and _is_given(data):
        raise SettingError(
            f"recipe must be a name, a file, a table or a Recipe; got {type(recipe).__name__} "
            f"{str(recipe)[:60]!r} beside data."
        )
    return None, data if recipe is None else recipe


def _is_given(data: object) -> bool:
    return data is not None and not (isinstance(data, list | tuple) and not data)


def _names(data: object) -> list[str]:
    """The names of the files that data is; none of data in memory."""
    if not is_files(data):
        return []
    return [str(data)] if isinstance(data, str | Path) else list(map(str, cast("list[str]", data)))


def _written(rows: Sequence[Row], run: Path) -> str:
    """Write data in memory beside the run folder, and return the name of the file.

    Raises:
        RunError: A run that is there was begun with other data.
    """
    ending, content = write_rows(rows)
    path = run.with_name(f"{run.name}.data{ending}")
    if is_run(run) and path.exists() and path.read_text("utf-8") != content:
        raise RunError(
            f"{run} must go on with the data it began with, which {path} has; got other data. "
            "Train it into another folder."
        )
    path.parent.mkdir(parents=True, exist_ok=True)
    write_file(path, content.encode())
    return str(path)


def _guessed(files: Sequence[str], over: Settings) -> tuple[Recipe, Sequence[str]]:
    """The recipe that data is guessed to be for, and why.

    Raises:
        SettingError: It may be for several jobs.
        DataError: It cannot be used.
    """
    texts = [f"{name}={json.dumps(value, ensure_ascii=False)}" for name, value in over.items()]
    reasons = []
    if not are_pairs(files, texts):
        guess = _guess(files[0])
        reasons.append(f"{files[0]} is taken for {guess.what}: {guess.why}")
        texts = [*guess.settings, *texts]
        if guess.recipe is not None:
            table = read_toml(packaged_recipe(guess.recipe))
            assign(table, texts)
            found = find_recipe(table, data=files)
            return replace(found, name=guess.recipe), reasons
    chosen = choose_recipe([Path(file) for file in files], settings=texts)
    return chosen.recipe, [*reasons, *chosen.reasons]


def _guess(file: str) -> Guess:
    """Infer the task of a file; records with unknown keys are judged as a table."""
    path = shards(Path(file))[0]
    try:
        guesses = guess_jobs(path)
    except DataError:
        if (table := _as_table(path)) is None:
            raise
        with TemporaryDirectory() as folder:
            other = Path(folder) / f"{path.stem}.csv"
            other.write_text(table, encoding="utf-8")
            guesses = guess_jobs(other)
    if guesses.is_sure:
        return guesses.best
    calls = [
        f"regard.train({guess.recipe!r}, data=…, settings={_as_values(guess)}) for {guess.what}"
        for guess in guesses.found
    ]
    raise SettingError(f"{file} must be for one job; it may be for {'; or '.join(calls)}.")


def _as_table(path: Path) -> str | None:
    """Objects of a file as a table in CSV; None if it holds none, or others."""
    if path.suffix != ".jsonl":
        return None
    try:
        lines = path.read_text("utf-8").split("\n")
        rows = [json.loads(line) for line in lines if line.strip()]
    except (ValueError, RecursionError):
        return None
    return write_table(rows) if rows else None


def _as_values(guess: Guess) -> dict[str, JsonValue]:
    """The settings of a guess as ``train`` takes them."""
    values: dict[str, JsonValue] = {}
    for setting in guess.settings:
        name, _, text = setting.partition("=")
        value: dict[str, JsonValue] = {}
        assign(value, [f"value={text}"])
        values[name] = value["value"]
    return values


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
