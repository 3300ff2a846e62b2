"""Positions, fixed and learned, added to states, turning heads, or as a bias."""

import math

import pytest
import torch

from regard.attention import attend, relative, shaw
from regard.errors import SettingError, ShapeError
from regard.layers import MultiHeadAttention
from regard.layers.positions import (
    LearnedPositions,
    RelativePositions,
    RotaryPositions,
    ShawPositions,
    SinusoidalPositions,
    sinusoidal,
)


@pytest.mark.parametrize("base", [10000.0, 50.0])
@pytest.mark.parametrize("width", [2, 7, 12])
@pytest.mark.parametrize("position", [0, 1, 5, 99, 100_000])
def test_every_entry_is_the_formula_of_the_paper(width, position, base):
    row = sinusoidal(torch.tensor([position]), width, base=base, dtype=torch.float64)[0]
    for c in range(width):
        angle = position / base ** (2 * (c // 2) / width)
        expected = math.cos(angle) if c % 2 else math.sin(angle)
        assert row[c].item() == pytest.approx(expected, abs=1e-9)


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


@pytest.mark.parametrize("known", [3, 30])
def test_rows_may_start_at_positions_of_their_own(known):
    states, first = torch.randn(3, 4, 6), torch.tensor([0, 5, -2])
    layers = SinusoidalPositions(6, max_length=known), LearnedPositions(6, max_length=30)
    for layer in layers:
        rows = layer(states, first=first)
        assert torch.equal(rows[:2], torch.cat([layer(states[:1]), layer(states[1:2], first=5)]))
        early = states[2:, :3] + (layer(torch.zeros(1, 1, 6)))  # before a row begins
        assert torch.equal(rows[2:, :3], early)
        assert torch.equal(rows[2:, 3:], layer(states[2:, 3:], first=1))


def test_sinusoids_are_not_part_of_a_checkpoint():
    assert SinusoidalPositions(6).state_dict() == RotaryPositions(6).state_dict() == {}
    assert list(LearnedPositions(6, max_length=3).state_dict()) == ["table"]


def turned(vector, position, base, pairs):
    """Equation 34 of Su et al. (2021), one pair after the other."""
    D = len(vector)
    out = [0.0] * D
    for i in range(D // 2):
        first, second = (2 * i, 2 * i + 1) if pairs == "interleaved" else (i, i + D // 2)
        angle = position * base ** (-2 * i / D)
        out[first] = vector[first] * math.cos(angle) - vector[second] * math.sin(angle)
        out[second] = vector[second] * math.cos(angle) + vector[first] * math.sin(angle)
    return out


@pytest.mark.parametrize("base", [10000.0, 50.0])
@pytest.mark.parametrize("pairs", ["interleaved", "halves"])
@pytest.mark.parametrize("first", [0, 5, 100_000])
def test_rotary_positions_turn_each_pair_by_the_angle_of_the_paper(first, pairs, base):
    heads = torch.randn(2, 3, 7, 6, dtype=torch.float64)
    out = RotaryPositions(6, base=base, pairs=pairs, max_length=9)(heads, first=first)
    for b, h, n in [(0, 0, 0), (1, 2, 3), (0, 1, 6)]:
        want = turned(heads[b, h, n].tolist(), first + n, base, pairs)
        torch.testing.assert_close(out[b, h, n], torch.tensor(want, dtype=torch.float64))
    torch.testing.assert_close(out.norm(dim=-1), heads.norm(dim=-1))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("first", [0, 40, 46, 100_000])
def test_rotary_positions_are_exact_in_any_dtype_of_heads_and_of_the_model(first, dtype):
    rotary = RotaryPositions(6, max_length=50)
    heads = torch.randn(2, 7, 6).to(dtype)
    want = rotary(heads.double(), first=first)
    for model_dtype in (torch.float16, torch.float64, torch.float32):
        out = rotary.to(model_dtype)(heads, first=first)
        assert out.dtype == dtype
        assert (out.double() - want).abs().max() <= torch.finfo(dtype).eps * 4


@pytest.mark.parametrize("positions", [RelativePositions(3), ShawPositions(4, max_distance=2)])
def test_tables_of_distances_learn(positions):
    layer = MultiHeadAttention(12, 3)
    states = torch.randn(2, 5, 12)
    layer(states, bias=positions())[0].square().sum().backward()
    for name, table in positions.named_parameters():
        assert table.grad.ne(0).any(), name


def test_relative_positions_are_the_rule_of_their_table():
    positions = RelativePositions(3, num_buckets=6, max_distance=5)
    assert list(positions.state_dict()) == ["table"]
    assert positions.table.shape == (6, 3)
    assert positions.table.eq(0).all()
    torch.nn.init.normal_(positions.table)
    query, key = torch.randn(1, 3, 4, 8), torch.randn(1, 3, 7, 8)
    for first in (None, 1):
        want = relative(positions.table, max_distance=5, first=first)
        assert torch.equal(
            attend(query, key, bias=positions(first=first)), attend(query, key, bias=want)
        )
    one_way = RelativePositions(3, num_buckets=5, is_bidirectional=False)
    torch.nn.init.normal_(one_way.table)
    want = relative(one_way.table, is_bidirectional=False)
    assert torch.equal(attend(query, key, bias=one_way()), attend(query, key, bias=want))


@pytest.mark.parametrize("has_values", [True, False])
def test_shaw_positions_are_the_rule_of_their_tables(has_values):
    positions = ShawPositions(8, max_distance=2, value_head_dim=5, has_values=has_values)
    tables = [positions.key_table, positions.value_table]
    assert tables[0].shape == (5, 8)
    assert (tables[1] is not None) == has_values
    query, key, value = (torch.randn(1, 3, n, w) for n, w in ((4, 8), (7, 8), (7, 5)))
    want = attend(query, key, value, bias=shaw(*tables, first=1))
    assert torch.equal(attend(query, key, value, bias=positions(first=1)), want)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: RotaryPositions(5), "head_dim must be even for rotary positions.*; got 5"),
        (lambda: RotaryPositions(4, base=0.0), "base must be above 0; got 0.0"),
        (lambda: RelativePositions(3, num_buckets=7), "num_buckets must be even .*; got 7"),
        (lambda: RelativePositions(3, num_buckets=2), "num_buckets must be at least 4; got 2"),
        (lambda: RelativePositions(3, max_distance=8), "max_distance must be at least 9; got 8"),
        (lambda: ShawPositions(4, max_distance=0), "max_distance must be at least 1; got 0"),
        (lambda: LearnedPositions(6, max_length=0), "max_length must be at least 1"),
        (lambda: RotaryPositions(4)(torch.zeros(2, 6)), r"head_dim=4 wide; got \(2, 6\)"),
        (
            lambda: LearnedPositions(6, max_length=3)(torch.zeros(1, 1, 6), first=3),
            "positions must be at most max_length=3; got 4",
        ),
    ],
)
def test_what_does_not_fit_positions_is_named(make, message):
    with pytest.raises((SettingError, ShapeError), match=message):
        make()
