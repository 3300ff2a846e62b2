"""The table of docs/literature.md names only what is there."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
TABLE = (ROOT / "docs" / "literature.md").read_text(encoding="utf-8")
ROWS = [row for row in TABLE.splitlines() if row.startswith("| 0") and row.count(" | ") > 2]


def test_every_test_named_is_in_its_file():
    named = set(re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", TABLE))
    absent = [
        f"{file}::{name}"
        for file, name in sorted(named)
        if not re.search(rf"^def {name}\(", (ROOT / file).read_text(encoding="utf-8"), re.MULTILINE)
    ]
    assert len(named) > 40
    assert absent == []


def test_every_place_named_is_a_file():
    places = set(re.findall(r"`((?:src|tests|docs|benchmarks)/[\w/]+\.\w+)", TABLE))
    assert [place for place in sorted(places) if not (ROOT / place).is_file()] == []


@pytest.mark.parametrize("source", ["000", "001", "002", "003", "004"])
def test_every_source_is_mapped_row_by_row(source):
    rows = [row for row in ROWS if source in row.split(" | ")[0]]
    assert rows
    for row in rows:
        _, what, place, test, _ = row.strip()[2:-1].split(" | ")
        assert what
        assert "`src/" in place
        assert "::" in test
