"""The page with what it is seldom given: one text, one token, long words, ends of lines, touch."""

import base64
import re
from dataclasses import replace
from pathlib import Path

import pytest
from playwright.sync_api import Browser
from tests.end_to_end.browsing import Tab, open_tab

from regard.viewer import Document, Example, HeadMap, Text

pytestmark = [pytest.mark.browser, pytest.mark.slow]

WORDS = ["Two", "Ġlines", "Ċ", "Ċ", "Ġof", "Ġtext", "."]
WRITTEN = "Two lines\n\n of text."
SPANS = [(0, 3), (3, 9), (9, 10), (10, 11), (11, 14), (14, 19), (19, 20)]


def alone(text: Text, *, kind: str = "decoder", layers: int = 2) -> Document:
    """What a model that only reads looks at: each token at all up to it alike."""
    count = len(text.tokens)
    rows = tuple(
        tuple(1 / (row + 1) if column <= row else 0.0 for column in range(count))
        for row in range(count)
    )
    maps = tuple(
        HeadMap(kind=kind, layer=layer, head=head, rows=rows)  # type: ignore[arg-type]
        for layer in range(layers)
        for head in range(2)
    )
    ends = (
        ("", (), text.text, text.tokens) if kind == "decoder" else (text.text, text.tokens, "", ())
    )
    example = Example(
        source=ends[0],
        source_tokens=ends[1],
        output=ends[2],
        output_tokens=ends[3],
        maps=maps,
        started=False,
    )
    return Document(title="Odd", task="", model="", examples=(example,))


def plain(text: str) -> Text:
    return Text.of(text.split(" "), text)


@pytest.mark.parametrize("kind", ["decoder", "encoder"])
def test_a_model_with_one_text_has_one_line_of_text(tab: Tab, kind: str) -> None:
    tab.open(alone(plain("only one text"), kind=kind), "#view=words&layer=1&head=1")
    shown = "[...document.querySelectorAll('.texts dt')].filter((t) => t.checkVisibility())"
    assert tab.ask(f"{shown}.map((t) => t.textContent)") == ["text"]
    assert tab.ask(f"{shown}[0].nextElementSibling.textContent") == "only one text"
    assert [tab.text(f".{side}") for side in ("across", "down")] == ["text →", "text ↓"]
    for view in ("words", "arcs"):
        tab.open(alone(plain("only one text"), kind=kind), f"#view={view}&layer=1&head=1")
        assert "text, looked at" in tab.text("main").lower()
        assert "source" not in tab.text("main").lower()


def test_ends_of_lines_are_arrows_whatever_the_tokenizer_calls_them(tab: Tab) -> None:
    text = Text.of(WORDS, WRITTEN, SPANS)
    assert [token.text for token in text.tokens][1:4] == [" lines", "\n", "\n"]
    for view in ("words", "arcs", "text"):
        tab.open(alone(text), f"#view={view}&layer=1&head=1")
        assert "Ċ" not in tab.text("main")
    tab.open(alone(text), "#view=words&layer=1&head=1")
    assert "↵" in tab.text("main")
    tab.open(alone(text), "#view=map&layer=1&head=1&row=3&column=3")
    tab.page.wait_for_selector(".readout h3 bdi")
    assert "↵" in tab.text(".readout h3 bdi")
    svg = saved(tab, "SVG")
    assert svg.count(">↵</text>") == 4  # two tokens, on both axes
    assert "Ċ" not in svg


def test_the_saved_map_has_its_strips_and_the_names_of_its_axes(tab: Tab) -> None:
    tab.open(alone(plain("a b c d e f g h")), "#view=map&layer=1&head=1")
    svg = saved(tab, "SVG")
    images = re.findall(r"<image [^>]*?>", svg)
    sizes = [
        [float(re.search(rf' {name}="([\d.]+)"', image)[1]) for name in ("width", "height")]  # type: ignore[index]
        for image in images
    ]
    assert len(sizes) == 3
    (width, height), received, entropy = sizes
    assert (received, entropy) == ([width, 14], [14, height])
    for image in images[1:]:  # and they are painted
        png = re.search(r'href="data:image/png;base64,([^"]+)"', image)
        assert png is not None
        assert len(base64.b64decode(png[1])) > 150
    assert svg.count(">text →<") == svg.count(">text ↓<") == 1


