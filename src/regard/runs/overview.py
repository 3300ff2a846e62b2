"""All runs of a folder at a glance: how far each has come, how well, how fast, and its state."""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal, cast

from regard.config import JsonValue
from regard.errors import RegardError, RunError
from regard.runs.card import is_run
from regard.runs.files import explain_path
from regard.runs.lock import is_held
from regard.runs.run import Run
from regard.tasks import TASKS

# Folders inside of folders that are searched for runs.
_DEPTH = 3


@dataclass(frozen=True, kw_only=True, slots=True)
class RunOverview:
    """A run in a line; ``limit`` is None where time or epochs limit it."""

    run: Path
    recipe: str = ""
    state: Literal["running", "stopped", "done", "damaged"]
    updates: int = 0
    limit: int | None = None
    metric: str | None = None  # of the best validation
    best: int | float | None = None
    best_update: int | None = None
    each_second: float | None = None  # units of the loss, validations left out
    counted: str | None = None  # those units
    problem: str | None = None

    def to_dict(self) -> dict[str, JsonValue]:
        """Plain data, ready for JSON."""
        speed = None if self.each_second is None else round(self.each_second, 1)
        return {**asdict(self), "run": str(self.run), "each_second": speed}


def find_runs(folder: str | Path) -> tuple[list[RunOverview], list[Path]]:
    """The runs below a folder, or of a run itself; and the folders in it that hold none."""
    folder = Path(folder)
    with explain_path(folder):
        if not folder.is_dir():
            got = "a file" if folder.exists() else "nothing there"
            raise RunError(
                f"{folder} must be a folder of runs; got {got}. Name the one that holds them: "
                "`regard runs .` lists those here."
            )
        if is_run(folder):
            return [overview(folder)], []
        inside = {child: list(_runs_below(child, _DEPTH)) for child in _folders(folder)}
    runs = [overview(path) for paths in inside.values() for path in paths]
    return runs, [child for child, paths in inside.items() if not paths]


def overview(path: Path) -> RunOverview:
    """One run at a glance, with its problem if it has one."""
    try:
        return overview_of(Run.open(path))
    except RegardError as error:
        return RunOverview(run=path, state="damaged", problem=str(error))


def overview_of(run: Run) -> RunOverview:
    """An open run at a glance."""
    training = cast(Mapping[str, JsonValue], run.recipe.get("training", {}))
    try:
        records, unreadable = run.metrics(), None
    except RegardError as error:
        records, unreadable = [], str(error)
    updates, each_second, unsaved = _speed(run)
    limit = training.get("updates")
    metric = str(training.get("metric", "loss"))
    best = _best(records, metric, run.task)
    name, model = run.card.get("name"), run.recipe.get("model", {}).get("type")
    last = max((_whole(record.get("update")) for record in records), default=0)
    summary = run.summary if isinstance(run.summary, Mapping) else {}  # all that a bundle has
    return RunOverview(
        run=run.path,
        recipe=name if isinstance(name, str) and name else f"{run.task} {model or ''}".strip(),
        state="running" if is_held(run.folder) else "done" if run.is_finished else "stopped",
        updates=max(updates, last, _whole(summary.get("updates"))),
        limit=limit if isinstance(limit, int) else None,
        metric=None if best is None else metric,
        best=None if best is None else cast(float, best[metric]),
        best_update=None if best is None else _whole(best.get("update")),
        each_second=each_second,
        counted=None if each_second is None else _loss_unit(run),
        problem=unreadable or unsaved,
    )


def _best(
    records: Sequence[Mapping[str, JsonValue]], metric: str, task: str
) -> Mapping[str, JsonValue] | None:
    """The record of the best validation, and the first of equals."""
    # Of a foreign task only the direction of the loss is known.
    sign = {"loss": -1, **(TASKS[task].task.metrics if task in TASKS else {})}.get(metric, 1)
    validations = [
        record
        for record in records
        if record.get("split") == "valid" and isinstance(record.get(metric), int | float)
    ]
    return max(validations, key=lambda record: sign * cast(float, record[metric]), default=None)


def _folders(folder: Path) -> list[Path]:
    return sorted(
        path for path in folder.iterdir() if path.is_dir() and not path.name.startswith(".")
    )


def _runs_below(folder: Path, depth: int) -> Iterator[Path]:
    """The folder if it is a run, else those inside of it; none of one that is not ours to read."""
    try:
        if is_run(folder):
            yield folder
        elif depth > 1 and not folder.is_symlink() and os.access(folder, os.R_OK | os.X_OK):
            for child in _folders(folder):
                yield from _runs_below(child, depth - 1)
    except (OSError, RunError):
        return


def _speed(run: Run) -> tuple[int, float | None, str | None]:
    """Updates of the newest checkpoint, units a second up to there, and unreadable files."""
    problem = None
    for saved in reversed(run.checkpoints()):
        try:
            position = cast(object, saved.load_entry("position"))
        except RegardError as error:
            # One that is gone by now has made room for another.
            problem = problem or (str(error) if saved.folder.exists() else None)
            continue
        match position:
            case {"tokens": int(tokens), "seconds": float(seconds)} if seconds > 0:
                with suppress(OverflowError):  # of no number that a training counts to
                    return saved.step, tokens / seconds, problem
        return saved.step, None, problem
    return 0, None, problem


def _loss_unit(run: Run) -> str:
    """Unit of the run's loss."""
    unit = getattr(TASKS[run.task].task, "loss_unit", None) if run.task in TASKS else None
    if isinstance(unit, str):
        return unit
    is_summed = run.recipe.get("head", {}).get("loss") == "sum"  # of a regression
    return "batches" if is_summed else "points" if run.task == "regression" else "terms of the loss"


def _whole(value: JsonValue) -> int:
    return value if isinstance(value, int) else 0
