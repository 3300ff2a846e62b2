"""Laws of attention in compiled loops, which are of float32 alone, over random sizes and masks."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.attention import (
    Additive,
    Cosine,
    Entmax15,
    Sparsemax,
    alibi,
    attend,
    causal,
    dense,
    lengths,
    summarize,
)
from regard.kernels.attention import statistics

QUICK = settings(max_examples=15, deadline=None)
SEEDS, SIZES = st.integers(0, 999), st.sampled_from([1, 2, 7, 33, 130, 300])
SOFTMAX = [
    {"backend": "additive_cpu", "score": Additive(torch.linspace(-1, 1, 4))},
    {"backend": "dot_cpu"},
    {"backend": "dot_cpu", "score": Cosine(0.5)},
]
SPARSE = [
    {"backend": backend, "weighting": weighting}
    for backend in ("dot_cpu", "tiled")
    for weighting in (Sparsemax(), Entmax15())
]
OF_ALL, OF_SOFTMAX = st.sampled_from([*SOFTMAX, *SPARSE]), st.sampled_from(SOFTMAX)


def drawn(seed, queries, keys):
    """Query, key and value in float32, and a mask under which some rows see nothing."""
    torch.manual_seed(seed)
    inputs = [torch.randn(2, 3, n, 4) for n in (queries, keys, keys)]
    return *inputs, torch.rand(2, 1, queries, keys) > torch.rand(queries, 1)


def assert_close(one, other):
    torch.testing.assert_close(one, other, atol=2e-5, rtol=2e-5)


@QUICK
@given(SEEDS, SIZES, SIZES, OF_ALL, st.floats(-50, 50))
def test_shifting_all_scores_of_a_query_changes_no_weight(seed, queries, keys, options, shift):
    query, key, value, seen = drawn(seed, queries, keys)
    plain = attend(query, key, value, mask=dense(seen), **options)
    bias = torch.full((queries, keys), shift)
    assert_close(attend(query, key, value, mask=dense(seen), bias=bias, **options), plain)


@QUICK
@given(SEEDS, SIZES, SIZES, OF_ALL)
def test_shuffling_keys_with_their_values_changes_nothing(seed, queries, keys, options):
    query, key, value, seen = drawn(seed, queries, keys)
    order = torch.randperm(keys)
    moved = attend(
        query, key[:, :, order], value[:, :, order], mask=dense(seen[..., order]), **options
    )
    assert_close(moved, attend(query, key, value, mask=dense(seen), **options))


@QUICK
@given(SEEDS, SIZES, SIZES, OF_ALL)
def test_extra_padding_changes_nothing_whatever_is_in_it(seed, queries, keys, options):
    query, key, value, _ = drawn(seed, queries, keys)
    padded = [torch.cat([t, torch.full((2, 3, 9, 4), float("nan"))], dim=2) for t in (key, value)]
    found = attend(query, *padded, mask=lengths(keys), **options)
    assert_close(found, attend(query, key, value, **options))


@QUICK
@given(SEEDS, SIZES, OF_ALL, st.integers(1, 300))
def test_a_prefix_alone_equals_the_prefix_of_the_whole(seed, length, options, stop):
    inputs = drawn(seed, length, length)[:3]
    whole = attend(*inputs, mask=causal(), **options)[:, :, :stop]
    assert_close(attend(*(t[:, :, :stop] for t in inputs), mask=causal(), **options), whole)


@QUICK
@given(SEEDS, SIZES, SIZES, OF_SOFTMAX)
def test_what_a_mask_shows_and_what_it_hides_merge_by_their_log_sum_exp(
    seed, queries, keys, options
):
    query, key, value, seen = drawn(seed, queries, keys)
    whole = attend(query, key, value, **options)
    (one, lse), (other, rest) = (
        attend(query, key, value, mask=dense(each), return_lse=True, **options)
        for each in (seen, ~seen)
    )
    share = (lse - torch.logaddexp(lse, rest)).exp()[..., None]
    assert_close(share * one + (1 - share) * other, whole)


@pytest.fixture(scope="module")
def statistics_are_compiled():
    """Fails unless the laws of summaries were those of compiled loops."""
    called, real = [], statistics.summarize
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(statistics, "summarize", lambda *given: (called.append(1), real(*given)))
        yield
    assert called


@pytest.mark.usefixtures("statistics_are_compiled")
@QUICK
@given(SEEDS, SIZES, SIZES, st.integers(1, 5), st.sampled_from([None, alibi()]))
def test_masses_of_a_summary_add_up(seed, queries, keys, most, bias):
    query, key, _, seen = drawn(seed, queries, keys)
    counted = torch.rand(2, queries) > 0.3
    found = summarize(query, key, mask=dense(seen), bias=bias, map=most, queries=counted)
    counts = found.counts.sum(-1).float()
    assert_close(found.received.sum(-1), counts)
    assert_close(found.pooled.sum((-1, -2)), counts)
    visible = seen.sum(-1).expand(2, 3, queries)
    assert (found.entropy >= 0).all()
    assert (found.effective_keys <= visible * 1.0001).all()
    assert torch.equal((found.top_keys >= 0).sum(-1), visible.clamp_max(8))


@pytest.mark.usefixtures("statistics_are_compiled")
@QUICK
@given(SEEDS, st.lists(st.integers(0, 70), min_size=1, max_size=5), st.integers(1, 5))
def test_parts_of_a_summary_join_to_the_whole(seed, sizes, most):
    query, key, _, _ = drawn(seed, sum(sizes), sum(sizes))
    options = {"mask": causal(), "map": most}
    whole, parts, start = summarize(query, key, **options), [], 0
    for size in sizes:
        stop = start + size
        some = query[:, :, start:stop], key[:, :, :stop]
        parts.append(summarize(*some, start=(start, 0), **options))
        start = stop
    joined = parts[0].joined(*parts[1:])
    assert torch.equal(joined.top_keys, whole.top_keys)
    for name, tensor in whole.tensors().items():
        torch.testing.assert_close(getattr(joined, name), tensor, atol=1e-4, rtol=2e-5, msg=name)
