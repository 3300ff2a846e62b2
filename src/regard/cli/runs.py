"""``regard runs``, ``info`` and ``export``: runs at a glance, one run, and one in another form."""

import json
import os
import shlex
import shutil
import sys
from collections.abc import Mapping, Sequence
from itertools import chain, repeat
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from regard.checks import choose, counted
from regard.cli.output import note, say
from regard.errors import printable

if TYPE_CHECKING:
    from regard.config import JsonValue
    from regard.runs import Run
    from regard.runs.overview import RunOverview

_LONGEST = 1000  # characters of a text of a run
COLUMNS = ("run", "recipe", "updates", "best validation", "speed", "state")


def runs(
    folder: Path = Path("runs"), /, *, as_json: Annotated[bool, Parameter(name=["--json"])] = False
) -> None:
    """List all runs of a folder: recipe, updates, best validation, speed and state.

    Example: `regard runs`

    Example: `regard runs experiments --json`

    A run is running, stopped (the command that began it resumes it), done, or damaged. Runs in
    folders inside the folder are listed too. Nothing is changed, and no training is disturbed.
    Where a terminal is too narrow, speeds are left out, and then recipes.

    Args:
        folder: Where the runs are.
        as_json: Print a JSON array with an object for each run instead.
    """
    from regard.runs.overview import find_runs

    overviews, foreign = find_runs(folder)
    if as_json:
        written = [run.to_dict() for run in overviews]
        say(printable(json.dumps(written, indent=1, ensure_ascii=False)))
    elif overviews:
        names = _distinct_names([run.run for run in overviews])
        width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
        rows = [tuple(map(_in_a_line, _row(*run))) for run in zip(names, overviews, strict=True)]
        say("\n".join(_table(_in_a_line(f"Runs in {folder}"), rows, width)))
    else:
        note(f"no runs in {folder}; regard train makes one")
    for run in overviews:
        if run.problem is not None:
            note(f"warning: {run.problem}")
    if foreign:
        names = tuple(sorted(path.name for path in foreign))
        more = ", …" if len(names) > 3 else ""
        note(f"folders without a run: {', '.join(names[:3])}{more}")


def _distinct_names(paths: Sequence[Path]) -> tuple[str, ...]:
    """Each path without the folders that all share."""
    whole = [Path(os.path.abspath(path)) for path in paths]  # noqa: PTH100  (links keep their names)
    shared = os.path.commonpath([path.parent for path in whole])
    return tuple(path.relative_to(shared).as_posix() for path in whole)


def _table(title: str, rows: Sequence[tuple[str, ...]], width: int | None) -> list[str]:
    """The lines of a table; without speeds, and then recipes, where it is wider than a terminal."""
    from rich.cells import cell_len

    from regard.tasks import Table

    for left_out in ((), ("speed",), ("speed", "recipe")):
        numbers = [column for column, name in enumerate(COLUMNS) if name not in left_out]
        columns, *cells = (tuple(row[column] for column in numbers) for row in (COLUMNS, *rows))
        lines = Table(title, columns, tuple(cells)).lines()
        if width is None or max(map(cell_len, lines[1:])) <= width:
            break
    return lines


def _row(name: str, run: "RunOverview") -> tuple[str, ...]:
    of = f" of {run.limit:,}" if run.limit is not None else ""
    return (
        name,
        run.recipe or "–",
        "–" if run.state == "damaged" else f"{run.updates:,}{of}",
        "–" if run.best is None else f"{run.metric} {run.best:.4g} at {run.best_update:,}",
        "–" if run.each_second is None else f"{_digits(run.each_second)} {run.counted}/s",
        run.state,
    )


