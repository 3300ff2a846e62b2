"""The softmax over the first keys of each row, against its definition pair by pair."""

from math import exp

import pytest
import torch
from torch.autograd import gradcheck, gradgradcheck
from torch.testing import assert_close

import regard as rg
from regard.errors import ShapeError

B, H, N, M = 2, 3, 5, 7


def by_loops(scores, lengths):
    """``exp(score) / sum of exp(scores)`` over the first keys of each row, one after the other."""
    weights = torch.zeros(B, N, M, dtype=torch.float64)
    for b in range(B):
        for n in range(N):
            real = range(int(lengths[b, n]))
            total = sum(exp(scores[b, n, m]) for m in real)
            for m in real:
                weights[b, n, m] = exp(scores[b, n, m]) / total
    return weights


@pytest.mark.parametrize(
    "lengths",
    [None, 4, [3, 7], torch.tensor([0, 7]), torch.tensor([[1, 2, 3, 4, 5], [7, 0, 6, 5, 1]])],
)
def test_it_is_the_definition(lengths):
    scores = 3 * torch.randn(B, N, M, dtype=torch.float64)
    each = torch.as_tensor(M if lengths is None else lengths)
    each = each[:, None] if each.dim() == 1 else each
    assert_close(rg.masked_softmax(scores, lengths), by_loops(scores, each.expand(B, N)))


def test_a_row_of_nothing_is_zeros_where_a_large_negative_score_spreads_evenly():
    scores = torch.randn(B, N, M)
    assert rg.masked_softmax(scores, [0, 3])[0].eq(0).all()
    assert rg.masked_softmax(scores, 0).eq(0).all()
    assert rg.masked_softmax(scores[..., :0], 0).shape == (B, N, 0)


@pytest.mark.parametrize("shape", [(N, M), (B, N, M), (B, H, N, M), (2, B, H, N, M)])
def test_a_mask_hides_keys_as_it_does_in_the_engine(shape):
    scores, tensor = torch.randn(shape), torch.rand(shape) > 0.4
    visible = rg.masked_softmax(scores.masked_fill(~tensor, -torch.inf))
    assert_close(rg.masked_softmax(scores, mask=tensor), visible)
    assert_close(rg.masked_softmax(scores, tensor), visible)
    assert_close(
        rg.masked_softmax(scores, 4, mask=rg.causal()),
        rg.masked_softmax(scores, rg.lengths(4) & rg.causal()),
    )
    assert rg.masked_softmax(scores, rg.causal())[..., 0, 1 + M - N :].eq(0).all()


def test_gradients_are_right_and_rows_of_nothing_have_none():
    scores = torch.randn(B, N, M, dtype=torch.float64, requires_grad=True)
    assert gradcheck(lambda s: rg.masked_softmax(s, [0, 4]), scores, fast_mode=True)
    assert gradgradcheck(lambda s: rg.masked_softmax(s, [0, 4]), scores, fast_mode=True)
    (slope,) = torch.autograd.grad(rg.masked_softmax(scores, [0, 4])[..., 0].sum(), scores)
    assert slope[0].eq(0).all()
    assert slope[1, :, 4:].eq(0).all()
    assert slope[1, :, :4].ne(0).all()


def test_hidden_scores_that_are_no_numbers_reach_nothing():
    scores = torch.randn(B, N, M)
    broken = scores.clone()
    broken[:, :, 5:] = float("nan")
    broken[:, :, 6] = float("inf")
    broken.requires_grad_()
    weights = rg.masked_softmax(broken, 5)
    assert_close(weights, rg.masked_softmax(scores, 5))
    weights.square().sum().backward()
    assert broken.grad.isfinite().all()


@pytest.mark.parametrize(
    ("lengths", "message"),
    [
        ([1, 2, 3], r"lengths must have shape \(B,\) = \(2,\) or \(B, N\) = \(2, 5\); got \(3,\)"),
        ([1, 8], "lengths must be at most M = 7; got 8"),
        ([-1, 2], "lengths must be at least 0; got -1"),
        (torch.tensor([1.0, 2.0]), "lengths must"),
        (torch.ones(4, M).bool(), r"mask must broadcast to .* = \(2, 5, 7\); got \(4, 7\)"),
    ],
)
@pytest.mark.usefixtures("unchecked_shapes")
def test_lengths_that_fit_nothing_are_errors(lengths, message):
    with pytest.raises(ShapeError, match=message):
        rg.masked_softmax(torch.zeros(B, N, M), lengths)
