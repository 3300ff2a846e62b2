"""Pages in Chinese and in English: as the browser asks, as a link asks, and as one switches."""

import re
from dataclasses import replace

import pytest
import torch
from tests.end_to_end.browsing import CHOSEN, Tab
from tests.end_to_end.test_page import document as every_kind

from regard.viewer import (
    Change,
    Document,
    Example,
    HeadMap,
    Importance,
    Prediction,
    SearchTree,
    Text,
    show,
)
from regard.viewer.search import Beginning, Extension, SearchAnswer

pytestmark = [pytest.mark.browser, pytest.mark.slow]

# Latin letters of a Chinese page: data, names of files and of keys, the other language.
LATIN = re.compile(
    "(?<![A-Za-z])(?:Show in English|English|PNG|SVG|CSV|Esc|Enter|Home|Shift|np|I|love|China|you|"
    "the|room|was|cold|bad|good|soft|hard|transformer|test|Jain|Wallace|Wiegreffe|Pinter|[A-Za-z])"
    "(?![A-Za-z])"
)
READ = """() => {
    const texts = [document.body.innerText];
    for (const node of document.querySelectorAll('#regard *')) {
        for (const name of ['title', 'aria-label', 'placeholder', 'aria-valuetext']) {
            if (node.getAttribute(name)) texts.push(node.getAttribute(name));
        }
    }
    return texts.join('\\n');
}"""


def translation() -> Document:
    document = every_kind()
    example = document.examples[0]
    options = (
        Extension(text="I", probability=0.7, outcome="kept"),
        Extension(text="", probability=0.2, outcome="ended"),
        Extension(text="a", probability=0.1),
    )
    beginning = Beginning(parent=-1, text="", log_prob=-0.5, extensions=options)
    steps = ((beginning,), *[(replace(beginning, parent=0),)] * 3)
    answers = (SearchAnswer(text="I love China.", score=-0.25, log_prob=-1.0, is_finished=False),)
    search = SearchTree(
        beam_size=1,
        steps=steps,
        path=(0,) * 4,
        probabilities=(0.7, None, 0.5, 0.9),
        answers=answers,
    )
    changes = (Change(edit="layer 1, head 2 muted", output="I love you", score=-0.4),)
    importance = Importance(method="leave one out", values=(0.1, 0.4, 0.0, 0.2), correlation=0.5)
    example = replace(example, search=search, changes=changes, importances=(importance,))
    return replace(
        document,
        title="我爱中国",
        model="transformer, 1,234 parameters",
        examples=(example, replace(example, label="test", output="I love China!")),
    )


def opinion() -> Document:
    """A label that a pooling's query read from a text."""
    text, label = Text.of(["the", "room", "was", "cold"]), Text.of(["bad"])
    example = Example(
        source=text.text,
        output=label.text,
        source_tokens=text.tokens,
        output_tokens=label.tokens,
        maps=(HeadMap(kind="cross", layer=0, head=0, rows=[[0.1, 0.2, 0.1, 0.6]]),),
        answer=Prediction(
            labels=(("bad", 0.8), ("good", 0.2)),
            values=(0.1, 0.2, 0.1, 0.6),
            measure="the more the query of the pooling looks at it",
        ),
    )
    return Document(
        title="the room",
        task="classification",
        model="transformer, 12 parameters",
        examples=(example,),
    )


def unlike_heads() -> Document:
    weights = torch.stack([torch.full((3, 3), 1 / 3), torch.eye(3)])
    return show(weights, names=["soft", "hard"]).document


DOCUMENTS = {"translation": translation, "opinion": opinion, "unlike heads": unlike_heads}


