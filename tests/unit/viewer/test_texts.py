import pytest

from regard.errors import DataError
from regard.viewer import Text


@pytest.mark.parametrize(
    ("pieces", "text"),
    [
        (["▁The", "▁do", "g", "."], "The dog."),
        (["Hello", "Ġwor", "ld"], "Hello world"),
        (["[CLS]", "play", "##ing", "[SEP]"], "playing"),
        (["<s>", "▁我", "爱", "中国", "</s>"], "我爱中国"),
        (["我", "爱", "you", "too"], "我爱 you too"),
        (["a", "b"], "a b"),
        (["▁", "▁a"], "a"),
        (["a", "\n", "b"], "a \nb"),
        (["##", "▁"], "##"),
        ([], ""),
    ],
)
def test_text_is_put_together_from_pieces(pieces, text):
    joined = Text.of(pieces)
    assert joined.text == text
    assert [token.text for token in joined.tokens] == pieces
    for token in joined.tokens:
        bare = text[token.start : token.end]
        assert bare == "" or token.text.endswith(bare)


def test_pieces_are_looked_for_in_a_text():
    joined = Text.of(["▁no", "▁no", "▁yes", "▁NO"], "no, no NO")
    assert [(t.start, t.end) for t in joined.tokens] == [(0, 2), (4, 6), (6, 6), (7, 9)]


def test_tokens_with_spans_show_what_the_text_says():
    joined = Text.of(["æĪĳ", "çĪ±", "<end>"], "我爱", [(0, 1), (1, 2), (2, 2)])
    assert [t.text for t in joined.tokens] == ["我", "爱", "<end>"]


@pytest.mark.parametrize("text", [None, "ab"])
def test_spans_must_be_one_for_each_piece_of_a_text(text):
    with pytest.raises(DataError, match="spans must be one for each of 2 pieces of a text; got 1"):
        Text.of(["a", "b"], text, [(0, 1)])


def test_pieces_of_one_character_say_which_part_they_are():
    pieces = ["åĮ", "Ĺ", "äº", "¬", "Ġ", "go"]
    spans = [(0, 1), (0, 1), (1, 2), (1, 2), (2, 3), (3, 5)]
    joined = Text.of(pieces, "北京 go", spans)
    assert [t.text for t in joined.tokens] == ["北 1/2", "北 2/2", "京 1/2", "京 2/2", "Ġ", "go"]
    assert [(t.start, t.end) for t in joined.tokens] == spans


def test_a_space_of_its_own_is_no_part_of_the_character_after_it():
    joined = Text.of(["▁", "我", "爱"], "我爱", [(0, 1), (0, 1), (1, 2)])
    assert [t.text for t in joined.tokens] == ["我", "我", "爱"]
