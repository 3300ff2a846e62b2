"""Laws of attention, over random sizes, scores and masks."""

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import regard as rg

SIZES = st.integers(1, 9)
SCORES = st.sampled_from(
    [
        rg.Dot(),
        rg.ScaledDot(),
        rg.ScaledDot(softcap=1.0),
        rg.Additive(torch.linspace(-1, 1, 4, dtype=torch.float64)),
        rg.Bilinear(torch.linspace(-1, 1, 16, dtype=torch.float64).reshape(4, 4)),
        rg.Cosine(0.5),
        rg.Gaussian(1.5),
        rg.Laplace(2.0),
        rg.StudentT(2.0),
        rg.Box(2.5),
        rg.Epanechnikov(3.5),
    ]
)
WEIGHTINGS = st.sampled_from(
    [rg.Softmax(), rg.Softmax(sink=0.5), rg.Sparsemax(), rg.Entmax15(), rg.Hard()]
)
QUICK = settings(max_examples=40)


def draw_inputs(seed, queries, keys):
    generator = torch.Generator().manual_seed(seed)
    return [
        torch.randn(2, 3, n, 4, dtype=torch.float64, generator=generator)
        for n in (queries, keys, keys)
    ]


def log_sum_exp(query, key, score, mask, bias=None):
    """−∞ for queries that see no key, or none with a score above −∞."""
    return rg.attend(query, key, score=score, mask=mask, bias=bias, return_lse=True)[1]


def draw_mask(seed, queries, keys):
    generator = torch.Generator().manual_seed(seed + 1)
    return rg.dense(torch.rand(2, 1, queries, keys, generator=generator) > 0.4)


@QUICK
@given(st.integers(0, 999), SIZES, SIZES, SCORES)
def test_visible_weights_sum_to_one_and_hidden_ones_are_zero(seed, queries, keys, score):
    query, key, _ = draw_inputs(seed, queries, keys)
    mask = draw_mask(seed, queries, keys)
    rows, lse = rg.weights(query, key, score=score, mask=mask), log_sum_exp(query, key, score, mask)
    visible = mask.bind(2, 3, queries, keys).dense().expand(rows.shape)
    assert rows[~visible].eq(0).all()
    torch.testing.assert_close(rows.sum(-1), (lse > -torch.inf).double())


@QUICK
@given(st.integers(0, 999), SIZES, SIZES, SCORES, WEIGHTINGS)
def test_shuffling_keys_with_their_values_changes_nothing(seed, queries, keys, score, weighting):
    query, key, value = draw_inputs(seed, queries, keys)
    if isinstance(score, rg.Box) and isinstance(weighting, rg.Hard):
        return  # all keys in reach are equally good, and the first of them counts
    order = torch.randperm(keys, generator=torch.Generator().manual_seed(seed))
    options = {"score": score, "weighting": weighting}
    shuffled = rg.attend(query, key[:, :, order], value[:, :, order], **options)
    torch.testing.assert_close(shuffled, rg.attend(query, key, value, **options))


@QUICK
@given(st.integers(0, 999), SIZES, SIZES, SCORES, WEIGHTINGS)
def test_rows_of_a_batch_and_heads_know_nothing_of_each_other(
    seed, queries, keys, score, weighting
):
    query, key, value = draw_inputs(seed, queries, keys)
    options = {"score": score, "weighting": weighting}
    whole = rg.attend(query, key, value, **options)
    for b in range(2):
        for h in range(3):
            alone = rg.attend(query[b, h], key[b, h], value[b, h], **options)
            torch.testing.assert_close(alone, whole[b, h])


@QUICK
@given(st.integers(0, 999), SIZES, SIZES, SCORES, WEIGHTINGS, st.booleans())
def test_an_empty_row_gets_zeros_and_changes_no_other(
    seed, queries, keys, score, weighting, by_mask
):
    inputs = [t.requires_grad_() for t in draw_inputs(seed, queries, keys)]
    empty = torch.rand(queries, 1, generator=torch.Generator().manual_seed(seed)) < 0.5
    hides = {"mask": rg.dense(~empty)}
    if not by_mask:
        hides = {"bias": torch.zeros(queries, 1).double().masked_fill(empty, -torch.inf)}
    options = {"score": score, "weighting": weighting}
    out = rg.attend(*inputs, **options, **hides)
    rows = empty[:, 0]
    assert out[:, :, rows].eq(0).all()
    torch.testing.assert_close(out[:, :, ~rows], rg.attend(*inputs, **options)[:, :, ~rows])
    grads = torch.autograd.grad(out.square().sum(), inputs)
    assert grads[0][:, :, rows].eq(0).all()
    assert all(grad.isfinite().all() for grad in grads)


@QUICK
@given(st.integers(0, 999), SIZES, SCORES)
def test_a_prefix_alone_equals_the_prefix_of_the_whole(seed, size, score):
    query, key, value = draw_inputs(seed, size, size)
    whole = rg.attend(query, key, value, score=score, mask=rg.causal())
    n = (size + 1) // 2
    part = rg.attend(query[:, :, :n], key[:, :, :n], value[:, :, :n], score=score, mask=rg.causal())
    torch.testing.assert_close(part, whole[:, :, :n])


@QUICK
@given(st.integers(0, 999), SIZES, SIZES, st.integers(1, 5), SCORES, WEIGHTINGS)
def test_extra_padding_changes_nothing_whatever_is_in_it(
    seed, queries, keys, extra, score, weighting
):
    query, key, value = draw_inputs(seed, queries, keys)
    nothing = torch.full((2, 3, extra, 4), float("nan"), dtype=torch.float64)
    padded = rg.attend(
        query,
        torch.cat([key, nothing], dim=2),
        torch.cat([value, nothing], dim=2),
        score=score,
        weighting=weighting,
        mask=rg.lengths([keys, keys]),
    )
    want = rg.attend(query, key, value, score=score, weighting=weighting)
    torch.testing.assert_close(padded, want)


@QUICK
@given(st.integers(0, 999), SIZES, SIZES, SCORES, st.floats(-50, 50))
def test_shifting_all_scores_of_a_query_shifts_only_the_log_sum_exp(
    seed, queries, keys, score, shift
):
    inputs = draw_inputs(seed, queries, keys)
    bias = torch.full((queries, 1), shift, dtype=torch.float64)
    for weighting in (rg.Softmax(), rg.Sparsemax(), rg.Entmax15()):
        options = {"score": score, "weighting": weighting}
        moved = rg.attend(*inputs, bias=bias, **options)
        torch.testing.assert_close(moved, rg.attend(*inputs, **options))
    lse, moved_lse = (log_sum_exp(*inputs[:2], score, None, bias=each) for each in (None, bias))
    torch.testing.assert_close(moved_lse, lse + shift)


@QUICK
@given(st.integers(0, 999), SIZES, SIZES, SCORES)
def test_what_a_mask_shows_and_what_it_hides_merge_by_their_log_sum_exp(seed, queries, keys, score):
    query, key, value = draw_inputs(seed, queries, keys)
    mask = draw_mask(seed, queries, keys)
    parts = [
        rg.attend(query, key, value, score=score, mask=each, return_lse=True)
        for each in (mask, ~mask)
    ]
    whole, total = rg.attend(query, key, value, score=score, return_lse=True)
    torch.testing.assert_close(torch.logaddexp(parts[0][1], parts[1][1]), total)
    pivot = total.masked_fill(total == -torch.inf, 0)
    merged = sum(out * (lse - pivot).exp()[..., None] for out, lse in parts)
    torch.testing.assert_close(merged, whole)
