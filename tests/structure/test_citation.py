"""The citation names this version."""

import re
from pathlib import Path

from regard.version import __version__

ROOT = Path(__file__).parents[2]


def test_the_citation_has_the_version_and_the_license_of_the_package():
    text = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    fields = dict(re.findall(r"^([\w-]+): *(.*)$", text, flags=re.MULTILINE))
    assert fields["version"] == __version__
    assert fields["license"] == "Apache-2.0"
    assert {"cff-version", "message", "title", "authors", "abstract"} <= fields.keys()
