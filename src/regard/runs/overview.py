"""All runs of a folder at a glance: how far each has come, how well, how fast, and its state."""

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, cast

from regard.config import JsonValue
from regard.errors import RegardError, RunError
from regard.runs.creation import is_run
from regard.runs.files import explain_path
from regard.runs.lock import is_held
from regard.runs.run import Run
from regard.tasks import TASKS

# Folders inside of folders that are looked through for runs.
_DEPTH = 3

RunState = Literal["running", "stopped", "done", "damaged"]


@dataclass(frozen=True, kw_only=True, slots=True)
class BestFigure:
    """The best figure of a metric among validations, and the update it was measured after."""

    metric: str
    value: int | float
    update: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Speed:
    """Tokens, or other units of its loss, that a run learns from a second, validations left out."""

    each_second: float
    counted: str


@dataclass(frozen=True, kw_only=True, slots=True)
class RunOverview:
    """A run in a line; ``limit`` is None where time or epochs limit it."""

    path: Path
    state: RunState
    recipe: str = ""
    updates: int = 0
    limit: int | None = None
    best: BestFigure | None = None
    speed: Speed | None = None
    problem: str | None = None

    def to_dict(self) -> dict[str, JsonValue]:
        """As plain data, ready for JSON."""
        best, speed = self.best, self.speed
        return {
            "run": str(self.path),
            "recipe": self.recipe,
            "state": self.state,
            "updates": self.updates,
            "limit": self.limit,
            "metric": None if best is None else best.metric,
            "best": None if best is None else best.value,
            "best_update": None if best is None else best.update,
            "each_second": None if speed is None else round(speed.each_second, 1),
            "counted": None if speed is None else speed.counted,
            "problem": self.problem,
        }


@dataclass(frozen=True, slots=True)
class RunsFound:
    """The runs below a folder, and the folders in it that hold none."""

    runs: list[RunOverview]
    others: list[Path]


def find_runs(folder: str | Path) -> RunsFound:
    """The runs of a folder, or below links in it; of a run, itself."""
    folder = Path(folder)
    with explain_path(folder):
        if not folder.is_dir():
            got = "a file" if folder.exists() else "nothing there"
            raise RunError(f"{folder} must be a folder of runs; got {got}.")
        if is_run(folder):
            return RunsFound([overview(folder)], [])
        inside = _folders(folder)
    runs: list[RunOverview] = []
    others: list[Path] = []
    for each in inside:
        found = [overview(path) for path in _runs_below(each, _DEPTH)]
        runs += found
        if not found:
            others.append(each)
    return RunsFound(runs, others)


def overview(path: Path) -> RunOverview:
    """One run at a glance; what is wrong with it is said in it."""
    try:
        run = Run.open(path)
    except RegardError as error:
        return RunOverview(path=path, state="damaged", problem=str(error))
    training = cast(Mapping[str, JsonValue], run.recipe.get("training", {}))
    records, unreadable = _metrics(run)
    updates, speed, unsaved = _position(run)
    limit = training.get("updates")
    last = max((_whole(record.get("update")) for record in records), default=0)
    return RunOverview(
        path=path,
        state="running" if is_held(path) else "done" if run.is_finished else "stopped",
        recipe=run.name or _told_recipe(run),
        updates=max(updates, last),
        limit=limit if isinstance(limit, int) else None,
        best=best_figure(records, str(training.get("metric", "loss")), run.task),
        speed=speed,
        problem=unreadable or unsaved,
    )


def best_figure(
    records: Sequence[Mapping[str, JsonValue]], metric: str, task: str
) -> BestFigure | None:
    """The best of the validations among records, and the first of equals."""
    found = [
        BestFigure(metric=metric, value=value, update=_whole(record.get("update")))
        for record in records
        if record.get("split") == "valid" and isinstance(value := record.get(metric), int | float)
    ]
    sign = _signs(task).get(metric, 1)
    return max(found, key=lambda each: sign * each.value, default=None)


def _folders(folder: Path) -> list[Path]:
    return sorted(
        path for path in folder.iterdir() if path.is_dir() and not path.name.startswith(".")
    )


def _runs_below(folder: Path, depth: int) -> Iterator[Path]:
    """The folder if it is a run, else those inside of it; what may not be looked into has none."""
    try:
        if is_run(folder):
            yield folder
        elif depth > 1 and not folder.is_symlink() and os.access(folder, os.R_OK | os.X_OK):
            for each in _folders(folder):
                yield from _runs_below(each, depth - 1)
    except (OSError, RunError):
        return


def _metrics(run: Run) -> tuple[list[dict[str, JsonValue]], str | None]:
    """The figures of a run, and why there are none if that is so."""
    try:
        return [each for each in run.metrics() if isinstance(each, dict)], None
    except RegardError as error:
        return [], str(error)


def _position(run: Run) -> tuple[int, Speed | None, str | None]:
    """Updates of the newest checkpoint, the speed up to there, and what cannot be read of it."""
    problem = None
    for saved in reversed(run.checkpoints()):
        try:
            position = saved.load_entry("position")
        except RegardError as error:
            # One that is gone by now has made room for another.
            problem = problem or (str(error) if saved.folder.exists() else None)
        else:
            return saved.step, _speed(position, run), problem
    return 0, None, problem


def _speed(position: object, run: Run) -> Speed | None:
    """Speed recorded in a checkpoint, if any."""
    match position:
        case {"tokens": int(tokens), "seconds": float(seconds)} if seconds > 0:
            return Speed(each_second=tokens / seconds, counted=_counted(run))
    return None


def _signs(task: str) -> Mapping[str, int]:
    """Direction in which a task's metrics improve; of a foreign task only the loss's."""
    return {"loss": -1, **(TASKS[task].task.metrics if task in TASKS else {})}


def _counted(run: Run) -> str:
    """Unit of the run's loss."""
    counted = getattr(TASKS[run.task].task, "counted", None) if run.task in TASKS else None
    if isinstance(counted, str):
        return counted
    is_summed = run.recipe.get("head", {}).get("loss") == "sum"  # of a regression
    return "batches" if is_summed else "points" if run.task == "regression" else "terms of the loss"


def _told_recipe(run: Run) -> str:
    model = cast(Mapping[str, JsonValue], run.recipe.get("model", {}))
    return " ".join(str(each) for each in (run.task, model.get("type")) if each)


def _whole(value: JsonValue) -> int:
    return value if isinstance(value, int) else 0