@pytest.mark.parametrize("name", DOCUMENTS)
def test_every_view_of_a_chinese_browser_is_chinese(chinese: Tab, name: str) -> None:
    chinese.open(DOCUMENTS[name]())
    assert chinese.ask("document.documentElement.lang") == "zh"
    views = chinese.ask(
        "[...document.querySelectorAll('[data-view][role=tab]')].map(t => t.dataset.view)"
    )
    assert len(views) > 3
    for view in views:
        chinese.click(f"[role=tab][data-view={view}]")
        for key in ("ArrowRight", "Escape", "?"):
            chinese.press(key)
            left = LATIN.sub("", chinese.ask(READ))
            assert not re.search("[A-Za-z]{2,}", left), (
                view,
                re.findall("[^\n]*[A-Za-z]{2,}[^\n]*", left),
            )
        chinese.press("Escape")


@pytest.mark.parametrize("name", DOCUMENTS)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_is_wider_than_a_telephone(chinese: Tab, name: str, scheme: str) -> None:
    chinese.page.set_viewport_size({"width": 400, "height": 800})
    chinese.page.emulate_media(color_scheme=scheme)
    for language in ("zh", "en"):
        chinese.open(DOCUMENTS[name](), f"#lang={language}")
        for at in range(chinese.page.locator("[role=tab]").count()):
            chinese.page.locator("[role=tab]").nth(at).click()
            chinese.settled()
            assert chinese.ask("document.documentElement.scrollWidth") <= 400


def test_a_button_changes_the_language_by_keyboard_and_the_browser_keeps_it(tab: Tab) -> None:
    tab.open(translation(), "#view=map&layer=1&head=2&row=3")
    assert tab.ask("document.documentElement.lang") == "en"
    tab.page.locator(".language").focus()
    tab.press("Enter")
    assert tab.text("[role=tab][aria-selected=true]") == "热图"
    assert tab.ask("document.activeElement.className") == "language"
    assert "row=3" in tab.ask("location.hash")
    tab.wait("() => document.querySelector('.readout h3')?.innerText.includes('3 关注')")
    tab.page.reload()
    tab.settled()
    assert tab.text(".language") == "English"
    tab.press("Tab", "Tab")
    tab.click(".language")
    assert tab.text("[role=tab][aria-selected=true]") == "Map"


def test_a_link_may_ask_for_a_language_until_it_is_switched(tab: Tab) -> None:
    tab.open(translation(), "#lang=zh&view=arcs")
    assert tab.text("[role=tab][aria-selected=true]") == "弧线图"
    tab.click(".language")
    assert tab.text("[role=tab][aria-selected=true]") == "Arcs"
    assert "lang" not in tab.ask("location.hash")


def test_a_label_is_a_label_and_was_not_written_step_by_step(tab: Tab) -> None:
    tab.open(opinion(), "#view=words")
    names = tab.ask("[...document.querySelectorAll('.texts dt')].map(dt => dt.innerText)")
    assert names[:2] == ["text", "label"]
    assert "The label looks at the text." in tab.text(".caption")
    assert tab.page.locator("[role=tab][data-view=flow]").count() == 0


def test_unlike_heads_have_names_and_no_mean(tab: Tab) -> None:
    tab.open(unlike_heads())
    assert tab.ask(CHOSEN) == ["encoder", "0", "0", "largest"]
    heads = "[...document.querySelectorAll('[data-group=head] label')].map(one => one.innerText)"
    assert tab.ask(heads) == ["soft", "hard"]
    tab.press("m")
    assert tab.ask(CHOSEN) == ["encoder", "0", "0", "largest"]
    assert "Queries look at keys." in tab.text(".caption")
    assert tab.text(".corner").split() == ["keys", "→", "queries", "↓"]
    tab.press("g")
    assert "hard" in tab.text(".readout h3")


def test_a_saved_picture_has_links_matrix_and_the_names_of_its_sides(chinese: Tab) -> None:
    chinese.open(translation(), "#view=words")
    svg = chinese.saved("SVG").decode()
    assert svg.count("<path") > 8
    for says in ("交叉注意力", "源句（被关注）", "译文（关注）", "源句 →", "译文 ↓", "本行最大"):
        assert f">{says}" in svg
    width = float(re.search(r'viewBox="0 0 ([\d.]+)', svg)[1])
    assert all(0 <= float(x) <= width for x in re.findall(r'<text x="([\d.]+)"', svg))
