"""A decoding step: the same answers and gradients as the tiles give."""

import pytest
import torch
from torch.autograd import gradcheck, gradgradcheck

from regard.attention import Additive, attend, explain, lengths
from regard.attention.backends import additive_few

W = torch.linspace(-1, 1, 11, dtype=torch.float64)


@pytest.mark.parametrize("queries", [1, 3])
@pytest.mark.parametrize("mask", [None, lengths([4, 7]), lengths([0, 2])])
def test_derivatives_twice(make_inputs, queries, mask):
    inputs = (*make_inputs(queries=queries, requires_grad=True), W.clone().requires_grad_())
    assert queries <= additive_few.MOST_QUERIES

    def call(query, key, value, w):
        return attend(query, key, value, score=Additive(w), mask=mask)

    assert gradcheck(call, inputs, fast_mode=True)
    assert gradgradcheck(call, inputs, fast_mode=True)


@pytest.mark.parametrize("mask", [None, lengths([4, 7]), lengths([0, 2])])
def test_a_step_is_a_row_of_the_whole(make_inputs, mask):
    query, key, value = make_inputs()
    whole = attend(query, key, value, score=Additive(W), mask=mask, backend="tiled")
    for n in range(5):
        step = attend(query[:, :, n : n + 1], key, value, score=Additive(W), mask=mask)
        torch.testing.assert_close(step, whole[:, :, n : n + 1])


def test_nan_in_hidden_keys_and_values_stays_there(make_inputs):
    query, key, value = make_inputs(queries=1)
    mask = lengths([4, 6])
    clean = attend(query, key, value, score=Additive(W), mask=mask)
    for tensor in (key, value):
        tensor[0, :, 4:] = float("nan")
        tensor[1, :, 6:] = float("nan")
    leaves = [t.requires_grad_() for t in (query, key, value)]
    out = attend(*leaves, score=Additive(W), mask=mask)
    out.sum().backward()
    torch.testing.assert_close(out, clean)
    assert all(t.grad.isfinite().all() for t in leaves)


def test_large_sums_saturate(make_inputs):
    query, key, value = make_inputs(queries=1)
    out = attend(query * 1e4, key * 1e4, value, score=Additive(W), backend="additive_cpu")
    want = attend(query * 1e4, key * 1e4, value, score=Additive(W), backend="tiled")
    torch.testing.assert_close(out, want)


def test_the_plan_tells_a_step_from_many_queries(make_inputs):
    query, key, value = make_inputs()
    assert "at once" in explain(query[:, :, :1], key, value, score=Additive(W)).notes[0]
    assert "tiles" in explain(query, key, value, score=Additive(W)).notes[0]


@pytest.mark.parametrize("dim", [1, 2])
def test_inputs_may_lie_in_memory_in_any_order(dim):
    torch.manual_seed(1)
    query, key = torch.randn(3, 2, dim, 2).mT, torch.randn(3, 9, 2, dim).transpose(1, 2)
    w = torch.randn(dim)
    leaves = [t.requires_grad_() for t in (query, key, w)]
    out = attend(query, key, score=Additive(w))
    want = attend(query, key, score=Additive(w), backend="tiled")
    torch.testing.assert_close(out, want)
    for one, other in zip(
        torch.autograd.grad(out.sum(), leaves), torch.autograd.grad(want.sum(), leaves), strict=True
    ):
        torch.testing.assert_close(one, other)
