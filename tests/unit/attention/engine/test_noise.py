"""Dropout that depends on the place alone."""

import pytest
import torch

from regard.attention import Additive, ScaledDot, attend
from regard.attention.engine import blocks, numerics
from regard.attention.engine.numerics import dropout_factors


def test_about_the_requested_fraction_is_dropped_everywhere():
    factors = dropout_factors(7, 0.3, tuple(map(range, (4, 3, 50, 60))), like=torch.ones(1))
    assert factors.unique().tolist() == pytest.approx([0, 1 / 0.7])
    for axis in range(4):
        rest = [a for a in range(4) if a != axis]
        rates = (factors == 0).float().mean(dim=rest)
        assert (rates - 0.3).abs().max() < 0.06


@pytest.mark.parametrize("seed", [0, 7, 2**40 + 3])
def test_compiled_factors_are_those_of_the_formula(monkeypatch, seed):
    block = (range(2, 5), range(1, 3), range(30, 39), range(5, 42))
    compiled = dropout_factors(seed, 0.3, block, like=torch.ones(1))
    monkeypatch.setattr(numerics, "why_not", lambda: "numba cannot be loaded (by a test)")
    assert torch.equal(compiled, dropout_factors(seed, 0.3, block, like=torch.ones(1)))


@pytest.mark.parametrize("score", [ScaledDot(), Additive(torch.ones(11).double())])
@pytest.mark.parametrize("rows", [1, 3])
def test_the_pattern_does_not_depend_on_the_blocks(make_inputs, monkeypatch, score, rows):
    inputs = make_inputs()

    def call():
        generator = torch.Generator().manual_seed(5)
        return attend(*inputs, score=score, dropout=0.5, generator=generator)

    whole = call()
    small = blocks.Sizes(pairs=rows * 7, rows=rows, keys=4, splits_heads=False)
    monkeypatch.setattr(blocks.Sizes, "of", lambda *args, **options: small)
    torch.testing.assert_close(call(), whole)


def test_the_generator_decides_the_pattern(make_inputs):
    inputs = make_inputs()
    draws = [
        attend(*inputs, dropout=0.5, generator=torch.Generator().manual_seed(seed))
        for seed in (1, 1, 2)
    ]
    assert torch.equal(draws[0], draws[1])
    assert not torch.equal(draws[0], draws[2])
