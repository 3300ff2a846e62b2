"""Activations and the likeliest tokens in a prepared model's loops, against float64."""

import numpy as np
import pytest

from regard.kernels.transformer import layers as kernels

R = 5
f32 = np.float32


def draw(*shape):
    return np.random.default_rng([0, *shape]).normal(size=shape).astype(f32)


def best(logits, count, hidden=()):
    (rows, outputs), banned = logits.shape, np.array(hidden, np.int64)
    values, tokens = np.full((rows, count), 5, f32), np.full((rows, count), -7, np.int64)
    kernels.best_tokens(0, rows, logits.copy(), outputs, banned, values, tokens)
    return values, tokens


def best_by_hand(logits, count, hidden=()):
    expected, order = np.full((len(logits), count), -np.inf), []
    for r, row in enumerate(logits.astype(np.float64)):
        log_probs = row - row.max() - np.log(np.exp(row - row.max()).sum())
        allowed = [v for v in range(len(row)) if v not in hidden and row[v] > -np.inf]
        chosen = sorted(allowed, key=lambda v: (-row[v], v))[:count]
        expected[r, : len(chosen)] = log_probs[chosen]
        order.append(chosen)
    return expected, order


@pytest.mark.parametrize("V", [1, 2, 31, 32, 33, 63, 64, 65, 211])
@pytest.mark.parametrize("count", [1, 2, 5, 40])
@pytest.mark.parametrize("is_tied", [False, True])
def test_the_likeliest_tokens_come_first_and_the_lowest_of_equal_ones(V, count, is_tied):
    logits = 3 * draw(R, V)
    if is_tied:
        logits = logits.round() / f32(2)
    hidden = [v for v in (0, 3, 32, V - 1) if v < V and V > 5]
    for several in ([], hidden, hidden[::-1]):
        values, tokens = best(logits, count, several)
        expected, order = best_by_hand(logits, count, several)
        np.testing.assert_allclose(values, expected, atol=3e-6)
        for ranked, chosen in zip(tokens.tolist(), order, strict=True):
            assert ranked[: len(chosen)] == chosen
            assert not any(ranked[len(chosen) :])


def test_tokens_that_cannot_be_are_no_best_ones():
    logits = draw(R, 70)
    logits[:, 5:60] = -np.inf
    logits[1, :] = -np.inf
    logits[1, 64] = 2.0
    values, tokens = best(logits, 20, [64])
    right, order = best_by_hand(logits, 20, [64])
    np.testing.assert_allclose(values, right, atol=3e-6)
    assert order[1] == []
    assert tokens[0, :14].tolist() == order[0]
    assert best(logits, 1)[1][1, 0] == 64


@pytest.mark.parametrize("position", [0, 31, 32, 69])
def test_nan_is_never_hushed_up(position):
    logits = draw(R, 70)
    logits[2, position] = np.nan
    logits[3] = -np.inf
    values, _ = best(logits, 3)
    assert np.isnan(values[[2, 3]]).all()
    np.testing.assert_allclose(values[[0, 1]], best_by_hand(logits[:2], 3)[0], atol=3e-6)
