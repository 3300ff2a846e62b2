"""Position biases against their formulas, pair by pair, with gradients, in the engine."""

from math import log

import pytest
import torch
from torch.autograd import gradcheck, gradgradcheck

from regard.attention import (
    ScaledDot,
    alibi,
    attend,
    causal,
    lengths,
    relative,
    shaw,
    weights,
)
from regard.attention.reference import attend_by_loops
from regard.errors import SettingError, ShapeError

B, H, N, M, D, E = 2, 3, 5, 7, 11, 13


def double(*shape):
    return torch.randn(shape, dtype=torch.float64)


def steps(queries, keys, first=None):
    first = keys - queries if first is None else first
    return [[j - (i + first) for j in range(keys)] for i in range(queries)]


def t5_bucket(step, *, bidirectional, buckets, most):
    """One distance after the other, as the paper's appendix and its code have it."""
    bucket = 0
    if bidirectional:
        buckets //= 2
        if step > 0:
            bucket += buckets
        distance = abs(step)
    else:
        distance = max(-step, 0)
    exact = buckets // 2
    if distance < exact:
        return bucket + distance
    far = exact + int(log(distance / exact) / log(most / exact) * (buckets - exact))
    return bucket + min(far, buckets - 1)


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


@pytest.mark.parametrize("bidirectional", [True, False])
@pytest.mark.parametrize(("buckets", "most"), [(8, 16), (32, 128), (6, 20)])
def test_relative_adds_the_number_of_the_distances_bucket(bidirectional, buckets, most):
    table = double(buckets, H)
    length = 150
    query, key = double(1, H, 3, D), double(1, H, length, D)
    rule = relative(table, is_bidirectional=bidirectional, max_distance=most, first=70)
    bias = torch.stack(
        [
            torch.stack(
                [
                    table[t5_bucket(step, bidirectional=bidirectional, buckets=buckets, most=most)]
                    for step in row
                ]
            )
            for row in steps(3, length, 70)
        ]
    ).permute(2, 0, 1)
    want = weights(query, key, bias=bias)
    torch.testing.assert_close(weights(query, key, bias=rule), want)
    torch.testing.assert_close(attend(query, key, bias=rule), want @ key)


@pytest.mark.parametrize("per_head", [False, True])
@pytest.mark.parametrize("with_values", [False, True])
def test_shaw_adds_vectors_of_distances_to_keys_and_values(make_inputs, per_head, with_values):
    query, key, value = make_inputs()
    lead = (H,) if per_head else ()
    keys_of_distance, values_of_distance = double(*lead, 5, D), double(*lead, 5, E)
    place = torch.tensor(steps(N, M)).clamp(-2, 2) + 2
    a_key, a_value = keys_of_distance[..., place, :], values_of_distance[..., place, :]
    scores = (query[:, :, :, None] * (key[:, :, None] + a_key)).sum(-1) / D**0.5
    rows = scores.masked_fill(~causal().bind(B, H, N, M).dense(), float("-inf")).softmax(-1)
    mixed = value[:, :, None] + a_value if with_values else value[:, :, None]
    want = (rows[..., None] * mixed).sum(-2)
    rule = shaw(keys_of_distance, values_of_distance if with_values else None)
    torch.testing.assert_close(attend(query, key, value, bias=rule, mask=causal()), want)


RULES = {
    "alibi": (alibi, [(H,)]),
    "relative": (lambda table: relative(table, max_distance=4), [(6, H)]),
    "shaw": (shaw, [(3, D)]),
    "shaw with values": (shaw, [(H, 3, D), (3, E)]),
}


@pytest.mark.parametrize("name", RULES)
@pytest.mark.parametrize("dropout", [0.0, 0.3])
def test_gradients_flow_to_tables_and_inputs_twice(make_inputs, name, dropout):
    make, shapes = RULES[name]
    tables = [double(*shape).requires_grad_() for shape in shapes]

    def call(query, key, value, *tables):
        return attend(
            query,
            key,
            value,
            score=ScaledDot(softcap=3.0),
            bias=make(*tables),
            mask=lengths([4, 0]),
            dropout=dropout,
            generator=torch.Generator().manual_seed(3),
        )

    inputs = (*make_inputs(requires_grad=True), *tables)
    assert gradcheck(call, inputs, fast_mode=True)
    assert gradgradcheck(call, inputs, fast_mode=True)


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
