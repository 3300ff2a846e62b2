"""Pages in Chinese and in English: as the browser asks, as a link asks, and as one switches."""

import re

import pytest
import torch
from tests.end_to_end.browsing import CHOSEN
from tests.end_to_end.test_views import document as translation

from regard.viewer import Document, Example, HeadMap, Prediction, Text, show

pytestmark = [pytest.mark.browser, pytest.mark.slow]


def opinion():
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


def unlike_heads():
    weights = torch.stack([torch.full((3, 3), 1 / 3), torch.eye(3)])
    return show(weights, names=["soft", "hard"]).document


def test_a_button_changes_the_language_by_keyboard_and_the_browser_keeps_it(tab):
    tab.open(translation(), "#view=map&layer=1&head=2&row=3")
    assert tab.ask("document.documentElement.lang") == "en"
    tab.page.locator(".language").focus()
    tab.press("Enter")
    assert tab.text("[role=tab][aria-selected=true]") == "热图"
    assert tab.ask("document.activeElement.className") == "language"
    tab.wait("() => location.hash.includes('row=3')")
    tab.wait("() => document.querySelector('.readout h3')?.innerText.includes('3 关注')")
    tab.reload()
    tab.settled()
    assert tab.text(".language") == "English"
    tab.press("Tab", "Tab")
    tab.click(".language")
    assert tab.text("[role=tab][aria-selected=true]") == "Map"


def test_a_link_may_ask_for_a_language_until_it_is_switched(tab):
    tab.open(translation(), "#lang=zh&view=arcs")
    assert tab.text("[role=tab][aria-selected=true]") == "弧线图"
    tab.click(".language")
    assert tab.text("[role=tab][aria-selected=true]") == "Arcs"
    tab.wait("() => !location.hash.includes('lang')")


def test_a_label_is_a_label_and_was_not_written_step_by_step(tab):
    tab.open(opinion(), "#view=words")
    names = tab.ask("[...document.querySelectorAll('.texts dt')].map(dt => dt.innerText)")
    assert names[:2] == ["text", "label"]
    assert "The label looks at the text." in tab.text(".caption")
    assert tab.page.locator("[role=tab][data-view=flow]").count() == 0


def test_unlike_heads_have_names_and_no_mean(tab):
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


def test_a_saved_picture_has_links_matrix_and_the_names_of_its_sides(chinese):
    chinese.open(translation(), "#view=words")
    svg = chinese.saved("SVG").decode()
    assert svg.count("<path") > 8
    for says in ("交叉注意力", "源句（被关注）", "译文（关注）", "源句 →", "译文 ↓", "本行最大"):
        assert f">{says}" in svg
    width = float(re.search(r'viewBox="0 0 ([\d.]+)', svg)[1])
    assert all(0 <= float(x) <= width for x in re.findall(r'<text x="([\d.]+)"', svg))


def test_keys_in_a_view_are_answered_in_chinese(chinese):
    chinese.open(translation(), "#view=words&kind=cross&layer=1&head=1")
    focused = "document.activeElement.getAttribute('aria-label')"
    chinese.press("ArrowDown", "ArrowDown", "ArrowRight")
    assert chinese.ask(focused) == "love 关注 爱：0.7，是它最关注的"
    assert chinese.text(".readout .weight") == "0.7"
    chinese.press("]")
    assert chinese.ask(focused) == "love 关注 爱：0.1"
    chinese.press("Shift+ArrowDown")
    assert chinese.text(".status") == "选中了 2 个词元"
    assert "关注：它们权重的平均" in chinese.text(".readout h3")
    chinese.press("Escape", "k")
    assert chinese.ask(CHOSEN)[0] == "encoder"
    chinese.press("g", "ArrowDown", "ArrowRight")
    assert chinese.text(".status").startswith("交叉、第 1 层、第 2 个头：熵 ")
    chinese.press("?")
    assert "取消选中" in chinese.text("dialog")
