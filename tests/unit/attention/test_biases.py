"""Position biases against their formulas, pair by pair, with gradients, in the engine."""

import pytest
import torch

from regard.attention import alibi, attend, relative, shaw, weights
from regard.attention.reference import attend_by_loops
from regard.errors import SettingError, ShapeError

N, M, D, E = 5, 7, 11, 13


def steps(queries, keys, first=None):
    first = keys - queries if first is None else first
    return [[j - (i + first) for j in range(keys)] for i in range(queries)]


@pytest.mark.parametrize("first", [None, 0, 1])
@pytest.mark.parametrize("slopes", [None, torch.tensor([0.1, 0.7, 2.0], dtype=torch.float64)])
def test_alibi_takes_off_slope_times_distance(make_inputs, slopes, first):
    inputs = make_inputs()
    used = torch.tensor([1 / 16, 1 / 256, 1 / 4]) if slopes is None else slopes
    bias = -used[:, None, None] * torch.tensor(steps(N, M, first)).abs()
    answer = attend_by_loops(*inputs, bias=bias)
    rule = alibi(slopes, first=first)
    torch.testing.assert_close(attend(*inputs, bias=rule), answer.context)
    torch.testing.assert_close(weights(*inputs[:2], bias=rule), answer.weights)


def test_the_papers_slopes():
    query = torch.zeros(1, 8, 1, 2)
    rows = weights(query, torch.zeros(1, 8, 2, 2), bias=alibi()).log()[0, :, 0]
    torch.testing.assert_close(rows[:, 1] - rows[:, 0], 2.0 ** -torch.arange(1.0, 9.0))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: relative(torch.ones(8)), r"table must have shape \(buckets, H\); got \(8,\)"),
        (lambda: shaw(torch.ones(4, D)), "odd number of rows, .* got 4"),
        (lambda: shaw(torch.ones(3, D), torch.ones(3, 4)), r"value_table must have .* 13\)"),
        (lambda: shaw(torch.ones(3, D), torch.ones(5, E)), "a row for each of the 3 distances"),
    ],
)
@pytest.mark.usefixtures("unchecked_shapes")
def test_tables_that_do_not_fit_are_refused(make_inputs, make, message):
    with pytest.raises(ShapeError, match=message):
        attend(*make_inputs(), bias=make())


@pytest.mark.parametrize(
    ("rows", "options", "message"),
    [
        (2, {}, "table must have two rows or more for each direction"),
        (9, {}, "got 9 for 2"),
        (1, {"is_bidirectional": False}, "got 1 for 1"),
        (8, {"max_distance": 2}, "max_distance must be at least 3; got 2"),
        (8, {"max_distance": 4, "is_bidirectional": False}, "max_distance must be at least 5"),
    ],
)
def test_buckets_that_cannot_be_are_refused(rows, options, message):
    with pytest.raises((ShapeError, SettingError), match=message):
        relative(torch.zeros(rows, 2), **options)
