"""Hooks of the site's builder: an index to search in for each language."""

import json
import re
from html import escape
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.plugins import event_priority
from mkdocs.structure.pages import Page

CHINESE = "zh/"
# How the search cuts a query into words of the index: in the theme as it is without its last
# character, so that 对齐 is looked for as 对.
_CUT = re.compile(r"for\(let (\w)=(\w)\+1;\1<=?(\w)\.length;\1\+\+\)\3\.slice\(\2,\1\)in (\w)&&")
_LAST = re.compile(r"(\w\[(\w)\]&&)(?:\2<\w\.length-1&&)?(\(\w\[\w\+\+\]=\2\))")
# Where a page says the site begins, for the search to look for its index there.
_BASE = re.compile(r'"base": "([./]*)"')


# What interactive parts of the course begin with: by `python -m tools.figures`, and what the demo's
# translator looked at.
_FOLDER = Path(__file__).parents[2] / "docs" / "figures" / "course"
_EXAMPLES = {
    name: json.dumps(example, separators=(",", ":"))
    for name, example in json.loads((_FOLDER / "examples.json").read_text("utf-8")).items()
} | {"alignment": (_FOLDER / "demo.jsonl").read_text("utf-8").strip()}
_TRY = re.compile(r'(<div class="try" data-try="(\w+)")')


def on_page_markdown(markdown: str, **_: object) -> str:
    """Interactive parts carry the numbers that they begin with."""
    return _TRY.sub(_with_example, markdown)


def _with_example(part: re.Match[str]) -> str:
    tag, name = part.groups()
    return f'{tag} data-example="{escape(_EXAMPLES[name])}"' if name in _EXAMPLES else tag


def on_post_page(output: str, page: Page, config: MkDocsConfig) -> str:
    """Chinese pages search in the index that lies in their own folder."""
    return in_folder(output) if page.url.startswith(CHINESE) else output


def in_folder(output: str) -> str:
    """A page for which the site begins one folder further down."""
    return _BASE.sub(
        lambda found: f'"base": "{found[1].removesuffix("..").rstrip("/") or "."}"', output
    )


@event_priority(-200)  # after the search and its offline form have written theirs
def on_post_build(config: MkDocsConfig) -> None:
    """Split the index: a page finds what is written in its own language."""
    site = Path(config.site_dir)
    whole = site / "search" / "search_index.json"
    if not whole.is_file():
        return
    [worker] = (site / "assets" / "javascripts" / "workers").glob("search.*.min.js")
    worker.write_text(whole_words(worker.read_text("utf-8")), "utf-8")
    index = json.loads(whole.read_text("utf-8"))
    for folder, entries in split(index["docs"]).items():
        kept = json.dumps(index | {"docs": entries}, ensure_ascii=False)
        target = site / folder / "search"
        target.mkdir(parents=True, exist_ok=True)
        (target / "search_index.json").write_text(kept, "utf-8")
        (target / "search_index.js").write_text(f"var __index = {kept}", "utf-8")


def whole_words(script: str) -> str:
    """The search's script, whose words of a query may end with its last character.

    A script that was made so, by the build of the other language, stays as it is.

    Raises:
        ValueError: The theme's script is another one.
    """
    script, cuts = _CUT.subn(r"for(let \1=\2+1;\1<=\3.length;\1++)\3.slice(\2,\1)in \4&&", script)
    script, lasts = _LAST.subn(r"\1\3", script)
    if (cuts, lasts) != (1, 1):
        raise ValueError("the theme cuts queries in another way; see whole_words in hooks.py.")
    return script


def split(entries: list[dict[str, str]]) -> dict[str, list[dict[str, str]]]:
    """Entries by the folder of their language, as seen from there, each once."""
    found: dict[str, dict[str, dict[str, str]]] = {"": {}, CHINESE: {}}
    for entry in entries:
        place = entry["location"]
        folder = CHINESE if place.startswith(CHINESE) else ""
        found[folder][place] = entry | {"location": place.removeprefix(folder)}
    return {folder: list(kept.values()) for folder, kept in found.items()}
