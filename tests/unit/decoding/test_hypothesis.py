import pytest

from regard.decoding import LENGTH_PENALTIES, Average, Gnmt
from regard.decoding.hypothesis import divisors
from regard.errors import SettingError


def test_gnmt_is_equation_14_of_wu_2016():
    for length in (1, 2, 7, 41):
        assert Gnmt(0.8)(length) == pytest.approx((5 + length) ** 0.8 / (5 + 1) ** 0.8)


def test_alpha_zero_leaves_the_log_probability():
    assert divisors(0, 5) == [1.0] * 6
    assert Average(0.0)(17) == 1.0


def test_a_function_of_the_length_is_a_penalty():
    assert divisors(lambda length: 2.0 * length, 2) == [2.0, 2.0, 4.0]


@pytest.mark.parametrize("name", sorted(LENGTH_PENALTIES))
def test_penalties_never_fall(name):
    values = divisors(LENGTH_PENALTIES[name](0.7), 50)
    assert values == sorted(values)
    assert values[0] > 0


@pytest.mark.parametrize("penalty", [Gnmt, Average])
def test_negative_alpha_is_refused(penalty):
    with pytest.raises(SettingError, match="alpha must be at least 0; got -1"):
        penalty(-1.0)
