"""Resuming a run: by the settings that it has, or by others where those may change."""

import math
import shlex
import warnings
from collections.abc import Mapping
from dataclasses import replace
from typing import cast

import torch

from regard.checks import counted
from regard.config import JsonValue, as_saved, as_table, build, format_setting
from regard.devices import describe_device
from regard.errors import RunError, TrainingError
from regard.runs import Run, RunWarning
from regard.runs.card import Changes
from regard.tasks import Recipe, recipe_from_table
from regard.training.settings import TrainingConfig

# Settings of training on which the optimizer's state, the order of the text and the best depend.
_FIXED = (
    *("corpus", "encoder_rate", "encoding", "metric", "optimizer", "pretrained", "seed"),
    "valid_share",
)


def saved_recipe(run: Run) -> Recipe:
    """The recipe of a run, its settings of training resolved."""
    recipe = recipe_from_table(run.recipe)
    saved = as_saved(TrainingConfig, recipe.training)
    return replace(recipe, training=as_table(build(TrainingConfig, saved, where="training")))


def with_saved_defaults(recipe: Recipe, run: Run) -> Recipe:
    """The recipe, with the run's values of newer settings that it leaves open."""
    saved = as_saved(TrainingConfig, run.recipe.get("training", {}))
    then = {name: saved[name] for name in as_saved(TrainingConfig, {})}
    return replace(recipe, training={**then, **recipe.training})


def find_changes(run: Run, recipe: Recipe, *, may_change: bool) -> Changes:
    """Differences between a recipe and the run that it is to resume."""
    changes = differences(saved_recipe(run).table(), recipe.table())
    fixed = [
        name
        for name in changes
        if not name.startswith("training.") or name.removeprefix("training.") in _FIXED
    ]
    if fixed:
        raise RunError(
            f"{_difference(run, changes, fixed[0])} Model, tokenizer, data and training's "
            f"{', '.join(_FIXED)} stay as a run was begun. Choose another folder: --run FOLDER, or "
            f"the settings of before: {_command(run, {})}."
        )
    if changes and not may_change:
        raise RunError(
            f"{_difference(run, changes, next(iter(changes)))} To go on with it by these: "
            f"{_command(run, changes)}. To begin anew, choose another folder: --run FOLDER."
        )
    return changes


def record_changes(run: Run, changes: Changes, *, processes: int = 1) -> None:
    """Record the changes in the run, and warn of another number of threads."""
    threads, before = torch.get_num_threads(), run.card.get("threads")
    if before not in (None, threads):
        warnings.warn(
            f"{run.path} was trained with {counted(before or 1, 'threads')} so far, and goes "
            f"on with {threads}: sums are rounded otherwise, and it will not end with the same "
            "bytes as if it had not been stopped. "
            f"OMP_NUM_THREADS={before} goes on as before.",
            RunWarning,
            stacklevel=2,
        )
    if before != threads:
        changes = {**changes, "threads": (before, threads)}
    if (made_by := run.card.get("processes", 1)) != processes:
        changes = {**changes, "processes": (made_by, processes)}
    if changes:
        newest = run.newest_checkpoint()
        run.change(0 if newest is None else newest.step, changes)


def resume_command(run: Run, *settings: str) -> str:
    """The command that resumes a run, with these settings over its own."""
    words = ["regard", "train", "--resume", "--run", str(run.path)]
    return shlex.join([*words, *(word for setting in settings for word in ("--set", setting))])


def describe_memory(run: Run, config: TrainingConfig, device: torch.device, update: int) -> str:
    """Error for a batch that does not fit into memory."""
    tokens = cast(int, config.batch_tokens)
    less = (
        f"training.batch_tokens={max(1, tokens // 2)}",
        f"training.accumulate={2 * config.accumulate}",
    )
    return (
        f"training.batch_tokens must fit into the memory of {describe_device(device)}; got "
        f"{tokens:,}, which did not after update {update}. Half of it, twice as often, is the same "
        f"update: {resume_command(run, *less)}"
    )


def check_finite(run: Run, loss: float, norm: float, *, update: int, peak: float) -> None:
    """Raise TrainingError unless the loss and the gradient's norm are finite."""
    if math.isfinite(loss) and math.isfinite(norm):
        return
    saved = run.newest_checkpoint()
    where = f"The checkpoint of update {saved.step} is kept. " if saved else ""
    raise TrainingError(
        f"the loss and gradient must be finite; got loss {loss:.4g}, gradient norm {norm:.4g} at "
        f"update {update}. {where}Lower training.learning_rate, or set training.clip_norm = 1, and "
        f"go on: {resume_command(run, f'training.learning_rate={peak / 2:.2g}')}"
    )


def differences(before: Mapping[str, object], now: Mapping[str, object]) -> Changes:
    """The settings in which two tables differ, by their dotted names."""
    old, new = _flat(before), _flat(now)
    names = [*new, *(old.keys() - new.keys())]
    return {n: (old.get(n), new.get(n)) for n in names if old.get(n) != new.get(n)}


def _flat(table: Mapping[str, object]) -> dict[str, JsonValue]:
    """Settings by their dotted names."""
    flat: dict[str, JsonValue] = {}
    for section, settings in table.items():
        if isinstance(settings, dict):
            flat |= {f"{section}.{name}": value for name, value in settings.items()}
        else:
            flat[section] = cast(JsonValue, settings)
    return flat


def _difference(run: Run, changes: Changes, name: str) -> str:
    before, now = changes[name]
    return f"{run.path} holds a run with other settings: {name} was {before!r}, now {now!r}."


def _command(run: Run, changes: Changes) -> str:
    return resume_command(run, *(format_setting(name, now) for name, (_, now) in changes.items()))
