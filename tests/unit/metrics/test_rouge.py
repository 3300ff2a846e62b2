"""ROUGE-L: the longest common subsequence, words and characters."""

import random

import pytest

from regard.errors import DataError, SettingError
from regard.metrics import novelty, repetition, rouge_l, rouge_n, sentence_rouge_l, sentence_rouge_n
from regard.metrics.rouge import common_length, first_words, words

VOCABULARY = ["the", "king's", "king", "sad", "Sad,", "a", "(long)", "time", "3", "33", "kings."]


def texts(seed, count):
    rng = random.Random(seed)
    return [" ".join(rng.choices(VOCABULARY, k=rng.randint(0, 12))) for _ in range(count)]


def by_table(first, second):
    """The textbook's table."""
    table = [[0] * (len(second) + 1) for _ in range(len(first) + 1)]
    for i, one in enumerate(first):
        for j, other in enumerate(second):
            longest = max(table[i][j + 1], table[i + 1][j])
            table[i + 1][j + 1] = table[i][j] + 1 if one == other else longest
    return table[-1][-1]


@pytest.mark.parametrize("seed", range(20))
def test_the_length_is_that_of_the_table(seed):
    rng = random.Random(seed)
    first, second = ("".join(rng.choices("abc", k=rng.randint(0, 80))) for _ in range(2))
    assert common_length(list(first), list(second)) == by_table(first, second)


def test_chinese_is_compared_by_characters():
    assert words("国王 很伤心，Hans走了") == [*"国王很伤心", "hans", *"走了"]
    assert sentence_rouge_l(["国王很伤心。"], ["国王伤心"]) == [pytest.approx(100 * 8 / 9)]


def test_an_interval_is_drawn_and_signed():
    outputs, references = texts(1, 50), texts(2, 50)
    score = rouge_l(outputs, references, resamples=200)
    assert 0 < score.margin < 10
    assert score.signature == "nrefs:1|case:lc|stem:no|F1|bs:200|seed:12345"
    assert rouge_l(outputs, references).margin is None


def test_n_grams_count_as_often_as_both_have_them_and_the_best_reference_counts():
    output, references = "the king the king", [["the the king", "a mill"]]
    assert sentence_rouge_n([output], references, n=1) == [pytest.approx(100 * 6 / 7)]
    assert sentence_rouge_n([output], references, n=2) == [pytest.approx(100 * 2 / 5)]
    assert rouge_n(["国王走"], ["国王走了"], n=2).value == pytest.approx(100 * 4 / 5)
    assert sentence_rouge_n(["a"], ["a"], n=2) == [0]
    with pytest.raises(SettingError, match="n must be at least 1; got 0"):
        rouge_n(["a"], ["a"], n=0)
    with pytest.raises(DataError):
        rouge_l(["a"], ["a", "b"])


def test_a_text_is_cut_after_so_many_of_its_words():
    assert first_words("İstanbul is, big", 2) == "İstanbul is"
    assert first_words("国王很 伤心。", 4) == "国王很 伤"
    assert first_words("a b.", 2) == "a b."


def test_every_n_gram_counts_as_often_as_it_occurs():
    outputs, sources = ["a cat sat and a dog", "dogs"], ["A cat sat.", "cats"]
    assert novelty(outputs, sources, n=1) == pytest.approx(100 * 3 / 7)  # and, dog, dogs
    assert novelty(outputs, sources, n=2) == pytest.approx(100 * 3 / 5)
    assert novelty(outputs, sources, n=7) == 0
    assert novelty(["国王伤心"], ["国王很伤心"], n=2) == pytest.approx(100 / 3)


def test_tokens_of_another_output_are_no_repetition():
    assert repetition(["a cat", "a cat"], n=1) == 0
    assert repetition(["a cat and a cat", "a"], n=1) == pytest.approx(100 * 2 / 6)
    assert repetition(["a cat and a cat"], n=2) == pytest.approx(25)
