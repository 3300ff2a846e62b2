"""The oracle itself, on cases small enough to work by hand."""

import math

import torch

from regard.attention.reference import attend_by_loops


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
