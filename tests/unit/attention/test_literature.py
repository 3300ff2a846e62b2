from math import sqrt

import pytest
import torch

from regard.attention import Dot, ScaledDot, attend, causal, explain, lengths, weights

N, M, D, E = 5, 7, 11, 13


def test_a_query_that_prefers_nothing_gets_the_mean_of_the_values():
    # Two rows of ten values, each weighing a tenth.
    values = torch.arange(20.0).reshape(2, 10, 1)
    out = attend(torch.zeros(2, 1, 4), torch.randn(2, 10, 4), values)
    torch.testing.assert_close(out, torch.tensor([[[4.5]], [[14.5]]]))


def test_a_batch_of_products_has_the_outer_sizes_of_its_matrices():
    assert attend(torch.ones(2, 1, 3), torch.ones(2, 4, 3), torch.ones(2, 4, 6)).shape == (2, 1, 6)


def test_a_large_negative_score_is_no_mask_where_all_is_hidden():
    query, key = torch.randn(1, D), torch.randn(M, D)
    filled = torch.softmax(torch.full((1, M), -1e9), dim=-1)
    torch.testing.assert_close(filled, torch.full((1, M), 1 / M))
    assert weights(query, key, mask=lengths(0)).eq(0).all()
    assert attend(query, key, mask=lengths(0)).eq(0).all()


def test_a_position_sees_itself_since_targets_come_shifted_right():
    assert causal().draw(3, 3) == "1 . .\n1 1 .\n1 1 1"
    strict = torch.ones(3, 3, dtype=torch.bool).tril(-1)
    states = torch.randn(3, D)
    # The stricter mask leaves the first position nothing, not even the start token.
    assert attend(states, states, mask=strict)[0].eq(0).all()
    torch.testing.assert_close(attend(states, states, mask=causal())[0], states[0])


@pytest.mark.parametrize("dim", [4, 64, 512])
def test_dot_products_of_unit_normal_vectors_have_variance_d(dim):
    pairs = 40_000
    query, key = torch.randn(pairs, 1, dim), torch.randn(pairs, 1, dim)
    plain = Dot().tile(query, key).flatten()
    scaled = ScaledDot().tile(query, key).flatten()
    # Five standard errors; the dot product's own fourth moment is at most nine variances squared.
    assert plain.mean().abs() < 5 * sqrt(dim / pairs)
    assert abs(plain.var() / dim - 1) < 5 * sqrt(8 / pairs)
    assert abs(scaled.var() - 1) < 5 * sqrt(8 / pairs)


def test_without_values_the_keys_are_mixed():
    query, key = torch.randn(N, D), torch.randn(M, D)
    torch.testing.assert_close(attend(query, key), attend(query, key, key))


def test_several_queries_are_answered_each_by_itself():
    query, key, value = torch.randn(N, D), torch.randn(M, D), torch.randn(M, E)
    one_by_one = [attend(query[n : n + 1], key, value) for n in range(N)]
    torch.testing.assert_close(attend(query, key, value), torch.cat(one_by_one))


def test_the_books_columns_are_rows_here():
    states = torch.randn(D, N, dtype=torch.float64)  # a column per position
    to_query, to_key = torch.randn(2, 3, D, dtype=torch.float64)
    to_value = torch.randn(E, D, dtype=torch.float64)
    Q, K, V = to_query @ states, to_key @ states, to_value @ states
    in_columns = V @ torch.softmax(K.T @ Q / sqrt(3), dim=0)
    torch.testing.assert_close(attend(Q.T, K.T, V.T), in_columns.T)


def test_operations_grow_with_the_square_of_the_length_and_memory_does_not():
    def plan(length):
        states = torch.zeros(1, 8, length, 64)
        return explain(states, states)

    short, long = plan(2048), plan(4096)
    assert short.operations == 2 * 8 * 2048 * 2048 * (64 + 64)
    assert long.operations == 4 * short.operations
    assert long.bytes <= 2 * short.bytes
    assert long.bytes < 8 * 4096 * 4096 * 4 / 20


def test_dropout_of_weights_leaves_their_mean_as_it_is():
    query, key, value = torch.randn(1, D), torch.randn(M, D), torch.randn(M, 1)
    draws = 20_000
    expanded = (t.expand(draws, *t.shape) for t in (query, key, value))
    dropped = attend(*expanded, dropout=0.1).flatten()
    error = float(dropped.std()) / sqrt(draws)
    assert dropped.std() > 0.01
    assert abs(float(dropped.mean() - attend(query, key, value))) < 5 * error
