import math
import subprocess
import sys
from collections import Counter
from itertools import product
from random import Random

import pytest

from regard.errors import SettingError
from regard.text.tokenizers.sentencepieces import bpe_dropout, train_sentencepiece, unigram_sampling

ENGLISH = ["the lower the newer", "newest and lowest news", "low new widest wider"] * 3
CHINESE = ["我爱中国。", "你好！", "你爱我吗？"] * 3


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
@pytest.mark.parametrize("text", ["我 爱 Tom Smith", "你好，中国！？"])
def test_a_space_that_the_corpus_never_had_comes_back(kind, text):
    tokenizer = train_sentencepiece(CHINESE, kind=kind, vocab_size=None)
    assert tokenizer.decode(tokenizer.encode(text)) == text
    assert tokenizer.encode_all([text], seed=1) == [tokenizer.encode(text)]


def test_a_word_is_one_piece_at_the_start_and_inside():
    tokenizer = train_sentencepiece(ENGLISH, kind="bpe", vocab_size=None)
    assert tokenizer.encode("newer newer") == tokenizer.encode("newer") * 2


def test_the_space_marker_as_a_character_comes_back():
    tokenizer = train_sentencepiece([*ENGLISH, "a▁b"], kind="bpe", vocab_size=None)
    assert tokenizer.decode(tokenizer.encode("low▁new ▁ ▁▁")) == "low▁new ▁ ▁▁"


def test_pieces_of_an_emoji_share_its_offset():
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
    with pytest.raises(SettingError, match="must not be empty"):
        train_sentencepiece(["  ", ""], kind=kind, vocab_size=None)


def test_the_smallest_possible_vocabulary_is_named():
    with pytest.raises(SettingError, match=r"vocab_size must be at least 27\d; got 200\."):
        train_sentencepiece(ENGLISH, kind="bpe", vocab_size=200)


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


def test_rare_characters_are_spelled_when_coverage_is_below_one():
    lines = ["ababab"] * 100 + ["x"]
    tokenizer = train_sentencepiece(lines, kind="bpe", vocab_size=None, character_coverage=0.99)
    assert [piece.text for piece in tokenizer.pieces("x")][-1] == "<0x78>"
    assert tokenizer.decode(tokenizer.encode("x")) == "x"


@pytest.mark.parametrize(("kind", "noise"), [("bpe", 1e-12), ("unigram", 1e6)])
def test_next_to_no_noise_gives_the_best_segmentation(kind, noise):
    tokenizer = train_sentencepiece([*ENGLISH, *CHINESE], kind=kind, vocab_size=None, noise=noise)
    lines = [*ENGLISH, "lowest newer widest", "Ünknown 🙂 wéird", "中国爱我", "new  wide "]
    assert tokenizer.encode_all(lines, seed=1) == tokenizer.encode_all(lines)


DRAWS = 4000


def cuts(word):
    """Every way to cut a word."""
    for ends in product((False, True), repeat=len(word) - 1):
        pieces, start = [], 0
        for index, is_end in enumerate(ends, start=1):
            if is_end:
                pieces.append(word[start:index])
                start = index
        yield (*pieces, word[start:])


def test_unigram_segmentations_come_as_often_as_their_probability_says():
    scores = {"a": -2.0, "b": -1.5, "ab": -2.5, "ba": -3.0, "aba": -3.2}
    alpha = 0.7
    weights = {
        pieces: math.exp(alpha * sum(map(scores.__getitem__, pieces)))
        for pieces in cuts("ababa")
        if all(piece in scores for piece in pieces)
    }
    assert unigram_sampling({"ab": -1.0}, 0.5)("abx", Random(1)) == ["ab", "x"]
    cut, rng = unigram_sampling(scores, alpha), Random(3)
    counts = Counter(tuple(cut("ababa", rng)) for _ in range(DRAWS))
    assert counts.keys() <= weights.keys()
    for pieces, weight in weights.items():
        expected = weight / sum(weights.values())
        error = 5 * math.sqrt(expected * (1 - expected) / DRAWS)
        assert counts[pieces] / DRAWS == pytest.approx(expected, abs=error)


def test_a_merge_is_left_out_as_often_as_the_rate_says():
    # Two symbols, one merge: it is made unless it is left out.
    cut, rng = bpe_dropout({"ab": -1.0}, 0.3), Random(3)
    whole = sum(cut("ab", rng) == ["ab"] for _ in range(DRAWS)) / DRAWS
    assert whole == pytest.approx(0.7, abs=5 * math.sqrt(0.21 / DRAWS))


def test_merges_are_made_in_their_order_wherever_they_stand():
    # "bc" first, then "ab" at the end, then "a" with "bc".
    cut = bpe_dropout({"bc": -1.0, "ab": -2.0, "abc": -3.0}, 0.0)
    assert cut("abcab", Random(1)) == ["abc", "ab"]
    assert cut("aab", Random(1)) == ["a", "ab"]
    assert cut("x", Random(1)) == ["x"]
    assert bpe_dropout({"ab": -1.0}, 1 - 1e-12)("abab", Random(1)) == list("abab")
