import math
from collections import Counter
from itertools import product
from random import Random

import pytest

from regard.text.tokenizers.sentencepieces import bpe_dropout, train_sentencepiece, unigram_sampling

LINES = [
    "the lower the newer",
    "newest and lowest news",
    "low new widest wider",
    "我爱中国, 你也爱中国",
] * 5
DRAWS = 4000


def tokenizer(kind, noise):
    return train_sentencepiece(LINES, kind=kind, vocab_size=None, noise=noise)


@pytest.mark.parametrize(("kind", "noise"), [("bpe", 1e-12), ("unigram", 1e6)])
def test_next_to_no_noise_gives_the_best_segmentation(kind, noise):
    made = tokenizer(kind, noise)
    lines = [*LINES, "lowest newer widest", "Ünknown 🙂 wéird", "中国爱我", "new  wide "]
    assert made.encode_all(lines, seed=1) == made.encode_all(lines)


def cuts(word):
    """Every way to cut a word."""
    for ends in product((False, True), repeat=len(word) - 1):
        pieces, start = [], 0
        for place, is_end in enumerate(ends, start=1):
            if is_end:
                pieces.append(word[start:place])
                start = place
        yield (*pieces, word[start:])


def test_unigram_segmentations_come_as_often_as_their_probability_says():
    scores = {"a": -2.0, "b": -1.5, "ab": -2.5, "ba": -3.0, "aba": -3.2}
    alpha = 0.7
    shares = {
        pieces: math.exp(alpha * sum(map(scores.__getitem__, pieces)))
        for pieces in cuts("ababa")
        if all(piece in scores for piece in pieces)
    }
    cut, rng = unigram_sampling(scores, alpha), Random(3)
    seen = Counter(tuple(cut("ababa", rng)) for _ in range(DRAWS))
    assert seen.keys() <= shares.keys()
    for pieces, share in shares.items():
        expected = share / sum(shares.values())
        error = 5 * math.sqrt(expected * (1 - expected) / DRAWS)
        assert seen[pieces] / DRAWS == pytest.approx(expected, abs=error)


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


def test_a_rate_near_one_leaves_characters():
    cut = bpe_dropout({"ab": -1.0, "abc": -2.0}, 1 - 1e-12)
    assert cut("abcabc", Random(1)) == list("abcabc")


def test_what_has_no_piece_stays_a_character():
    assert unigram_sampling({"ab": -1.0}, 0.5)("abx", Random(1)) == ["ab", "x"]
    assert bpe_dropout({}, 0.5)("x", Random(1)) == ["x"]
