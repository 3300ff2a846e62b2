"""Summaries against the dense formula: every number, for scores, masks, biases and weightings."""

import pytest
import torch
from tests.formulas.biases import BIASES, steps
from tests.formulas.case import Case
from tests.formulas.masks import MASKS
from tests.formulas.scores import SCORES
from tests.formulas.sizes import Sizes
from tests.formulas.weightings import WEIGHTINGS, weigh

from regard.attention import summarize

SIZES = Sizes(B=2, H=3, G=3, N=5, M=7, D=11, E=13)
GROUPED = SIZES._replace(H=6, G=2)


def dense_scores(case):
    query, key, _ = case.inputs
    key = key.repeat_interleave(case.sizes.H // case.sizes.G, 1)
    scores = SCORES[case.score].dense(query, key, case.of_score)
    if case.bias:
        scores = scores + BIASES[case.bias].added(query, steps(case.sizes), *case.of_bias)
    return scores.masked_fill(~case.seen, -torch.inf)


def dense_summary(case, counted, width):
    """The numbers of a summary from the whole matrix, in float64."""
    scores = dense_scores(case)
    weights = weigh(case.weighting, scores, *case.of_sink)
    B, H, N, M = weights.shape
    empty = (scores == -torch.inf).all(-1)
    with_sink = scores
    if case.of_sink:
        column = case.of_sink[0].reshape(-1, 1, 1).expand(B, H, N, 1)
        with_sink = torch.cat([scores, column], -1)
    given = weights * counted[:, None, :, None]
    rows, columns = (
        torch.nn.functional.one_hot(torch.arange(n) // w).to(weights.dtype)
        for n, w in zip((N, M), width, strict=True)
    )
    apart = (torch.arange(M) - torch.arange(N)[:, None] - (M - N)).abs()
    return {
        "lse": with_sink.logsumexp(-1).masked_fill(empty, -torch.inf),
        "entropy": -torch.xlogy(weights, weights).sum(-1),
        "distance": (weights * apart).sum(-1),
        "first": weights[..., 0],
        "received": given.sum(-2),
        "pooled": rows.T @ given @ columns,
        "counts": counted[:, None] & ~empty,
    }, weights


def assert_right(case, *, most=3, top=4, counted=None, atol=1e-9):
    query, key, _ = case.inputs
    B, N = case.sizes.B, case.sizes.N
    options = {**case.options(), "queries": counted}
    found = summarize(query, key, **options, top=top, map=most)
    every = torch.ones(B, N, dtype=torch.bool) if counted is None else counted.expand(B, N)
    expected, weights = dense_summary(case, every, found.bucket)
    for name, tensor in expected.items():
        assert getattr(found, name).shape == tensor.shape, name
        torch.testing.assert_close(
            getattr(found, name), tensor, atol=atol, rtol=atol, msg=lambda m, n=name: f"{n}: {m}"
        )
    assert found.pooled.shape[-2] <= most
    assert found.pooled.shape[-1] <= most
    assert_top_keys_are_right(found, dense_scores(case), weights, atol)


def assert_top_keys_are_right(found, scores, weights, atol):
    count = found.top_keys.shape[-1]
    # Hidden keys last, equal ones in the order of their places.
    best = scores.sort(dim=-1, descending=True, stable=True)
    keys = best.indices.masked_fill(best.values == -torch.inf, -1)[..., :count]
    have = keys.shape[-1]
    torch.testing.assert_close(found.top_keys[..., :have], keys)
    assert (found.top_keys[..., have:] == -1).all()
    expected = weights.gather(-1, keys.clamp_min(0)) * (keys >= 0)
    torch.testing.assert_close(found.top_weights[..., :have], expected, atol=atol, rtol=atol)


@pytest.mark.parametrize("score", SCORES)
def test_every_score(score):
    assert_right(Case.draw(SIZES, torch.float64, score=score, mask="causal"))


@pytest.mark.parametrize("mask", [None, *MASKS, "causal & lengths", "window | prefix"])
def test_every_mask(mask):
    assert_right(Case.draw(SIZES, torch.float64, mask=mask))


@pytest.mark.parametrize("bias", BIASES)
def test_every_bias(bias):
    assert_right(Case.draw(SIZES, torch.float64, bias=bias, mask="lengths"))


@pytest.mark.parametrize("mask", [None, "causal", "lengths of queries", "nothing"])
@pytest.mark.parametrize("weighting", WEIGHTINGS)
def test_every_weighting(weighting, mask):
    assert_right(Case.draw(SIZES, torch.float64, weighting=weighting, mask=mask))
