import random

import pytest

from regard.errors import DataError
from regard.metrics import compare, compare_rouge

RIGHT = [f"the number {n} comes before {n + 1} and after {n - 1}" for n in range(60)]


def spoiled(fraction, seed):
    """The right answers, a share of them with their words shuffled."""
    draw = random.Random(seed)
    outputs = []
    for line in RIGHT:
        words = line.split()
        if draw.random() < fraction:
            draw.shuffle(words)
        outputs.append(" ".join(words))
    return outputs


def test_a_clear_difference_is_significant_and_has_its_sign():
    comparisons = compare(spoiled(0.8, 1), spoiled(0.1, 2), RIGHT, trials=300)
    assert [comparison.name for comparison in comparisons] == ["BLEU", "chrF2"]
    for comparison in comparisons:
        assert comparison.difference == comparison.second - comparison.first > 0
        assert comparison.p_value < 0.02


def test_systems_of_one_kind_do_not_differ_nor_one_from_itself():
    first, second = spoiled(0.5, 1), spoiled(0.5, 5)
    comparison, _ = compare(first, second, RIGHT, trials=300)
    assert comparison.p_value > 0.05
    _, comparison = compare(first, first, RIGHT, trials=150)
    assert (comparison.difference, comparison.p_value, comparison.to_dict()["difference"]) == (
        0,
        1,
        0,
    )
    assert ":150" in comparison.signature


def test_what_does_not_pair_up_is_refused():
    with pytest.raises(DataError, match="second must have one output for each of the first"):
        compare(["a", "b"], ["a"], ["a", "b"])


def test_rouge_tells_a_clear_difference_from_chance():
    better = compare_rouge(spoiled(0.8, 1), spoiled(0.1, 2), RIGHT, trials=999)
    assert [one.name for one in better] == ["ROUGE-L", "ROUGE-1", "ROUGE-2"]
    assert better[0].difference > 0
    assert better[0].p_value == 0.001
    # Shuffled words are the same words.
    assert (better[1].difference, better[1].p_value) == (0, 1)
    (alike, _, _) = compare_rouge(spoiled(0.5, 1), spoiled(0.5, 5), RIGHT, trials=999)
    assert alike.p_value > 0.05
    (back, _, _) = compare_rouge(spoiled(0.5, 5), spoiled(0.5, 1), RIGHT, trials=999)
    assert back.p_value == pytest.approx(alike.p_value)
    with pytest.raises(DataError):
        compare_rouge(["a"], ["a", "b"], ["a", "b"])
