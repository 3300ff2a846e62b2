"""The figures of docs/measured.md, READMEs, pages of findings and `regard recipes`, from records.

python -m benchmarks.tables [--check]    write them; or fail if they are not what is there

A sentence writes ``{name.cell[number]}`` for a number of a figure, counted from zero in the cell
(``what``, ``ours``, ``beside`` or ``note``) of the figure that ``quoted.toml`` names,
``{name.precision}`` for what training's ``auto`` is on the machine of its record, and
``{details[record][name]}`` for one of a record's details: none is typed by hand.
"""

import argparse
import json
import re
import sys
import tomllib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from benchmarks import findings, measuring
from benchmarks.findings import line
from benchmarks.occasion import ROOT

Table = Mapping[str, Any]  # a record, or texts of a file of this folder
NO_BETTER, OLD = "▼", "†"
MEASURED, FIGURES = "docs/measured.md", "src/regard/recipes/figures.json"
READMES, CELLS = ("README.md", "README.zh.md"), ("what", "ours", "beside", "note")
# As people write it; not the 1 of F1, and not a version such as 2.3.0.
NUMBER = re.compile(r"(?<![\w.])\d+(?:,\d{3})*(?:\.\d+)?(?:e[+-]\d+)?(?!\.?\d)")
DECLARED, TEXTS, ROWS, RECIPES = (
    tomllib.loads((Path(__file__).parent / f"{name}.toml").read_text("utf-8"))
    for name in ("quoted", "measured", "short_table", "recipes")
)
QUOTED, TRIVIAL = DECLARED["quoted"], DECLARED["trivial"]


def find(records: Sequence[Table], place: str) -> list[Mapping[str, str]]:
    """The figures of ``record``, or of ``record: words & words`` those that have all words."""
    name, _, words = place.partition(": ")
    figures = [each for record in records if record["name"] == name for each in record["figures"]]
    for word in words.split(" & "):
        figures = [f for f in figures if word in f"{f['what']} | {f['beside']} | {f['note']}"]
    return figures


def quotable(records: Sequence[Table]) -> dict[str, Any]:
    """Everything that a sentence may quote, by name."""
    quoted: dict[str, Any] = {"details": {each["name"]: each["details"] for each in records}}
    flags = {each["name"]: each["machine"].get("flags", ()) for each in records}
    for name, place in QUOTED.items():
        if (record := place.partition(":")[0]) in flags:
            figures = find(records, place)
            if len(figures) != 1:
                raise ValueError(f"{place!r} must mean one figure; it means {len(figures)}.")
            numbers = {cell: NUMBER.findall(figures[0][cell]) for cell in CELLS}
            precision = "bfloat16" if "avx512_bf16" in flags[record] else "float32"
            quoted[name] = SimpleNamespace(**numbers, precision=precision)
    return quoted


def say(sentence: str, quoted: Mapping[str, Any], *, holds: Sequence[str] = ()) -> str:
    """A sentence with its numbers, if its claims hold; a KeyError where a record is missing."""
    for claim in holds:
        one, relation, other = claim.format_map(quoted).replace(",", "").split()
        if (float(one) > float(other)) != (relation == ">"):
            raise ValueError(f"{claim} no longer holds ({one}, {other}). Rewrite: {sentence}")
    try:
        return " ".join(sentence.format_map(quoted).split())
    except IndexError as missing:
        raise ValueError(f"a number is not in the records ({missing}): {sentence}") from None


def is_old(records: Sequence[Table], sentence: str) -> bool:
    """Whether a figure that a sentence quotes has not been found to hold."""
    places = {QUOTED[name] for name in re.findall(r"{(\w+)\.", sentence)}
    by_name = {each["name"]: each for each in records}
    return any(
        not measuring.holds(by_name[place.partition(":")[0]], figure)
        for place in places
        for figure in find(records, place)
    )


def no_better(records: Sequence[Table], trivial: Table) -> list[Mapping[str, str]]:
    """The figures of a place that are no better than what stands beside them without a model."""

    def number(figure: Mapping[str, str], cell: str) -> float:
        sign = -1 if trivial.get("less_is_better") else 1
        return sign * float(NUMBER.findall(figure[cell])[trivial.get(cell, 0)])

    found = find(records, trivial["place"])
    return [each for each in found if number(each, "ours") <= number(each, "beside")]


