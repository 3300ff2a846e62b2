import pytest

from regard.decoding.hypothesis import divisors
from regard.errors import SettingError


def test_the_length_penalty_is_equation_14_of_wu_2016():
    values = divisors(0.8, 41)
    for length in (1, 2, 7, 41):
        assert values[length] == pytest.approx((5 + length) ** 0.8 / (5 + 1) ** 0.8)


def test_alpha_zero_leaves_the_log_probability():
    assert divisors(0, 5) == [1.0] * 6


def test_negative_alpha_is_refused():
    with pytest.raises(SettingError, match="length_penalty must be at least 0; got -1"):
        divisors(-1.0, 5)
