"""The page with what it is seldom given: one text, long words, touch, pairs, pictures."""

import base64
import re
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from tests.end_to_end.browsing import one_text, open_tab

from regard.viewer import Document, Example, HeadMap, Image, Prediction, Text, Token

pytestmark = [pytest.mark.browser, pytest.mark.slow]

WORDS = ["Two", "Ġlines", "Ċ", "Ċ", "Ġof", "Ġtext", "."]
WRITTEN = "Two lines\n\n of text."
SPANS = [(0, 3), (3, 9), (9, 10), (10, 11), (11, 14), (14, 19), (19, 20)]


def alone(text, *, kind="decoder"):
    count = len(text.tokens)
    rows = tuple(
        tuple(1 / (row + 1) if column <= row else 0.0 for column in range(count))
        for row in range(count)
    )
    example = one_text(text, rows, kind=kind, layers=2, heads=2)
    return Document(title="Odd", task="", model="", examples=(example,))


def plain(text):
    return Text.of(text.split(" "), text)


@pytest.mark.parametrize("kind", ["decoder", "encoder"])
def test_a_model_with_one_text_has_one_line_of_text(tab, kind):
    tab.open(alone(plain("only one text"), kind=kind), "#view=words&layer=1&head=1")
    visible = "[...document.querySelectorAll('.texts dt')].filter((t) => t.checkVisibility())"
    assert tab.ask(f"{visible}.map((t) => t.textContent)") == ["text"]
    assert tab.ask(f"{visible}[0].nextElementSibling.textContent") == "only one text"
    assert [tab.text(f".{side}") for side in ("across", "down")] == ["text →", "text ↓"]
    for view in ("words", "arcs"):
        tab.open(alone(plain("only one text"), kind=kind), f"#view={view}&layer=1&head=1")
        names = tab.page.locator(".lines .side:visible").all_inner_texts()
        assert names == {"words": ["text, looked at", "text, looking"], "arcs": ["text"]}[view]
        assert "source" not in tab.text("main").lower()


@pytest.mark.parametrize("started", [False, True])
def test_a_text_that_was_written_lights_the_token_that_is_looked_at(tab, started):
    """Each looks most at the one before it, whose column is one further after a start sign."""
    words = ["one", "two", "three", "four"]
    weights = np.full((4, 4), 0.02) + 0.9 * np.eye(4, k=0 if started else -1)
    weights[0] = [0.97, 0.0, 0.01, 0.02]
    example = replace(
        one_text(plain(" ".join(words)), weights.tolist(), kind="decoder"), started=started
    )
    page = Document(title="", task="", model="", examples=(example,))
    tab.open(page, "#view=words&layer=1&head=1")
    heads = ["start", *words[:-1]] if started else words
    assert tab.page.locator(".matrix thead th").all_inner_texts() == heads
    for at in (1, 2, 3):
        tab.click(f".reading [data-at='{at}']")
        assert tab.page.locator(".reading .marked").all_inner_texts() == [words[at]]
        assert tab.page.locator("tbody th.marked").all_inner_texts() == [words[at]]
        assert tab.text(".readout li bdi") == words[at - 1]
        shares = tab.ask(
            """[...document.querySelectorAll('.reading [data-at]')].map(
              span => Number(span.style.getPropertyValue('--w')))"""
        )
        assert shares.index(max(shares)) == at - 1
        lit = "[...document.querySelectorAll('.arcs path.lit')].map(path => path.dataset.row)"
        assert set(tab.ask(lit)) == {str(at)}
        cell = tab.page.locator(f"td[data-row='{at}'][data-column='{at if started else at - 1}']")
        assert (
            cell.get_attribute("aria-label")
            == f"{words[at]} looks at {words[at - 1]}: 0.92, its most"
        )


def test_ends_of_lines_are_arrows_whatever_the_tokenizer_calls_them(tab):
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
    svg = tab.saved("SVG").decode()
    assert svg.count(">↵</text>") == 4  # two tokens, on both axes
    assert "Ċ" not in svg


def test_the_saved_map_has_its_strips_and_the_names_of_its_axes(tab):
    tab.open(alone(plain("a b c d e f g h")), "#view=map&layer=1&head=1")
    svg = tab.saved("SVG").decode()
    images = re.findall(r"<image [^>]*?>", svg)
    sizes = [
        [float(re.search(rf' {name}="([\d.]+)"', image)[1]) for name in ("width", "height")]
        for image in images
    ]
    assert len(sizes) == 3
    (width, height), received, entropy = sizes
    assert (received, entropy) == ([width, 14], [14, height])
    for image in images[1:]:  # and they are painted
        png = re.search(r'href="data:image/png;base64,([^"]+)"', image)
        assert len(base64.b64decode(png[1])) > 150
    assert svg.count(">text →<") == svg.count(">text ↓<") == 1


def test_two_fingers_zoom_the_map_and_move_it(chromium, tmp_path):
    context = chromium.new_context(has_touch=True, viewport={"width": 700, "height": 900})
    tab = open_tab(context, tmp_path)
    tab.open(alone(plain(" ".join("abcdefghijklmnopqrstuvwxyz" * 4))), "#view=map&layer=1&head=1")
    session = context.new_cdp_session(tab.page)
    box = tab.page.locator("canvas.map").bounding_box()
    x, y = box["x"] + 0.6 * box["width"], box["y"] + 0.5 * box["height"]

    def touch(kind, *offsets):
        points = [{"x": x + side, "y": y, "id": n} for n, side in enumerate(offsets)]
        session.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})

    touch("touchStart", -20, 20)
    for half in (30, 40, 60, 80):
        touch("touchMove", -half, half)
    touch("touchEnd")
    tab.wait("() => location.hash.includes('zoom=4')")
    assert tab.ask("document.querySelector('canvas.map').style.touchAction") == "none"
    assert not tab.complaints
    context.close()


