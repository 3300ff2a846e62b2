"""The page in a real browser: it draws what the document says and complains of nothing."""

import csv
import io
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from tests.end_to_end.browsing import CHOSEN, open_tab, written
from tests.end_to_end.long_texts import long_document, text_of_length
from tests.end_to_end.test_views import ROWS, example

from regard.viewer import Change, Document, Example, GoldLinks, HeadMap, Token, View, page, show
from regard.viewer.notebook import RowServer

HOSTILE = "</script><img src=x onerror=document.title='broken'>\u2028<!--"

pytestmark = [pytest.mark.browser, pytest.mark.slow]


def document():
    whole = example()
    rows = (*ROWS[:2], (0.0, 0.02, 0.54321, 0.4), ROWS[3])
    other = tuple(tuple(reversed(row)) for row in rows)
    square = tuple(tuple(float(i == j) for j in range(4)) for i in range(4))
    first = replace(
        whole,
        output_tokens=whole.output_tokens[:4],
        maps=(
            HeadMap(kind="cross", layer=0, head=0, rows=rows),
            HeadMap(kind="cross", layer=0, head=1, rows=other),
            HeadMap(kind="cross", layer=1, head=0, rows=rows),
            HeadMap(kind="decoder", layer=0, head=0, rows=square),
        ),
        gold=GoldLinks(sure=((0, 0), (1, 1), (2, 2), (3, 2)), possible=((3, 3),)),
        search=None,
    )
    hostile = Example(
        source=HOSTILE,
        output="\U0001f600 & <b>bold</b>",
        source_tokens=(Token(text=HOSTILE, start=0, end=len(HOSTILE)),),
        output_tokens=(Token(text="\U0001f600", start=0, end=1), Token(text="&", start=2, end=3)),
        maps=(HeadMap(kind="cross", layer=0, head=0, rows=((1.0,), (1.0,))),),
    )
    return Document(
        title=f"我爱中国 {HOSTILE}",
        task="translation",
        model="none",
        examples=(first, hostile),
        opening=View(kind="cross", layer=1, head=0),
    )


@pytest.fixture
def opened(tab):
    """The document above in a tab."""
    return tab.open(document())


@pytest.fixture(scope="module")
def long():
    """12 layers of 12 heads over 4,096 tokens."""
    return long_document(4096)


@pytest.fixture(scope="module")
def medium():
    """Three layers of five heads over 97 tokens, all rows in the document."""
    return watched_document(97)


def watched_document(length, layers=3, heads=5):
    """Causal heads with random weights, all rows in the document."""
    draw = torch.Generator().manual_seed(0)
    weights = torch.empty(layers, heads, length, length).exponential_(generator=draw).pow(3).tril()
    example = written(text_of_length(length), weights / weights.sum(-1, keepdim=True))
    measured = [
        replace(one, measures={"entropy": one.measures["entropy"]}) for one in example.summaries
    ]
    example = replace(example, summaries=tuple(measured))
    return Document(title="Heads", task="", model="", examples=(example,))


def cells(tab, selector):
    selected = f"[...document.querySelectorAll('.matrix td{selector}')]"
    return tab.ask(f"{selected}.map(c => [Number(c.dataset.row), Number(c.dataset.column)])")


FIRST_ROW = (
    "[...document.querySelectorAll('[data-row=\"0\"][data-weight]')].map(c => c.dataset.weight)"
)


def test_matrix_has_every_weight_and_marks_the_largest_of_each_row(opened):
    assert len(cells(opened, "[data-weight]")) == 16
    weights = opened.ask(
        "[...document.querySelectorAll('[data-row=\"2\"][data-weight]')]"
        ".map(cell => cell.dataset.weight)"
    )
    assert weights == ["0", "0.02", "0.5432", "0.4"]
    assert cells(opened, ".best") == [[0, 0], [1, 1], [2, 2], [3, 3]]
    heads = (
        "[...document.querySelectorAll('.matrix thead th')]"
        ".map(head => [head.innerText, head.querySelector('bdi').lang])"
    )
    assert opened.ask(heads) == [[character, "zh"] for character in "我爱中国"]


def test_gold_links_are_outlined_and_explained(opened):
    assert cells(opened, "[data-gold=sure]") == [[0, 0], [1, 1], [2, 2], [2, 3]]
    assert cells(opened, "[data-gold=possible]") == [[3, 3]]
    assert "gold link" in opened.text(".legend")


