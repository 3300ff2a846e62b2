"""Compiled rows against the formulas in float64."""

import pytest
import torch

from regard.attention import Entmax15, Softmax, Sparsemax
from regard.attention.engine.tiled import row_gradient, row_weights
from regard.kernels.attention import weightings

BOTH = pytest.mark.parametrize("weighting", [Sparsemax(), Entmax15()], ids=["sparsemax", "entmax"])


@BOTH
@pytest.mark.parametrize("spread", [0.0, 0.01, 1.0, 20.0])
@pytest.mark.parametrize("keys", [1, 2, 7, 1500])
def test_weights_and_gradients_are_those_of_the_formula(weighting, spread, keys):
    scores = torch.randn(3, 5, keys) * spread
    scores[0, 1] = float("-inf")
    scores[1, 2, : keys // 2] = float("-inf")
    weights = row_weights(weighting, scores)
    exact = weighting.rows(scores.double())
    torch.testing.assert_close(weights.double(), exact, atol=1e-6, rtol=1e-5)
    assert weights[0, 1].eq(0).all()
    grad = torch.randn_like(weights)
    of_scores = row_gradient(weighting, weights, grad)
    expected = weighting.gradient(weights.double(), grad.double())
    torch.testing.assert_close(of_scores.double(), expected, atol=2e-6, rtol=1e-5)


@BOTH
def test_the_threshold_is_exact_at_large_scores(weighting):
    shift = torch.tensor([1e3, -1e5, 1e6, -1e30])[:, None]
    scores = torch.randn(4, 9) + shift
    weights = row_weights(weighting, scores)
    torch.testing.assert_close(weights, weighting.rows(scores.double()).float())


@BOTH
def test_a_nan_reaches_its_own_row_only(weighting):
    scores = torch.randn(4, 9)
    clean = row_weights(weighting, scores)
    scores[2, 3] = float("nan")
    weights = row_weights(weighting, scores)
    assert weights[2].isnan().any()
    assert torch.equal(weights[[0, 1, 3]], clean[[0, 1, 3]])


@BOTH
def test_the_loops_are_what_serves_and_only_where_nothing_is_recorded(monkeypatch, weighting):
    called, code = [], weightings.CODES[weighting.compiled_as]
    for name in ("rows", "gradient"):
        loop = getattr(weightings, name)
        monkeypatch.setattr(
            loop,
            "share",
            lambda *a, n=name, share=loop.share: (called.append((n, a[-1][0])), share(*a)),
        )
    scores = torch.randn(2, 6)
    weights = row_weights(weighting, scores)
    row_gradient(weighting, weights, scores)
    assert called == [("rows", code), ("gradient", code)]
    called.clear()
    row_weights(weighting, scores.double())
    row_weights(weighting, scores.requires_grad_())
    row_weights(Softmax(), scores.detach())
    assert not called


def test_rows_in_any_order_and_no_rows_at_all():
    scores = torch.randn(6, 4, 5)
    turned = row_weights(Sparsemax(), scores.transpose(0, 2))
    torch.testing.assert_close(turned, Sparsemax().rows(scores.transpose(0, 2)))
    assert row_weights(Sparsemax(), torch.zeros(2, 0, 5)).shape == (2, 0, 5)
