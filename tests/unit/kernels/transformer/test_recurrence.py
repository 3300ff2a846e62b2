"""The compiled step of a recurrence beside the formula in float64."""

import numpy as np
import pytest

from regard.kernels.transformer.recurrence import recur

R, T, S, C = 5, 11, 7, 13
f32 = np.float32


def draw(*shape):
    return np.random.default_rng(list(shape)).normal(size=shape).astype(f32)


@pytest.mark.parametrize("now", [0, 1, T - 1])
@pytest.mark.parametrize("size", [1, 100])
def test_a_row_goes_on_from_what_its_ancestor_kept(now, size):
    projected, bias, store = size * draw(R, 2 * C), draw(C), draw(S, T, C)
    ancestors = np.random.default_rng(3).integers(0, S, (R, T)).astype(np.int32)
    before, out = store.copy(), np.zeros((R, C), f32)
    told, value = (each.astype(np.float64) for each in np.split(projected, 2, axis=1))
    for rows in ((0, 2), (2, R)):
        recur(*rows, projected, bias, store, ancestors, now, out)
    gate = 1 / (1 + np.exp(-(told + bias)))
    last = before[ancestors[:, now - 1], now - 1] if now else 0
    right = gate * last + (1 - gate) * value
    np.testing.assert_allclose(store[:R, now], right, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(out, np.maximum(right, 0), rtol=1e-5, atol=1e-5)
    store[:R, now] = before[:R, now]
    np.testing.assert_array_equal(store, before)
