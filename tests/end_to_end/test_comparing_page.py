"""Two models beside each other: the page opens with both, and shows how each cuts the text."""

from dataclasses import replace

import pytest
from tests.end_to_end.browsing import one_text, tokens

from regard.viewer import Document, Text, beside

pytestmark = [pytest.mark.browser, pytest.mark.slow]

TEXT = "the newest cat"


def document(model, pieces, kind):
    """A model that looks evenly at the pieces of two texts."""
    rows = [[1 / len(pieces)] * len(pieces)] * len(pieces)
    other = one_text(Text.of(["a", "dog"], "a dog"), [[0.5, 0.5]] * 2, kind=kind, heads=2)
    cut = tokens(TEXT, pieces)
    example = one_text(Text(text=TEXT, tokens=cut), rows, kind=kind, heads=2)
    return Document(title="", task="", model=f"{model}, 5 parameters", examples=(example, other))


def two_models(kind="encoder"):
    one = document("small", ["the", "new", "est", "cat"], kind)
    other = document("large", ["the", "newest", "c", "at"], kind)
    return replace(beside(one, other, labels=("small", "large")), tab="compare")


@pytest.mark.parametrize("kind", ["encoder", "decoder"])
def test_texts_are_shown_in_the_tokens_of_each_model(tab, kind):
    tab.open(two_models(kind))
    assert tab.ask("document.querySelector('main.view').dataset.view") == "compare"
    says = tab.text("section[aria-label=Compare] .caption")
    assert says.startswith("A: small")
    assert "B: large" in says  # of the same text, not the next example
    marked = "[...document.querySelectorAll('.cut mark.piece')].map(each => each.textContent)"
    assert tab.ask(marked) == ["new", "est", "cat", "newest", "c", "at"]
    assert tab.page.locator(".cut .piece").count() == 8
    # The second text is cut alike: nothing is to be said of it.
    tab.page.select_option("#example", index=1)
    tab.wait("() => !document.querySelector('.cut')")
    tab.click(".language")
    assert "small，5 个参数 · large，5 个参数" in tab.text("header p")
