"""Expected utility, against loops."""

import math
import random

import pytest

from regard.decoding import minimum_bayes_risk
from regard.errors import SettingError


def overlap(one, other):
    """Not symmetric, so that swapped arguments cannot pass."""
    return sum(word in other for word in one) / (len(one) + 1)


def drawn(seed, count=31):
    generator = random.Random(seed)
    return [tuple(generator.choices(range(6), k=generator.randint(0, 4))) for _ in range(count)]


@pytest.mark.parametrize("seed", range(5))
def test_the_best_has_the_highest_mean_utility(seed):
    candidates, references = drawn(seed), drawn(seed + 99, 17)
    generator = random.Random(seed)
    weights = [generator.random() for _ in references]
    found = minimum_bayes_risk(candidates, overlap, references=references, weights=weights)
    for one in found:
        total = sum(w * overlap(one.answer, r) for w, r in zip(weights, references, strict=True))
        assert one.utility == pytest.approx(total / sum(weights))
    assert [one.utility for one in found] == sorted((o.utility for o in found), reverse=True)
    assert {one.answer for one in found} == set(candidates)
    assert len(found) == len(set(candidates))


def test_samples_are_their_own_references_as_often_as_they_were_drawn():
    (best, *_) = minimum_bayes_risk(["a", "b", "b", "c"], lambda one, other: float(one == other))
    assert (best.answer, best.utility) == ("b", 0.5)


def test_a_pair_is_asked_for_once():
    asked = []

    def utility(one, other):
        asked.append((one, other))
        return 0.0

    minimum_bayes_risk(["a", "b", "b", "a", "c"], utility)
    assert len(asked) == len(set(asked)) == 9


def test_equally_good_ones_keep_their_order():
    found = minimum_bayes_risk(["b", "a", "c"], lambda one, other: 1.0)
    assert [one.answer for one in found] == ["b", "a", "c"]


@pytest.mark.parametrize(
    ("candidates", "settings", "message"),
    [
        ([], {}, "number of candidates must be at least 1; got 0"),
        (["a"], {"references": []}, "number of references must be at least 1; got 0"),
        (["a"], {"weights": [0.5, 0.5]}, "weights must be one per reference: 1; got 2"),
        (["a", "b"], {"weights": [0.5, -1.0]}, r"weights must be at least 0.*got \[0.5, -1.0\]"),
        (["a"], {"weights": [0.0]}, "weights must be at least 0, finite, and not all 0"),
        (["a"], {"weights": [math.nan]}, "weights must be at least 0, finite, and not all 0"),
    ],
)
def test_wrong_settings_are_refused(candidates, settings, message):
    with pytest.raises(SettingError, match=message):
        minimum_bayes_risk(candidates, lambda one, other: 1.0, **settings)


def test_a_utility_that_is_no_number_is_named():
    with pytest.raises(SettingError, match="utility must give finite numbers; got nan for 'a' and"):
        minimum_bayes_risk(["a"], lambda one, other: math.nan)