def saved(tab: Tab, kind: str) -> str:
    with tab.page.expect_download() as download:
        tab.page.locator(".saving button", has_text=kind).click()
    return Path(download.value.path()).read_text("utf-8")


def test_two_fingers_zoom_the_map_and_move_it(chromium: Browser, tmp_path: Path) -> None:
    context = chromium.new_context(has_touch=True, viewport={"width": 700, "height": 900})
    tab = open_tab(context, tmp_path)
    tab.open(alone(plain(" ".join("abcdefghijklmnopqrstuvwxyz" * 4))), "#view=map&layer=1&head=1")
    session = context.new_cdp_session(tab.page)
    box = tab.page.locator("canvas.map").bounding_box()
    assert box is not None
    x, y = box["x"] + 0.6 * box["width"], box["y"] + 0.5 * box["height"]

    def touch(kind: str, *apart: float) -> None:
        points = [{"x": x + side, "y": y, "id": n} for n, side in enumerate(apart)]
        session.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})

    touch("touchStart", -20, 20)
    for half in (30, 40, 60, 80):
        touch("touchMove", -half, half)
    touch("touchEnd")
    tab.wait("() => location.hash.includes('zoom=4')")
    assert tab.ask("document.querySelector('canvas.map').style.touchAction") == "none"
    assert not tab.complaints
    context.close()


@pytest.mark.parametrize("size", [1, 2])
@pytest.mark.parametrize("view", ["words", "map", "arcs", "text", "grid", "compare"])
def test_a_text_of_one_token_has_every_view(tab: Tab, view: str, size: int) -> None:
    tab.open(alone(plain(" ".join("ab"[:size]))), f"#view={view}&layer=1&head=1")
    assert tab.page.locator(".failure[role]:visible").count() == 0
    tab.press("ArrowDown", "ArrowRight")
    assert not tab.complaints
    assert not tab.outside()


@pytest.mark.parametrize("word", ["Donaudampfschiffahrt" * 60, "字" * 900, "ﷺ" * 300])
def test_very_long_words_do_not_make_the_page_wide(tab: Tab, word: str) -> None:
    tab.page.set_viewport_size({"width": 800, "height": 700})
    for view in ("words", "map", "arcs", "text"):
        tab.open(alone(plain(f"a {word} b")), f"#view={view}&layer=1&head=1")
        assert tab.ask("document.documentElement.scrollWidth") <= 800, view
        assert tab.page.locator(".failure[role]:visible").count() == 0


def test_a_zoomed_browser_and_still_people_are_served(chromium: Browser, tmp_path: Path) -> None:
    # 200 % in a window of 1,280 pixels is a window of 640.
    context = chromium.new_context(
        viewport={"width": 640, "height": 400}, device_scale_factor=2, reduced_motion="reduce"
    )
    tab = open_tab(context, tmp_path)
    for view in ("grid", "words", "map", "arcs", "text"):
        tab.open(alone(plain("what is seen at two hundred per cent")), f"#view={view}")
        assert tab.ask("document.documentElement.scrollWidth") <= 640, view
        moving = "document.getAnimations().filter((a) => a.effect.getTiming().duration > 1).length"
        assert tab.ask(moving) == 0
    context.close()


def test_the_accessibility_tree_names_the_views(tab: Tab) -> None:
    shown = alone(plain("read to me"))
    shown = replace(shown, title="Read aloud")
    for view, role in (("words", "Words"), ("map", "Map"), ("grid", "Heads")):
        tab.open(shown, f"#view={view}&layer=1&head=1")
        tree = tab.page.locator("body").aria_snapshot()
        assert "Read aloud" in tree
        assert re.search(rf'- (heading|region|radio|tab|button) "{role}', tree), tree
        assert "undefined" not in tree
        assert '""' not in tree
