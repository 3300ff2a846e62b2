"""Links from weights and summaries against plain loops; words from tokens."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from regard.attention.inspect.alignment import diagonal_links, links_from_weights, words_from_tokens
from regard.errors import ShapeError

B, H, T, S = 2, 3, 5, 7


def test_a_source_without_positions_has_no_links():
    assert links_from_weights(torch.zeros(2, 0)) == []
    assert links_from_weights(torch.zeros(0, 2), mutual=True) == []


def looped(rows, *, mutual):
    """Links of one matrix, one place at a time."""
    links = []
    for target, row in enumerate(rows):
        most = max(row)
        source = row.index(most)
        column = [other[source] for other in rows]
        if most > 0 and (not mutual or column.index(max(column)) == target):
            links.append((source, target))
    return links


# Few different weights, so that many are equal and many are zero.
matrices = st.tuples(st.integers(1, 6), st.integers(1, 6)).flatmap(
    lambda size: st.lists(
        st.lists(st.sampled_from([0.0, 0.25, 0.5, 0.75]), min_size=size[1], max_size=size[1]),
        min_size=size[0],
        max_size=size[0],
    )
)


@pytest.mark.parametrize("mutual", [False, True])
@given(rows=matrices)
def test_links_are_those_of_plain_loops(rows, mutual):
    assert links_from_weights(torch.tensor(rows), mutual=mutual) == looped(rows, mutual=mutual)


@given(rows=matrices)
def test_mutual_links_are_the_same_from_either_side(rows):
    # Without equal weights it is no matter which side looks.
    distinct = torch.tensor(rows, dtype=torch.float64)
    distinct = distinct + torch.arange(distinct.numel()).reshape(distinct.shape) * 1e-3 + 1e-6
    forward = links_from_weights(distinct, mutual=True)
    backward = links_from_weights(distinct.T, mutual=True)
    assert sorted(forward) == sorted((source, target) for target, source in backward)
    assert set(forward) <= set(links_from_weights(distinct))


@pytest.mark.usefixtures("unchecked_shapes")
def test_weights_of_several_heads_are_refused():
    with pytest.raises(ShapeError, match=r"two axes, \(T, S\); got \(2, 3, 4\)"):
        links_from_weights(torch.zeros(2, 3, 4))


def test_a_word_receives_its_largest_token_and_looks_with_the_mean_of_its_tokens():
    # Source "ab c": tokens a, b, space, c; words ab, c. Target "xy": tokens x, y; one word.
    weights = torch.tensor([[0.1, 0.2, 0.3, 0.4], [0.5, 0.3, 0.0, 0.2]])
    words = words_from_tokens(
        weights, [(0, 1), (1, 2), (2, 3), (3, 4)], [(0, 1), (1, 2)], [(0, 2), (3, 4)], [(0, 2)]
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


@pytest.mark.usefixtures("unchecked_shapes")
def test_weights_must_match_the_tokens():
    with pytest.raises(ShapeError, match=r"\(target tokens, source tokens\) = \(1, 2\)"):
        words_from_tokens(torch.eye(2), [(0, 1), (1, 2)], [(0, 1)], [], [])


@pytest.mark.parametrize(("source", "target"), [(1, 1), (3, 3), (5, 2), (2, 7), (0, 3)])
def test_the_diagonal_stays_inside_and_never_goes_back(source, target):
    links = diagonal_links(source, target)
    positions = [s for s, _ in links]
    assert [t for _, t in links] == list(range(target if source else 0))
    assert positions == sorted(positions)
    assert all(0 <= s < source for s in positions)
    if source == target:
        assert positions == list(range(source))
