"""Weightings against their definitions, and in the engine."""

import pytest
import torch
from tests.formulas.weightings import WEIGHTINGS, weigh

from regard.attention import Entmax15, Hard, Softmax, Sparsemax, attend


@pytest.mark.parametrize("name", ["sparsemax", "entmax15"])
def test_rows_are_those_of_the_definition(name):
    scores = 3 * torch.randn(40, 9, dtype=torch.float64)
    scores[::3, 4:] = float("-inf")
    torch.testing.assert_close(WEIGHTINGS[name](None).rows(scores), weigh(name, scores))


def test_sparse_weightings_leave_keys_out_that_softmax_does_not():
    scores = torch.tensor([[0.0, -0.9, -1.5, -2.5]])
    num_visible = [
        (w.rows(scores) > 0).sum().item() for w in (Hard(), Sparsemax(), Entmax15(), Softmax())
    ]
    assert num_visible == [1, 2, 3, 4]


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


def test_a_sink_of_a_class_made_from_softmax_counts(make_inputs):
    class Named(Softmax):
        pass

    query, key, value = make_inputs()
    outputs, expected = (
        attend(query, key, value, weighting=kind(sink=0.5)) for kind in (Named, Softmax)
    )
    torch.testing.assert_close(outputs, expected)
    assert not torch.allclose(outputs, attend(query, key, value))


@pytest.mark.parametrize("weighting", [Sparsemax(), Entmax15()], ids=repr)
def test_a_row_of_nan_stays_one(weighting):
    rows = weighting.rows(torch.tensor([[torch.nan, 1.0], [0.0, 0.0]]))
    assert rows[0].isnan().all()
    assert rows[1].tolist() == pytest.approx([0.5, 0.5])
