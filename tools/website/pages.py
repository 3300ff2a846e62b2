"""The site's sources: what is written in docs/, put together with what is generated."""

import re
import shutil
from collections.abc import Mapping
from pathlib import Path

from tools.notebooks import without_languages

# What is for those who change the project, and not for the site.
LEFT_OUT = ("phrasebook.md",)
# Folders whose pages are notebooks too.
NOTEBOOKS = ("course", "tutorials")
# Pages whose words are in both languages already.
BILINGUAL = ("glossary.md",)

# How much a page counts in the search, by its folder: people who ask for a term want it explained.
BOOSTS = {"course": 6.0, "how-to": 4.0, "tutorials": 4.0, "reference": 0.2}
LESS = ("literature", "measured", "changelog")

_LINK = re.compile(r"(?<!!)\[([^\]]*)\]\(([^)\s]+)\)")
_INCLUDE = re.compile(r'^<!-- (include|lead) (\S+) "([^"]+)" -->$', re.MULTILINE)
# A line's end between Chinese characters, or between a Chinese mark and what goes on behind it.
_GAP = re.compile(
    r"(?<=[\u4e00-\u9fff])\n(?=[\u4e00-\u9fff“（《])"
    r"|(?<=[，。；：、！？）”])\n(?=[\w`(\[“（])(?!\d+\. )"
)
_CODE = re.compile(r"^```.*?^```", re.DOTALL | re.MULTILINE)


def assemble(root: Path, target: Path, generated: Mapping[str, str]) -> None:
    """Write all sources of the site into a new folder."""
    if target.exists():
        shutil.rmtree(target)
    shutil.copytree(root / "docs", target, ignore=shutil.ignore_patterns(*LEFT_OUT))
    for name in BILINGUAL:
        shutil.copy(target / name, target / name.replace(".md", ".zh.md"))
    for name, text in generated.items():
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        (target / name).write_text(text, "utf-8")
    for page in target.rglob("*.md"):
        text = with_included(page.read_text("utf-8"), root, target)
        if page.parent.name in NOTEBOOKS:
            is_list = page.name.startswith("index.")
            text = without_languages(text) if is_list else with_notebook(text, page)
        if page.name.endswith(".zh.md"):
            text = without_gaps(text)
        page.write_text(with_boost(within(text, page, target), page), "utf-8")


def with_boost(text: str, page: Path) -> str:
    """A page that says how much it counts in the search."""
    name = page.name.partition(".")[0]
    boost = BOOSTS["reference"] if name in LESS else BOOSTS.get(page.parent.name, 3.0)
    boost = 1.0 if name == "index" else boost  # it names all, and explains nothing
    return f"---\nsearch:\n  boost: {boost}\n---\n\n{text}"


def without_gaps(text: str) -> str:
    """A Chinese page whose lines are joined where a line's end would become a space."""
    code = [found.span() for found in _CODE.finditer(text)]

    def joined(found: re.Match[str]) -> str:
        is_code = any(start <= found.start() < end for start, end in code)
        return found[0] if is_code else ""

    return _GAP.sub(joined, text)


def with_notebook(text: str, page: Path) -> str:
    """A tutorial with a link to its notebook, in the place of that to the other language."""
    says = "在笔记本里运行：" if page.name.endswith(".zh.md") else "Run it as a notebook: "
    file = page.name.removesuffix(".md").removesuffix(".zh") + ".ipynb"
    return without_languages(text).replace("\n", f"\n\n[{says}{file}]({file})\n", 1)


def with_included(text: str, root: Path, target: Path) -> str:
    """A page with the parts of other pages that it asks for: ``<!-- include FILE "Heading" -->``.

    Of what it asks for by ``lead`` it gets the first paragraph. Links of a part are those of the
    folder docs/, wherever it comes from.
    """

    def part(found: re.Match[str]) -> str:
        how, file, heading = found.groups()
        is_page = file.startswith("docs/")
        place = target / file.removeprefix("docs/") if is_page else root / file
        said = section(place.read_text("utf-8"), heading)
        said = said if is_page else as_of_docs(said)
        return said.partition("\n\n")[0] if how == "lead" else said

    return _INCLUDE.sub(part, text)


def as_of_docs(text: str) -> str:
    """A file of the repository's folder with links as from docs/; other links become words."""

    def link(found: re.Match[str]) -> str:
        said, place = found.groups()
        if "://" in place:
            return found[0]
        return f"[{said}]({place.removeprefix('docs/')})" if place.startswith("docs/") else said

    return _LINK.sub(link, text)


def section(text: str, heading: str) -> str:
    """The text under a heading, up to the next one of its level."""
    wanted = rf"^(#+) {re.escape(heading)}(?: {{#[\w-]+}})?\n(.*?)(?=^\1 |\Z)"
    found = re.search(wanted, without_code(text), re.DOTALL | re.MULTILINE)
    if found is None:
        raise ValueError(f"a page must have the heading {heading!r} to be included.")
    return text[slice(*found.span(2))].strip()


def without_code(text: str) -> str:
    """A page whose blocks of code are blank, and as long as they were."""
    return _CODE.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), text)


def within(text: str, page: Path, target: Path) -> str:
    """A page whose links stay in the site: what leads out of it is said without a link."""
    code = [found.span() for found in _CODE.finditer(text)]

    def link(found: re.Match[str]) -> str:
        said, place = found.groups()
        if any(start <= found.start() < end for start, end in code):
            return found[0]
        if "://" in place or place.startswith(("#", "mailto:")):
            return found[0]
        path, mark, anchor = place.partition("#")
        if (page.parent / path).resolve().is_relative_to(target.resolve()):
            return f"[{said}]({own_language(path, page)}{mark}{anchor})"
        is_home = path.endswith(("../README.md", "../README.zh.md")) and "benchmarks" not in path
        return f"[{said}]({_home(page, target)})" if is_home else said

    return _LINK.sub(link, text)


def own_language(path: str, page: Path) -> str:
    """A link as the builder wants it: without the language, which is that of the page."""
    return path.replace(".zh.md", ".md") if page.name.endswith(".zh.md") else path


def _home(page: Path, target: Path) -> str:
    return "../" * len(page.relative_to(target).parts[1:]) + "index.md"


def siblings(folder: Path) -> dict[str, bool]:
    """Every English page of a folder, and whether its Chinese one is there."""
    pages = sorted(page for page in folder.rglob("*.md") if not page.name.endswith(".zh.md"))
    return {str(page.relative_to(folder)): page.with_suffix(".zh.md").is_file() for page in pages}
