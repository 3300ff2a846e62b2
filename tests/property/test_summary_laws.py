"""Laws of summaries, over random sizes, scores, masks and weightings."""

import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.property.test_attention_laws import SCORES, SIZES, WEIGHTINGS, draw_inputs, draw_mask

from regard.attention import attend, observe, rows, summarize

QUICK = settings(max_examples=25)
MAPS = st.integers(1, 5)
SEEDS = st.integers(0, 999)


@QUICK
@given(SEEDS, SIZES, SIZES, SCORES, WEIGHTINGS, MAPS)
def test_masses_add_up_to_the_counted_queries_that_see_something(
    seed, queries, keys, score, weighting, most
):
    query, key, _ = draw_inputs(seed, queries, keys)
    generator = torch.Generator().manual_seed(seed)
    counted = torch.rand(2, queries, generator=generator) > 0.3
    summary = summarize(
        query,
        key,
        score=score,
        mask=draw_mask(seed, queries, keys),
        weighting=weighting,
        map=most,
        queries=counted,
    )
    counts = summary.counts.sum(-1).double()
    for mass in (summary.received.sum(-1), summary.pooled.sum((-1, -2))):
        if getattr(weighting, "sink", None) is None:
            torch.testing.assert_close(mass, counts)
        assert (mass <= counts + 1e-9).all()
    assert max(summary.pooled.shape[-2:]) <= most


@QUICK
@given(SEEDS, SIZES, SIZES, SCORES)
def test_entropy_is_between_nothing_and_that_of_even_weights(seed, queries, keys, score):
    query, key, _ = draw_inputs(seed, queries, keys)
    mask = draw_mask(seed, queries, keys)
    summary = summarize(query, key, score=score, mask=mask)
    visible = mask.bind(2, 3, queries, keys).dense().expand(2, 3, queries, keys).double().sum(-1)
    assert (summary.entropy >= 0).all()
    assert (summary.effective_keys <= visible + 1e-9).all()
    assert ((summary.top_keys >= 0).sum(-1) <= visible.clamp_max(8)).all()


@QUICK
@given(SEEDS, SIZES, st.integers(9, 40), SCORES)
def test_the_order_of_keys_changes_nothing_but_indices(seed, queries, keys, score):
    query, key, _ = draw_inputs(seed, queries, keys)
    order = torch.randperm(keys, generator=torch.Generator().manual_seed(seed))
    summary = summarize(query, key, score=score)
    shuffled = summarize(query, key[:, :, order], score=score)
    for name in ("lse", "entropy", "top_weights"):
        torch.testing.assert_close(getattr(shuffled, name), getattr(summary, name))
    torch.testing.assert_close(shuffled.received, summary.received[..., order])


@QUICK
@given(SEEDS, SIZES, SIZES, SCORES, WEIGHTINGS)
def test_what_is_exact_agrees_with_attend(seed, queries, keys, score, weighting):
    query, key, value = draw_inputs(seed, queries, keys)
    options = {"score": score, "weighting": weighting, "mask": draw_mask(seed, queries, keys)}
    calls = []
    with observe(calls.append):
        context = attend(query, key, value, **options)
    torch.testing.assert_close(rows(query, key, slice(None), **options) @ value, context)
    received = calls[0].transposed(torch.ones(queries, 1, dtype=torch.float64))
    torch.testing.assert_close(received[..., 0], summarize(query, key, **options).received)
