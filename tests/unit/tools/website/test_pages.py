"""The sources of the site: complete, in both languages, and true to the program."""

import re
from pathlib import Path

import pytest
import yaml
from benchmarks import measuring, tables
from tools.notebooks import without_languages
from tools.website import measured, pages, reference
from tools.website.__main__ import generated

ROOT = Path(__file__).parents[4]
DOCS = ROOT / "docs"


class _Loader(yaml.SafeLoader):
    """Reads the builder's file, but for what it would have Python call."""


_Loader.add_multi_constructor("tag:yaml.org,2002:python/", lambda *_: None)


@pytest.fixture(scope="module")
def sources(tmp_path_factory):
    """All pages, put together."""
    folder = tmp_path_factory.mktemp("site") / "docs"
    pages.assemble(ROOT, folder, generated())
    return folder


def settings():
    return yaml.load((ROOT / "mkdocs.yml").read_text("utf-8"), _Loader)


def pages_of(nav):
    """Every page that a navigation leads to."""
    if isinstance(nav, str):
        return [nav]
    items = nav.values() if isinstance(nav, dict) else nav
    return [page for item in items for page in pages_of(item)]


def titles(nav):
    """Every title of a navigation."""
    if isinstance(nav, str):
        return set()
    if isinstance(nav, list):
        return {title for item in nav for title in titles(item)}
    return {*nav, *(title for item in nav.values() for title in titles(item))}


def test_the_navigation_leads_to_every_page_and_to_no_other(sources):
    assert sorted(pages_of(settings()["nav"])) == sorted(pages.siblings(sources))


def test_every_page_is_there_in_chinese(sources):
    assert [page for page, is_there in pages.siblings(sources).items() if not is_there] == []


def test_every_title_of_the_navigation_is_translated():
    (plugin,) = (each["i18n"] for each in settings()["plugins"] if "i18n" in each)
    chinese = plugin["languages"][1]["nav_translations"]
    assert {title for title in titles(settings()["nav"]) if "regard" not in title} == set(chinese)


def test_the_two_languages_have_the_same_parts_and_lead_to_the_same_pages():
    def parts(text):
        return re.findall(r"^#+(?= )", pages.without_code(text), re.MULTILINE)

    def links(text):
        targets = re.findall(r"\]\(([^)]+)\)", pages.without_code(without_languages(text)))
        return [link.replace(".zh.", ".").partition("#")[0] for link in targets]

    for page in DOCS.rglob("*.zh.md"):
        english = page.with_name(page.name.replace(".zh.md", ".md")).read_text("utf-8")
        chinese = page.read_text("utf-8")
        assert parts(chinese) == parts(english), page.name
        assert set(links(chinese)) <= set(links(english)), page.name


def test_every_public_name_is_explained_on_one_page():
    explained = re.findall(r"^::: (\S+)$", "\n".join(_python("")), re.MULTILINE)
    assert len(explained) == len(set(explained))
    # Chinese pages have every name, and lead to where it is explained.
    led_to = re.findall(r"\]\[(regard\S+)\]", "\n".join(_python(".zh")))
    assert set(explained) <= set(led_to)
    for package in reference.documented():
        for name in reference.public(package):
            assert f"{reference.home(package, name)}.{name}" in explained


def _python(ending):
    pages = reference.pages()
    return [pages[f"{reference.place(package)}{ending}.md"] for package in reference.PACKAGES]


def test_no_package_with_public_names_is_left_out():
    import importlib
    import pkgutil

    import regard

    packages = [
        "regard",
        *(each.name for each in pkgutil.walk_packages(regard.__path__, "regard.") if each.ispkg),
    ]
    public = [name for name in packages if hasattr(importlib.import_module(name), "__all__")]
    assert set(public) <= set(reference.documented())
    for name in reference.documented():  # some are modules
        assert hasattr(importlib.import_module(name), "__all__"), name


def test_the_figures_have_the_same_numbers_in_chinese():
    for title, group in tables.TEXTS["groups"].items():
        says = measured.CHINESE["groups"][title]["says"], group["says"]
        numbers = [set(re.findall(r"{.*?}", each)) for each in says]
        assert numbers[0] == numbers[1], title


def test_links_out_of_the_site_become_words(tmp_path):
    page = tmp_path / "tutorials" / "one.md"
    text = "[a](../two.md#x) [b](../../src/b.py) [c](https://c.org) [d](../../README.md)"
    assert pages.within(text, page, tmp_path) == (
        "[a](../two.md#x) b [c](https://c.org) [d](../index.md)"
    )


def test_code_is_left_as_it_is(tmp_path):
    text = "```python\nx = [a](../../b)\n```\n"
    assert pages.within(text, tmp_path / "one.md", tmp_path) == text


def test_figures_are_described_in_chinese_with_the_same_numbers():
    for record in measuring.read_records(measuring.RECORDS):
        for figure in record["figures"]:
            for cell in (figure["what"], figure["ours"], figure["beside"], figure["note"]):
                chinese = measured.in_chinese(cell)
                english = re.search(r"[a-z]{2,} [a-z]{2,}", re.sub(r"`.*?`", "", chinese))
                assert english is None, chinese
                digits = [sorted(re.findall(r"\d+", each)) for each in (cell, chinese)]
                assert digits[0] == digits[1], chinese


def test_a_heading_that_is_not_there_is_an_error():
    with pytest.raises(ValueError, match="must have the heading 'C' to be included"):
        pages.section("# A\n\n## B\n", "C")
