from itertools import pairwise

import pytest

from regard.training import TrainingConfig
from regard.training.schedule import peak_rate, rate_at


def rates(updates, model_dim=512, **settings):
    config = TrainingConfig(updates=updates, **settings)
    peak = peak_rate(config, model_dim)
    return [
        rate_at(update, update / updates, peak=peak, config=config)
        for update in range(1, updates + 1)
    ]


def test_inverse_square_root_is_equation_3_of_the_paper():
    found = rates(1000, warmup=40, schedule="inverse_sqrt")
    for update, rate in enumerate(found, 1):
        assert rate == pytest.approx(512**-0.5 * min(update**-0.5, update * 40**-1.5))
    assert max(found) == found[39]


def test_a_peak_of_ones_own_is_reached_at_the_end_of_warm_up():
    for schedule in ("inverse_sqrt", "constant"):
        found = rates(100, warmup=10, schedule=schedule, learning_rate=0.3)
        assert found[9] == max(found) == pytest.approx(0.3)
        assert found[4] == pytest.approx(0.15)


def test_linear_falls_by_the_same_amount_to_zero():
    found = rates(100, warmup=10, schedule="linear", learning_rate=0.3)
    assert found[-1] == 0
    steps = [one - other for one, other in pairwise(found[9:])]
    assert steps == pytest.approx([0.3 / 90] * 90)


def test_constant_stays():
    assert rates(100, warmup=1, schedule="constant", learning_rate=0.3) == [0.3] * 100