def test_keys_move_the_cell_and_change_head_layer_and_kind(opened):
    assert opened.ask(CHOSEN) == ["cross", "1", "0", "largest"]  # as the document asks
    opened.press("{", "ArrowDown", "ArrowDown", "ArrowRight")
    assert opened.ask(CHOSEN) == ["cross", "0", "0", "largest"]
    focused = "document.activeElement.getAttribute('aria-label')"
    assert opened.ask(focused) == "love looks at 爱: 0.7, its most, a gold link"
    assert opened.text(".weight") == "0.7"
    opened.press("]")
    assert opened.ask(focused) == "love looks at 爱: 0.1, a gold link"
    opened.press("k")
    assert opened.ask(CHOSEN) == ["decoder", "0", "0", "largest"]
    heads = "[...document.querySelectorAll('.matrix thead th')].map(th => th.innerText)"
    assert opened.ask(heads) == ["start", "I", "▁love", "▁China"]


def test_heads_and_layers_count_alike_in_their_means(opened):
    opened.press("{", "[")
    assert opened.ask(CHOSEN) == ["cross", "0", "mean", "largest"]
    assert opened.ask(FIRST_ROW) == ["0.45", "0.05", "0.05", "0.45"]
    opened.press("m")
    assert opened.ask(CHOSEN) == ["cross", "mean", "mean", "largest"]
    assert opened.ask(FIRST_ROW) == ["0.675", "0.075", "0.025", "0.225"]
    opened.open(replace(document(), opening=None), "#layer=mean")
    assert opened.ask(CHOSEN) == ["cross", "mean", "mean", "largest"]


def test_a_page_opens_on_the_head_with_the_sharpest_links_and_names_it(opened):
    opened.open(replace(document(), opening=None))
    assert opened.ask(CHOSEN) == ["cross", "0", "0", "largest"]  # layer 2 has the same weights
    says = opened.text(".remark")
    assert says.startswith("Of 3 heads, layer 1, head 1 has the sharpest links")
    largest = np.max([*ROWS[:2], (0, 0.02, 0.54321, 0.4)], axis=1)
    assert f"gives {largest.mean():.2g} of its weight" in says  # the full stop is no word
    opened.click(".remark button")
    assert opened.ask(CHOSEN) == ["cross", "mean", "mean", "largest"]
    opened.reload()  # the link holds the choice
    opened.settled()
    assert opened.ask(CHOSEN) == ["cross", "mean", "mean", "largest"]
    assert opened.text(".remark") == "Sharpest links: layer 1, head 1"
    opened.click(".remark button")
    assert opened.ask(CHOSEN) == ["cross", "0", "0", "largest"]


def test_pointing_at_an_output_word_lights_its_links(opened):
    opened.page.locator(".line").nth(1).locator("button").nth(1).hover()
    lit = (
        "[...document.querySelectorAll('path.lit')]"
        ".map(path => path.dataset.row + ' ' + path.dataset.column)"
    )
    assert sorted(opened.ask(lit)) == ["1 0", "1 1", "1 2"]
    assert opened.text(".texts .marked") == "love"


def test_text_never_becomes_markup(opened):
    opened.press(".")
    assert opened.ask("document.querySelectorAll('img, b').length") == 0
    assert opened.ask("document.title").startswith("我爱中国 </script>")
    assert opened.ask("document.querySelector('.texts dd').textContent") == HOSTILE
    assert opened.ask("document.querySelectorAll('.texts dd')[1].textContent").startswith(
        "\U0001f600 &"
    )


def test_theme_follows_the_system_and_the_button(opened):
    paper = "getComputedStyle(document.documentElement).backgroundColor"
    light = opened.ask(paper)
    opened.page.emulate_media(color_scheme="dark")
    assert opened.ask(paper) != light
    opened.click(".theme")
    assert opened.ask(paper) == light
    opened.reload()
    opened.settled()
    assert opened.ask(paper) == light


@pytest.mark.parametrize(
    ("data", "says"),
    [
        ("null", "must be an object"),
        ('{"format":"x"}', "not x undefined"),
        ('{"format":"regard.attention","version":9}', "version 3"),
        ("{", "JSON"),
    ],
)
def test_a_document_that_is_none_is_named(tab, tmp_path, data, says):
    whole = page(replace(document(), title="", examples=()))
    file = tmp_path / "broken.html"
    text = re.sub(r'(id="regard-data"[^>]*>).*?(</script>)', lambda m: m[1] + data + m[2], whole)
    file.write_text(text, encoding="utf-8")
    tab.page.goto(file.as_uri())
    assert says in tab.text(".failure[role]")
    assert "could not be drawn" in tab.text(".failure[role]")
    assert tab.complaints
    tab.complaints.clear()


