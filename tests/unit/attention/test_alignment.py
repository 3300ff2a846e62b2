"""Links from weights, words from tokens, and the error rate worked by hand."""

import pytest
import torch

from regard.attention.alignment import (
    AlignmentCounts,
    alignment_error_rate,
    count_links,
    diagonal_links,
    links_from_weights,
    words_from_tokens,
)
from regard.errors import ShapeError


def test_each_target_place_links_to_its_heaviest_source_place():
    weights = torch.tensor([[0.1, 0.7, 0.2], [0.0, 0.0, 0.0], [0.4, 0.4, 0.2]])
    assert links_from_weights(weights) == [(1, 0), (0, 2)]


def test_a_source_without_places_has_no_links():
    assert links_from_weights(torch.zeros(2, 0)) == []


@pytest.mark.usefixtures("unchecked_shapes")
def test_weights_of_several_heads_are_refused():
    with pytest.raises(ShapeError, match=r"two axes, \(T, S\); got \(2, 3, 4\)"):
        links_from_weights(torch.zeros(2, 3, 4))


def test_a_word_receives_its_largest_token_and_looks_with_the_mean_of_its_tokens():
    # Source "ab c": tokens a, b, space, c; words ab, c. Target "xy": tokens x, y; one word.
    weights = torch.tensor([[0.1, 0.2, 0.3, 0.4], [0.5, 0.3, 0.0, 0.2]])
    words = words_from_tokens(
        weights,
        [(0, 1), (1, 2), (2, 3), (3, 4)],
        [(0, 1), (1, 2)],
        [(0, 2), (3, 4)],
        [(0, 2)],
    )
    torch.testing.assert_close(words, torch.tensor([[(0.1 + 0.5) / 2, (0.4 + 0.2) / 2]]))


def test_small_weights_of_a_long_word_do_not_add_up_to_a_link():
    weights = torch.tensor([[0.2, 0.2, 0.2, 0.4]])
    words = words_from_tokens(
        weights, [(0, 1), (1, 2), (2, 3), (3, 4)], [(0, 1)], [(0, 3), (3, 4)], [(0, 1)]
    )
    assert links_from_weights(words) == [(1, 0)]


def test_a_token_across_two_words_belongs_to_the_larger_part():
    words = words_from_tokens(torch.eye(1), [(0, 5)], [(0, 1)], [(0, 2), (2, 5)], [(0, 1)])
    assert words.tolist() == [[0.0, 1.0]]


def test_a_word_without_tokens_looks_at_nothing():
    words = words_from_tokens(torch.eye(1), [(0, 1)], [(0, 1)], [(0, 1)], [(0, 1), (1, 2)])
    assert words.tolist() == [[1.0], [0.0]]
    assert links_from_weights(words) == [(0, 0)]


@pytest.mark.usefixtures("unchecked_shapes")
def test_weights_must_match_the_tokens():
    with pytest.raises(ShapeError, match=r"\(target tokens, source tokens\) = \(1, 2\)"):
        words_from_tokens(torch.eye(2), [(0, 1), (1, 2)], [(0, 1)], [], [])


def test_the_error_rate_of_a_worked_example():
    # A = 3 links, S = 2, both found and one more possible: 1 − (2 + 3) / (3 + 2) = 0.
    predicted, sure, possible = [(0, 0), (1, 1), (2, 2)], {(0, 0), (1, 1)}, {(2, 2)}
    assert count_links(predicted, sure, possible).error_rate == 0
    # Without the possible link: 1 − (2 + 2) / 5.
    assert count_links(predicted, sure).error_rate == pytest.approx(0.2)
    # One sure link missed as well: 1 − (1 + 1) / (2 + 2).
    assert count_links(predicted[1:], sure).error_rate == pytest.approx(0.5)


def test_sure_links_are_possible_without_saying_so():
    assert count_links([(0, 0)], {(0, 0)}, frozenset()).predicted_possible == 1


def test_a_corpus_counts_links_and_not_sentences():
    predicted = [[(0, 0), (1, 1), (2, 2)], [(0, 0)]]
    sure = [{(0, 0), (1, 1), (2, 2)}, {(1, 0)}]
    assert alignment_error_rate(predicted, sure) == pytest.approx(1 - 6 / 8)


def test_words_without_gold_links_may_be_left_out():
    predicted, sure = [[(0, 0), (3, 1)]], [{(0, 0)}]
    assert alignment_error_rate(predicted, sure) == pytest.approx(1 - 2 / 3)
    assert alignment_error_rate(predicted, sure, linked_only=True) == 0


def test_nothing_to_link_is_no_error():
    assert AlignmentCounts().error_rate == 0


@pytest.mark.parametrize(("source", "target"), [(1, 1), (3, 3), (5, 2), (2, 7), (0, 3)])
def test_the_diagonal_stays_inside_and_never_goes_back(source, target):
    links = diagonal_links(source, target)
    places = [s for s, _ in links]
    assert [t for _, t in links] == list(range(target if source else 0))
    assert places == sorted(places)
    assert all(0 <= s < source for s in places)
    if source == target:
        assert places == list(range(source))
