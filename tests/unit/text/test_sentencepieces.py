import subprocess
import sys

import pytest

from regard.errors import SettingError
from regard.text.tokenizers.sentencepieces import train_sentencepiece

ENGLISH = ["the lower the newer", "newest and lowest news", "low new widest wider"] * 3
CHINESE = ["我爱中国。", "你好！", "你爱我吗？"] * 3


def test_full_width_punctuation_stays_as_it_is():
    tokenizer = train_sentencepiece(CHINESE, kind="bpe", vocab_size=None)
    assert tokenizer.decode(tokenizer.encode("你好，中国！？")) == "你好，中国！？"


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
def test_a_space_that_the_corpus_never_had_comes_back(kind):
    tokenizer = train_sentencepiece(CHINESE, kind=kind, vocab_size=None)
    assert tokenizer.decode(tokenizer.encode("我 爱 Tom Smith")) == "我 爱 Tom Smith"


def test_chinese_gets_no_space_in_front():
    mixed = train_sentencepiece([*CHINESE, *ENGLISH], kind="bpe", vocab_size=None)
    assert [piece.text for piece in mixed.pieces("我爱")] in (["我", "爱"], ["我爱"])


def test_a_word_is_one_piece_at_the_start_and_inside():
    tokenizer = train_sentencepiece(ENGLISH, kind="bpe", vocab_size=None)
    assert tokenizer.encode("newer newer") == tokenizer.encode("newer") * 2


def test_the_space_marker_as_a_character_comes_back():
    tokenizer = train_sentencepiece([*ENGLISH, "a▁b"], kind="bpe", vocab_size=None)
    assert tokenizer.decode(tokenizer.encode("low▁new ▁ ▁▁")) == "low▁new ▁ ▁▁"


def test_pieces_of_an_emoji_share_its_place():
    tokenizer = train_sentencepiece(ENGLISH, kind="bpe", vocab_size=None)
    pieces = tokenizer.pieces("low 🙂 new")
    emoji = [piece for piece in pieces if (piece.start, piece.end) == (4, 5)]
    assert [piece.text for piece in emoji] == ["<0xF0>", "<0x9F>", "<0x99>", "<0x82>"]
    assert pieces[-1].start == 6
    assert pieces[-1].end == 9


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
def test_the_largest_possible_vocabulary_is_named_and_works(kind):
    with pytest.raises(SettingError, match=r"vocab_size must be at most \d+; got 9000\.") as caught:
        train_sentencepiece(ENGLISH, kind=kind, vocab_size=9000)
    largest = int(str(caught.value).split("at most ")[1].split(";")[0])
    tokenizer = train_sentencepiece(ENGLISH, kind=kind, vocab_size=largest)
    assert tokenizer.vocab_size == largest
    assert train_sentencepiece(ENGLISH, kind=kind, vocab_size=None).vocab_size == largest


def test_a_vocabulary_too_small_names_the_smallest():
    with pytest.raises(SettingError, match=r"vocab_size must be at least 27\d; got 200\."):
        train_sentencepiece(ENGLISH, kind="bpe", vocab_size=200)


def test_text_without_words_is_refused():
    with pytest.raises(SettingError, match="must not be empty"):
        train_sentencepiece(["  ", ""], kind="bpe", vocab_size=None)


@pytest.mark.parametrize(("kind", "noise"), [("bpe", 0.3), ("unigram", 0.1)])
def test_a_seed_draws_segmentations_that_read_the_same(kind, noise):
    tokenizer = train_sentencepiece(ENGLISH, kind=kind, vocab_size=None, noise=noise)
    first, again, other = (tokenizer.encode_all(ENGLISH, seed=seed) for seed in (1, 1, 2))
    assert first == again
    assert first != other
    assert first != tokenizer.encode_all(ENGLISH)
    assert [tokenizer.decode(ids) for ids in first] == ENGLISH


_DRAW = """
from regard.text.tokenizers.sentencepieces import train_sentencepiece
lines = ["the lower the newer", "newest and lowest news", "low new widest wider"] * 20
for kind, noise in (("bpe", 0.3), ("unigram", 0.1)):
    tokenizer = train_sentencepiece(lines, kind=kind, vocab_size=None, noise=noise)
    print(tokenizer.encode_all(lines, seed=5))
"""


def test_a_seed_draws_the_same_in_every_process():
    # What an interrupted training that samples needs to go on to the same bytes.
    command = [sys.executable, "-c", _DRAW]
    first, again = (subprocess.run(command, check=True, capture_output=True) for _ in range(2))
    assert first.stdout == again.stdout
    assert first.stdout.count(b"\n") == 2


def test_without_noise_a_seed_changes_nothing():
    tokenizer = train_sentencepiece(ENGLISH, kind="bpe", vocab_size=None)
    assert tokenizer.encode_all(ENGLISH, seed=1) == tokenizer.encode_all(ENGLISH)


def test_rare_characters_are_spelled_when_coverage_is_below_one():
    lines = ["ababab"] * 100 + ["x"]
    tokenizer = train_sentencepiece(lines, kind="bpe", vocab_size=None, character_coverage=0.99)
    assert [piece.text for piece in tokenizer.pieces("x")][-1] == "<0x78>"
    assert tokenizer.decode(tokenizer.encode("x")) == "x"