def test_damaged_bytes_are_reported_and_other_views_work(tab, medium):
    example = medium.examples[0]
    first = example.summaries[0]
    broken = replace(first, rows=replace(first.rows, data=first.rows.data[:400]))
    summaries = (broken, *example.summaries[1:])
    tab.open(
        replace(medium, examples=(replace(example, summaries=summaries),)),
        "#view=map&layer=1&head=1",
    )
    assert "could not be drawn" in tab.text(".failure[role]")
    assert tab.complaints
    tab.press("}")
    assert tab.page.locator("canvas.map").count() == 1
    tab.complaints.clear()


def test_many_heads_are_met_on_the_grid_and_opened_by_mouse(tab, medium):
    tab.open(medium)
    assert tab.page.locator(".heads button").count() == 15
    cell = tab.page.locator('.heads [data-layer="1"][data-head="3"]')
    entropy = medium.examples[0].summaries[1].measures["entropy"][3]
    assert f"{entropy:.2f}" == cell.inner_text()
    assert cell.get_attribute("aria-label") == f"Decoder, layer 2, head 4: Entropy {entropy:.3g}"
    cell.hover()
    tab.page.wait_for_selector(".readout .thumbnail")
    assert "layer 2 · head 4" in tab.text(".readout h3")
    cell.click()
    tab.settled()
    assert tab.ask(CHOSEN) == ["decoder", "1", "3", "log"]
    point_at(tab, row=50, column=20, length=97)
    tab.page.wait_for_selector(".readout ol")
    assert int(re.search(r"(\d+) looks at", tab.text(".readout"))[1]) == 51


def test_the_map_shows_the_weight_under_the_pointer(tab, medium):
    tab.open(medium, "#view=map&layer=2&head=4")
    rows = medium.examples[0].summaries[1].rows
    weights = rows.values()[3]
    for row, column in ((90, 3), (41, 17)):
        point_at(tab, row=row, column=column, length=97)
        tab.wait(
            "wanted => Math.abs(document.querySelector('.readout .weight')?.innerText - wanted)"
            " <= 0.006 * wanted",
            float(weights[row, column]),
        )
    listed = tab.ask(
        "[...document.querySelectorAll('.readout li data')].map(entry => Number(entry.value))"
    )
    assert listed == pytest.approx(sorted(weights[41], reverse=True)[:8], rel=1e-3)


def point_at(tab, *, row, column, length, click=False):
    """Points at a cell of a map that is seen whole: margins are those of static/views/map.js."""
    canvas = tab.page.locator("canvas.map")
    canvas.scroll_into_view_if_needed()
    box = canvas.bounding_box()
    width, height = box["width"] - 132 - 26, box["height"] - 118 - 8
    position = {
        "x": 132 + (column + 0.5) * width / length,
        "y": 118 + (row + 0.5) * height / length,
    }
    canvas.click(position=position) if click else canvas.hover(position=position)


def test_everything_is_reached_by_keyboard(tab, medium):
    tab.open(medium)
    tab.press("ArrowDown")  # takes the keyboard to the grid
    tab.press("ArrowDown", "ArrowRight", "ArrowRight", "Enter")
    assert tab.ask(CHOSEN) == ["decoder", "1", "2", "log"]
    tab.page.locator("canvas.map").focus()
    tab.press("Home", "ArrowDown", "ArrowDown", "ArrowRight")
    tab.wait("() => document.querySelector('.status').innerText.startsWith('Row 3,')")
    assert "looks most at" in tab.text(".status")
    tab.wait("() => location.hash.includes('column=2')")
    before = tab.state()
    tab.press("+", "+")
    tab.wait("() => location.hash.includes('zoom=')")
    tab.press("0")
    tab.wait("() => !location.hash.includes('zoom=')")
    assert tab.state() == before
    tab.press("?")
    assert tab.page.locator("dialog[open]").count() == 1
    tab.press("Escape", "g")
    assert tab.page.locator("main.view").get_attribute("data-view") == "grid"