def test_a_text_of_one_token_or_two_has_every_view(tab):
    for text, view in product(("a", "a b"), ["words", "map", "arcs", "text", "grid", "compare"]):
        tab.open(alone(plain(text)), f"#view={view}&layer=1&head=1")
        assert tab.page.locator(".failure[role]:visible").count() == 0
        tab.press("ArrowDown", "ArrowRight")
        assert not tab.complaints, (text, view)


@pytest.mark.parametrize("word", ["Donaudampfschiffahrt" * 60, "字" * 900, "ﷺ" * 300])
def test_very_long_words_do_not_make_the_page_wide(tab, word):
    tab.page.set_viewport_size({"width": 800, "height": 700})
    for view in ("words", "map", "arcs", "text"):
        tab.open(alone(plain(f"a {word} b")), f"#view={view}&layer=1&head=1")
        assert tab.ask("document.documentElement.scrollWidth") <= 800, view
        assert tab.page.locator(".failure[role]:visible").count() == 0


QUESTION, CONTEXT = Text.of(list("何时成立")), Text.of(list("成立于1902年"))
WEIGHTS = [[1.0 if row == column - 5 else 0.1 for column in range(8)] for row in range(4)]


def test_the_answer_is_marked_in_its_text_with_the_question_next_to_it(tab):
    example = Example(
        source=CONTEXT.text,
        output=QUESTION.text,
        source_tokens=CONTEXT.tokens,
        output_tokens=QUESTION.tokens,
        maps=(HeadMap(kind="cross", layer=0, head=0, rows=WEIGHTS),),
        started=False,
        answer=Prediction(
            labels=(("1902年", 0.9),), tags=(*[""] * 3, *["answer"] * 5), side="source"
        ),
    )
    document = Document(title="何时成立", task="question answering", model="", examples=(example,))
    tab.open(document)
    text = tab.page.inner_text("main.view")
    assert "Beside it" in text
    assert "何时成立" in text
    tagged = tab.page.locator("ruby.tagged > span").all_inner_texts()
    assert "".join(tagged) == "1902年"
    tab.press("2")
    body = tab.page.inner_text("body")
    assert "One text looks at the other." in body
    assert "looking" in body
    assert "looked at" in body


PARTS = ("⟨class⟩", "1,1", "1,2")
LOOKS = ((0.2, 0.7, 0.1), (0.1, 0.3, 0.6), (0.5, 0.25, 0.25))


def picture_document():
    """Two parts side by side, of which the right one is bright."""
    source = " ".join(PARTS)
    starts = [source.index(word) for word in PARTS]
    example = Example(
        source=source,
        output="7",
        source_tokens=tuple(
            Token(text=word, start=start, end=start + len(word))
            for word, start in zip(PARTS, starts, strict=True)
        ),
        output_tokens=(Token(text="7", start=0, end=1),),
        maps=(HeadMap(kind="encoder", layer=0, head=0, rows=LOOKS),),
        answer=Prediction(labels=(("7", 0.9), ("1", 0.1)), values=LOOKS[0], measure="looked at"),
        image=Image(pixels=(((0.0,), (1.0,)),), boxes=(None, (0, 0, 1, 1), (0, 1, 1, 1))),
        label="test:1",
    )
    return Document(title="test:1 → 7", task="image", model="m", examples=(example,))


def figures(tab, drawing):
    return tab.ask(
        "at => Array.from(document.querySelectorAll('svg.picture')[at]"
        ".querySelectorAll('.part title'), one => one.textContent)",
        drawing,
    )


def test_an_answer_shows_its_picture_and_where_the_class_token_looks(tab):
    tab.open(picture_document(), "#view=answer")
    assert figures(tab, 1) == ["0.7", "0.1"]
    assert tab.page.locator("svg.picture").count() == 2
    assert "The deeper its colour: looked at." in tab.page.inner_text("main")


def test_a_part_that_is_pointed_at_shows_what_it_looks_at(tab):
    tab.open(picture_document(), "#view=image")
    assert figures(tab, 1) == ["0.7", "0.1"]
    caption = tab.page.inner_text(".caption")
    assert caption.startswith("The class token, whose state becomes the label,")
    assert "0.2 goes to tokens that are not parts of the picture" in caption
    tab.click("svg.picture .part >> nth=1")
    tab.page.wait_for_function(
        "document.querySelector('.caption').textContent.startsWith('Part 1,2')"
    )
    assert figures(tab, 1) == ["0.25", "0.25"]
    assert "row=3" in tab.address()  # counted from 1


def test_a_picture_is_saved_with_its_figures(tab):
    tab.open(picture_document(), "#view=image")
    text = tab.saved("SVG").decode()
    assert text.count("<rect") >= 4
    assert "0.7" in text
    assert tab.saved("CSV").decode("utf-8-sig").splitlines()[1:] == [
        "⟨class⟩,0.2",
        '"1,1",0.7',
        '"1,2",0.1',
    ]
