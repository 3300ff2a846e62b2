"""The inspector's files, the viewer's modules among them: read once, held in memory."""

import mimetypes
from dataclasses import dataclass
from importlib.resources import files

from regard.viewer.html import styles

# Where each folder of files is found by a browser.
_FOLDERS = {"/viewer": "regard.viewer", "/inspector": "regard.server"}
_ENDINGS = (".js", ".css", ".svg")


@dataclass(frozen=True, slots=True)
class PageFile:
    """One file of a page.

    Attributes:
        content: Its bytes.
        kind: Its media type.
    """

    content: bytes
    kind: str


def page_files() -> dict[str, PageFile]:
    """Every file a page may ask for, by its path; nothing else of the machine can be reached.

    Example:
        >>> page_files()["/viewer/viewer.js"].kind
        'text/javascript; charset=utf-8'
    """
    found = {}
    for place, package in _FOLDERS.items():
        for each in (files(package) / "static").iterdir():
            if each.name.endswith(_ENDINGS):
                found[f"{place}/{each.name}"] = PageFile(each.read_bytes(), _kind(each.name))
    # The viewer's sheets as one; pages that are files carry the same.
    found["/viewer/styles.css"] = PageFile(styles().encode(), _kind("styles.css"))
    found["/"] = PageFile(
        (files("regard.server") / "static" / "inspector.html").read_bytes(), _kind("page.html")
    )
    return found


def _kind(name: str) -> str:
    if name.endswith(".js"):
        return "text/javascript; charset=utf-8"
    return f"{mimetypes.guess_type(name)[0]}; charset=utf-8"
