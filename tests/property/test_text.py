"""Laws of text: what is encoded comes back, and an epoch is every sample once."""

import functools
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.text import Batches, TokenizerConfig, normalize, train_tokenizer
from regard.text.normalization import split_words

MIXED = ["The newer, the lower!", "我爱中国，真的吗？", "e\u0301tait où? naïve", "don't 3.5%"] * 3
UNSPACED = ["我爱中国。", "你好！", "東京タワー"] * 3

TOKENIZERS = {
    f"{config.type} {name}": functools.cache(functools.partial(train_tokenizer, lines, config))
    for name, lines in (("mixed", MIXED), ("unspaced", UNSPACED))
    for config in (
        TokenizerConfig(type="bpe", dropout=0.3),
        TokenizerConfig(type="unigram", alpha=0.3),
        TokenizerConfig(type="words"),
        TokenizerConfig(type="characters"),
    )
}
SUBWORDS = [name for name in TOKENIZERS if name.startswith(("bpe", "unigram"))]

# Everything Unicode has, but often the characters that tokenizers lose.
AWKWARD = st.sampled_from(
    list(" \u2581\u2585\u3000\u00a0\ufeff\u200d\x00，！？👩🚀🇨\u0301\ufffd<s>我爱ab'")
)
TEXTS = st.text(st.one_of(AWKWARD, st.characters()), max_size=40)


def known_texts(lines):
    characters = sorted({char for line in lines for char in line} | {" "})
    return st.text(st.sampled_from(characters), max_size=40)


@pytest.mark.parametrize("name", SUBWORDS)
@given(text=TEXTS)
def test_every_text_comes_back_from_subwords(name, text):
    tokenizer = TOKENIZERS[name]()
    assert tokenizer.decode(tokenizer.encode(text)) == normalize(text)


@pytest.mark.parametrize("name", SUBWORDS)
@given(text=TEXTS, seed=st.integers(0, 2**40))
@settings(max_examples=40)
def test_every_sampled_text_comes_back_too(name, text, seed):
    tokenizer = TOKENIZERS[name]()
    (ids,) = tokenizer.encode_all([text], seed=seed)
    assert tokenizer.decode(ids) == normalize(text)


@pytest.mark.parametrize("type_", ["words", "characters"])
@given(text=known_texts(MIXED))
def test_every_text_of_known_characters_comes_back_from_lists(type_, text):
    tokenizer = TOKENIZERS[f"{type_} mixed"]()
    assert tokenizer.decode(tokenizer.encode(text)) == normalize(text)


@pytest.mark.parametrize("name", TOKENIZERS)
@given(text=TEXTS)
def test_offsets_of_pieces_cover_all_but_spaces(name, text):
    pieces = TOKENIZERS[name]().pieces(text)
    text = normalize(text)
    covered = {position for piece in pieces for position in range(piece.start, piece.end)}
    assert {position for position, char in enumerate(text) if char != " "} <= covered
    assert all(a.start <= b.start and a.end <= b.end for a, b in pairwise(pieces))
    for piece in pieces:
        if not piece.text.startswith("<0x"):
            # A space in front of an unknown first word has no place: it is not in the text.
            assert text[piece.start : piece.end] == piece.text or piece.text == "␣"


@pytest.mark.parametrize("name", TOKENIZERS)
@given(text=TEXTS)
def test_one_text_and_a_batch_of_texts_have_the_same_ids(name, text):
    tokenizer = TOKENIZERS[name]()
    assert tokenizer.encode_all(["我 x", text]) == [
        tokenizer.encode("我 x"),
        tokenizer.encode(text),
    ]


@pytest.mark.parametrize("name", TOKENIZERS)
@given(data=st.data())
def test_any_ids_read_as_one_line_with_an_offset_for_each(name, data):
    tokenizer = TOKENIZERS[name]()
    ids = data.draw(st.lists(st.integers(0, tokenizer.vocab_size - 1), max_size=20))
    text, spans = tokenizer.decode_with_spans(ids)
    assert text == tokenizer.decode(ids)
    assert len(text.splitlines()) <= 1
    assert len(spans) == len(ids)
    assert all(0 <= start <= end <= len(text) for start, end in spans)


@given(text=TEXTS)
def test_normalize_twice_is_normalize(text):
    assert normalize(normalize(text)) == normalize(text)


@given(text=TEXTS)
def test_words_joined_are_the_text(text):
    assert "".join(split_words(normalize(text))) == normalize(text)


@given(text=st.text(st.characters(max_codepoint=127)) | st.text("aZ'09 _-", max_size=30))
def test_words_of_ascii_are_split_from_another_script(text):
    assert split_words(f"{text} é") == [*split_words(text), " é"]


LENGTHS = st.lists(st.tuples(st.integers(1, 60), st.integers(1, 60)), min_size=1, max_size=60)


@given(
    lengths=LENGTHS,
    max_tokens=st.integers(1, 200),
    window=st.integers(1, 70),
    seed=st.integers(0, 2**32),
    epoch=st.integers(0, 1000),
)
def test_an_epoch_is_every_sample_once_within_the_budget(lengths, max_tokens, window, seed, epoch):
    sizes = np.array(lengths, dtype=np.int64).T
    batches = Batches(*sizes, max_tokens=max_tokens, seed=seed, window=window)
    plans = list(batches.epoch(epoch))
    assert sorted(i for plan in plans for i in plan.indices.tolist()) == list(range(len(lengths)))
    assert [plan.cursor for plan in plans] == np.cumsum([len(p.indices) for p in plans]).tolist()
    for plan in plans:
        padded = len(plan.indices) * sizes[:, plan.indices].max()
        assert padded <= max_tokens or len(plan.indices) == 1
    for plan in plans:
        rest = [p for p in plans if p.cursor > plan.cursor]
        resumed = list(batches.epoch(epoch, plan.cursor))
        assert [p.indices.tolist() for p in resumed] == [p.indices.tolist() for p in rest]
        assert [p.cursor for p in resumed] == [p.cursor for p in rest]