def test_a_link_restores_the_state_and_back_returns_to_the_grid(tab, chromium, medium, tmp_path):
    tab.open(medium)
    tab.click('.heads [data-layer="2"][data-head="1"]')
    point_at(tab, row=30, column=11, length=97, click=True)
    expected = {
        "view": "map",
        "kind": "decoder",
        "layer": "3",
        "head": "2",
        "row": "31",
        "column": "12",
    }
    assert expected.items() <= tab.state().items()
    other_tab = open_tab(chromium.new_context(), tmp_path)
    other_tab.page.goto(tab.address())
    other_tab.settled()
    assert other_tab.ask(CHOSEN) == ["decoder", "2", "1", "log"]
    other_tab.wait("() => document.querySelector('.readout')?.innerText.includes('31 looks at')")
    assert other_tab.complaints == []
    other_tab.page.context.close()
    tab.page.go_back()
    tab.page.wait_for_selector("main.view[data-view=grid]")


@pytest.mark.parametrize(
    "fragment",
    ["#layer=99&head=-4&view=nothing&row=9999", "#example=77&kind=what", "#%E0%A4%A&&=&zoom=1_a"],
)
def test_a_link_to_what_is_not_there_opens_something(tab, medium, fragment):
    tab.open(medium, fragment)
    assert tab.page.locator("main.view > *").count() >= 1
    tab.press("2")
    assert tab.page.locator("main.view > *").count() >= 1


def test_search_finds_tokens_and_goes_from_one_to_the_next(tab, medium):
    tab.open(medium, "#view=map&layer=1&head=1")
    positions = [
        index for index, token in enumerate(medium.examples[0].output_tokens) if "模" in token.text
    ]
    tab.press("/")
    tab.page.keyboard.type("模")
    tab.settled()
    assert tab.text(".finding .count") == f"{len(positions)} found"
    for position in (positions[0], positions[1]):
        tab.press("Enter")
        tab.wait("row => location.hash.includes(`row=${row}&`)", position + 1)
    tab.page.locator("#find").fill("MODEL ")  # whatever the case
    models = [token for token in medium.examples[0].output_tokens if "model" in token.text]
    tab.settled()
    assert tab.text(".finding .count") == f"{len(models)} found"
    tab.page.locator("#find").fill("zebra")
    tab.settled()
    assert tab.text(".finding .count") == "none"


def test_what_is_shown_can_be_saved(tab, medium):
    tab.open(medium, "#view=map&layer=1&head=2")
    png = tab.saved("PNG")
    assert png[:8] == b"\x89PNG\r\n\x1a\n"
    assert int.from_bytes(png[16:20], "big") > 1000  # two pixels to one of the screen
    svg = tab.saved("SVG").decode()
    assert svg.count("<text") > 20
    assert "<image" in svg
    table = list(csv.reader(io.StringIO(tab.saved("CSV").decode("utf-8-sig"))))
    rows = medium.examples[0].summaries[0].rows
    assert len(table) == 98
    assert [float(cell) for cell in table[60][2:]] == pytest.approx(rows.values()[1, 59], rel=1e-3)
    tab.press("g")
    table = list(csv.reader(io.StringIO(tab.saved("CSV").decode("utf-8-sig"))))
    assert table[0] == ["kind", "layer", "head", "entropy"]
    assert len(table) == 16
    assert tab.saved("SVG").decode().count("<rect") == 16


def test_twelve_layers_of_4096_tokens_are_small_and_open_at_once(tab, long):
    assert len(page(long).encode()) < 3_500_000
    tab.open(watched_document(13, 1, 2))
    least = tab.ask("performance.now()")
    tab.open(long, "#view=grid")
    assert tab.ask("performance.now()") < max(5_000, 10 * least)  # usually half a second
    assert tab.page.locator(".heads button").count() == 144
    assert tab.ask("document.querySelectorAll('*').length") < 1500
    tab.click('.heads [data-layer="5"][data-head="5"]')
    point_at(tab, row=3000, column=40, length=4096)
    tab.page.wait_for_selector(".readout .weight")
    assert "share that these 64 tokens give those 64" in tab.text(".readout")
    assert tab.ask("document.querySelectorAll('*').length") < 1500


