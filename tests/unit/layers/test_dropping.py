import pytest
import torch

from regard.errors import SettingError
from regard.layers import Dropout, dropout
from regard.layers.residual import keep_mask, keep_scale, random_bytes, threshold


@pytest.mark.parametrize("rate", [0.001, 0.1, 0.25, 0.3, 0.5, 0.999])
def test_expectation_is_kept_exactly(rate):
    # Over every byte that can be drawn, the mean of what one element is multiplied by is one.
    every_byte = torch.arange(256, dtype=torch.uint8)
    factors = keep_mask(every_byte, rate).double() * keep_scale(rate)
    assert factors.mean().item() == pytest.approx(1, abs=1e-12)
    assert set((factors != 0).double().tolist()) <= {0.0, 1.0}
    assert (factors == 0).sum().item() == threshold(rate)


def test_every_byte_is_drawn_about_equally_often():
    counts = torch.bincount(random_bytes(torch.Size([256, 1009])).flatten().int(), minlength=256)
    assert counts.sum().item() == 256 * 1009
    assert (counts - 1009).abs().max().item() < 6 * 1009**0.5


def test_neighbours_are_dropped_independently():
    kept = (dropout(torch.ones(8, 50_000), 0.5) != 0).double()
    for shift in (1, 2, 4, 8):
        together = (kept.flatten()[:-shift] * kept.flatten()[shift:]).mean().item()
        assert together == pytest.approx(0.25, abs=0.01)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16])
def test_dtype_is_kept_and_factors_are_right(dtype):
    states = torch.ones(3, 5, 7, dtype=dtype, requires_grad=True)
    dropped = dropout(states, 0.25)
    dropped.sum().backward()
    assert dropped.dtype == states.grad.dtype == dtype
    scale = torch.tensor(4 / 3, dtype=dtype)
    assert torch.equal(dropped.unique(), torch.stack([torch.zeros_like(scale), scale]))


def test_gradient_is_right_by_finite_differences():
    states = torch.randn(3, 5, dtype=torch.float64, requires_grad=True)

    def same_mask_each_time(x):
        torch.manual_seed(3)
        return dropout(x, 0.3)

    assert torch.autograd.gradcheck(same_mask_each_time, states)


def test_the_seed_decides_the_mask():
    masks = []
    for seed in (1, 1, 2):
        torch.manual_seed(seed)
        masks.append(dropout(torch.ones(1000), 0.5))
    assert torch.equal(masks[0], masks[1])
    assert not torch.equal(masks[0], masks[2])


def test_nothing_is_dropped_or_copied_outside_training_or_at_rate_zero():
    states = torch.randn(5)
    assert dropout(states, 0.5, training=False) is states
    assert dropout(states, 0.0) is states
    assert Dropout(0.5).eval()(states) is states
    assert not torch.equal(Dropout(0.5).train()(states.expand(50, 5)), states.expand(50, 5))


@pytest.mark.parametrize("rate", [-0.1, 1.0, 1.5])
def test_wrong_rate_is_named(rate):
    with pytest.raises(SettingError, match=rf"dropout must be at least 0 and below 1; got {rate}"):
        Dropout(rate)
