"""Training from Python: ``regard.train``, and resuming a run."""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from regard.checks import check_path
from regard.config import assign, build
from regard.errors import RegardError, RunError, SettingError
from regard.files import write_file
from regard.runs import Run, is_run
from regard.tasks import TASKS, Recipe, recipe_from_table
from regard.tasks.checking import CheckReport
from regard.tasks.settings.recipe import HELD_OUT
from regard.text.reading.sources import is_files, rows_of, write_rows
from regard.training.callbacks import Callback
from regard.training.continuing import saved_recipe
from regard.training.corpora.training_text import is_on_disk
from regard.training.recipes import Settings
from regard.training.recipes.beginning import pretrained_hint
from regard.training.recipes.previewing import infer_task
from regard.training.recipes.resolving import (
    RecipeSource,
    are_pairs,
    default_run,
    is_recipe,
    pretrained_settings,
    resolve,
    with_minutes,
)
from regard.training.session import Trained, fit, try_out
from regard.training.settings import TrainingConfig


def train(
    recipe: object = None,
    run: str | Path | None = None,
    *,
    data: object = (),
    minutes: float | None = None,
    pretrained: str | Path | None = None,
    settings: Settings | None = None,
    callbacks: Sequence[Callback] = (),
    reporter: Callback | None = None,
) -> Trained:
    """Train a model into a run folder, or resume one that was stopped: ``regard train``.

    ``train("reviews.csv", "runs/reviews")`` infers the task from the data, and so does
    ``train(data=records)``. A part of the training text is held out to test on, where the recipe
    names no test text.

    Args:
        recipe: The name of a recipe that comes with regard (``regard recipes`` lists them),
            the path of a TOML file, the same as a table (``{"task": …, "model": {…}}``), or a
            ``Recipe``. Or the data: then, and with None, the recipe is inferred from it.
        run: The run folder, made if it does not exist. A run that is there is resumed, by the
            settings that it was begun with. None is a folder in runs/, named for the recipe or the
            file.
        data: Data to train on, over the recipe's ``data.train``: a file, or two of lines; or data
            in memory: a list of records or of rows, an array with a row a line, a pair (inputs,
            targets), or a data frame. Data in memory are written beside the run folder, so that
            the training can be resumed and evaluated later.
        minutes: Time to train, in place of the recipe's updates and epochs.
        pretrained: Model to begin with: a run, a folder with a checkpoint, or ``hf:OWNER/NAME`` of
            the Hugging Face Hub. The recipe is then the job's for it, such as
            ``classification-pretrained``, unless it is a file or a table of yours.
        settings: Values by their dotted names, over the recipe's: ``{"training.updates": 100}``.
        callbacks: Called after updates and validations; they may end the training.
        reporter: Called with the progress; None prints to stderr.

    Returns:
        The trained model, and the summary of the training.

    Raises:
        SettingError: No recipe has that name, a setting is unknown or out of range, or the data may
            be for several tasks.
        DataError: The text cannot be used.
        RunError: The folder holds another recipe's run, is damaged, or is in use.
        TrainingError: The loss was not finite.
        Interrupted: A signal asked to stop; the same call resumes.
    """
    if not isinstance(run, str | Path | None):
        raise SettingError(
            f"run must be a folder; got {type(run).__name__}. To train on texts and their labels: "
            "train(data=(texts, labels))."
        )
    check_path("run", run)
    settings = with_minutes(minutes, settings or {})
    if pretrained is not None:
        settings = {**pretrained_settings(str(pretrained)), **settings}
    source, data = _split_data(recipe, data)
    name = source if isinstance(source, str | Path) else getattr(source, "name", None)
    folder = Path(run or default_run(str(name or next(iter(_names(data)), "data"))))

    def report(line: str) -> None:
        if reporter is None:
            sys.stderr.write(f"{line}\n")

    files, task = _files(data, folder), None
    if source is None and not are_pairs(files, settings):
        task = infer_task(files, settings, report=report)
        if (hint := pretrained_hint(task, files)) is not None:
            report(hint.replace("--pretrained ", "pretrained="))
    resolved = resolve(source, files, settings, task=task, report=report)
    return fit(with_test(resolved, folder), folder, callbacks=callbacks, reporter=reporter)


