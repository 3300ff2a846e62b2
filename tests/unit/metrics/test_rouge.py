"""ROUGE-L: the longest common subsequence, words and characters."""

import random

import pytest

from regard.errors import DataError
from regard.metrics import rouge_l, sentence_rouge_l
from regard.metrics.rouge import common_length, words

VOCABULARY = ["the", "king's", "king", "sad", "Sad,", "a", "(long)", "time", "3", "33", "kings."]


def texts(seed: int, count: int) -> list[str]:
    rng = random.Random(seed)
    return [" ".join(rng.choices(VOCABULARY, k=rng.randint(0, 12))) for _ in range(count)]


def by_table(first: str, second: str) -> int:
    """The textbook's table."""
    table = [[0] * (len(second) + 1) for _ in range(len(first) + 1)]
    for i, one in enumerate(first):
        for j, other in enumerate(second):
            longest = max(table[i][j + 1], table[i + 1][j])
            table[i + 1][j + 1] = table[i][j] + 1 if one == other else longest
    return table[-1][-1]


@pytest.mark.parametrize("seed", range(20))
def test_the_length_is_that_of_the_table(seed: int) -> None:
    rng = random.Random(seed)
    first, second = ("".join(rng.choices("abc", k=rng.randint(0, 80))) for _ in range(2))
    assert common_length(list(first), list(second)) == by_table(first, second)


def test_chinese_is_compared_by_characters() -> None:
    assert words("国王 很伤心，Hans走了") == [*"国王很伤心", "hans", *"走了"]
    assert sentence_rouge_l(["国王很伤心。"], ["国王伤心"]) == [pytest.approx(100 * 8 / 9)]


def test_an_interval_is_drawn_and_signed() -> None:
    outputs, references = texts(1, 50), texts(2, 50)
    score = rouge_l(outputs, references, resamples=200)
    assert score.margin is not None
    assert 0 < score.margin < 10
    assert score.signature == "nrefs:1|case:lc|stem:no|F1|bs:200|seed:12345"
    assert rouge_l(outputs, references).margin is None


def test_outputs_and_references_pair_up() -> None:
    with pytest.raises(DataError):
        rouge_l(["a"], ["a", "b"])
