"""Tokens drawn by compiled loops are those that tensor operations draw."""

import pytest
import torch
from tests.cases import pairwise

from regard.decoding.sampling import Draw, uniform
from regard.errors import RunError

R, V = 7, 613


def both(draw, log_probs, step=0):
    rows = torch.arange(len(log_probs))
    numbers = uniform(draw.seeds, torch.zeros_like(rows), step)
    return draw._drawn_by_loops(log_probs, numbers).tolist(), draw._drawn(
        log_probs, numbers
    ).tolist()


@pairwise(
    temperature=[1.0, 0.7, 3],
    top_k=[None, 1, 5, V - 1, V + 9],
    top_p=[1.0, 0.93, 0.4, 1e-6],
    spread=[0.1, 1.0, 8.0],
)
def test_tokens_are_those_of_sorted_probabilities(temperature, top_k, top_p, spread):
    draw = Draw(seeds=torch.arange(R), temperature=temperature, top_k=top_k, top_p=top_p)
    log_probs = (spread * torch.randn(R, V)).log_softmax(1)
    log_probs[:, ::5] = -torch.inf
    for step in range(5):
        drawn, expected = both(draw, log_probs, step)
        assert drawn == expected


@pytest.mark.parametrize("settings", [{"top_k": 3}, {"top_p": 0.61}, {"top_k": 9, "top_p": 0.77}])
def test_of_equal_tokens_the_same_are_drawn_from(settings):
    draw = Draw(seeds=torch.arange(R), **settings)
    for step in range(20):
        log_probs = torch.randint(-4, 0, (R, 41)).float().log_softmax(1)
        drawn, expected = both(draw, log_probs, step)
        assert drawn == expected


def test_one_possible_token_is_drawn_and_where_there_is_none_nothing_breaks():
    log_probs = torch.full((R, V), -torch.inf)
    log_probs[:, 11] = 0.0
    draw = Draw(seeds=torch.arange(R), top_k=5, top_p=0.5)
    assert both(draw, log_probs)[0] == [11] * R
    log_probs[3, 11] = -torch.inf
    drawn = both(draw, log_probs)[0]
    assert [*drawn[:3], *drawn[4:]] == [11] * (R - 1)
    assert 0 <= drawn[3] < V


@pytest.mark.parametrize("sign", [1, -1])
def test_nan_is_named(sign):
    log_probs = torch.randn(R, V).log_softmax(1)
    log_probs[4, 8] = torch.tensor(torch.nan).copysign(torch.tensor(float(sign)))
    draw = Draw(seeds=torch.arange(R), top_k=5)
    with pytest.raises(RunError, match="log_probs must be numbers; got NaN"):
        draw._drawn_by_loops(log_probs, torch.rand(R, dtype=torch.float64))
