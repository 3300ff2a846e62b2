"""The code itself as pages of the site, so that links to it lead somewhere without a network."""

import re
from collections.abc import Iterator
from html import escape
from pathlib import Path

ROOT = Path(__file__).parents[2]
_MADE = re.compile(r"^(?:class|def|async def) (\w+)")
_PAGE = """<!doctype html><html lang="en"><meta charset="utf-8">
<meta name="viewport" content="width=device-width"><meta name="color-scheme" content="light dark">
<title>{title}</title><pre>{code}</pre></html>
"""


def files() -> Iterator[Path]:
    """The files that have a page, as seen from the repository."""
    for folder in ("src/regard", "examples"):
        yield from (file.relative_to(ROOT) for file in sorted((ROOT / folder).rglob("*.py")))


def write(target: Path) -> None:
    """Write a page for each file; classes and functions are its anchors."""
    for file in files():
        lines = (ROOT / file).read_text("utf-8").splitlines()
        page = target / f"{file}.html"
        page.parent.mkdir(parents=True, exist_ok=True)
        code = "\n".join(map(_with_anchor, lines))
        page.write_text(_PAGE.format(title=file, code=code), "utf-8")


def link(file: str, language: int, words: str, *, name: str = "", depth: int = 0) -> str:
    """A link to a file's page, or to a name in it, from a page so many folders deep."""
    up = "../" * (depth + language)
    return f'<a href="{up}source/{file}.html{name and f"#{name}"}">{words}</a>'


def _with_anchor(line: str) -> str:
    made = _MADE.match(line)
    return f'<b id="{made[1]}">{escape(line)}</b>' if made else escape(line)
