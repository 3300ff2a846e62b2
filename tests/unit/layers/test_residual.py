"""Dropout, norms, and the residual connection that has both."""

import pytest
import torch
from tests import cases
from torch.nn import functional as F

from regard import kernels
from regard.errors import SettingError
from regard.layers import Dropout, Residual
from regard.layers.residual import (
    NORMS,
    BatchNorm,
    dropout,
    keep_mask,
    keep_scale,
    random_bytes,
    threshold,
)

B, S, C, RATE = 2, 3, 7, 0.3


def inputs(dtype=torch.float64):
    return [torch.randn(B, S, C, dtype=dtype, requires_grad=True) for _ in range(2)]


def layer(order, dtype=torch.float64):
    module = Residual(C, dropout=RATE, norm=order).to(dtype)
    torch.nn.init.normal_(module.norm.weight)
    torch.nn.init.normal_(module.norm.bias)
    return module


def plain(residual, states, sublayer, factors):
    """The formula of the class, with the factors of dropout given."""
    if residual.order == "pre":
        return states + sublayer(residual.norm(states)) * factors
    return residual.norm(states + sublayer(states) * factors)


def factors_of(seed):
    torch.manual_seed(seed)
    return keep_mask(random_bytes(torch.Size([B, S, C])), RATE).double() * keep_scale(RATE)


@pytest.mark.parametrize("order", ["post", "pre"])
def test_values_and_gradients_are_the_formulas(order):
    residual = layer(order)
    weight = torch.randn(C, C, dtype=torch.float64, requires_grad=True)
    states, _ = inputs()
    differentiated = [states, weight, residual.norm.weight, residual.norm.bias]

    def sublayer(x):
        return torch.tanh(x @ weight)

    factors = factors_of(5)
    expected = plain(residual, states, sublayer, factors)
    torch.manual_seed(5)
    outputs = residual(states, sublayer)
    assert (factors == 0).any()
    torch.testing.assert_close(outputs, expected)
    direction = torch.randn_like(expected)
    torch.testing.assert_close(
        torch.autograd.grad(outputs, differentiated, direction),
        torch.autograd.grad(expected, differentiated, direction),
    )
    undropped = plain(residual, states, sublayer, torch.ones_like(states))
    torch.testing.assert_close(residual.eval()(states, sublayer), undropped)  # drops nothing


def test_a_half_precision_change_is_added_to_whole_states():
    residual = layer("post", torch.float32)
    states, change = (t.detach().float() for t in inputs())
    half = change.bfloat16().requires_grad_()
    torch.manual_seed(5)
    out = residual(states, lambda _: half)
    out.square().sum().backward()
    factors = factors_of(5).float()
    expected = F.layer_norm(
        states + half.detach().float() * factors, (C,), residual.norm.weight, residual.norm.bias
    )
    assert out.dtype == torch.float32
    assert half.grad.dtype == torch.bfloat16
    torch.testing.assert_close(out, expected)
    assert (half.grad[factors == 0] == 0).all()


@pytest.mark.skipif(kernels.why_not() is not None, reason="nothing is compiled here")
@cases.pairwise(
    order=["post", "pre"],
    rows=[0, 1, 3, 2053],
    width=[13, 64],
    rate=[0.3, 0.99],
    dtype=["float32", "bfloat16"],
    threads=[1, 2],
)
def test_compiled_passes_give_what_torch_gives(
    order, rows, width, rate, dtype, threads, monkeypatch
):
    dtype, residual = getattr(torch, dtype), Residual(width, dropout=rate, norm=order)
    torch.nn.init.normal_(residual.norm.weight)
    torch.nn.init.normal_(residual.norm.bias)
    states = (3 + torch.randn(2, width, rows)).mT.requires_grad_()  # not contiguous
    change = torch.randn(2, rows, width).to(dtype).requires_grad_()
    direction = torch.randn(2, rows, width)
    inputs = [states, change, residual.norm.weight, residual.norm.bias]
    outputs = []
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    for reason in (None, "to compare"):
        monkeypatch.setattr(kernels, "why_not", lambda reason=reason: reason)
        torch.manual_seed(5)
        out = residual(states, lambda normed: change + 0 * normed.to(dtype))
        outputs.append((out, *torch.autograd.grad(out, inputs, direction)))
    torch.set_num_threads(before)
    rtol = 1e-4 if dtype == torch.float32 else 2**-7
    torch.testing.assert_close(*outputs, rtol=rtol, atol=2e-5)


