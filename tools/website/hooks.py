"""Hooks of the site's builder: an index to search in for each language."""

import json
import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.plugins import event_priority
from mkdocs.structure.pages import Page

CHINESE = "zh/"
# Where a page says the site begins, for the search to look for its index there.
_BASE = re.compile(r'"base": "([./]*)"')


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
    index = json.loads(whole.read_text("utf-8"))
    for folder, entries in split(index["docs"]).items():
        kept = json.dumps(index | {"docs": entries}, ensure_ascii=False)
        target = site / folder / "search"
        target.mkdir(parents=True, exist_ok=True)
        (target / "search_index.json").write_text(kept, "utf-8")
        (target / "search_index.js").write_text(f"var __index = {kept}", "utf-8")


def split(entries: list[dict[str, str]]) -> dict[str, list[dict[str, str]]]:
    """Entries by the folder of their language, as seen from there, each once."""
    found: dict[str, dict[str, dict[str, str]]] = {"": {}, CHINESE: {}}
    for entry in entries:
        place = entry["location"]
        folder = CHINESE if place.startswith(CHINESE) else ""
        found[folder][place] = entry | {"location": place.removeprefix(folder)}
    return {folder: list(kept.values()) for folder, kept in found.items()}
