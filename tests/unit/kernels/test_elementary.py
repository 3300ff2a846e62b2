"""Elementary functions of compiled loops against those of float64."""

import numba
import numpy as np
import pytest

from regard.kernels.elementary import exp, largest, sigmoid, tanh


@numba.njit
def largest_of(numbers):
    return largest(numbers)


def applied(function, numbers):
    @numba.njit
    def loop(numbers, out):
        for i in range(numbers.size):
            out[i] = function(numbers[i])

    numbers = np.asarray(numbers, np.float32)
    out = np.empty_like(numbers)
    loop(numbers, out)
    return numbers.astype(np.float64), out.astype(np.float64)


def test_powers_are_right_to_a_unit_in_the_last_place():
    numbers, out = applied(exp, np.linspace(-86.9, 0, 200_001))
    assert np.abs(out / np.exp(numbers) - 1).max() < 1.2 * 2**-23


@pytest.mark.parametrize(
    ("function", "numbers", "right"),
    [
        (exp, [0.0, -0.0, -87.1, -1e30, -np.inf, np.nan], [1, 1, 0, 0, 0, np.nan]),
        (tanh, [np.inf, -np.inf, np.nan], [1, -1, np.nan]),
        (sigmoid, [90.0, -90.0, np.inf, -np.inf, np.nan], [1, 0, 1, 0, np.nan]),
    ],
    ids=["exp", "tanh", "sigmoid"],
)
def test_far_away_they_end_and_nan_stays(function, numbers, right):
    out = applied(function, numbers)[1]
    np.testing.assert_allclose(out, right, rtol=0, atol=1e-6 if function is tanh else 0)


@pytest.mark.parametrize("scale", [1e-6, 1e-3, 1.0, 30.0])
def test_tanh_is_right_to_a_few_units_in_the_last_place(scale):
    numbers, out = applied(tanh, np.linspace(-scale, scale, 100_001))
    right = np.tanh(numbers)
    away = np.abs(out - right)[right != 0] / np.abs(right[right != 0])
    assert away.max() < 5 * 2**-23


@pytest.mark.parametrize("scale", [1e-3, 1.0, 86.0])
def test_sigmoid_is_right_to_a_few_units_in_the_last_place(scale):
    numbers, out = applied(sigmoid, np.linspace(-scale, scale, 100_001))
    assert np.abs(out * (1 + np.exp(-numbers)) - 1).max() < 3 * 2**-23


@pytest.mark.parametrize("size", [1, 2, 7, 8, 9, 33])
def test_the_largest_of_neighbouring_numbers_wherever_it_stands(size):
    for best in np.float32([-2.5, -0.0, 1e-40, 3.0, np.inf]):
        least = np.nextafter(best, np.float32(-np.inf))
        for position in range(size):
            numbers = np.full(size, least)
            numbers[position] = best
            assert largest_of(numbers) == best


def test_the_largest_of_nothing_and_with_nan():
    assert largest_of(np.empty(0, np.float32)) == -np.inf
    assert largest_of(np.float32([-np.inf] * 3)) == -np.inf
    assert np.isnan(largest_of(np.float32([1, np.nan, np.inf])))
