"""The oracle itself, on cases small enough to work by hand."""

import math

import pytest
import torch

from regard.attention.reference import attend_by_loops

# The threshold at which (1/2 − τ)² + (1/4 − τ)² is one.
TAU = (3 - math.sqrt(31)) / 8


def tensor(*rows):
    return torch.tensor(rows, dtype=torch.float64)[None, None]


def test_two_keys_by_hand():
    query, key = tensor([1.0]), tensor([0.0], [math.log(3)])
    answer = attend_by_loops(query, key, tensor([4.0], [8.0]))
    torch.testing.assert_close(answer.weights, tensor([0.25, 0.75]))
    torch.testing.assert_close(answer.context, tensor([7.0]))
    torch.testing.assert_close(answer.lse, torch.tensor([[[math.log(4)]]]).double())


def test_query_heads_share_a_key_head_in_order():
    query = torch.ones(1, 4, 1, 1)
    value = torch.tensor([10.0, 20.0]).view(1, 2, 1, 1)
    answer = attend_by_loops(query, torch.ones(1, 2, 1, 1), value)
    assert answer.context.flatten().tolist() == [10, 10, 20, 20]


@pytest.mark.parametrize(
    ("weighting", "want"),
    [
        ("sparsemax", [0.75, 0.25, 0.0]),
        ("hard", [1.0, 0.0, 0.0]),
        ("entmax15", [(1 / 2 - TAU) ** 2, (1 / 4 - TAU) ** 2, 0.0]),
    ],
)
def test_other_weightings_of_worked_rows(weighting, want):
    query, key = tensor([1.0]), tensor([1.0], [0.5], [-3.0])
    answer = attend_by_loops(query, key, key, weighting=weighting)
    torch.testing.assert_close(answer.weights, tensor(want))


def test_a_sink_takes_its_share_and_values_of_pairs_are_added():
    query, key = tensor([1.0]), tensor([0.0], [0.0])
    added = tensor([[0.0], [4.0]])[0]
    answer = attend_by_loops(
        query, key, key, sink=torch.tensor([math.log(2)]).double(), value_bias=added
    )
    torch.testing.assert_close(answer.weights, tensor([0.25, 0.25]))
    torch.testing.assert_close(answer.context, tensor([1.0]))
    torch.testing.assert_close(answer.lse, torch.tensor([[[math.log(4)]]]).double())
