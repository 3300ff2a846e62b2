"""Weightings against their definitions, and in the engine."""

import pytest
import torch
from torch.autograd import gradcheck

from regard.attention import Additive, Entmax15, Hard, Softmax, Sparsemax, attend, lengths, weights


def by_bisection(scores, weight):
    """Weights of one row: the threshold that makes them sum to one, found by halving."""
    low, high = scores.max() - 10, scores.max()
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if weight(scores - middle).sum() > 1 else (low, middle)
    return weight(scores - low)


DEFINITIONS = {
    Sparsemax(): lambda rest: rest.clamp_min(0),
    # With scores halved and the threshold too: max(0, s/2 − τ)².
    Entmax15(): lambda rest: (rest / 2).clamp_min(0) ** 2,
}


@pytest.mark.parametrize("weighting", DEFINITIONS)
def test_rows_are_those_of_the_definition(weighting):
    scores = 3 * torch.randn(40, 9, dtype=torch.float64)
    scores[::3, 4:] = float("-inf")
    for row, got in zip(scores, weighting.rows(scores), strict=True):
        torch.testing.assert_close(got, by_bisection(row, DEFINITIONS[weighting]))


@pytest.mark.parametrize("weighting", [Sparsemax(), Entmax15(), Hard(), Softmax()])
def test_rows_sum_to_one_or_are_empty(weighting):
    scores = torch.randn(5, 7, dtype=torch.float64)
    scores[2] = float("-inf")
    rows = weighting.rows(scores)
    torch.testing.assert_close(rows.sum(-1), torch.tensor([1.0, 1, 0, 1, 1], dtype=torch.float64))
    assert (rows >= 0).all()


def test_sparse_weightings_leave_keys_out_that_softmax_does_not():
    scores = torch.tensor([[0.0, -0.9, -1.5, -2.5]])
    kept = [(w.rows(scores) > 0).sum().item() for w in (Hard(), Sparsemax(), Entmax15(), Softmax())]
    assert kept == [1, 2, 3, 4]


@pytest.mark.parametrize("weighting", [Sparsemax(), Entmax15()])
@pytest.mark.parametrize("additive", [False, True])
def test_gradients_through_the_engine(make_inputs, weighting, additive):
    w = torch.randn(11, dtype=torch.float64, requires_grad=True)

    def call(query, key, value, w):
        score = {"score": Additive(w)} if additive else {}
        return attend(query, key, value, weighting=weighting, mask=lengths([4, 0]), **score)

    inputs = (*make_inputs(requires_grad=True), w)
    assert gradcheck(call, inputs, fast_mode=True)


@pytest.mark.parametrize("weighting", [Sparsemax(), Entmax15(), Hard()])
def test_the_engine_mixes_with_these_weights(make_inputs, weighting):
    query, key, value = make_inputs()
    rows = weights(query, key, weighting=weighting, mask=lengths([4, 7]))
    out = attend(query, key, value, weighting=weighting, mask=lengths([4, 7]))
    torch.testing.assert_close(out, rows @ value)


def test_hard_attention_gives_the_best_keys_value_and_trains_values_only(make_inputs):
    query, key, value = make_inputs(requires_grad=True)
    out = attend(query, key, value, weighting=Hard())
    best = (query @ key.mT).argmax(-1)
    torch.testing.assert_close(out, value.gather(2, best[..., None].expand(2, 3, 5, 13)))
    out.sum().backward()
    assert value.grad.sum() == out.numel()
    assert query.grad.eq(0).all()


def test_of_equal_scores_the_first_is_best():
    assert Hard().rows(torch.tensor([[1.0, 2.0, 2.0]])).tolist() == [[0, 1, 0]]


def test_a_nan_is_seen_and_not_picked():
    assert Hard().rows(torch.tensor([[1.0, float("nan")]])).isnan().any()
