"""The README is short, the Chinese one says the same, and their links lead somewhere."""

import re
import tomllib
from pathlib import Path

import pytest

from regard.version import __version__

ROOT = Path(__file__).parents[2]
NAMES = ("README.md", "README.zh.md")
PAGES = [*NAMES, "CONTRIBUTING.md", "benchmarks/README.md"]
PAGES += sorted(str(path.relative_to(ROOT)) for path in (ROOT / "docs").rglob("*.md"))
SITE = (ROOT / "mkdocs.yml").read_text("utf-8")
ENGLISH, CHINESE = ((ROOT / name).read_text("utf-8") for name in NAMES)


def headings(text):
    """The level of every heading."""
    return re.findall(r"^(#+) ", without_code(text), flags=re.MULTILINE)


def blocks(text):
    """Every block of code: its language, and its lines without their comments."""
    matches = re.findall(r"^```(\w+)\n(.*?)^```", text, flags=re.DOTALL | re.MULTILINE)
    return [
        (language, [line.partition("  #")[0].rstrip() for line in code.splitlines()])
        for language, code in matches
    ]


def links(text):
    """Where its links and pictures lead, in their order."""
    return re.findall(r"\]\(([^)]+)\)", without_code(text))


def pages(text):
    """Its links but for those from one README to the other, in English."""
    return [link.replace(".zh.md", ".md") for link in links(text) if link not in NAMES]


def figures(text):
    """The numbers of every row of the table, in whatever order the language wants."""
    table = text.split("<!-- record: figures -->")[1].split("<!-- end -->")[0]
    return [sorted(re.findall(r"\d[\d.,]*\d|\d", row)) for row in table.splitlines()]


def without_code(text):
    return re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("text", [ENGLISH, CHINESE], ids=NAMES)
def test_it_is_read_in_a_minute(text):
    assert len(text.splitlines()) <= 130
    assert text.count("![") == 1


@pytest.mark.parametrize("part", [headings, blocks, figures, pages])
def test_the_chinese_one_has_the_same_headings_code_figures_and_links(part):
    assert part(CHINESE) == part(ENGLISH)


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_to_files_that_are_there(page):
    path = ROOT / page
    for link in links(path.read_text("utf-8")):
        if "://" not in link and not link.startswith("#"):
            target = path.parent / link.partition("#")[0]
            assert target.exists() or is_generated(target), link


def is_generated(target):
    """Whether the documentation site makes that page; its own test says that it is there."""
    inside = target.resolve().relative_to(ROOT / "docs")
    return f": {str(inside).replace('.zh.md', '.md')}\n" in SITE


def test_the_package_and_its_citation_have_its_version():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    text = (ROOT / "CITATION.cff").read_text("utf-8")
    fields = dict(re.findall(r"^([\w-]+): *(.*)$", text, flags=re.MULTILINE))
    assert project["version"] == fields["version"] == __version__
    assert fields["license"] == "Apache-2.0"
    assert {"cff-version", "message", "title", "authors", "abstract"} <= fields.keys()
