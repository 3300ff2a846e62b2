"""The mean and the spread of weights over runs, as numbers, text and a page."""

import math
import random
import re

import pytest

from regard.errors import ShapeError
from regard.viewer.spread import WeightSpread, draw_spread, spread_page

SOURCE, OUTPUT = ("我", "爱", "<中>"), ("I", "love")


def spread_of(runs=5, seed=0):
    draw = random.Random(seed)
    weights = []
    for _ in range(runs):
        rows = [[draw.random() for _ in SOURCE] for _ in OUTPUT]
        rows[0][1] += 2  # every run looks most at the second
        weights.append([[cell / sum(row) for cell in row] for row in rows])
    answers = ("I love", "I love", "I <b>", "I love", "no")[:runs]
    return WeightSpread("我爱<中>", "I love", SOURCE, OUTPUT, tuple(weights), answers)


def test_means_and_deviations_are_those_of_a_loop():
    spread = spread_of()
    for row in range(2):
        for column in range(3):
            total = 0.0
            for run in spread.weights:
                total += run[row][column]
            mean = total / 5
            square = 0.0
            for run in spread.weights:
                square += (run[row][column] - mean) ** 2
            assert math.isclose(spread.mean[row][column], mean)
            assert math.isclose(spread.deviation[row][column], math.sqrt(square / 4))


def test_a_fact_is_what_every_run_looks_at_most():
    spread = spread_of()
    assert spread.votes[0] == [("爱", 5)]
    assert spread.is_fact(0, 1)
    assert not spread.is_fact(0, 0)
    assert sum(count for _, count in spread.votes[1]) == 5
    assert len(spread.votes[1]) > 1
    assert not any(spread.is_fact(1, column) for column in range(3))


def test_text_and_page_have_every_number_and_mark_the_facts():
    spread = spread_of()
    drawn, made = draw_spread(spread), spread_page([spread])
    for row in range(2):
        for column in range(3):
            mean, off = f"{spread.mean[row][column]:.2f}", f"±{spread.deviation[row][column]:.2f}"
            assert f"{mean} {off}" in drawn
            assert f"<b>{mean}</b> <span>{off}</span>" in made
    assert drawn.count("*") == made.count("class=fact") == 1
    assert "looks most at 爱 in 5 of 5 runs" in drawn
    assert "<li>I love: 3</li>" in made


def test_texts_of_a_page_are_no_markup():
    made = spread_page([spread_of()])
    assert "&lt;中&gt;" in made
    assert "I &lt;b&gt;" in made
    assert not re.search("<中>|I <b>", made)


@pytest.mark.parametrize("weights", [([[1.0] * 3] * 2,), ([[1.0] * 3] * 2, [[1.0] * 2] * 2)])
def test_one_run_or_other_sizes_are_an_error(weights):
    with pytest.raises(ShapeError, match="weights must be of two runs or more, with 2 rows of 3"):
        WeightSpread("我", "I", SOURCE, OUTPUT, weights, ("a", "b"))
