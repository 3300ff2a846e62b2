"""Loops of a prepared model beside the same in float64."""

import numba
import numpy as np
import pytest
import torch
from torch.nn import functional as F

from regard.kernels.transformer import decoder as kernels

R, T, S, H, G, D, C = 5, 11, 7, 6, 3, 4, 13
f32 = np.float32


def draw(*shape, seed=0):
    return np.random.default_rng([seed, *shape]).normal(size=shape).astype(f32)


def options(**changed):
    plain = kernels.Options(
        heads=H,
        key_heads=G,
        head_dim=D,
        scale=f32(0.7),
        slopes=np.zeros(0, f32),
        eps=f32(1e-5),
        is_rms=False,
        is_pre=True,
        activation=0,
        pair_apart=1,
    )
    return plain._replace(**changed)


def past(store, memory, **changed):
    plain = kernels.DecoderCache(
        store=store,
        ancestors=np.random.default_rng(3).integers(0, S, (R, T)).astype(np.int32),
        starts=np.zeros(R, np.int32),
        memory=memory,
        lengths=np.array([4, 1, 9], np.int64),
        sentences=np.array([2, 0, 1, 0, 2], np.int64),
        rotary=np.zeros((1, 2, 0), f32),
    )
    return plain._replace(**changed)


NO_STORE, NO_MEMORY = np.zeros((1, S, T, 2 * G * D), f32), np.zeros((0, 0, 0, 2 * G * D), f32)


def room(places):
    """Where scores are worked on, with a register behind the last key."""
    return np.empty((H, places + kernels.OUTPUTS), f32)


def looked(query, keys, values, scale, slopes=None):
    """One row's heads, each by itself: (H D), (M, G D), (M, G D) -> (H D)."""
    query, keys, values = (each.astype(np.float64) for each in (query, keys, values))
    out = np.empty(H * D)
    for h in range(H):
        g = h // (H // G)
        scores = keys[:, g * D : (g + 1) * D] @ query[h * D : (h + 1) * D] * scale
        if slopes is not None:
            scores -= slopes[h] * np.arange(len(keys))[::-1]
        weights = np.exp(scores - scores.max())
        out[h * D : (h + 1) * D] = weights / weights.sum() @ values[:, g * D : (g + 1) * D]
    return out


@pytest.mark.parametrize("now", [0, 1, T - 1])
@pytest.mark.parametrize("slopes", [None, np.linspace(0.1, 0.9, H).astype(f32)])
@pytest.mark.parametrize("starts", [[0] * R, [0, 1, 5, T - 1, T + 3]])
def test_a_row_looks_at_what_its_ancestors_kept_and_at_itself(now, slopes, starts):
    projected, store = draw(R, (H + 2 * G) * D), draw(1, S, T, 2 * G * D)[0]
    seen = past(NO_STORE, NO_MEMORY, starts=np.array(starts, np.int32))
    before, out = store.copy(), np.zeros((R, H * D), f32)
    given = options() if slopes is None else options(slopes=slopes)
    kernels.attend_to_past(0, R, projected, store, seen, now, given, room(T), out)
    own = projected[:, H * D :]
    for r in range(R):
        slots = [seen.ancestors[r, t] for t in range(min(starts[r], now), now)]
        kept = [before[s, t] for t, s in zip(range(now - len(slots), now), slots, strict=True)]
        rows = np.stack([*kept, own[r]])
        right = looked(projected[r], rows[:, : G * D], rows[:, G * D :], 0.7, slopes)
        np.testing.assert_allclose(out[r], right, atol=2e-6)
    np.testing.assert_array_equal(store[:R, now], own)
    store[:R, now] = before[:R, now]
    np.testing.assert_array_equal(store, before)


def test_a_row_looks_at_the_real_places_of_its_sentence():
    query, memory = draw(R, H * D), draw(3, 9, 2 * G * D)
    memory[0, 4:], memory[1, 1:] = np.nan, np.nan  # padding
    seen = past(NO_STORE, NO_MEMORY)
    out = np.zeros((R, H * D), f32)
    # Distances count in self-attention alone.
    given = options(slopes=np.ones(H, f32))
    kernels.attend_to_memory(0, R, query, memory, seen, 0, given, room(9), out)
    for r, sentence in enumerate(seen.sentences):
        real = memory[sentence, : seen.lengths[sentence]]
        right = looked(query[r], real[:, : G * D], real[:, G * D :], 0.7)
        np.testing.assert_allclose(out[r], right, atol=2e-6)


