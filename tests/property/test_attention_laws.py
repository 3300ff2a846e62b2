"""Laws of attention, over random sizes, scores and masks."""

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.attention import (
    Additive,
    Bilinear,
    Cosine,
    Dot,
    Gaussian,
    Laplace,
    ScaledDot,
    StudentT,
    attend,
    causal,
    dense,
    lengths,
    weights,
)
from regard.layers.multihead import MultiHeadAttention

SIZES = st.integers(1, 9)
SCORES = st.sampled_from(
    [
        Dot(),
        ScaledDot(),
        ScaledDot(softcap=1.0),
        Additive(torch.linspace(-1, 1, 4, dtype=torch.float64)),
        Bilinear(torch.linspace(-1, 1, 16, dtype=torch.float64).reshape(4, 4)),
        Cosine(0.5),
        Gaussian(1.5),
        Laplace(2.0),
        StudentT(2.0),
    ]
)
QUICK = settings(max_examples=40, deadline=None)


def draw_inputs(seed, queries, keys):
    generator = torch.Generator().manual_seed(seed)
    return [
        torch.randn(2, 3, n, 4, dtype=torch.float64, generator=generator)
        for n in (queries, keys, keys)
    ]


def draw_mask(seed, queries, keys):
    generator = torch.Generator().manual_seed(seed + 1)
    return dense(torch.rand(2, 1, queries, keys, generator=generator) > 0.4)


@QUICK
@given(st.integers(0, 999), SIZES, SIZES, SCORES)
def test_visible_weights_sum_to_one_and_hidden_ones_are_zero(seed, queries, keys, score):
    query, key, _ = draw_inputs(seed, queries, keys)
    mask = draw_mask(seed, queries, keys)
    rows = weights(query, key, score=score, mask=mask)
    seen = mask.bind(2, 3, queries, keys).dense().expand(rows.shape)
    assert rows[~seen].eq(0).all()
    torch.testing.assert_close(rows.sum(-1), seen.any(-1).double())


@QUICK
@given(st.integers(0, 999), SIZES, SIZES, SCORES)
def test_mixing_with_the_weights_is_attending(seed, queries, keys, score):
    query, key, value = draw_inputs(seed, queries, keys)
    mask = draw_mask(seed, queries, keys)
    rows = weights(query, key, score=score, mask=mask)
    torch.testing.assert_close(attend(query, key, value, score=score, mask=mask), rows @ value)


@QUICK
@given(st.integers(0, 999), SIZES, SIZES, SCORES)
def test_shuffling_keys_with_their_values_changes_nothing(seed, queries, keys, score):
    query, key, value = draw_inputs(seed, queries, keys)
    order = torch.randperm(keys, generator=torch.Generator().manual_seed(seed))
    shuffled = attend(query, key[:, :, order], value[:, :, order], score=score)
    torch.testing.assert_close(shuffled, attend(query, key, value, score=score))


@QUICK
@given(st.integers(0, 999), SIZES, SCORES)
def test_a_prefix_alone_equals_the_prefix_of_the_whole(seed, size, score):
    query, key, value = draw_inputs(seed, size, size)
    whole = attend(query, key, value, score=score, mask=causal())
    n = (size + 1) // 2
    part = attend(query[:, :, :n], key[:, :, :n], value[:, :, :n], score=score, mask=causal())
    torch.testing.assert_close(part, whole[:, :, :n])


@QUICK
@given(st.integers(0, 999), SIZES, SIZES, st.integers(1, 5), SCORES)
def test_extra_padding_changes_nothing_whatever_is_in_it(seed, queries, keys, extra, score):
    query, key, value = draw_inputs(seed, queries, keys)
    nothing = torch.full((2, 3, extra, 4), float("nan"), dtype=torch.float64)
    padded = attend(
        query,
        torch.cat([key, nothing], dim=2),
        torch.cat([value, nothing], dim=2),
        score=score,
        mask=lengths([keys, keys]),
    )
    torch.testing.assert_close(padded, attend(query, key, value, score=score))


@QUICK
@given(st.integers(0, 999), SIZES, SIZES, SCORES, st.floats(-50, 50))
def test_shifting_all_scores_of_a_query_shifts_only_the_log_sum_exp(
    seed, queries, keys, score, shift
):
    query, key, value = draw_inputs(seed, queries, keys)
    bias = torch.full((queries, 1), shift, dtype=torch.float64)
    plain, lse = attend(query, key, value, score=score, return_lse=True)
    moved, moved_lse = attend(query, key, value, score=score, bias=bias, return_lse=True)
    torch.testing.assert_close(moved, plain)
    torch.testing.assert_close(moved_lse, lse + shift)


@QUICK
@given(st.integers(0, 999), SIZES, SIZES, SIZES, SCORES)
def test_two_parts_merge_by_their_log_sum_exp(seed, queries, one, other, score):
    query, key, value = draw_inputs(seed, queries, one + other)
    parts = [
        attend(query, key[:, :, s], value[:, :, s], score=score, return_lse=True)
        for s in (slice(one), slice(one, None))
    ]
    total = torch.logaddexp(parts[0][1], parts[1][1])
    merged = sum(out * (lse - total).exp()[..., None] for out, lse in parts)
    torch.testing.assert_close(merged, attend(query, key, value, score=score))


@QUICK
@given(st.integers(0, 999), st.integers(1, 6), st.lists(st.integers(1, 3), min_size=1, max_size=5))
def test_cached_decoding_equals_full_decoding(seed, heads, steps):
    torch.manual_seed(seed)
    layer = MultiHeadAttention(4 * heads, heads).double().eval()
    states = torch.randn(2, sum(steps), 4 * heads, dtype=torch.float64)
    whole, _ = layer(states, mask=causal())
    first, cache = layer(states[:, : steps[0]], mask=causal(), cache=layer.empty_cache(2))
    parts, place = [first], steps[0]
    for step in steps[1:]:
        out, cache = layer(states[:, place : place + step], mask=causal(), cache=cache)
        parts.append(out)
        place += step
    torch.testing.assert_close(torch.cat(parts, dim=1), whole)


@QUICK
@given(st.integers(0, 999), SIZES)
def test_without_positions_an_encoder_is_equivariant(seed, size):
    torch.manual_seed(seed)
    layer = MultiHeadAttention(8, 2).double().eval()
    states, order = torch.randn(2, size, 8, dtype=torch.float64), torch.randperm(size)
    torch.testing.assert_close(layer(states[:, order])[0], layer(states)[0][:, order])
