"""The feed-forward sublayer, and what a stack of layers keeps of a stream."""

import math

import pytest
import torch

from regard.attention import causal
from regard.errors import SettingError
from regard.layers import BlockStack, FeedForward, TransformerBlock


@pytest.fixture
def stack():
    def block(layer):
        return TransformerBlock("decoder", layer, model_dim=8, num_heads=2, ffn_dim=16)

    return BlockStack(2, block).eval()


def test_a_stream_of_single_positions_sees_all_earlier_ones(stack):
    states = torch.randn(3, 5, 8)
    whole, _ = stack(states, mask=causal())
    past, cache, parts = stack.empty_caches(3), None, []
    for step in states.split(1, dim=1):
        part, past = stack(step, past=past)
        _, cache = stack[0](step, cache=cache)
        parts.append(part)
    torch.testing.assert_close(torch.cat(parts, dim=1), whole)
    assert cache.length == 5


def test_a_stream_that_never_began_is_refused(stack):
    step = torch.randn(3, 1, 8)
    _, past = stack(step)
    with pytest.raises(
        SettingError, match=r"a cache for each of 2 layers; got 0\. Begin with empty_caches\(batch"
    ):
        stack(step, past=past)


C, F = 3, 5
FORMULAS = {
    "relu": lambda x: max(0.0, x),
    "gelu": lambda x: x * (1 + math.erf(x / math.sqrt(2))) / 2,
}


@pytest.mark.parametrize("activation", sorted(FORMULAS))
def test_result_is_equation_2(activation):
    layer = FeedForward(C, F, activation=activation).double()
    for parameter in layer.parameters():
        torch.nn.init.normal_(parameter)
    states = torch.randn(2, 7, C, dtype=torch.float64)
    W1, b1, W2, b2 = (p.detach() for p in layer.parameters())
    for outputs, x in zip(layer(states).flatten(0, 1), states.flatten(0, 1), strict=True):
        hidden = [FORMULAS[activation](each) for each in (W1 @ x + b1).tolist()]
        torch.testing.assert_close(outputs, W2 @ torch.tensor(hidden, dtype=torch.float64) + b2)


def test_weights_begin_xavier_uniform_and_biases_zero():
    layer = FeedForward(64, 200)
    bound = math.sqrt(6 / 264)
    for linear in (layer.inner, layer.outer):
        assert 0.95 * bound < linear.weight.abs().max().item() <= bound
        assert not linear.bias.any()


def test_swiglu_is_its_papers_equation_6():
    layer = FeedForward(C, F, activation="swiglu").double()
    for parameter in layer.parameters():
        torch.nn.init.normal_(parameter)
    W, V = layer.inner.weight.chunk(2)
    b, c = layer.inner.bias.chunk(2)
    states = torch.randn(7, C, dtype=torch.float64)
    gate = states @ W.T + b
    inner = gate / (1 + (-gate).exp()) * (states @ V.T + c)
    torch.testing.assert_close(layer(states), layer.outer(inner))
    fresh, bound = FeedForward(64, 200, activation="swiglu"), math.sqrt(6 / 264)
    assert 0.95 * bound < fresh.inner.weight.abs().max().item() <= bound