def test_stored_top_keys_are_listed_at_any_length(tab, long):
    summary = next(one for one in long.examples[0].summaries if one.top_heads)
    head = summary.top_heads[0]
    tab.open(long, f"#view=map&layer={summary.layer + 1}&head={head + 1}&row=2001")
    tab.page.wait_for_selector(".readout ol li")
    keys, weights = summary.top_keys.values()[0, 2000], summary.top_weights.values()[0, 2000]
    expected = [weight for key, weight in zip(keys, weights, strict=True) if key >= 0]
    listed = tab.ask(
        "[...document.querySelectorAll('.readout li data')].map(one => Number(one.value))"
    )
    assert listed == pytest.approx(expected)
    assert "the others were not stored" in tab.text(".readout")
    tab.page.locator("canvas.map").hover(position={"x": 400, "y": 400})
    for _ in range(4):
        tab.page.mouse.wheel(0, -700)
    tab.wait("() => document.querySelector('.what').innerText.includes('only the largest')")


def test_32768_tokens_open_zoom_and_pan_without_a_node_for_each(tab):
    tab.open(long_document(32_768, layers=2, heads=3), "#view=map&layer=1&head=1")
    tab.page.locator("canvas.map").hover(position={"x": 400, "y": 400})
    for _ in range(8):
        tab.page.mouse.wheel(0, -500)
    slowest = tab.ask(
        """async () => {
            const canvas = document.querySelector("canvas.map");
            let [slowest, before] = [0, performance.now()];
            for (let at = 0; at < 30; at++) {
                canvas.focus();
                const pressed = { key: "PageDown", bubbles: true };
                canvas.dispatchEvent(new KeyboardEvent("keydown", pressed));
                await new Promise(requestAnimationFrame);
                slowest = Math.max(slowest, performance.now() - before);
                before = performance.now();
            }
            return slowest;
        }"""
    )
    assert slowest < 1_000  # milliseconds; usually under 30
    assert tab.ask("document.querySelectorAll('*').length") < 1500
    tab.wait("() => location.hash.includes('zoom=')")


def test_exact_rows_come_from_the_server_of_rows(tab):
    draw = np.random.default_rng(5).random((640, 640))
    requests = []

    def rows(example, kind, layer, head, queries):
        requests.append((example, kind, layer, head))
        return draw[list(queries)]

    server = RowServer(rows)
    pooled = long_document(640, layers=1, heads=2)
    tab.open(pooled, "#view=map&layer=1&head=2&row=101&column=8", rows=server.address)
    tab.wait(
        "wanted => Number(document.querySelector('.readout .weight')?.innerText) === wanted",
        float(f"{draw[100, 7]:.3g}"),
    )
    assert set(requests) == {(0, "decoder", 0, 1)}
    assert "not stored" not in tab.text(".readout")
    tab.page.locator("canvas.map").hover(position={"x": 400, "y": 400})
    for _ in range(4):
        tab.page.mouse.wheel(0, -700)
    tab.wait("() => document.querySelector('.what').innerText === 'a cell is one weight'")
    assert tab.outside()
    assert all(request.startswith(server.address) for request in tab.outside())
    tab.page.goto("about:blank")  # it may be asking for more rows still
    server.close()
    tab.requests.clear()


def test_the_cell_of_a_notebook_is_the_whole_viewer(tab, medium):
    tab.page.set_content(f"<!doctype html><body>{show(medium)._repr_html_()}</body>")
    frame = tab.page.frame_locator("iframe")
    frame.locator('.heads [data-layer="1"][data-head="3"]').click()
    frame.locator("canvas.map").wait_for()
    with tab.page.expect_download() as download:
        frame.locator(".saving button", has_text="CSV").click()
    assert Path(download.value.path()).stat().st_size > 1000


def test_keys_held_down_do_not_wear_out_the_address(tab, medium):
    tab.open(medium, "#view=map&layer=1&head=1")
    tab.page.locator("canvas.map").focus()
    tab.page.keyboard.press("ArrowRight")
    for _ in range(60):
        tab.page.keyboard.down("ArrowDown")  # as often as one can
    tab.wait("() => location.hash.includes('row=62') || location.hash.includes('row=61')")


def test_changes_of_the_attention_are_listed(tab):
    original = document()
    change = Change(edit="head 2 muted", output="I hate China.", score=-1.5)
    changed = replace(original.examples[0], changes=(change,))
    tab.open(replace(original, examples=(changed,)), "#view=trust")
    assert tab.text(".changes mark") == "hate"
    assert "−1.5" in tab.text(".changes tbody tr:last-child")
    tab.open(original)
    assert tab.page.locator("[data-view=trust]").count() == 0
