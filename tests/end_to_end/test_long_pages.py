"""Pages of long texts: what is pooled says so, and arcs open where there are some."""

import re

import pytest
from tests.end_to_end.long_texts import long_document

from regard.viewer import page

pytestmark = [pytest.mark.browser, pytest.mark.slow]

LENGTH = 4096


@pytest.fixture(scope="module")
def document():
    """Two layers of six heads over 4,096 tokens."""
    return long_document(LENGTH, layers=2, heads=6)


@pytest.fixture(scope="module")
def file(document, tmp_path_factory):
    file = tmp_path_factory.mktemp("long") / "page.html"
    file.write_text(page(document), encoding="utf-8")
    return file


def opened(tab, file, state=""):
    tab.page.goto("about:blank")
    tab.page.goto(f"{file.as_uri()}#{state}")
    return tab.settled()


def colours(tab):
    """How many colours there are amid the cells of the map."""
    return tab.ask(
        """async () => {
            await new Promise((done) => setTimeout(done, 300));
            const canvas = document.querySelector("canvas.map");
            const pen = canvas.getContext("2d");
            const { data } = pen.getImageData(400, 350, 60, 60);
            return new Set(Array.from({ length: 3600 }, (_, at) => data.slice(4 * at, 4 * at + 3).join())).size;
        }"""  # noqa: E501
    )


def svg_text(tab):
    return " ".join(re.findall(r"<text[^>]*>([^<]*)", tab.saved("SVG").decode()))


def test_pooled_squares_are_hatched_and_named_on_the_canvas(tab, file):
    opened(tab, file, "view=map&layer=mean&head=mean&zoom=40_2000_3000")
    assert colours(tab) > 3  # lines over what was one colour
    assert "Pooled: a square is 64 × 64 tokens, not one weight." in svg_text(tab)
    assert "a square is the share that 64 tokens give 64 tokens" in tab.text(".what")


def test_a_stored_head_is_not_blank_where_nothing_was_stored(tab, file, document):
    layer = document.examples[0].summaries[0]
    head, count = layer.top_heads[0], layer.top_counts[0]
    opened(tab, file, f"view=map&layer=1&head={head + 1}&zoom=90_2000_3000")
    tab.wait("() => document.querySelector('.what').innerText.includes('only the largest')")
    assert colours(tab) > 3
    text = svg_text(tab)
    assert "hatched squares of 64 × 64 tokens are pooled, not zero" in text
    assert f"only the largest {f'{count} were' if count > 1 else 'was'} stored" in text


@pytest.mark.parametrize("view", ["arcs", "text"])
def test_views_of_links_open_at_a_head_that_has_some(tab, file, document, view):
    opened(tab, file)
    tab.click(f"[data-view={view}]")
    state = tab.state()
    layer = document.examples[0].summaries[int(state["layer"]) - 1]
    assert int(state["head"]) - 1 in layer.top_heads
    if view == "arcs":
        assert float(tab.page.locator(".legend .key span").last.inner_text()) > 0
        assert not tab.page.locator("section .hint").is_visible()
    tab.press("m")  # who asks for the mean is told
    if view == "arcs":
        num_kept = sum(
            len(layer_summary.top_heads) for layer_summary in document.examples[0].summaries
        )
        assert f"They are of {num_kept} of 12 heads" in tab.text("section .hint")
        assert not tab.page.locator(".legend").is_visible()


def test_heads_say_how_much_was_stored_of_them(tab, file, document):
    layer = document.examples[0].summaries[0]
    opened(tab, file, "view=arcs&layer=1&head=mean")
    titles = tab.ask("[...document.querySelectorAll('[data-group=head] label')].map(l => l.title)")
    for head in range(6):
        count = dict(zip(layer.top_heads, layer.top_counts, strict=True)).get(head, 0)
        title = f"{count} largest weight{'' if count == 1 else 's'} of each token stored"
        assert titles[head + 1] == (title if count else "")
    head, count = layer.top_heads[0], layer.top_counts[0]
    opened(tab, file, f"view=arcs&layer=1&head={head + 1}")
    caption = tab.text("section .caption")
    assert ("a link to the one" if count == 1 else f"links to the {count} it") in caption