def _digits(value: float) -> str:
    """A number in digits, never with an exponent: whole from a hundred on."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def info(run: Path, /, *, as_json: Annotated[bool, Parameter(name="--json")] = False) -> None:
    """Describe a run: its job, its model, its training data, its progress, its quality.

    Example: `regard info regard-demo`

    Args:
        run: The run folder.
        as_json: Print one JSON object instead.
    """
    from regard.runs import Run

    opened = Run.open(run)
    summary = _summary(opened)
    if as_json:
        say(printable(json.dumps({"run": str(run), **summary}, ensure_ascii=False)))
        return
    width = max(map(len, summary))
    for name, value in summary.items():
        for title, line in zip(chain((name,), repeat("")), _lines(value), strict=False):
            say(f"{title:{width}}  {_in_a_line(line)}")


def _summary(run: "Run") -> "dict[str, JsonValue]":
    from regard.runs.card import format_changes
    from regard.runs.overview import overview_of

    glance = overview_of(run)
    data = run.recipe.get("data", {})
    summary = run.summary if isinstance(run.summary, Mapping) else {}
    records = run.metrics()
    updates = counted(glance.updates, "updates")
    progress = {"done": f"done, after {updates}", "running": f"running, {updates} so far"}
    stopped = f"stopped after {updates}; the command that began it goes on"
    speed = None if glance.each_second is None else f"{glance.each_second:,.0f} {glance.counted}"
    files = [run.path] if run.path.is_file() else run.path.rglob("*")
    size = sum(file.stat().st_size for file in files if file.is_file()) / 1e6
    model, learned = _model(run)
    values: dict[str, JsonValue] = {
        "job": run.task,
        "recipe": glance.recipe,
        "model": model,
        **{f"{split} text": _files(data.get(split), split) for split in ("train", "valid", "test")},
        "training": progress.get(glance.state, stopped),
        "speed": speed and f"{speed} a second",
        "weights": summary.get("weights"),
        "learned": learned,
        "figures": summary.get("validation") or (dict(records[-1]) if records else None),
        "figures of": summary.get("valid"),
        "baseline": summary.get("beside", summary.get("below")),  # the names in older runs
        "temperature": summary.get("temperature"),
        "scales": summary.get("scales"),
        "changes": format_changes(run.changes),
        "file" if run.path.is_file() else "folder": f"{size:,.1f} MB",
        "made by": f"regard {run.card['regard']}",
        "next": _next(run),
    }
    return {name: value for name, value in values.items() if value}


def _model(run: "Run") -> "tuple[str, JsonValue]":
    """The kind and size of the model, and the bandwidth that a regression learned."""
    from regard.tasks import TASKS

    kind = str(run.recipe.get("model", {}).get("type", ""))
    if not run.is_finished or run.task not in TASKS:
        return kind, None
    task = run.load_task()
    model = run.build(task.build_model)
    # Tied weights are one parameter of a model, and two of its file.
    parameters = sum(p.numel() for p in model.parameters())
    learned = task.describe_learned(model) if run.task == "regression" else None
    return f"{kind} with {counted(parameters, 'parameters')}", learned


def _files(files: "JsonValue", split: str) -> "JsonValue":
    if not files and split == "valid":
        return "a part of the training text"
    return "held out of the training text" if files == "held out" else files


def _next(run: "Run") -> "JsonValue":
    """The commands that take the run."""
    from regard.tasks import TASKS

    path = shlex.quote(str(run.path))
    if not run.is_finished:
        return [f"regard train --resume --run {path}"]
    commands = [f"regard predict {path} FILE", f"regard evaluate {path} FILE"]
    has_page = run.task in TASKS and TASKS[run.task].is_shown
    request = TASKS[run.task].task.request_name if has_page else ""
    return [*commands, f"regard look {path} {request}"] if has_page else commands


def _lines(value: "JsonValue") -> list[str]:
    if isinstance(value, Mapping):
        return [", ".join(f"{name} {_number(figure)}" for name, figure in value.items())]
    return [*map(str, value)] if isinstance(value, list | tuple) else [str(value)]


def _in_a_line(text: str) -> str:
    """A text of a run, which anyone may have made, as a part of a line that is written here."""
    excerpt = text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
    return printable(excerpt).replace("\n", "\\n").replace("\t", "\\t")


def _number(value: "JsonValue") -> str:
    return f"{value:,.4g}" if isinstance(value, float) else str(value)


def export(
    run: Path,
    /,
    out: Annotated[Path, Parameter(name=["--output", "-o", "--out"])],
    *,
    to: str = "bundle",
    precision: str | None = None,
) -> None:
    """Write a finished run in a form to hand on.

    Example: `regard export regard-demo demo.regard`, then `regard predict demo.regard FILE`

    - `bundle`: one file that every command takes in place of the run folder; weights, tokenizer
      and recipe, without code and without pickle
    - `huggingface`: a folder that `from_pretrained` of transformers opens, with its tokenizer
    - `ctranslate2`: a folder that CTranslate2 translates with, or goes on with texts
    - `onnx`: a folder with ONNX graphs: of models that answer in one pass, and of translators
      and language models that are Transformers (the source, and a step with its caches)
    - `torch`: a folder with a program of torch.export (.pt2) of a model that answers in one pass

    With it goes a README: its task, its data, its figures, and how to use it.

    Args:
        run: The run folder.
        out: The file or folder to write; nothing may be there.
        to: The form.
        precision: To write the weights smaller: of a bundle `bfloat16`, of `ctranslate2` `int8` or
            `float16`.
    """
    from regard.export import FORMS, export_run

    choose("--to", to, FORMS)
    export_run(run, to, out, precision=precision)
    note(f"wrote {out}")
