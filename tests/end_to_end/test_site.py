"""The documentation site opened from disk: it finds what is in its language, and asks nobody."""

import inspect
import json
import os
import subprocess
import sys
from contextlib import suppress
from importlib import import_module
from pathlib import Path

import pytest
import torch
from playwright.sync_api import Error
from tests.end_to_end.browsing import open_tab
from tools.figures import pooling
from tools.website import measured, pages
from tools.website.built import problems

from regard.attention import Box, Gaussian, Laplace, lengths, masked_softmax, weights

pytestmark = [pytest.mark.browser, pytest.mark.slow]

ROOT = Path(__file__).parents[2]
TRIES = ("masked", "alignment", "heads", "cost", "waves", "effects", "descent", "layer")
PAGES = {
    "index.md": "# Home\n\n[About a beam](beam.md#width)\n",
    "index.zh.md": "# 首页\n\n[束搜索](beam.md)\n",
    "beam.md": "# Beams\n\n## Width\n\nA beam keeps hypotheses. 我\n\n```python\nx = 1\n```\n\n"
    "Among $x_i$:\n\n$$\n\\sum_{i=1}^{n} y_i\n$$\n\n"
    '<div class="try" data-try="cues"></div>\n\n<div class="try" data-try="kernel"></div>\n\n'
    + "".join(f'<div class="try" data-try="{name}"></div>\n\n' for name in TRIES)
    + '<div class="searchable" markdown>\n<input type="search">\n\n| a |\n|---|\n| Dot product |\n'
    "| Additive |\n\n</div>\n",
    "beam.zh.md": "# 束搜索\n\n束搜索保留几个候选译文。\n",
}


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """Two pages in two languages, built by the settings of the whole site."""
    home = tmp_path_factory.mktemp("site")
    for name, text in PAGES.items():
        (home / "docs").mkdir(exist_ok=True)
        (home / "docs" / name).write_text(text, "utf-8")
    (home / "docs" / "assets").symlink_to(ROOT / "docs" / "assets")
    return build(home, "--strict", nav=[{"Home": "index.md"}, {"Measured": "beam.md"}])


def build(home, *options, **own):
    """The site of a folder's pages, by the settings of the whole one but for some."""
    website = ROOT / "tools" / "website"
    settings = own | {
        "INHERIT": str(ROOT / "mkdocs.yml"),
        "docs_dir": "docs",
        "site_dir": "site",
        "hooks": [str(website / name) for name in ("hooks.py", "mathematics.py")],
    }
    (home / "mkdocs.yml").write_text(json.dumps(settings), "utf-8")  # which is YAML
    command = [sys.executable, "-m", "mkdocs", "build", *options]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=home, env=environment, check=False, capture_output=True)
    assert done.returncode == 0, done.stderr.decode()
    return home / "site"


@pytest.fixture(scope="module")
def chapters(tmp_path_factory):
    """All that is written, with names and docstrings in the place of the reference."""
    home = tmp_path_factory.mktemp("chapters")
    packages = ("attention", "attention.scores", "attention.masks", "layers", "models", "tasks")
    reference = {
        f"reference/regard.{part}{ending}": "\n\n".join(_described(f"regard.{part}"))
        for part in packages
        for ending in (".md", ".zh.md")
    }
    pages.assemble(ROOT, home / "docs", reference | measured.pages())
    links = dict.fromkeys(
        ("not_found", "anchors", "absolute_links", "unrecognized_links"), "ignore"
    )
    nav = [str(page.relative_to(home / "docs")) for page in (home / "docs").rglob("*.md")]
    nav = [name for name in nav if not name.endswith(".zh.md")]
    return build(home, nav=nav, validation={"links": links})


def _described(package):
    module = import_module(package)
    values = {name: getattr(module, name) for name in module.__all__}
    return [f"# {package}", *(f"## {name}\n\n{inspect.getdoc(v)}" for name, v in values.items())]


def search(page, words, found):
    """Types words into the search, until a locator is found.

    The search reads its field as a key goes up, and Chinese characters are typed without a key.
    """
    page.keyboard.press("/")
    page.keyboard.type(words)
    for _ in range(60):
        page.keyboard.press("Shift")
        with suppress(Error):
            return found.wait_for(timeout=1_000)
    raise AssertionError(f"nothing found for {words}: {page.locator('.md-search').inner_text()}")