def normed(rows, weight, bias, eps, is_rms):
    rows = rows.astype(np.float64)
    if not is_rms:
        rows = rows - rows.mean(axis=1, keepdims=True)
    out = rows / np.sqrt((rows**2).mean(axis=1, keepdims=True) + eps) * weight
    return out + bias if bias.size else out


@pytest.mark.parametrize("is_rms", [False, True])
@pytest.mark.parametrize("has_bias", [False, True])
@pytest.mark.parametrize("eps", [1e-5, 0.3])
def test_a_norm_is_that_of_its_row(is_rms, has_bias, eps):
    rows, weight = draw(R, C) + f32(3), draw(C)
    bias, out = draw(C, seed=1)[: C * has_bias], np.zeros((R, C), f32)
    given = options(is_rms=is_rms, eps=f32(eps))
    kernels.norm(1, 4, rows, weight, bias, given, out)
    right = normed(rows, weight, bias, eps, is_rms)
    np.testing.assert_allclose(out[1:4], right[1:4], atol=3e-6)
    assert not out[[0, 4]].any()


@pytest.mark.parametrize("is_pre", [False, True])
def test_a_change_is_added_before_the_norm(is_pre):
    rows, change, weight, bias = draw(R, C), draw(R, C, seed=1), draw(C), draw(C, seed=1)
    out = np.zeros((R, C), f32)
    states, given = rows.copy(), options(is_pre=is_pre)
    kernels.add_norm(1, 4, states, change, weight, bias, given, out)
    right = normed(rows + change, weight, bias, 1e-5, False)
    np.testing.assert_allclose((out if is_pre else states)[1:4], right[1:4], atol=3e-6)
    if is_pre:
        np.testing.assert_allclose(states[1:4], (rows + change)[1:4], atol=1e-6)
    else:
        assert not out.any()
    np.testing.assert_array_equal(states[[0, 4]], rows[[0, 4]])


@numba.njit
def activated(inner, kind):
    kernels.activate(inner, kind)


@pytest.mark.parametrize("name", kernels.ACTIVATIONS)
def test_activations_are_torchs(name):
    numbers = np.concatenate([np.linspace(-30, 30, 60_001), [0.0, -0.0, -200, 200]])
    inner = numbers.astype(f32)[None]
    right = {
        "relu": F.relu,
        "silu": F.silu,
        "gelu": F.gelu,
        "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"),
    }[name](torch.from_numpy(inner).double())
    activated(inner, kernels.ACTIVATIONS.index(name))
    away = np.abs(inner - right.numpy()) / np.maximum(1, np.abs(right.numpy()))
    assert away.max() < 1e-6


def best(logits, count, hidden=(), first=0, stop=None):
    rows = len(logits)
    values, tokens = np.full((rows, count), 5, f32), np.full((rows, count), -7, np.int64)
    kernels.best_tokens(
        first,
        rows if stop is None else stop,
        logits.copy(),
        np.array(hidden, np.int64),
        values,
        tokens,
    )
    return values, tokens


def best_by_hand(logits, count, hidden=()):
    right, order = np.full((len(logits), count), -np.inf), []
    for r, row in enumerate(logits.astype(np.float64)):
        log_probs = row - row.max() - np.log(np.exp(row - row.max()).sum())
        shown = [v for v in range(len(row)) if v not in hidden and row[v] > -np.inf]
        chosen = sorted(shown, key=lambda v: (-row[v], v))[:count]
        right[r, : len(chosen)] = log_probs[chosen]
        order.append(chosen)
    return right, order


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
        right, order = best_by_hand(logits, count, several)
        np.testing.assert_allclose(values, right, atol=3e-6)
        for found, chosen in zip(tokens.tolist(), order, strict=True):
            assert found[: len(chosen)] == chosen
            assert not any(found[len(chosen) :])


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


@pytest.mark.parametrize("place", [0, 31, 32, 69])
def test_nan_is_never_hushed_up(place):
    logits = draw(R, 70)
    logits[2, place] = np.nan
    logits[3] = -np.inf
    values, _ = best(logits, 3)
    assert np.isnan(values[[2, 3]]).all()
    np.testing.assert_allclose(values[[0, 1]], best_by_hand(logits[:2], 3)[0], atol=3e-6)
