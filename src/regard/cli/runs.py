"""``regard runs``: the runs of a folder at a glance."""

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from regard.cli.output import note, say
from regard.cli.tables import print_table

if TYPE_CHECKING:
    from regard.runs.overview import RunOverview

COLUMNS = ("run", "recipe", "updates", "best validation", "speed", "state")


def runs(
    folder: Path = Path("runs"), /, *, as_json: Annotated[bool, Parameter(name=["--json"])] = False
) -> None:
    """List all runs of a folder: recipe, updates, best validation, speed and state.

    Example: `regard runs`

    Example: `regard runs experiments --json`

    A run is running, stopped (the command that began it resumes it), done, or damaged. Runs in
    folders inside the folder are listed too. Nothing is changed, and no training is disturbed.

    Args:
        folder: Where the runs are.
        as_json: Print a JSON array with an object for each run instead.
    """
    from regard.runs.overview import find_runs

    found, others = find_runs(folder)
    if as_json:
        say(json.dumps([run.to_dict() for run in found], indent=1, ensure_ascii=False))
    elif found:
        names = _distinct_names([run.run for run in found])
        print_table(f"Runs in {folder}", COLUMNS, map(_row, names, found))
    else:
        note(f"no runs in {folder}; regard train makes one")
    for run in found:
        if run.problem is not None:
            note(f"warning: {run.problem}")
    if others:
        names = tuple(sorted(path.name for path in others))
        more = ", …" if len(names) > 3 else ""
        note(f"folders without a run: {', '.join(names[:3])}{more}")


def _distinct_names(paths: Sequence[Path]) -> tuple[str, ...]:
    """Each path without the folders that all share.

    Example:
        >>> _distinct_names([Path("runs/ende/a"), Path("runs/ende/b")])
        ('a', 'b')
        >>> _distinct_names([Path("runs/a"), Path("old/a")])
        ('runs/a', 'old/a')
    """
    whole = [Path(os.path.abspath(path)) for path in paths]  # noqa: PTH100  (links keep their names)
    shared = os.path.commonpath([path.parent for path in whole])
    return tuple(path.relative_to(shared).as_posix() for path in whole)


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
