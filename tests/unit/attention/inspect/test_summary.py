"""Summaries against the dense formula: every number, for scores, masks, biases and weightings."""

import pytest
import torch
from tests.cases import pairwise
from tests.formulas.biases import BIASES, steps
from tests.formulas.case import Case
from tests.formulas.masks import MASKS
from tests.formulas.scores import SCORES
from tests.formulas.sizes import Sizes
from tests.formulas.weightings import WEIGHTINGS, weigh

import regard as rg
from regard.attention.inspect.statistics import top_positions
from regard.errors import SettingError, ShapeError

SIZES = Sizes(B=2, H=3, G=3, N=5, M=7, D=11, E=13)
# By the formulas, and by the compiled pass.
DTYPES = pytest.mark.parametrize(
    ("dtype", "atol"), [(torch.float64, 1e-9), (torch.float32, 2e-5)], ids=["formulas", "compiled"]
)


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
    counted_weights = weights * counted[:, None, :, None]
    rows, columns = (
        torch.nn.functional.one_hot(torch.arange(n) // w).to(weights.dtype)
        for n, w in zip((N, M), width, strict=True)
    )
    distance = (torch.arange(M) - torch.arange(N)[:, None] - (M - N)).abs()
    return {
        "lse": with_sink.logsumexp(-1).masked_fill(empty, -torch.inf),
        "entropy": -torch.xlogy(weights, weights).sum(-1),
        "distance": (weights * distance).sum(-1),
        "first": weights[..., 0],
        "received": counted_weights.sum(-2),
        "pooled": rows.T @ counted_weights @ columns,
        "counts": counted[:, None] & ~empty,
    }, weights


def assert_right(case, *, most=3, top=4, counted=None, atol=1e-9):
    query, key, _ = case.inputs
    B, N = case.sizes.B, case.sizes.N
    options = {**case.options(), "queries": counted}
    summary = rg.summarize(query, key, **options, top=top, map=most)
    counts = torch.ones(B, N, dtype=torch.bool) if counted is None else counted.expand(B, N)
    expected, weights = dense_summary(case, counts, summary.bucket)
    for name, tensor in expected.items():
        assert getattr(summary, name).shape == tensor.shape, name
        torch.testing.assert_close(
            getattr(summary, name), tensor, atol=atol, rtol=atol, msg=lambda m, n=name: f"{n}: {m}"
        )
    assert summary.pooled.shape[-2] <= most
    assert summary.pooled.shape[-1] <= most
    assert_top_keys_are_right(summary, dense_scores(case), weights, atol)


def assert_top_keys_are_right(summary, scores, weights, atol):
    count = summary.top_keys.shape[-1]
    # Hidden keys last, equal ones in the order of their places.
    best = scores.sort(dim=-1, descending=True, stable=True)
    keys = best.indices.masked_fill(best.values == -torch.inf, -1)[..., :count]
    num_found = keys.shape[-1]
    torch.testing.assert_close(summary.top_keys[..., :num_found], keys)
    assert (summary.top_keys[..., num_found:] == -1).all()
    expected = weights.gather(-1, keys.clamp_min(0)) * (keys >= 0)
    torch.testing.assert_close(summary.top_weights[..., :num_found], expected, atol=atol, rtol=atol)


@pairwise(
    score=SCORES,
    mask=[None, *MASKS, "causal & lengths", "window | prefix"],
    bias=[None, *BIASES],
    weighting=WEIGHTINGS,
    sizes=[SIZES, SIZES._replace(H=6, G=2)],
    dtype=[(torch.float64, 1e-9), (torch.float32, 2e-5)],
)
def test_any_two_choices_together(score, mask, bias, weighting, sizes, dtype):
    dtype, atol = dtype
    kind = {"score": score, "mask": mask, "bias": bias, "weighting": weighting}
    assert_right(Case.draw(sizes, dtype, **kind), atol=atol)


@DTYPES
@pytest.mark.parametrize("mask", [None, "causal", "window", "documents of rows", "where", "dense"])
def test_many_keys_in_parts_and_groups(mask, dtype, atol):
    sizes = SIZES._replace(B=1, N=211, M=1301)
    assert_right(Case.draw(sizes, dtype, mask=mask), most=17, top=3, atol=20 * atol)


@DTYPES
@pytest.mark.parametrize("top", [0, 1, 7, 9])
def test_any_number_of_top_keys(top, dtype, atol):
    assert_right(Case.draw(SIZES, dtype, mask="lengths"), top=top, atol=atol)


@DTYPES
@pytest.mark.parametrize("weighting", ["softmax", "sparsemax"])
def test_only_counted_queries_give(weighting, dtype, atol):
    counted = torch.tensor([[True, False, True, True, False], [False] * 5])
    case = Case.draw(SIZES, dtype, weighting=weighting, mask="lengths")
    assert_right(case, counted=counted, atol=atol)
    query, key, _ = case.inputs
    some = rg.summarize(query, key, queries=slice(1, -1), map=2)
    same = rg.summarize(query, key, queries=torch.tensor([False, True, True, True, False]), map=2)
    torch.testing.assert_close(some.tensors(), same.tensors(), equal_nan=True)


@pytest.mark.parametrize("weighting", [rg.Softmax(), rg.Sparsemax()], ids=repr)
def test_nan_in_hidden_keys_reaches_nothing(weighting):
    query, key = torch.randn(2, 3, 5, 11), torch.randn(2, 3, 7, 11)
    with_nan = key.clone()
    with_nan[:, :, 6] = torch.nan
    expected = rg.summarize(query, key, mask=rg.lengths([4, 6]), weighting=weighting)
    summary = rg.summarize(query, with_nan, mask=rg.lengths([4, 6]), weighting=weighting)
    torch.testing.assert_close(summary.tensors(), expected.tensors())
    # The last query sees it, and no other may have anything of it.
    expected = rg.summarize(query, key, mask=rg.causal(), weighting=weighting)
    summary = rg.summarize(query, with_nan, mask=rg.causal(), weighting=weighting)
    for name in ("lse", "entropy", "distance", "first", "top_keys", "top_weights"):
        torch.testing.assert_close(
            getattr(summary, name)[:, :, :4], getattr(expected, name)[:, :, :4]
        )


def test_queries_that_see_nothing_have_no_mass():
    summary = rg.summarize(
        torch.randn(2, 5, 11),
        torch.randn(2, 7, 11),
        mask=rg.lengths([0, 3]),
        weighting=rg.Softmax(0.5),
    )
    assert (summary.lse[0] == -torch.inf).all()
    assert (summary.top_keys[0] == -1).all()
    for name in ("entropy", "effective_keys", "distance", "first", "received", "pooled"):
        assert (getattr(summary, name)[0] == 0).all(), name
    assert summary.counts.tolist() == [[False] * 5, [True] * 5]
    assert (summary.effective_keys[1] > 1).all()


@pytest.mark.parametrize("far", [0, 30, 3e4, 1e9])
def test_a_sink_keeps_its_digits_with_scores_far_below(far):
    query, key, sink = torch.randn(1, 3, 5, 11), torch.randn(1, 3, 7, 11), torch.randn(3)
    options = {"bias": torch.full((5, 1), -float(far)), "weighting": rg.Softmax(sink=sink)}
    lse = rg.summarize(query, key, **options).lse
    scores = (query @ key.mT).double() / 11**0.5 - far
    exact = torch.cat([scores, sink.double()[:, None, None].expand(1, 3, 5, 1)], dim=-1).logsumexp(
        -1
    )
    torch.testing.assert_close(lse.double(), exact, atol=2e-6, rtol=2e-6)


def test_of_equal_keys_the_first_come_first():
    # Of one number only, so that no order of additions makes equal keys differ.
    key = torch.eye(11)[3].expand(97, 11)
    summary = rg.summarize(torch.randn(5, 11), key, top=4)
    assert summary.top_keys.tolist() == [[0, 1, 2, 3]] * 5
    # Better ones stay before them.
    key = key.clone()
    key[[40, 90]] *= 3
    best = rg.summarize(key[40:41], key, top=4).top_keys
    assert best.tolist() == [[40, 90, 0, 1]]


@pytest.mark.parametrize("axes", [2, 3, 4, 5])
def test_leading_axes_are_those_of_attend(axes):
    lead = {2: (), 3: (2,), 4: (2, 3), 5: (2, 1, 3)}[axes]
    query, key = torch.randn(*lead, 5, 11), torch.randn(*lead, 7, 11)
    summary = rg.summarize(query, key, map=2)
    assert summary.lse.shape == rg.attend(query, key).shape[:-1]
    torch.testing.assert_close(summary.received, rg.weights(query, key).sum(-2))
    assert {key: tuple(each.shape) for key, each in summary.tensors().items()} == {
        **dict.fromkeys(("lse", "entropy", "distance", "first", "counts"), (*lead, 5)),
        **dict.fromkeys(("top_keys", "top_weights"), (*lead, 5, 8)),
        **{"received": (*lead, 7), "pooled": (*lead, 2, 2)},
    }


@pytest.mark.parametrize(("N", "M"), [(0, 7), (5, 0), (0, 0)])
def test_without_queries_or_keys_the_summary_is_empty(N, M):
    summary = rg.summarize(torch.randn(3, N, 11), torch.randn(3, M, 11))
    assert (summary.shape, summary.pooled.shape) == ((3, N, M), (3, N, M))
    assert summary.received.sum() == 0


def test_a_custom_score_may_return_its_own_tensor():
    table = torch.randn(5, 7)
    before = table.clone()
    score = rg.Custom(lambda q, k, t: t[: q.shape[-2], : k.shape[-2]].expand(1, 1, -1, -1), table)
    summary = rg.summarize(torch.randn(5, 11), torch.randn(7, 11), score=score)
    assert torch.equal(table, before)
    torch.testing.assert_close(summary.lse, table.logsumexp(-1))


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"top": -1}, SettingError, r"top must be at least 0; got -1\."),
        ({"top": 1.5}, SettingError, r"top must be a whole number; got 1\.5\."),
        ({"map": 0}, SettingError, r"map must be at least 1; got 0\."),
        ({"start": (-1, 0)}, SettingError, r"start must be at least 0; got -1\."),
        (
            {"queries": torch.ones(4, dtype=torch.bool)},
            ShapeError,
            r"queries must broadcast to \(\*batch, N\) = \(3, 5\); got \(4,\)\.",
        ),
        ({"queries": torch.ones(5)}, ShapeError, "queries must be .* boolean .* got torch.float32"),
        ({"mask": torch.ones(5, 6, dtype=torch.bool)}, ShapeError, "mask must broadcast"),
    ],
    ids=["top", "half a top", "map", "start", "too few queries", "float queries", "mask"],
)
def test_bad_options_are_named(options, error, message, unchecked_shapes):
    with pytest.raises(error, match=message):
        rg.summarize(torch.randn(3, 5, 11), torch.randn(3, 7, 11), **options)


def _by_sorting(row, count):
    values = row.tolist()
    visible = [index for index, value in enumerate(values) if value > float("-inf")]
    return sorted(visible, key=lambda index: (-values[index], index))[:count]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("width", [1, 5, 8, 131, 257, 1031])
@pytest.mark.parametrize("kinds", [2, 10**6])
def test_the_top_indices_are_those_of_a_stable_sort(dtype, width, kinds):
    generator = torch.Generator().manual_seed(width)
    rows = torch.randint(-kinds, kinds, (3, width), generator=generator).to(dtype) / 7
    rows[rows == 0] *= -1.0  # zeros with a sign are as good as those without
    rows[1, ::2] = float("-inf")
    rows[2] = float("-inf")
    indices, is_found = top_positions(rows, 8)
    for row, row_indices, is_valid in zip(rows, indices, is_found, strict=True):
        assert row_indices[is_valid].tolist() == _by_sorting(row, 8)
        assert not row_indices[~is_valid].any()
