"""Pages are read and saved without stumbling: legends, pickers, columns, panes, small screens."""

import re
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
import torch
from tests.end_to_end.browsing import CHOSEN, one_text
from tests.end_to_end.test_page import document as short_document
from tests.end_to_end.test_page import watched_document
from tests.end_to_end.test_views import document as searched_document

import regard as rg
from regard.viewer import Document, Text

pytestmark = [pytest.mark.browser, pytest.mark.slow]


def matrix_document(columns, rows):
    weights = np.random.default_rng(0).dirichlet(np.ones(len(columns)), len(rows))
    return rg.show(weights, keys=columns, queries=rows).document


# Files.


@pytest.mark.parametrize("view", ["words", "map"])
def test_a_saved_picture_has_upright_chinese_and_a_legend(tab, view):
    chinese = replace(short_document(), title="我爱中国", opening=None)
    tab.open(chinese, f"#view={view}&kind=cross&layer=1&head=1&row=3&column=3")
    svg = tab.saved("SVG").decode()
    columns = re.findall(r"<text ([^>]*)>([我爱中国])</text>", svg)
    assert {text for _, text in columns} == set("我爱中国")
    assert not any("rotate" in attributes for attributes, _ in columns)
    assert ">我爱中国</text>" in svg  # the title
    assert ">Cross attention, layer 1, head 1<" in svg
    assert "Output looks at source." in svg
    assert ">0.9<" in svg  # the weight of the deepest colour
    if view == "words":
        assert svg.count('stroke-dasharray="4 3"') == 2  # the possible link, and the legend's
        for mark in ("largest of its row", "gold link", "possible gold link"):
            assert f">{mark}<" in svg
        assert svg.count("a2.2 2.2 0 1 0 4.4 0") == 5  # one a row, and the legend's


@pytest.mark.parametrize("view", ["arcs", "flow", "compare", "grid"])
def test_every_saved_picture_says_what_it_is_of(tab, view):
    tab.open(searched_document(), f"#view={view}&kind=cross&layer=1&head=1")
    svg = tab.saved("SVG").decode()
    assert ">我爱中国</text>" in svg
    assert svg.count("<path") > 20  # the ramp of the legend
    assert tab.saved("PNG")[:4] == b"\x89PNG"


# Tokens.


def test_pieces_of_one_character_are_numbered(tab):
    text = Text.of(["åĮ", "Ĺ", "äº", "¬"], "北京", [(0, 1), (0, 1), (1, 2), (1, 2)])
    example = one_text(text, np.eye(4).tolist())
    tab.open(Document(title="", task="", model="", examples=(example,)), "#view=words")
    heads = "[...document.querySelectorAll('.matrix tbody th')].map(head => head.title)"
    assert tab.ask(heads) == ["北 1/2", "北 2/2", "京 1/2", "京 2/2"]
    small = "[...document.querySelectorAll('.matrix tbody th .part')].map(part => part.innerText)"
    assert tab.ask(small) == ["1/2", "2/2", "1/2", "2/2"]


def test_the_matrix_of_words_is_whole_where_it_can_be(tab):
    columns = ["understanding", "我们", "a", "extraordinarily"] * 5
    cut = "(() => { const f = document.querySelector('.holder .frame'); return f.scrollWidth - f.clientWidth; })()"  # noqa: E501
    for width, count in product((900, 1280), (5, 9, 14, 20)):
        tab.page.set_viewport_size({"width": width, "height": 900})
        tab.open(matrix_document(columns[:count], ["unbelievable", "word", "."]), "#view=words")
        cell = tab.ask("document.querySelector('.matrix td.cell').offsetWidth")
        assert tab.ask(cut) <= 0 or cell <= 15, (width, count)


# Reading.


def test_nothing_pointed_at_shows_the_largest(tab):
    tab.open(replace(short_document(), opening=None), "#view=words&kind=cross&layer=1&head=1")
    assert tab.text(".readout li .named") == "I → 我"
    values = tab.page.locator(".readout li data").all_inner_texts()
    assert values[:4] == ["0.9", "0.7", "0.7", "0.5432"]
    tab.open(watched_document(97), "#view=map&layer=2&head=4")
    tab.page.locator(".readout h3", has_text="Most received").wait_for()
    assert tab.page.locator(".readout li").count() == 8
    tab.open(watched_document(97))
    tab.page.locator(".readout.head .thumbnail").wait_for()
    assert "log scale" in tab.text(".readout.head")


def test_heads_are_offered_while_layers_are_averaged(tab):
    tab.open(watched_document(97), "#view=map&layer=mean&head=mean")
    assert tab.page.locator("[data-group=head] label").count() == 6
    assert tab.ask(CHOSEN) == ["decoder", "mean", "mean", "log"]
    tab.click("[data-group=head] label:nth-child(4)")
    assert tab.ask(CHOSEN) == ["decoder", "0", "2", "log"]
    tab.press("m", "]")
    assert tab.ask(CHOSEN) == ["decoder", "0", "0", "log"]


@pytest.mark.parametrize("layers", [1, 3, None])
def test_compare_opens_with_two_that_differ(tab, layers):
    means = rg.show(torch.rand(2, 1, 5, 5).softmax(-1)).document
    tab.open(means if layers is None else watched_document(61, layers), "#view=compare")
    says = tab.text("section[aria-label=Compare] .caption")
    assert "the same in every cell" not in says
    one, other = re.search(r"A: (.*?)\. B: (.*?)\.", says).groups()
    assert one != other


def test_close_values_of_heads_differ_in_colour(tab):
    recorded = watched_document(61, 1, 3)
    example = recorded.examples[0]
    summary = replace(example.summaries[0], measures={"entropy": (8.30, 8.37, 8.44)})
    tab.open(replace(recorded, examples=(replace(example, summaries=(summary,)),)), "#view=grid")
    intensities = "[...document.querySelectorAll('.heads .cell')].map(cell => cell.style.getPropertyValue('--w'))"  # noqa: E501
    assert [float(intensity) for intensity in tab.ask(intensities)] == pytest.approx(
        [0, 0.5, 1], abs=0.01
    )
    assert tab.text(".legend .key").split()[0] == "8.3"


# Room.


def test_a_phone_has_whole_buttons_and_maps_as_wide_as_it_is(tab):
    tab.page.set_viewport_size({"width": 400, "height": 800})
    tab.open(searched_document(), "#view=flow")
    boxes = (
        "[...document.querySelectorAll('.steps button')].map(b => [b.offsetTop, b.offsetHeight])"
    )
    assert len({tuple(box) for box in tab.ask(boxes)}) == 1
    lines = (
        "[...document.querySelectorAll('.steps button')].map(b => b.scrollHeight - b.clientHeight)"
    )
    assert max(tab.ask(lines)) <= 0
    tab.open(watched_document(61), "#view=compare")
    for box in tab.ask("[...document.querySelectorAll('.sides canvas')].map(c => c.offsetWidth)"):
        assert box > 250
    assert tab.ask("document.documentElement.scrollWidth") <= 400
    chosen = tab.page.locator("[role=tab][aria-selected=true]").bounding_box()
    assert 0 <= chosen["x"] <= 400 - chosen["width"]
