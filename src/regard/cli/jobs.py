"""What the commands do with runs of tasks that are answered in one pass: labels, tags, spans."""

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from regard.cli.output import note, progress_bar, say
from regard.errors import DataError, SettingError

if TYPE_CHECKING:
    from regard.inference.labeller import Labeller

_SPLITS = ("train", "valid", "test")


def is_run_of_job(run: Path) -> bool:
    """Whether a run's task is answered in one pass, not by a search."""
    from regard.inference import Run
    from regard.tasks import TASKS

    kind = TASKS.get(Run.open(run).task)
    return kind is not None and kind.job is not None


def evaluate_run_of_job(
    run: Path,
    *,
    split: str,
    source: Path | None,
    plot: Path | None,
    as_json: bool,
    given: Mapping[str, Any],
) -> None:
    """Figures, baselines, tables and examples to read.

    Args:
        run: The run folder.
        split: Part of the recipe's data.
        source: A file to evaluate on instead.
        plot: Where to draw what was taken for what; None draws nothing.
        as_json: Whether one JSON object is printed instead.
        given: Options that only translators have, by name; none may be set.
    """
    from regard import __version__
    from regard.inference.job_evaluation import evaluate_job
    from regard.inference.labeller import Labeller

    labeller = Labeller.load(run)
    for name, value in given.items():
        if value:
            raise SettingError(
                f"{name} must be left out for a run of {labeller.job.recipe.task}; it is for "
                "translators."
            )
    examples, train = _examples(labeller, split, source)
    with progress_bar("answering", lambda: len(examples)) as advance:
        report = evaluate_job(labeller, examples, train, progress=advance)
    if plot is not None:
        from regard.inference.table_plot import plot_table

        plot_table(report.tables, plot)
        note(f"wrote {plot}")
    if as_json:
        record = {"regard": __version__, "run": str(run), **report.to_dict()}
        say(json.dumps(record, ensure_ascii=False))
    else:
        say(str(report))


def _examples(labeller: "Labeller", split: str, source: Path | None) -> tuple[list[Any], list[Any]]:
    """What to evaluate on, and what the run was trained on, if it is still there."""
    from regard.choices import choose

    job, recipe = labeller.job, labeller.job.recipe
    train: list[Any] = []
    with suppress(DataError):
        train = job.read(recipe, "train")
    if source is not None:
        data = replace(recipe.data, test=(str(source.resolve()),))
        return job.read(replace(recipe, data=data), "test"), train
    choose("split", split, dict.fromkeys(_SPLITS))
    if split == "valid" and not recipe.files("valid"):
        return job.hold_out(recipe, train)[1], train
    examples = job.read(recipe, split)
    if not examples:
        raise DataError(
            f"data.{split} must name the text to evaluate on; the recipe names none. "
            "Give --source, or --split valid."
        )
    return examples, train
