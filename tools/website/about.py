"""How to cite the package, and what changed in it."""

from pathlib import Path

import yaml  # type: ignore[import-untyped]

CITE = "<!-- cite -->"
_TITLE = ("# Changelog", "# 更新日志\n\n（英文）")


def bibtex(root: Path) -> str:
    """The citation file as an entry of BibTeX."""
    facts = yaml.safe_load((root / "CITATION.cff").read_text("utf-8"))
    authors = " and ".join(f"{{{author['name']}}}" for author in facts["authors"])
    fields = {
        "title": facts["title"],
        "author": authors,
        "version": facts["version"],
        "license": facts["license"],
    }
    lines = [f"  {name} = {{{value}}}," for name, value in fields.items()]
    return "\n".join(["```bibtex", "@software{regard,", *lines, "}", "```"])


def pages(root: Path) -> dict[str, str]:
    """The home page with the citation, and the changelog, in both languages."""
    found = {}
    changes = (root / "CHANGELOG.md").read_text("utf-8").replace("](docs/", "](")
    for number, ending in enumerate((".md", ".zh.md")):
        home = (root / "docs" / f"index{ending}").read_text("utf-8")
        found[f"index{ending}"] = home.replace(CITE, bibtex(root))
        text = changes.replace("# Changelog", _TITLE[number], 1).replace(
            "](README.md)", "](index.md)"
        )
        found[f"changelog{ending}"] = text
    return found
