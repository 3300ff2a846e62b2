"""The alignment error rate, worked by hand."""

import pytest

from regard.metrics import AlignmentCounts, alignment_error_rate, count_links


def test_the_error_rate_of_a_worked_example():
    # A = 3 links, S = 2, both found and one more possible: 1 − (2 + 3) / (3 + 2) = 0.
    predicted, sure, possible = [(0, 0), (1, 1), (2, 2)], {(0, 0), (1, 1)}, {(2, 2)}
    assert count_links(predicted, sure, possible).error_rate == 0
    # Without the possible link: 1 − (2 + 2) / 5.
    assert count_links(predicted, sure).error_rate == pytest.approx(0.2)
    assert AlignmentCounts().error_rate == 0
    # One sure link missed as well: 1 − (1 + 1) / (2 + 2).
    assert count_links(predicted[1:], sure).error_rate == pytest.approx(0.5)


def test_a_corpus_counts_links_and_not_sentences():
    predicted = [[(0, 0), (1, 1), (2, 2)], [(0, 0)]]
    sure = [{(0, 0), (1, 1), (2, 2)}, {(1, 0)}]
    assert alignment_error_rate(predicted, sure) == pytest.approx(1 - 6 / 8)


def test_words_without_gold_links_may_be_left_out():
    predicted, sure = [[(0, 0), (3, 1)]], [{(0, 0)}]
    assert alignment_error_rate(predicted, sure) == pytest.approx(1 - 2 / 3)
    assert alignment_error_rate(predicted, sure, linked_only=True) == 0
