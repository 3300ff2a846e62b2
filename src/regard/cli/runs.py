"""``regard runs``: the runs of a folder at a glance, and side by side."""

import json
from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter

from regard.cli.output import note, say, write_file
from regard.cli.tables import print_table

runs = App(
    name="runs",
    help="List the runs of a folder, or compare some: settings that differ, and their curves.",
    help_format="markdown",
    default_parameter=Parameter(negative=()),
)

AsJson = Annotated[bool, Parameter(name=["--json"])]


@runs.default
def list_runs(folder: Path = Path("runs"), /, *, as_json: AsJson = False) -> None:
    """List all runs of a folder: recipe, updates, best validation, speed and state.

    Example: `regard runs`

    Example: `regard runs experiments --json`

    A run is running, stopped (the command that began it goes on with it), done, or damaged. Runs in
    folders inside the folder are listed too. Nothing is changed, and no training is disturbed.

    Args:
        folder: Where the runs are.
        as_json: Print a JSON array with an object for each run instead.
    """
    from regard.runs.overview import find_runs
    from regard.runs.side_by_side import distinct_names, overview_table

    found = find_runs(folder)
    if as_json:
        say(json.dumps([run.to_dict() for run in found.runs], indent=1, ensure_ascii=False))
    elif found.runs:
        names = distinct_names([run.path for run in found.runs])
        print_table(overview_table(names, found.runs, title=f"Runs in {folder}"))
    else:
        note(f"no runs in {folder}; regard train makes one")
    for run in found.runs:
        if run.problem is not None:
            note(f"warning: {run.problem}")
    if found.others:
        names = tuple(sorted(path.name for path in found.others))
        more = ", …" if len(names) > 3 else ""
        note(f"folders without a run: {', '.join(names[:3])}{more}")


@runs.command
def compare(
    *folders: Path,
    page: Path = Path("runs.html"),
    as_json: AsJson = False,
) -> None:
    """Say which settings of some runs differ, and draw their curves on one page.

    Example: `regard runs compare runs/a runs/b`

    The page needs no network. Runs may be in training, and of different recipes.

    Args:
        folders: The run folders, two to eight.
        page: The page to write.
        as_json: Print settings and curves as JSON instead, and write no page.
    """
    from regard.comparison import page as page_of
    from regard.runs.side_by_side import compare_runs

    found = compare_runs(folders)
    if as_json:
        say(json.dumps(found.to_dict(), indent=1, ensure_ascii=False))
        return
    report = found.report()
    for table in report.tables:
        print_table(table)
    write_file(page, page_of(report))
    note(f"wrote {page}")
