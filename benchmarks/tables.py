"""The README's table of figures, made from the records.

python -m benchmarks.tables           write it between the two markers
python -m benchmarks.tables --check   fail, and show why, if it is not what is there
"""

import argparse
import difflib
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks import measuring

BEGIN, END = "<!-- figures:begin -->", "<!-- figures:end -->"
README = measuring.ROOT / "README.md"


def main() -> None:
    """Write the table, or check the one that is there."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=_Raw)
    parser.add_argument("--check", action="store_true", help="change nothing, fail if out of date")
    parser.add_argument("--readme", type=Path, default=README)
    parser.add_argument("--records", type=Path, default=measuring.RECORDS)
    arguments = parser.parse_args()
    readme: Path = arguments.readme
    table = render(measuring.read_records(arguments.records))
    text = readme.read_text("utf-8")
    if BEGIN not in text and not table:
        return
    wanted = insert(text, table, name=str(readme.name))
    if not arguments.check:
        readme.write_text(wanted, "utf-8")
    elif wanted != text:
        lines = difflib.unified_diff(
            text.splitlines(), wanted.splitlines(), readme.name, "benchmarks/records", lineterm=""
        )
        print("\n".join(lines))
        sys.exit(f"{readme.name} and the records differ. Run: python -m benchmarks.tables")


def render(records: Sequence[Mapping[str, Any]]) -> str:
    """The table of all figures, and a line on where they were measured; empty without figures.

    Example:
        >>> figure = {"what": "Speed", "ours": "2 ×", "beside": "peer: 1", "note": "±1 %"}
        >>> machine = {"cpu": "a CPU", "cores": 2}
        >>> record = {"name": "speed", "date": "2026-01-31", "machine": machine}
        >>> print(render([{**record, "figures": [figure]}]))
        | measured | regard | beside it | how | script |
        |---|---:|---|---|---|
        | Speed | 2 × | peer: 1 | ±1 % | [`speed`](benchmarks/speed.py) |
        <BLANKLINE>
        Measured on a CPU (2 cores), 2026-01-31. Samples and versions: `benchmarks/records/`.
    """
    rows = [
        f"| {_cell(figure['what'])} | {_cell(figure['ours'])} | {_cell(figure['beside'])} "
        f"| {_cell(figure['note'])} | [`{record['name']}`](benchmarks/{record['name']}.py) |"
        for record in records
        for figure in record["figures"]
    ]
    if not rows:
        return ""
    header = ["| measured | regard | beside it | how | script |", "|---|---:|---|---|---|"]
    return "\n".join([*header, *rows, "", _where([r for r in records if r["figures"]])])


def insert(text: str, table: str, *, name: str) -> str:
    r"""The text with the table between its two markers, in the place of what was there.

    Example:
        >>> insert(f"a\n{BEGIN}\nold\n{END}\nb", "new", name="README.md").splitlines()
        ['a', '<!-- figures:begin -->', 'new', '<!-- figures:end -->', 'b']
    """
    if text.count(BEGIN) != 1 or text.count(END) != 1 or text.index(BEGIN) > text.index(END):
        sys.exit(f"{name} must have one {BEGIN} and, after it, one {END}")
    before, rest = text.split(BEGIN)
    after = rest.split(END)[1]
    inside = f"\n{table}\n" if table else "\n"
    return f"{before}{BEGIN}{inside}{END}{after}"


def _where(records: Sequence[Mapping[str, Any]]) -> str:
    machines = sorted({_machine(record["machine"]) for record in records})
    dates = sorted({record["date"] for record in records})
    span = dates[0] if len(dates) == 1 else f"{dates[0]} to {dates[-1]}"
    where = " and ".join(machines)
    return f"Measured on {where}, {span}. Samples and versions: `benchmarks/records/`."


def _machine(machine: Mapping[str, Any]) -> str:
    device = machine.get("gpu")
    return device or f"{machine['cpu']} ({machine['cores']} cores)"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


class _Raw(argparse.RawDescriptionHelpFormatter):
    """Keeps the module docstring's lines as they are."""


if __name__ == "__main__":
    main()