def sections(records: Sequence[Table], texts: Table, in_words: Callable[[str], str] = str) -> str:
    """The groups of figures: a heading, what they show, and a table; texts as in measured.toml."""
    quoted, parts = quotable(records), [texts["intro"]]
    by_name = {record["name"]: record for record in records}
    behind = [each for trivial in TRIVIAL for each in no_better(records, trivial)]
    left = [figure for record in records for figure in record["figures"]]
    for title, group in TEXTS["groups"].items():
        said, rows = texts["groups"][title], list[str]()
        for place in group["figures"]:
            name = place.partition(":")[0]
            script = texts["script"].format(name=name, script=measuring.script_of(name))
            for figure in find(records, place):
                left.remove(figure)
                cells = [in_words(figure[cell]) for cell in CELLS]
                cells[1] += f" {NO_BETTER}" * (figure in behind)
                is_old = not measuring.holds(by_name[name], figure)
                rows.append(line([*cells, script + f" {OLD}" * is_old]))
        try:
            says = say(said["says"], quoted, holds=group.get("holds", ()))
        except KeyError:
            says = texts["not_measured"]
        names = {"title": said.get("title", title), "anchor": title.lower().replace(" ", "-")}
        table = "\n".join([texts["head"], *rows] if rows else [])
        blocks = texts["heading"].format(**names), says, table
        parts.append("\n\n".join(filter(None, blocks)) + "\n")
    if left:
        raise ValueError(f"no group has {left[0]['what']!r}.")
    return "\n".join(parts)


def occasions(records: Sequence[Table]) -> str:
    """When, where and of which commit each record was made, and when it last held."""
    rows = [TEXTS["records"]]
    for record in records:
        machine, held = record["machine"], record.get("held")
        place = f"[`{record['name']}`](../benchmarks/records/{record['name']}.json)"
        parts = machine.get("gpu"), machine["cpu"], *machine["flags"][-1:]
        why = f"{OLD} {record.get('unsure') or 'not found to'}"
        last = f"{held['date']}, {held['commit']}" if held else why
        made = f"{record['date']}, {record['commit'] or '–'}"
        rows.append(line([place, made, last, ", ".join(filter(None, parts))]))
    return "\n".join(rows) + "\n"


def short_table(records: Sequence[Table], language: int) -> str:
    """The table of a README, in English (0) or Chinese (1), without what is not measured."""
    quoted, lines = quotable(records), [ROWS["head"][language]]
    for row in ROWS["rows"]:
        texts = row["what"][language], row["ours"], row["beside"][language], row["how"][language]
        try:
            cells = [say(text, quoted) for text in texts]
            cells[3] += ROWS[remark(row, quoted)][language]
        except KeyError:
            continue
        cells[1] += f" {OLD}" * is_old(records, "".join(texts))
        lines.append(line(cells))
    marks = ["", ROWS["marks"][language]] if any(OLD in each for each in lines) else []
    return "\n".join(lines + marks)


def remark(row: Table, quoted: Mapping[str, Any]) -> str:
    """``better``, ``level`` or ``behind``: of several pairs of numbers by the least of ours."""
    pairs = [[float(say(each, quoted).replace(",", "")) for each in pair] for pair in row["pairs"]]
    ratio = min(b / a if row.get("less_is_better") else a / b for a, b in pairs)
    by = (ratio - 1) / row.get("level", 0.05)
    return "better" if by > 1 else "level" if by >= -1 else "behind"


def recipe_figures(records: Sequence[Table]) -> str:
    """The figures of `regard recipes`, as JSON."""
    quoted, found = quotable(records), dict[str, Any]()
    for name, texts in RECIPES.items():
        said = {key: say(text, quoted) for key, text in texts.items()}
        found[name] = {
            "figure": said["figure"],
            "beside": said.get("beside", ""),
            "loses": "theirs" in said and float(said["ours"]) <= float(said["theirs"]),
            "minutes": float(said["minutes"]) if "minutes" in said else None,
            "old": is_old(records, texts["figure"]),
        }
    return json.dumps(found, ensure_ascii=False, indent=1, sort_keys=True) + "\n"


def pages(records: Sequence[Table], folder: Path) -> dict[Path, str]:
    """Each page of a folder as the records want it."""
    wanted = {MEASURED: f"{sections(records, TEXTS)}\n{occasions(records)}"}
    wanted[FIGURES] = recipe_figures(records)
    tables = {"figures": [short_table(records, 0), short_table(records, 1)]}
    blocks = findings.blocks(records) | tables
    for name in filter(lambda name: (folder / name).exists(), (*READMES, *findings.PAGES)):
        text = (folder / name).read_text("utf-8")
        wanted[name] = findings.filled(text, blocks, name.endswith(".zh.md"))
    return {folder / name: page for name, page in wanted.items()}


def main() -> None:
    """Write the pages, or check those that are there."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--check", action="store_true", help="change nothing, fail if out of date")
    parser.add_argument("--pages", type=Path, default=ROOT, help="where the READMEs lie")
    parser.add_argument("--records", type=Path, default=measuring.RECORDS)
    options = parser.parse_args()
    wanted = pages(measuring.read_records(options.records), options.pages)
    here = {path: path.read_text("utf-8") for path in wanted if path.exists()}
    stale = {path: page for path, page in wanted.items() if here.get(path) != page}
    if options.check and stale:
        names = ", ".join(path.name for path in stale)
        sys.exit(f"{names} and the records differ. Run: python -m benchmarks.tables")
    for path, page in stale.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(page, "utf-8")


if __name__ == "__main__":
    main()
