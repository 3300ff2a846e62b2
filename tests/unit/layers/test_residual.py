import pytest
import torch
from torch.nn import functional as F

from regard.errors import SettingError
from regard.layers import Residual
from regard.layers.residual import _AddDropoutNorm, keep_mask, keep_scale, random_bytes

B, S, C, RATE = 2, 3, 7, 0.3


def inputs(dtype=torch.float64):
    return [torch.randn(B, S, C, dtype=dtype, requires_grad=True) for _ in range(2)]


def layer(order, dtype=torch.float64):
    made = Residual(C, dropout=RATE, norm=order).to(dtype)
    torch.nn.init.normal_(made.norm.weight)
    torch.nn.init.normal_(made.norm.bias)
    return made


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
    wanted = [states, weight, residual.norm.weight, residual.norm.bias]

    def sublayer(x):
        return torch.tanh(x @ weight)

    factors = factors_of(5)
    expected = plain(residual, states, sublayer, factors)
    torch.manual_seed(5)
    found = residual(states, sublayer)
    assert (factors == 0).any()
    torch.testing.assert_close(found, expected)
    direction = torch.randn_like(expected)
    for ours, formulas in zip(
        torch.autograd.grad(found, wanted, direction),
        torch.autograd.grad(expected, wanted, direction),
        strict=True,
    ):
        torch.testing.assert_close(ours, formulas)


def test_fused_gradients_pass_finite_differences():
    states, change = inputs()
    weight, bias = (torch.randn(C, dtype=torch.float64, requires_grad=True) for _ in range(2))

    def fused(*tensors):
        torch.manual_seed(5)
        return _AddDropoutNorm.apply(*tensors, 1e-5, RATE)

    assert torch.autograd.gradcheck(fused, (states, change, weight, bias))


@pytest.mark.parametrize("order", ["post", "pre"])
def test_evaluation_drops_nothing(order):
    residual = layer(order).eval()
    states, change = inputs()
    found = residual(states, lambda _: change)
    torch.testing.assert_close(
        found, plain(residual, states, lambda _: change, torch.ones_like(change))
    )


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


@pytest.mark.parametrize("order", ["post", "pre"])
def test_the_sublayer_is_called_once(order):
    calls = []
    layer(order)(inputs()[0], lambda x: (calls.append(x), x)[1])
    assert len(calls) == 1


def test_only_pre_norm_leaves_a_way_around_untouched():
    states, _ = inputs()
    assert torch.equal(layer("pre")(states, torch.zeros_like), states)
    assert not torch.equal(layer("post")(states, torch.zeros_like), states)


def test_wrong_dropout_is_named():
    with pytest.raises(SettingError, match=r"dropout must be at least 0 and below 1; got 1\.0"):
        Residual(C, dropout=1.0)
