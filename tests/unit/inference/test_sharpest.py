"""The texts of a corpus in which a head is sharpest."""

import numpy as np
import pytest
from tests.live_models import untrained

from regard.errors import DataError, SettingError
from regard.inference.sharpest import MOST, sharpest_texts
from regard.text.phrasebook import phrases
from regard.viewer.confidence import confidence_in


@pytest.fixture(scope="module")
def translator():
    return untrained("transformer").use


def confidence_by_hand(example, layer, head):
    """The mean over output words of the largest weight on a source word."""
    (one,) = (
        each
        for each in example.maps
        if (each.kind, each.layer, each.head) == ("cross", layer, head)
    )
    are_words = [
        [token.start < token.end and any(map(str.isalnum, token.text)) for token in tokens]
        for tokens in (example.output_tokens, example.source_tokens)
    ]
    rows = np.array(one.rows)[are_words[0]][:, are_words[1]]
    return rows.max(-1).mean()


def test_texts_are_those_of_most_confidence_and_the_page_opens_on_the_head(translator):
    corpus = [phrase.source for phrase in phrases("valid")[:24]]
    page, found = sharpest_texts(translator, corpus, 1, 0)
    looked_at = translator.look(corpus, explain=False).document.examples
    expected = {example.source: confidence_by_hand(example, 1, 0) for example in looked_at}
    order = sorted(corpus, key=lambda text: -expected[text])[:MOST]
    assert [text for text, _ in found] == order
    assert [value for _, value in found] == pytest.approx(
        [expected[text] for text in order], rel=1e-3
    )
    document = page.document
    assert [example.source for example in document.examples] == order
    opening = document.opening
    assert (opening.kind, opening.layer, opening.head) == ("cross", 1, 0)
    values = [confidence_in(example, 1, 0)[1] for example in document.examples]
    assert values == sorted(values, reverse=True)


def test_texts_without_words_and_heads_that_are_none_are_refused(translator):
    with pytest.raises(DataError, match=r"head 1.0 looks from and at; got 2 texts without"):
        sharpest_texts(translator, ["。", "！"], 1, 0)
    with pytest.raises(SettingError, match=r"sharpest must be a head .* got 9\.0: layers must"):
        sharpest_texts(translator, ["我爱中国"], 9, 0)
