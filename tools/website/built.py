"""A built site is whole: its links lead somewhere, and it asks no other host for anything."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from html import unescape
from pathlib import Path
from urllib.parse import unquote, urlsplit

# What a browser loads by itself; other links are followed by people.
_LOADED = {"script": "src", "img": "src", "iframe": "src", "source": "src", "link": "href"}
_NOT_LOADED = ("canonical", "alternate", "next", "prev")
# Tags that have something to say, and what they say: reading all of HTML takes ten times as long.
_TAG = re.compile(r"""<([a-z][a-z0-9]*)((?:\s+[^\s=>"'/]+(?:="[^"]*"|=[^\s>"']+)?)+)\s*/?>""")
_ATTRIBUTE = re.compile(r"""\s(id|name|href|src|rel)=["']?((?<=")[^"]*|(?<!")[^\s>"']*)""")


@dataclass
class Read:
    """Links, anchors and loaded files of a page."""

    anchors: set[str] = field(default_factory=set)  # the places in it that a link may name
    links: list[str] = field(default_factory=list)  # where it leads
    loads: list[str] = field(default_factory=list)  # what a browser loads with it


def read(page: str) -> Read:
    """Links, anchors and loaded files of a page of HTML as the builder writes it."""
    found = Read()
    for tag, inside in _TAG.findall(page):
        given = {name: unescape(value) for name, value in _ATTRIBUTE.findall(inside)}
        found.anchors |= {given[name] for name in ("id", "name") if name in given}
        if tag == "a" and "href" in given:
            found.links.append(given["href"])
        if tag in _LOADED and given.get("rel", "") not in _NOT_LOADED:
            found.loads.append(given.get(_LOADED[tag], ""))
    return found


def problems(site: Path) -> list[str]:
    """Faults of a site: links to nowhere, and files loaded from elsewhere.

    Pages of the gallery are looked at by tests of their own; those of source have no links.
    """
    pages = {
        file.resolve(): read(file.read_text("utf-8"))
        for file in sorted(site.rglob("*.html"))
        if file.parent.name != "gallery"
        and file.name != "404.html"
        and "source" not in file.relative_to(site).parts
    }
    found = []
    for file, page in pages.items():
        name = file.relative_to(site.resolve())
        found += [f"{name}: loads {place}" for place in page.loads if _is_elsewhere(place)]
        found += [f"{name}: leads to {place}" for place in _dead(file, page, pages)]
    return found


def _dead(file: Path, page: Read, pages: Mapping[Path, Read]) -> Iterator[str]:
    for link in page.links:
        parts = urlsplit(link)
        if parts.scheme or parts.netloc or link == "javascript:void(0)":
            continue
        target = (file.parent / unquote(parts.path)).resolve() if parts.path else file
        if target.is_dir():
            target /= "index.html"
        anchor = unquote(parts.fragment)
        is_place = not anchor or target not in pages or anchor in pages[target].anchors
        if not (target.exists() and is_place):
            yield link


def _is_elsewhere(place: str) -> bool:
    return bool(urlsplit(place).netloc)
