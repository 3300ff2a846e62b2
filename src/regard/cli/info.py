"""``regard info``."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from regard.cli.output import say

if TYPE_CHECKING:
    from regard.config import JsonValue
    from regard.runs import Run
    from regard.runs.overview import RunOverview

_SPLITS = ("train", "valid", "test")


def info(
    run: Path,
    /,
    *,
    as_json: Annotated[bool, Parameter(name="--json")] = False,
) -> None:
    """Say what a run is: its job, its model, what it learned from, how far it came, how good it is.

    Example: `regard info regard-demo`

    Args:
        run: The run folder.
        as_json: Print one JSON object instead.
    """
    from regard.runs import Run

    opened = Run.open(run)
    facts = _facts(opened)
    if as_json:
        say(json.dumps({"run": str(run), **facts}, ensure_ascii=False))
        return
    width = max(map(len, facts))
    for name, value in facts.items():
        first, *others = _lines(value)
        say(f"{name:{width}}  {first}")
        for line in others:
            say(f"{'':{width}}  {line}")


def _facts(run: "Run") -> "dict[str, JsonValue]":
    from regard.runs.card import format_changes, read_card
    from regard.runs.overview import overview

    glance = overview(run.path)
    data = run.recipe.get("data", {})
    summary = run.summary if isinstance(run.summary, Mapping) else {}
    records = run.metrics()
    facts: dict[str, JsonValue] = {
        "job": run.task,
        "recipe": glance.recipe,
        "model": _model(run),
        **{f"{split} text": _told_text(data.get(split), split) for split in _SPLITS},
        "training": _progress(glance),
        "speed": None
        if glance.each_second is None
        else f"{glance.each_second:,.0f} {glance.counted} a second",
        "weights": summary.get("weights"),
        "learned": _learned(run),
        "figures": summary.get("validation") or (dict(records[-1]) if records else None),
        "figures of": summary.get("valid"),
        "changes": format_changes(run.changes),
        "folder": f"{_size(run.path):,.1f} MB",
        "made by": f"regard {read_card(run.path)['regard']}",
        "next": _next(run),
    }
    return {name: value for name, value in facts.items() if value}


def _model(run: "Run") -> str:
    kind = str(run.recipe.get("model", {}).get("type", ""))
    from regard.tasks import TASKS, recipe_from_table

    if not run.is_finished or run.task not in TASKS:
        return kind
    task = TASKS[run.task].task.load(recipe_from_table(run.recipe), run.tokenizer_folder)
    # Tied weights are one parameter of a model, and two of its file.
    parameters = sum(each.numel() for each in run.build(task.build_model).parameters())
    return f"{kind} with {parameters:,} parameters"


def _learned(run: "Run") -> "JsonValue":
    """The bandwidth of a kernel regression."""
    if run.task != "regression" or not run.is_finished:
        return None
    from regard.inference import Predictor

    predictor = Predictor.load(run.path)
    return predictor.task.describe_learned(predictor.model)


def _told_text(files: "JsonValue", split: str) -> "JsonValue":
    if not files and split == "valid":
        return "a part of the training text"
    return "held out of the training text" if files == "held out" else files


def _progress(glance: "RunOverview") -> str:
    updates = f"{glance.updates:,} updates"
    if glance.state == "done":
        return f"done, after {updates}"
    if glance.state == "running":
        return f"running, {updates} so far"
    return f"stopped after {updates}; the command that began it goes on"


def _next(run: "Run") -> "JsonValue":
    """The commands that can do something with it."""
    path = run.path
    if not run.is_finished:
        return [f"regard train --resume --run {path}"]
    from regard.tasks import TASKS

    commands = [f"predict {path} FILE", f"evaluate {path} FILE"]
    if run.task in TASKS and TASKS[run.task].is_shown:
        commands.append(f"look {path} TEXT")
    return [f"regard {command}" for command in commands]


def _size(folder: Path) -> float:
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file()) / 1e6


def _lines(value: "JsonValue") -> Iterator[str]:
    if isinstance(value, Mapping):
        yield ", ".join(f"{name} {_number(each)}" for name, each in value.items())
    elif isinstance(value, list | tuple):
        yield from map(str, value)
    else:
        yield str(value)


def _number(value: "JsonValue") -> str:
    return f"{value:,.4g}" if isinstance(value, float) else str(value)
