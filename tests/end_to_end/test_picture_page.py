"""Pictures in a real browser: what is looked at, and what a part looks at when it is pointed at."""

import pytest
from tests.end_to_end.browsing import Tab

from regard.viewer import Document, Example, HeadMap, Image, Prediction, Token

pytestmark = [pytest.mark.browser, pytest.mark.slow]

WORDS = ("⟨class⟩", "1,1", "1,2")
ROWS = ((0.2, 0.7, 0.1), (0.1, 0.3, 0.6), (0.5, 0.25, 0.25))


def document() -> Document:
    """Two parts side by side, of which the right one is bright."""
    source = " ".join(WORDS)
    starts = [source.index(word) for word in WORDS]
    example = Example(
        source=source,
        output="7",
        source_tokens=tuple(
            Token(text=word, start=start, end=start + len(word))
            for word, start in zip(WORDS, starts, strict=True)
        ),
        output_tokens=(Token(text="7", start=0, end=1),),
        maps=(HeadMap(kind="encoder", layer=0, head=0, rows=ROWS),),
        answer=Prediction(labels=(("7", 0.9), ("1", 0.1)), values=ROWS[0], measure="looked at"),
        image=Image(pixels=(((0.0,), (1.0,)),), boxes=(None, (0, 0, 1, 1), (0, 1, 1, 1))),
        label="test:1",
    )
    return Document(title="test:1 → 7", task="image", model="m", examples=(example,))


def figures(tab: Tab, drawing: int) -> list[str]:
    """What the parts of a drawing say when they are pointed at."""
    return tab.ask(
        "at => Array.from(document.querySelectorAll('svg.picture')[at]"
        ".querySelectorAll('.part title'), one => one.textContent)",
        drawing,
    )


def test_an_answer_shows_its_picture_and_where_the_class_token_looks(tab: Tab):
    tab.open(document(), "#view=answer")
    assert figures(tab, 1) == ["0.7", "0.1"]
    assert tab.page.locator("svg.picture").count() == 2
    assert "The deeper its colour: looked at." in tab.page.inner_text("main")
    assert tab.complaints == []


def test_a_part_that_is_pointed_at_shows_what_it_looks_at(tab: Tab):
    tab.open(document(), "#view=image")
    assert figures(tab, 1) == ["0.7", "0.1"]
    said = tab.page.inner_text(".caption")
    assert said.startswith("The class token, whose state becomes the label,")
    assert "0.2 goes to the class token" in said
    tab.click("svg.picture .part >> nth=1")
    tab.page.wait_for_function(
        "document.querySelector('.caption').textContent.startsWith('Part 1,2')"
    )
    assert figures(tab, 1) == ["0.25", "0.25"]
    assert "row=3" in tab.page.url  # counted from 1
    assert tab.complaints == []


def test_a_picture_is_saved_with_its_figures(tab: Tab):
    tab.open(document(), "#view=image")
    with tab.page.expect_download() as saving:
        tab.page.get_by_role("button", name="SVG").click()
    text = saving.value.path().read_text("utf-8")
    assert text.count("<rect") >= 4
    assert "0.7" in text
    with tab.page.expect_download() as saving:
        tab.page.get_by_role("button", name="CSV").click()
    assert saving.value.path().read_text("utf-8-sig").splitlines()[1:] == [
        "⟨class⟩,0.2",
        '"1,1",0.7',
        '"1,2",0.1',
    ]
