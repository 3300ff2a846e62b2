"""Sampled hard attention: its frequencies, its log-probability, its edges."""

import pytest
import torch
from torch.autograd import gradcheck

from regard.attention import Additive, attend, causal, lengths, sample_key, weights
from regard.errors import ShapeError


def test_the_mean_of_draws_tends_to_soft_attention():
    torch.manual_seed(1)
    query, key, value = torch.randn(1, 1, 3, 5), torch.randn(1, 1, 6, 5), torch.randn(1, 1, 6, 2)
    mask = causal(first=2)
    many = [t.expand(20_000, *t.shape[1:]) for t in (query, key, value)]
    mean = sample_key(*many, mask=mask).context.mean(0)
    torch.testing.assert_close(mean, attend(query, key, value, mask=mask)[0], atol=0.05, rtol=0)


def test_context_index_and_log_probability_belong_together(make_inputs):
    query, key, value = make_inputs()
    w = torch.randn(11, dtype=torch.float64)
    bias = torch.randn(3, 1, 7, dtype=torch.float64)
    options = {"score": Additive(w), "bias": bias, "mask": lengths([4, 7])}
    drawn = sample_key(query, key, value, **options)
    rows = weights(query, key, **options)
    chosen = rows.gather(-1, drawn.index[..., None])[..., 0]
    torch.testing.assert_close(drawn.log_prob, chosen.log())
    want = value.gather(2, drawn.index[..., None].expand(2, 3, 5, 13))
    assert torch.equal(drawn.context, want)
    assert drawn.index[0].max() < 4


def test_the_log_probability_is_differentiable(make_inputs):
    w = torch.randn(11, dtype=torch.float64, requires_grad=True)
    bias = torch.randn(5, 7, dtype=torch.float64, requires_grad=True)

    def call(query, key, w, bias):
        generator = torch.Generator().manual_seed(5)
        return sample_key(query, key, score=Additive(w), bias=bias, generator=generator).log_prob

    query, key, _ = make_inputs(requires_grad=True)
    assert gradcheck(call, (query, key, w, bias), fast_mode=True)


def test_the_seed_decides_and_blocks_do_not():
    query, key = torch.randn(2, 3, 300, 4), torch.randn(2, 3, 70, 4)
    one, other, third = (
        sample_key(query, key, generator=torch.Generator().manual_seed(s)).index for s in (1, 1, 2)
    )
    assert torch.equal(one, other)
    assert not torch.equal(one, third)
    first = sample_key(query[:, :, :50], key, generator=torch.Generator().manual_seed(1)).index
    assert torch.equal(first, one[:, :, :50])


def test_who_sees_nothing_picks_nothing():
    drawn = sample_key(torch.ones(1, 2, 4), torch.ones(1, 3, 4), mask=lengths([0]))
    assert drawn.context.eq(0).all()
    assert drawn.index.eq(0).all()
    assert drawn.log_prob.eq(float("-inf")).all()


def test_without_keys_there_is_nothing_to_draw():
    with pytest.raises(ShapeError, match="key must have at least one position to draw from"):
        sample_key(torch.ones(1, 2, 3), torch.ones(1, 0, 3))


def test_autocast_narrows_nothing():
    query, key = torch.randn(1, 2, 9, 16), torch.randn(1, 2, 30, 16)
    seed = torch.Generator().manual_seed
    plain = sample_key(query, key, generator=seed(1))
    with torch.autocast("cpu", torch.bfloat16):
        drawn = sample_key(query, key, generator=seed(1))
    assert torch.equal(drawn.log_prob, plain.log_prob)
