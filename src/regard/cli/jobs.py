"""What the commands do with runs of tasks that are answered in one pass: labels, tags, spans."""

import json
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from regard.cli.oddities import Oddities
from regard.cli.output import note, progress_bar, refuse, say
from regard.errors import DataError

if TYPE_CHECKING:
    from regard.inference.ensemble import Answering
    from regard.tasks import Task
    from regard.text import Line

_SPLITS = ("train", "valid", "test")


def is_run_of_job(run: Path) -> bool:
    """Whether a run's task is answered in one pass, not by a search."""
    from regard.runs import Run
    from regard.tasks import TASKS

    kind = TASKS.get(Run.open(run).task)
    return kind is not None and kind.task is not None


def evaluate_run_of_job(
    runs: Sequence[Path],
    *,
    split: str,
    source: Path | None,
    plot: Path | None,
    as_json: bool,
    given: Mapping[str, Any],
) -> None:
    """Figures, baselines, tables and examples to read.

    Args:
        runs: The run folder; several answer together.
        split: Part of the recipe's data.
        source: A file to evaluate on instead.
        plot: Where to draw what was found and the loss of training; None draws nothing.
        as_json: Whether one JSON object is printed instead.
        given: Options that only translators have, by name; none may be set.
    """
    from regard import __version__
    from regard.inference.ensemble import Answering, Ensemble
    from regard.inference.job_evaluation import evaluate_job
    from regard.inference.labeller import Labeller
    from regard.runs import Run

    run = runs[0]
    labeller: Answering = Labeller.load(run) if len(runs) == 1 else Ensemble.load(*runs)
    _refuse(given, labeller)
    examples, train = _examples(labeller, split, source)
    with progress_bar("answering", lambda: len(examples)) as advance:
        report = evaluate_job(labeller, examples, train, progress=advance)
    if plot is not None:
        from regard.inference.report_plot import plot_report

        plot_report(labeller, report, examples, Run.open(run).metrics(), plot)
        note(f"wrote {plot}")
    if as_json:
        record = {"regard": __version__, "run": str(run), **report.to_dict()}
        say(json.dumps(record, ensure_ascii=False))
    else:
        say(str(report))


def predict_run_of_job(
    run: Path, file: Path | None, *, output_format: str, on_bad_line: str, given: Mapping[str, Any]
) -> None:
    """The answer to each line of a file or of stdin, as soon as there is one.

    Args:
        run: The run folder.
        file: Lines of text, or of JSON objects if it ends in .jsonl; None is stdin.
        output_format: ``text`` or ``jsonl``.
        on_bad_line: Whether a line that cannot be answered stops, or leaves its answer empty.
        given: Options that only translators have, by name; none may be set.
    """
    from regard.inference.filtering import asked, groups_of
    from regard.inference.labeller import Labeller

    labeller = Labeller.load(run)
    _refuse(given, labeller)
    groups, name, ending = groups_of(file)
    read = partial(_example, job=labeller.task, is_json=ending == ".jsonl")
    oddities = Oddities()
    for lines in asked(groups, read, name=name, skip_bad_lines=on_bad_line == "skip"):
        examples = [line.content for line in lines if line.content is not None]
        answers = iter(labeller.answers(examples))
        for line in lines:
            oddities.see(line.problem)
            answer = None if line.content is None else next(answers)
            if output_format == "jsonl":
                members = {} if answer is None else answer.to_dict()
                say(json.dumps(members, ensure_ascii=False))
            else:
                say("" if answer is None else answer.text())
        sys.stdout.flush()
    oddities.end()


def _example(line: "Line", job: "Task[Any, Any, Any]", *, is_json: bool) -> object | None:
    """What a line asks of a job, which can be answered; None of an empty line."""
    from regard.text.lines import readable
    from regard.text.records import object_of, record_in

    text = readable(line)
    if not text.strip():
        return None
    record = object_of(text, line.where) if is_json else record_in(text)
    example: object = job.request(record, line.where)
    job.encode([example])  # it may be too long
    return example


def _refuse(given: Mapping[str, Any], labeller: "Answering") -> None:
    refuse(given, f"for a run of {labeller.task.recipe.task}; it is for translators")


def _examples(
    labeller: "Answering", split: str, source: Path | None
) -> tuple[Sequence[Any], Sequence[Any]]:
    """What to evaluate on, and what the run learned from, if it is still there."""
    from regard.choices import choose
    from regard.tasks.parts import Parts, read_parts

    job, recipe = labeller.task, labeller.task.recipe
    parts = Parts((), ())
    with suppress(DataError):
        parts = read_parts(recipe)
    if source is not None:
        data = replace(recipe.data, test=(str(source.resolve()),))
        return job.read(replace(recipe, data=data), "test"), parts.train
    choose("split", split, dict.fromkeys(_SPLITS))
    is_part = {"train": True, "valid": not recipe.files("valid"), "test": bool(parts.test)}
    if is_part[split]:
        parts = read_parts(recipe)  # whose error says what is wrong with the text
        return getattr(parts, split), parts.train
    examples = job.read(recipe, split)
    if not examples:
        raise DataError(
            f"data.{split} must name the text to evaluate on; the recipe names none. "
            "Give --source, or --split valid."
        )
    return examples, parts.train
