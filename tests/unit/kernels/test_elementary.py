"""Elementary functions of compiled loops beside those of float64."""

import numba
import numpy as np
import pytest

from regard.kernels.elementary import exp, largest, sigmoid, tanh


@numba.njit
def exp_of_all(numbers, out):
    for i in range(numbers.size):
        out[i] = exp(numbers[i])


@numba.njit
def tanh_of_all(numbers, out):
    for i in range(numbers.size):
        out[i] = tanh(numbers[i])


@numba.njit
def sigmoid_of_all(numbers, out):
    for i in range(numbers.size):
        out[i] = sigmoid(numbers[i])


@numba.njit
def largest_of(numbers):
    return largest(numbers)


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


@pytest.mark.parametrize("scale", [1e-3, 1.0, 86.0])
def test_sigmoid_is_right_to_a_few_units_in_the_last_place(scale):
    numbers, out = applied(sigmoid_of_all, np.linspace(-scale, scale, 100_001))
    assert np.abs(out * (1 + np.exp(-numbers)) - 1).max() < 3 * 2**-23


def test_sigmoid_of_what_is_far_away_and_nan():
    _, out = applied(sigmoid_of_all, [90.0, -90.0, np.inf, -np.inf, np.nan])
    assert out[:4].tolist() == [1, 0, 1, 0]
    assert np.isnan(out[4])


@pytest.mark.parametrize("size", [1, 2, 7, 8, 9, 33])
def test_the_largest_of_neighbouring_numbers_wherever_it_stands(size):
    for best in np.float32([-2.5, -0.0, 1e-40, 3.0, np.inf]):
        least = np.nextafter(best, np.float32(-np.inf))
        for place in range(size):
            numbers = np.full(size, least)
            numbers[place] = best
            assert largest_of(numbers) == best


def test_the_largest_of_nothing_and_beside_nan():
    assert largest_of(np.empty(0, np.float32)) == -np.inf
    assert largest_of(np.float32([-np.inf] * 3)) == -np.inf
    assert np.isnan(largest_of(np.float32([1, np.nan, np.inf])))
