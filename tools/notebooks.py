"""Notebooks of the course and the tutorials: the same text and code, in cells.

python -m tools.notebooks FOLDER [PAGE.md ...]    write them, all chapters and tutorials by default
"""

import argparse
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

DOCS = Path(__file__).parents[1] / "docs"

_BLOCK = re.compile(r"^```(\w+)[^\n]*\n(.*?)^```\n?", re.DOTALL | re.MULTILINE)
# The line under the title that leads to the other language.
_LANGUAGES = re.compile(r"\A(# [^\n]+\n)\n\[(?:中文|English)\]\([^)]+\)\n")

# A page that the site has in a frame.
_FRAME = re.compile(r'^<iframe class="live".*</iframe>\n', re.MULTILINE)

# What leads to another page leads to that page of the site.
_PAGE = re.compile(r"(\]\([\w./-]+?)(?:\.zh)?\.md(?=[#)])")


@dataclass
class Cell:
    """A cell of a notebook."""

    is_code: bool  # whether it is run; else it is Markdown
    source: str  # what stands in it
    output: str = ""  # what the page says that it prints; ``...`` stands for anything


def pages() -> list[Path]:
    """The chapters of the course and the tutorials, in both languages."""
    both = [*DOCS.glob("course/*.md"), *DOCS.glob("tutorials/*.md")]
    return sorted(page for page in both if not page.name.startswith("index."))


def cells(page: str) -> list[Cell]:
    """A tutorial as cells: prose, code, files to write, commands, and what each prints."""
    page = _PAGE.sub(r"\1.html", _FRAME.sub("", without_languages(page)))
    found: list[Cell] = []
    end = 0
    for block in _BLOCK.finditer(page):
        found += _prose(page[end : block.start()])
        kind, content = block.groups()
        if kind == "text" and found and found[-1].is_code:
            found[-1].output = content.rstrip("\n")
        else:
            found += _code(kind, content)
        end = block.end()
    return [*found, *_prose(page[end:])]


def without_languages(page: str) -> str:
    """A tutorial without the line that leads to the other language."""
    return _LANGUAGES.sub(r"\1", page)


def notebook(page: str) -> str:
    """A tutorial as the text of an .ipynb file (nbformat 4.5), outputs included."""
    cells_ = [_as_json(number, cell) for number, cell in enumerate(cells(page))]
    python = {"display_name": "Python 3", "language": "python", "name": "python3"}
    kept = {
        "cells": cells_,
        "metadata": {"kernelspec": python, "language_info": {"name": "python"}},
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    return json.dumps(kept, ensure_ascii=False, indent=1) + "\n"


def write(pages: list[Path], folder: Path) -> list[Path]:
    """Write the notebook of each page into a folder; where they are."""
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for page in pages:
        file = folder / page.with_suffix(".ipynb").name
        file.write_text(notebook(page.read_text("utf-8")), "utf-8")
        written.append(file)
    return written


def _prose(text: str) -> Iterator[Cell]:
    if text.strip():
        yield Cell(is_code=False, source=text.strip())


def _code(kind: str, content: str) -> Iterator[Cell]:
    if kind == "console":
        for part in content.split("$ ")[1:]:
            command, _, output = part.partition("\n")
            yield Cell(is_code=True, source=f"!{command}", output=output.rstrip("\n"))
    elif kind == "toml":
        name = content.partition("\n")[0].removeprefix("# ")
        yield Cell(is_code=True, source=f"%%writefile {name}\n{content.rstrip()}")
    elif kind == "python":
        yield Cell(is_code=True, source=content.rstrip("\n"))
    else:
        yield Cell(is_code=False, source=f"```{kind}\n{content}```")


def _as_json(number: int, cell: Cell) -> dict[str, object]:
    kept: dict[str, object] = {
        "cell_type": "code" if cell.is_code else "markdown",
        "id": f"cell-{number}",
        "metadata": {},
        "source": cell.source.splitlines(keepends=True),
    }
    if cell.is_code:
        lines = cell.output.splitlines(keepends=True)
        output = {"output_type": "stream", "name": "stdout", "text": lines}
        kept |= {"execution_count": None, "outputs": [output] if lines else []}
    return kept


def main() -> None:
    """Write the notebooks that the command line asks for."""
    parser = argparse.ArgumentParser(prog="python -m tools.notebooks", description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("pages", type=Path, nargs="*", help="Markdown; by default all of both")
    options = parser.parse_args()
    for file in write(options.pages or pages(), options.folder):
        print(file)


if __name__ == "__main__":
    main()
