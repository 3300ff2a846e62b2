from dataclasses import replace

import numpy as np
import pytest
import torch
from tests.looking import look_at, look_into

from regard.errors import DataError, SettingError
from regard.inference import AttentionMap, Look
from regard.inference.examples import example, gold_links
from regard.text import Piece
from regard.text.phrasebook import Phrase
from regard.text.tokenizers.pieces import END
from regard.viewer import Document, Token, draw_attention

# What a perfect translator of 我爱中国 looks at: rows I, love, China and the end.
WEIGHTS = [
    [0.90, 0.05, 0.02, 0.02, 0.01],
    [0.05, 0.80, 0.05, 0.05, 0.05],
    [0.00, 0.10, 0.40, 0.50, 0.00],
    [0.00, 0.00, 0.00, 0.00, 1.00],
]


@pytest.fixture
def look():
    return Look(
        source="我爱中国",
        output="I love China",
        source_pieces=[Piece(c, 4 + i, i, i + 1) for i, c in enumerate("我爱中国")],
        output_pieces=[Piece("I", 4, 0, 1), Piece("love", 5, 2, 6), Piece("China", 6, 7, 12)],
        maps=[AttentionMap("cross", 0, torch.tensor([WEIGHTS, WEIGHTS]))],
    )


def test_an_example_has_tokens_offsets_and_every_head(look):
    document = example(look, score=-0.5)
    assert [token.text for token in document.source_tokens] == ["我", "爱", "中", "国", END]
    assert document.source_tokens[-1] == Token(text=END, start=4, end=4)
    assert [(t.start, t.end) for t in document.output_tokens] == [(0, 1), (2, 6), (7, 12), (12, 12)]
    assert [(m.kind, m.layer, m.head) for m in document.maps] == [("cross", 0, 0), ("cross", 0, 1)]
    assert document.maps[1].rows[2] == (0.0, 0.1, 0.4, 0.5, 0.0)
    assert document.score == -0.5
    assert document.gold is None


def test_gold_links_go_to_every_token_of_a_word():
    phrase = Phrase(
        source="我爱中国",
        target="I love China",
        source_words=((0, 1), (1, 2), (2, 4)),
        target_words=((0, 1), (2, 6), (7, 12)),
        sure=frozenset({(0, 0), (2, 2)}),
        possible=frozenset({(0, 0), (2, 2), (1, 1)}),
        constructions=(),
        references=(),
    )
    sources = [Token(text=c, start=i, end=i + 1) for i, c in enumerate("我爱中国")]
    outputs = [
        Token(text=phrase.target[start:end], start=start, end=end)
        for start, end in ((0, 1), (2, 6), (7, 9), (9, 12))
    ]
    gold = gold_links(sources, outputs, phrase)
    assert gold.sure == ((0, 0), (2, 2), (2, 3), (3, 2), (3, 3))
    assert gold.possible == ((1, 1),)


def test_the_drawing_leaves_the_end_out_and_says_its_mass(look):
    drawing = draw_attention(example(look))
    assert drawing.left_on_end == (0.01, 0.05, 0.0)
    lines = drawing.text.splitlines()
    assert [line.split()[0] for line in lines] == ["我", "I", "love", "China"]
    assert ".90" in lines[1]
    assert "0.02 on average, at most 0.05, by love" in str(drawing)
    with pytest.raises(SettingError, match="layer must be one with attention to the source"):
        draw_attention(example(replace(look, maps=[])))


def test_a_source_read_without_its_end_has_no_token_for_it(look):
    bare = AttentionMap("cross", 0, look.maps[0].weights[:, :, :4])
    document = example(replace(look, maps=[bare]))
    assert [token.text for token in document.source_tokens] == ["我", "爱", "中", "国"]
    drawing = draw_attention(document)
    assert drawing.left_on_end is None
    assert str(drawing) == drawing.text
    assert drawing.text.splitlines()[0].split() == ["我", "爱", "中", "国"]


def test_looking_shows_the_model_s_own_translation(predictor):
    document = look_at(predictor, " 我爱 中国。")
    translation = predictor.translate(["我爱 中国。"])[0][0]
    assert (document.source, document.output) == ("我爱 中国。", translation.text)
    assert document.score == pytest.approx(translation.score, abs=1e-5)


def test_looking_at_a_given_target_adds_its_gold(predictor, phrases):
    phrase = phrases[0]
    document = look_at(predictor, phrase.source, phrase.target, phrase=phrase)
    assert document.output == phrase.target
    assert (2, 2) in document.gold.sure
    assert (3, 2) in document.gold.sure
    other = look_at(predictor, phrase.source, "You love China.", phrase=phrase)
    assert other.gold is None


def test_there_must_be_something_to_look_at(predictor):
    with pytest.raises(DataError, match="target must hold text to look at; got an empty line"):
        look_at(predictor, "我", "  ")
    with pytest.raises(DataError, match="source must hold text to look at; got an empty line"):
        look_at(predictor, "  ")


def test_a_document_goes_through_json(predictor, phrases):
    examples = [look_at(predictor, p.source, p.target, phrase=p) for p in phrases]
    written = predictor.use.document(examples, title="Two")
    assert (written.task, written.source_language, written.output_language) == (
        "translation",
        "zh",
        "en",
    )
    assert "parameters" in written.model
    assert Document.from_json(written.to_json()) == written


def test_rows_are_those_of_the_look(predictor):
    written = look_into(predictor, "我爱中国。", target="I love China.")
    rows = predictor.use.rows(written)
    for map_ in written.examples[0].maps:
        expected = np.array(map_.rows)
        served = rows(0, map_.kind, map_.layer, map_.head, [0, len(expected) - 1])
        assert served == pytest.approx(expected[[0, -1]], abs=1e-3)
    cross = [map_ for map_ in written.examples[0].maps if map_.kind == "cross"]
    layers = {map_.layer for map_ in cross}
    means = [np.mean([k.rows for k in cross if k.layer == layer], axis=0) for layer in layers]
    served = rows(0, "cross", "mean", "mean", [1])
    assert served[0] == pytest.approx(np.mean(means, axis=0)[1], abs=1e-3)
    assert rows(0, "cross", 99, 0, [0]) is None
