"""Words in pieces: which are whose, and rows of them."""

import pytest

from regard.tasks.word_parts import joined_words, piece_rows, pieces_of
from regard.text import BOS_ID, EOS_ID, UNK_ID, TokenizerConfig, train_tokenizer

LINES = ["the cat sat on the mat.", "a dog ran on the road.", "我爱中国。", "中国很大。"] * 5


@pytest.mark.parametrize("kind", ["bpe", "unigram", "characters", "words"])
@pytest.mark.parametrize(
    "words",
    [["the", "cat", "ran", "."], ["我", "爱", "中", "国", "。"], ["the", "中国", "x9"], ["a"]],
)
def test_the_pieces_of_a_word_are_of_it_alone(kind, words):
    tokenizer = train_tokenizer(LINES, TokenizerConfig(type=kind))
    found = pieces_of(words, tokenizer)
    assert all(found)
    for word, ids in zip(words, found, strict=True):
        if UNK_ID not in ids:
            assert tokenizer.decode(ids).strip() == word
    text = joined_words(words)
    cut = [piece.text for piece in tokenizer.pieces(text)]
    if all(any(word.startswith(piece) for word in words) for piece in cut):  # none is of two words
        assert [one for ids in found for one in ids] == tokenizer.encode(text)


def test_rows_begin_only_where_texts_do():
    sentences = [[[7], [8, 9]], [[5]]]
    plain, begun = (piece_rows(sentences, begins=begins) for begins in (False, True))
    assert plain["ids"].tolist() == [[7, 8, 9, EOS_ID], [5, EOS_ID, 0, 0]]
    assert begun["ids"].tolist() == [[BOS_ID, 7, 8, 9, EOS_ID], [BOS_ID, 5, EOS_ID, 0, 0]]
    assert (plain["places"].tolist(), begun["places"].tolist()) == (
        [[0, 1], [0, 0]],
        [[1, 2], [1, 0]],
    )
    assert (plain["lengths"].tolist(), begun["lengths"].tolist()) == ([4, 2], [5, 3])
