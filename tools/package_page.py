"""The README as a package's page shows it: what lies beside it is not there.

A package index shows the README without the repository around it, so that relative links and
pictures lead nowhere. With the address of the project's pages in ``REGARD_HOME`` they become
absolute, and ``[project.urls]`` has them; without one, pictures are left out and links are their
texts. Hatchling calls this when it builds.
"""

import os
import re
from pathlib import Path

from hatchling.metadata.plugin.interface import MetadataHookInterface

_PICTURE = re.compile(r"^!\[[^\]]*\]\((?!https?:)[^)]*\)\n*", re.MULTILINE)
_LINK = re.compile(r"(!?)\[([^\]]*)\]\((?!https?:|#)([^)\s]*)\)")
# Where an address shows a file's bytes, and where a file as people read it.
_RAW, _SHOWN = "raw/main", "blob/main"


class PackagePage(MetadataHookInterface):
    """Gives the package its page and, where the project has an address, its links."""

    PLUGIN_NAME = "custom"

    def update(self, metadata: dict[str, object]) -> None:
        """Fill in what ``[project] dynamic`` leaves open."""
        text = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        home = os.environ.get("REGARD_HOME", "").rstrip("/")
        page = with_address(text, home) if home else alone(text)
        metadata["readme"] = {"content-type": "text/markdown", "text": page}
        metadata["urls"] = links(home) if home else {}


def with_address(text: str, home: str) -> str:
    """The text with links and pictures at the project's address."""
    return _LINK.sub(
        lambda found: f"{found[1]}[{found[2]}]({home}/{_RAW if found[1] else _SHOWN}/{found[3]})",
        text,
    )


def alone(text: str) -> str:
    """The text without pictures that lie beside it, and with links to files as their texts."""
    return _LINK.sub(lambda found: found[2], _PICTURE.sub("", text))


def links(home: str) -> dict[str, str]:
    """``[project.urls]`` of an address."""
    return {
        "Homepage": home,
        "Documentation": f"{home}/{_SHOWN}/docs",
        "Changelog": f"{home}/{_SHOWN}/CHANGELOG.md",
    }