@pytest.mark.skipif(kernels.why_not() is not None, reason="nothing is compiled here")
@cases.pairwise(shape=[(0,), (7,), (300, 1000)], dtype=["float32", "bfloat16"])
def test_compiled_dropout_is_exactly_the_masks(shape, dtype, monkeypatch):
    states = torch.randn(*shape).to(getattr(torch, dtype)).requires_grad_()
    outputs = []
    for reason in (None, "to compare"):
        monkeypatch.setattr(kernels, "why_not", lambda reason=reason: reason)
        torch.manual_seed(5)
        out = dropout(states, RATE)
        outputs.append((out, *torch.autograd.grad(out, states, states.detach())))
    torch.testing.assert_close(*outputs, rtol=0, atol=0)


def test_a_second_derivative_goes_through():
    residual = layer("post", torch.float32)
    states, change = (t.detach().float().requires_grad_() for t in inputs())
    out = residual(states, lambda _: change)
    (first,) = torch.autograd.grad(out.square().sum(), states, create_graph=True)
    (second,) = torch.autograd.grad(first.square().sum(), states)
    assert second.abs().sum() > 0


@pytest.mark.parametrize("rate", [0.001, 0.1, 0.25, 0.3, 0.5, 0.999])
def test_expectation_is_preserved_exactly(rate):
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
    is_kept = (dropout(torch.ones(8, 50_000), 0.5) != 0).double()
    for shift in (1, 2, 4, 8):
        both_kept = (is_kept.flatten()[:-shift] * is_kept.flatten()[shift:]).mean().item()
        assert both_kept == pytest.approx(0.25, abs=0.01)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16])
def test_dtype_is_preserved_and_factors_are_right(dtype):
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


def test_nothing_is_dropped_or_copied_outside_training_or_at_rate_zero():
    states = torch.randn(5)
    assert dropout(states, 0.5, training=False) is states
    assert dropout(states, 0.0) is states
    assert Dropout(0.5).eval()(states) is states
    assert not torch.equal(Dropout(0.5).train()(states.expand(50, 5)), states.expand(50, 5))


ROWS, N = 3, 5


def batch():
    counts = torch.arange(N) < torch.tensor([5, 2, 3])[:, None]
    states = torch.randn(ROWS, N, C, dtype=torch.float64) * 3 + 1
    return torch.where(counts[..., None], states, 1e3), counts


def norm():
    module = BatchNorm(C).double()
    torch.nn.init.normal_(module.weight)
    torch.nn.init.normal_(module.bias)
    return module


def test_batch_norm_is_torchs_over_the_real_positions():
    states, counts = batch()
    ours, theirs = norm(), torch.nn.BatchNorm1d(C).double()
    theirs.load_state_dict({"weight": ours.weight, "bias": ours.bias}, strict=False)
    for scale in (1.0, 2.0):
        outputs = ours(scale * states, counts)
        torch.testing.assert_close(outputs[counts], theirs(scale * states[counts]))
    torch.testing.assert_close(ours.mean, theirs.running_mean)
    torch.testing.assert_close(ours.variance, theirs.running_var)
    torch.testing.assert_close(ours.eval()(states)[counts], theirs.eval()(states[counts]))
    assert not torch.allclose(norm()(states)[counts], norm()(states, counts)[counts])


def test_rms_norm_leaves_the_mean():
    states = torch.randn(ROWS, N, C) + 5
    expected = states / (states.square().mean(-1, keepdim=True) + 1e-6).sqrt()
    torch.testing.assert_close(NORMS["rms"](C)(states), expected)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Dropout(-0.1), "dropout must be at least 0 and below 1; got -0.1"),
        (lambda: Dropout(1.0), "dropout must be at least 0 and below 1; got 1.0"),
        (lambda: BatchNorm(0), "model_dim must be at least 1; got 0"),
    ],
)
def test_wrong_setting_is_named(make, message):
    with pytest.raises(SettingError, match=message):
        make()
