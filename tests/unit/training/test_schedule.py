from itertools import pairwise

import pytest

from regard.training import TrainingConfig
from regard.training.optimization import peak_rate, rate_at


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


@pytest.mark.parametrize("schedule", ["inverse_sqrt", "linear", "constant", "cosine"])
def test_a_training_too_short_for_its_warm_up_rises_within_its_share(schedule):
    found = rates(100, warmup=1000, schedule=schedule, learning_rate=0.3)
    assert max(found) == found[19] == pytest.approx(0.3)
    assert found[9] == pytest.approx(0.15)
    settings = {"warmup": 1000, "schedule": schedule, "learning_rate": 0.3}
    assert max(rates(100, warmup_share=None, **settings)) == pytest.approx(0.03)
    assert max(rates(100, warmup_share=0.5, **settings)[:49]) < 0.3
    assert rates(6000, **settings) == rates(6000, warmup_share=None, **settings)


def test_the_length_of_a_training_by_the_clock_is_judged_by_its_speed():
    # Its first update takes as long as ten later ones; a minute's worth of a hundred.
    config = TrainingConfig(minutes=1.0, warmup=1000, learning_rate=0.3)
    found = [
        rate_at(update, min(1.0, (update + 9 * (update > 1)) / 109), peak=0.3, config=config)
        for update in range(1, 101)
    ]
    assert max(found) == pytest.approx(0.3, rel=0.05)
    assert 10 < found.index(max(found)) < 20
    assert found[-1] < 0.15


def test_before_the_first_measurement_nothing_is_known_and_the_rate_is_low():
    config = TrainingConfig(minutes=1.0, warmup=1000, learning_rate=0.3)
    assert rate_at(1, 0.0, peak=0.3, config=config) == 0.3 / 1000