def resume(
    path: str | Path,
    *,
    recipe: Recipe | None = None,
    settings: Settings | None = None,
    reporter: Callback | None = None,
) -> Trained:
    """Resume the training of a run folder.

    Args:
        path: The run folder.
        recipe: The recipe with its settings of training changed; None is the run's own.
        settings: Values by their dotted names, over the recipe's: ``{"training.updates": 900}``.
            The model's sizes and its inputs cannot change. The run records each change, and the
            update it was made at.
        reporter: Called with the progress; None prints to stderr.

    Raises:
        RunError: The folder holds no run, a damaged one, or one that is in use.
        SettingError: A setting is unknown, out of range, or cannot change. Further ones are those
            of ``train``.

    Example:
        >>> resume("no-run-yet")
        Traceback (most recent call last):
        regard.errors.RunError: no-run-yet must be a run folder; got nothing there. Make one with
        `regard train`.
    """
    if recipe is None:
        table = cast(Settings, saved_recipe(Run.open(path)).table())
        recipe = recipe_from_table(assign(table, settings or {}))
    return fit(with_test(recipe, path), path, reporter=reporter, may_change=True)


def check(recipe: Recipe, *, examples: int = 3) -> CheckReport:
    """Check the text of a recipe for oddities, and for lines that ``train`` would refuse.

    Args:
        recipe: Names the files. Lines that cannot be read are left out and counted.
        examples: How many to keep of each finding.

    Raises:
        DataError: There are no training examples, or a file cannot be read.

    Example:
        >>> from regard.tasks import TASKS, recipe_from_table
        >>> check(recipe_from_table({"task": "regression", "data": {"example": "sine"}})).counts
        {'train': 50, 'valid': 50, 'test': 50}
    """
    data: Any = recipe.data
    if hasattr(data, "on_bad_line"):
        recipe = replace(recipe, data=replace(data, on_bad_line="skip"))
    report = TASKS[recipe.task].task.check(recipe, examples=examples)
    if recipe.uses_phrasebook:
        return report
    try:
        try_out(with_test(recipe))
    except RegardError as error:
        return report.with_refusal(str(error))
    return report


def with_test(recipe: Recipe, path: str | Path | None = None) -> Recipe:
    """The recipe with a held-out test where it names none; an existing run keeps its text."""
    corpus = build(TrainingConfig, recipe.training, where="training").corpus
    if recipe.uses_phrasebook or recipe.data.test or not recipe.named("train"):
        return recipe
    if is_on_disk(recipe, corpus):
        return recipe
    if path is not None and is_run(path) and Run.open(path).recipe["data"].get("test") != HELD_OUT:
        return recipe
    return replace(recipe, data=replace(recipe.data, test=HELD_OUT))


def _split_data(recipe: object, data: object) -> "tuple[RecipeSource | None, object]":
    """The recipe, None where it is to be inferred, and the data."""
    is_path = isinstance(recipe, str | Path)
    if isinstance(recipe, Recipe | Mapping) or (is_path and is_recipe(str(recipe))):
        return cast("RecipeSource", recipe), data
    if recipe is None and not _has_data(data):
        raise SettingError("recipe or data must be given; got neither.")
    if recipe is not None and _has_data(data):
        raise SettingError(
            f"recipe must be a name, a file, a table or a Recipe; got {type(recipe).__name__} "
            f"{str(recipe)[:60]!r} beside data."
        )
    return None, data if recipe is None else recipe


def _has_data(data: object) -> bool:
    return data is not None and not (isinstance(data, list | tuple) and not data)


def _names(data: object) -> list[str]:
    """The names of the files that data is; none of data in memory."""
    if not is_files(data):
        return []
    return [str(data)] if isinstance(data, str | Path) else list(map(str, cast("list[str]", data)))


def _files(data: object, run: Path) -> list[str]:
    """The files of the data; data in memory is written beside the run folder."""
    if is_files(data) or not _has_data(data):
        return _names(data)
    ending, content = write_rows(rows_of(data))
    path = run.with_name(f"{run.name}.data{ending}")
    if is_run(run) and path.exists() and path.read_text("utf-8") != content:
        raise RunError(
            f"{run} must go on with the data it began with, which {path} has; got other data. "
            "Train it into another folder."
        )
    path.parent.mkdir(parents=True, exist_ok=True)
    write_file(path, content.encode())
    return [str(path)]
