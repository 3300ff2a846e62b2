"""The literature's page: one table to search, an item a row, with chapter, names and files."""

import csv
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path

from tools.website import reference, source

TABLE = "literature.tsv"
MARK = "<!-- literature -->"
CHAPTERS = (
    "cues", "pooling", "scores", "sequences", "heads",
    "self", "positions", "transformer", "tasks", "looking",
)  # fmt: skip
_HEAD = (
    ("| source | item | chapter | here | differs from the common tutorial |", "search this table"),
    ("| 出处 | 条目 | 章 | 在这里 | 与常见教程的不同 |", "在表中搜索"),
)
_FEW = 3  # names of a file that a row shows


def rows(docs: Path) -> list[dict[str, str]]:
    """Every item, by the names of the table's columns."""
    with (docs / TABLE).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))


def pages(docs: Path) -> dict[str, str]:
    """The page in both languages, with the table in its place."""
    names = _names()
    return {
        name: (docs / name).read_text("utf-8").partition(MARK)[0]
        + _table(rows(docs), number, names)
        for number, name in enumerate(("literature.md", "literature.zh.md"))
    }


def _table(
    items: Sequence[Mapping[str, str]], language: int, names: Mapping[str, Sequence[str]]
) -> str:
    item, note = (("item", "note"), ("条目", "说明"))[language]
    head, search = _HEAD[language]
    lines = [
        '<div class="searchable" markdown>',
        f'<input type="search" placeholder="{search}" aria-label="{search}">',
        "",
        head,
        "|---|---|---|---|---|",
        *(
            f"| {row['source']} | {row[item]} | {_chapter(row['chapter'])} "
            f"| {_places(row['code'].split(), language, names)} | {row[note]} |"
            for row in items
        ),
        "",
        "</div>",
    ]
    return "\n".join(lines)


def _chapter(name: str) -> str:
    return f"[{CHAPTERS.index(name) + 1}](course/{name}.md)" if name else ""


def _places(files: Sequence[str], language: int, names: Mapping[str, Sequence[str]]) -> str:
    """The public names of the first file, and a link to the source of each."""
    made = [
        name
        for file in files
        for name in sorted(names[file], key=lambda name: Path(file).stem not in name.lower())
    ]
    public = [f"[`{name.rpartition('.')[2]}`][{name}]" for name in made]
    links = [source.link(file, language, Path(file).name) for file in files]
    return " ".join([*public[:_FEW], *links])


def _names() -> dict[str, list[str]]:
    """Public names by the file in which they are made."""
    found: dict[str, list[str]] = {str(file): [] for file in source.files()}
    for package in reference.documented():
        for name in reference.public(package):
            made = getattr(getattr(import_module(package), name), "__module__", None) or ""
            file = f"src/{made.replace('.', '/')}.py"
            if file in found and reference.home(package, name) == package:
                found[file].append(f"{package}.{name}")
    return found
