"""Elementary functions of compiled loops beside those of float64."""

import numba
import numpy as np
import pytest

from regard.attention.engine.kernels.elementary import exp, tanh


@numba.njit
def exp_of_all(numbers, out):
    for i in range(numbers.size):
        out[i] = exp(numbers[i])


@numba.njit
def tanh_of_all(numbers, out):
    for i in range(numbers.size):
        out[i] = tanh(numbers[i])


def applied(loop, numbers):
    numbers = np.asarray(numbers, np.float32)
    out = np.empty_like(numbers)
    loop(numbers, out)
    return numbers.astype(np.float64), out.astype(np.float64)


def test_powers_are_right_to_a_unit_in_the_last_place():
    numbers, out = applied(exp_of_all, np.linspace(-86.9, 0, 200_001))
    assert np.abs(out / np.exp(numbers) - 1).max() < 1.2 * 2**-23


def test_powers_of_what_is_far_below_are_zero_and_nan_stays():
    _, out = applied(exp_of_all, [0.0, -0.0, -87.1, -1e30, -np.inf, np.nan])
    assert out[:5].tolist() == [1, 1, 0, 0, 0]
    assert np.isnan(out[5])


@pytest.mark.parametrize("scale", [1e-6, 1e-3, 1.0, 30.0])
def test_tanh_is_right_to_a_few_units_in_the_last_place(scale):
    numbers, out = applied(tanh_of_all, np.linspace(-scale, scale, 100_001))
    right = np.tanh(numbers)
    away = np.abs(out - right)[right != 0] / np.abs(right[right != 0])
    assert away.max() < 5 * 2**-23


def test_tanh_of_infinities_and_nan():
    _, out = applied(tanh_of_all, [np.inf, -np.inf, np.nan])
    assert abs(out[0] - 1) < 1e-6
    assert abs(out[1] + 1) < 1e-6
    assert np.isnan(out[2])