@pytest.mark.parametrize(
    ("page", "targets"),
    [
        (
            "index.html",
            {
                "additive attention": "course/scores.html",
                "Nadaraya-Watson": "course/pooling.html",
                "masked softmax": "course/scores.html",
                "positional encoding": "course/positions.html",
                "layer norm": "course/transformer.html",
                "Bahdanau": "course/sequences.html",
                "translate": "how-to/translation.html",
            },
        ),
        (
            "zh/index.html",
            {
                "缩放点积": "course/scores.html",
                "多头注意力": "course/heads.html",
                "位置编码": "course/positions.html",
                "核回归": "course/pooling.html",
                "翻译": "how-to/translation.html",
            },
        ),
    ],
)
def test_a_search_finds_the_chapter_or_the_how_to_first(
    chromium, chapters, tmp_path, page, targets
):
    tab = open_tab(chromium.new_context(offline=True), tmp_path)
    first = tab.page.locator(".md-search-result__item .md-search-result__link").first
    for words, target in targets.items():
        tab.page.goto((chapters / page).as_uri())
        search(tab.page, words, first)
        leads_to = (first.get_attribute("href") or "").partition("?")[0]
        assert leads_to == (chapters / page).parent.joinpath(target).as_uri(), words
    assert tab.outside() == []


# Tables, code and formulas of which a part is cut off, by their widths.
CUT = """() => [...document.querySelectorAll(
  ".md-typeset__scrollwrap, .md-typeset pre > code, .md-typeset div.formula")]
  .filter(e => e.scrollWidth > e.clientWidth + 2)
  .map(e => [e.scrollWidth, e.clientWidth, e.textContent.slice(0, 60)])"""


def test_tables_and_code_fit_a_small_laptop(chromium, chapters, tmp_path):
    context = chromium.new_context(offline=True, viewport={"width": 1280, "height": 800})
    tab = open_tab(context, tmp_path)
    names = ("index.html", "measured.html", "formats.html")
    for page in [*map(chapters.joinpath, names), *sorted(chapters.glob("course/*.html"))]:
        for file in (page, chapters / "zh" / page.relative_to(chapters)):
            tab.page.goto(file.as_uri())
            assert tab.page.evaluate(CUT) == [], file


def test_a_search_looks_for_whole_chinese_words(chromium, chapters, tmp_path):
    tab = open_tab(chromium.new_context(offline=True), tmp_path)
    tab.page.goto((chapters / "zh" / "index.html").as_uri())
    marks = tab.page.locator(".md-search-result mark")
    search(tab.page, "对齐", marks.first)
    assert set(marks.all_text_contents()) == {"对齐"}


def test_it_is_whole(site):
    assert problems(site) == []
    assert (site / "zh" / "beam.html").is_file()


def test_formulas_are_drawn_and_what_can_be_moved_computes_what_the_engine_does(
    chromium, site, tmp_path
):
    tab, errors = open_tab(chromium.new_context(offline=True), tmp_path), []
    tab.page.on("pageerror", lambda error: errors.append(str(error)))
    tab.page.goto((site / "beam.html").as_uri())
    assert tab.page.locator("math").count() == 2
    assert (
        tab.page.evaluate("document.fonts.load('16px \"STIX Two Math\"').then(f => f.length)") == 1
    )
    assert tab.page.locator(".try svg").count() == 9
    tab.page.locator(".searchable input").fill("product dot")
    assert tab.page.locator(".searchable tbody tr:visible").all_inner_texts() == ["Dot product"]
    before = tab.page.locator("[data-try=kernel] .fit").get_attribute("d")
    tab.page.locator("[data-try=kernel] input").first.fill("0.3")
    assert tab.page.locator("[data-try=kernel] .fit").get_attribute("d") != before

    keys = torch.tensor([[0.0], [0.5], [2.0]])
    for name, score in {
        "gaussian": Gaussian(0.7),
        "laplace": Laplace(0.7),
        "box": Box(0.7),
    }.items():
        script = f"course.kernelWeights(0.4, [0, 0.5, 2], '{name}', 0.7)"
        expected = weights(torch.tensor([[0.4]]), keys, score=score)[0].tolist()
        assert tab.page.evaluate(script) == pytest.approx(expected, abs=1e-6)
    script = "course.softmax([1, 2, 3, 4], [true, true, true, false])"
    scores = torch.tensor([[[1.0, 2.0, 3.0, 4.0]]])
    expected = masked_softmax(scores, lengths([3])).flatten().tolist()
    assert tab.page.evaluate(script) == pytest.approx(expected, abs=1e-6)
    for w in (0.5, 1.0, 4.0):
        expected, _ = pooling.left_out(w)
        script = "(part, w) => course.leftOut(JSON.parse(part.dataset.example), w)"
        part = tab.page.locator("[data-try=descent]")
        assert part.evaluate(script, w) == pytest.approx(expected, rel=1e-3)
    told = tab.page.locator("[data-try=descent] p")
    before = told.inner_text()
    tab.page.locator("[data-try=descent] input").first.fill("-0.3")
    assert told.inner_text() != before
    assert "w = 17." in told.inner_text()
    assert errors == []
    assert tab.outside() == []
