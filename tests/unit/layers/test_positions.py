"""Positions, fixed and learned."""

import math

import pytest
import torch

from regard.errors import SettingError, ShapeError
from regard.layers.positions import LearnedPositions, SinusoidalPositions, sinusoidal


@pytest.mark.parametrize("width", [2, 7, 12])
@pytest.mark.parametrize("place", [0, 1, 5, 99, 100_000])
def test_every_entry_is_the_formula_of_the_paper(width, place):
    row = sinusoidal(torch.tensor([place]), width, dtype=torch.float64)[0]
    for c in range(width):
        angle = place / 10000 ** (2 * (c // 2) / width)
        want = math.cos(angle) if c % 2 else math.sin(angle)
        assert row[c].item() == pytest.approx(want, abs=1e-9)


def test_a_position_ahead_is_a_rotation_of_the_position_here():
    # Section 3.5: PE(p + k) is a linear function of PE(p), the same for every p.
    table = sinusoidal(torch.arange(20), 8, dtype=torch.float64)
    solution = torch.linalg.lstsq(table[:10], table[3:13]).solution
    torch.testing.assert_close(table[10:17] @ solution, table[13:20])


@pytest.mark.parametrize(
    "layer", [SinusoidalPositions(6, max_length=9), LearnedPositions(6, max_length=9)]
)
def test_positions_may_start_anywhere(layer):
    states = torch.randn(2, 9, 6)
    whole = layer(states)
    assert torch.equal(layer(states[:, 4:7], first=4), whole[:, 4:7])
    assert not torch.equal(whole, states)


def test_sinusoids_go_beyond_the_table():
    short, long = SinusoidalPositions(6, max_length=3), SinusoidalPositions(6, max_length=30)
    states = torch.randn(2, 9, 6)
    assert torch.equal(short(states), long(states))


def test_sinusoids_are_not_part_of_a_checkpoint():
    assert SinusoidalPositions(6).state_dict() == {}
    assert list(LearnedPositions(6, max_length=3).state_dict()) == ["table"]


def test_learned_positions_end():
    layer = LearnedPositions(6, max_length=3)
    with pytest.raises(ShapeError, match="positions must be at most max_length=3; got 4"):
        layer(torch.zeros(1, 1, 6), first=3)
    with pytest.raises(SettingError, match="max_length must be above 0"):
        LearnedPositions(6, max_length=0)


def test_learned_positions_learn():
    layer = LearnedPositions(6, max_length=3)
    layer(torch.zeros(1, 2, 6)).sum().backward()
    assert layer.table.grad[:2].eq(1).all()
    assert layer.table.grad[2].eq(0).all()
