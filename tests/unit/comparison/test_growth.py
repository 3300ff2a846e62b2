import random

import pytest

from regard.comparison.growth import Growth


@pytest.mark.parametrize("power", [0, 1, 1.5, 2])
def test_a_power_is_found_without_error(power):
    lengths = [16, 32, 64, 128]
    fitted = Growth.fit(lengths, [3 * n**power for n in lengths])
    assert fitted.exponent == pytest.approx(power)
    assert fitted.error == pytest.approx(0, abs=1e-7)
    assert fitted.factor == pytest.approx(3)


def test_the_shorter_half_is_left_out():
    fitted = Growth.fit([1, 2, 4, 8, 16, 32], [1e6, 1e6, 1e6, 64, 256, 1024])
    assert (fitted.first, fitted.last) == (8, 32)
    assert fitted.exponent == pytest.approx(2)


def test_the_error_is_that_of_a_straight_line_through_noise():
    generator = random.Random(0)
    lengths = [2**k for k in range(1, 9)]
    slopes, errors = [], []
    for _ in range(400):
        noisy = [n * 2 ** generator.gauss(0, 0.3) for n in lengths]
        fitted = Growth.fit(lengths, noisy)
        slopes.append(fitted.exponent - 1)
        errors.append(fitted.error**2)
    true = sum(slope**2 for slope in slopes) / len(slopes)
    assert sum(errors) / len(errors) == pytest.approx(true, rel=0.25)


def test_two_points_are_no_fit():
    assert Growth.fit([2, 4], [1, 2]) is None
    assert Growth.fit([2, 4, 8], [1, 0, 2]) is None
