"""Layers inside ``torch.compile``: one graph, the numbers of eager calls."""

import copy

import pytest
import torch
from tests.cases import slow_but
from torch import nn

from regard.attention import Gaussian, Softmax, alibi, attend, causal, lengths, window
from regard.layers import (
    AdditiveAttention,
    AttentionPooling,
    BilinearAttention,
    DotAttention,
    KernelAttention,
    LocationAttention,
    MultiHeadAttention,
    RelativePositions,
    RotaryPositions,
    ShawPositions,
)

B, N, M, C, K, H = 2, 7, 9, 12, 5, 3

# torch's own warning about an autograd function that a compiler traces.
pytestmark = pytest.mark.filterwarnings("ignore:.*should not be instantiated:DeprecationWarning")


@pytest.fixture(autouse=True)
def _without_graphs_of_before(as_users_have_it):
    torch._dynamo.reset()


def assert_same(layer, call, *inputs):
    """Answer and gradients of the compiled call agree with those of the call itself."""
    answers, grads = [], []
    for one, run in (
        (copy.deepcopy(layer), call),
        (layer, torch.compile(call, backend="aot_eager", fullgraph=True)),
    ):
        given = [t.clone().requires_grad_() if t.is_floating_point() else t for t in inputs]
        torch.manual_seed(5)
        answers.append(run(one, *given))
        answers[-1].square().sum().backward()
        learned = [*given, *one.parameters()]
        grads.append([t.grad for t in learned if t.requires_grad])
    torch.testing.assert_close(answers[1], answers[0])
    for got, want in zip(grads[1], grads[0], strict=True):
        assert (got is None) == (want is None)
        if got is not None:
            torch.testing.assert_close(got, want, rtol=1e-4, atol=1e-4)


def states(dtype=torch.float32):
    return torch.randn(B, N, C, dtype=dtype)


OVER_ITSELF = {
    "plain": ({}, lambda n: {}),
    "causal and lengths": ({}, lambda n: {"mask": causal() & lengths(n)}),
    "window": ({}, lambda n: {"mask": window(2, 1)}),
    "alibi": ({}, lambda n: {"bias": alibi(), "mask": causal()}),
    "dropout": ({"dropout": 0.3}, lambda n: {"mask": lengths(n)}),
    "grouped": ({"num_key_heads": 1}, lambda n: {"mask": lengths(n)}),
    "rotary": ({"rotary": RotaryPositions(C // H)}, lambda n: {"mask": causal()}),
    "gaussian": ({"score": Gaussian(nn.Parameter(torch.full((H, 1), 1.5)))}, lambda n: {}),
}


@pytest.mark.parametrize("case", slow_but(["causal and lengths"], OVER_ITSELF))
def test_heads_over_their_own_states(case):
    options, rest = OVER_ITSELF[case]
    layer = MultiHeadAttention(C, H, **options)
    n = torch.tensor([4, 7])
    assert_same(layer, lambda layer, states, n: layer(states, **rest(n))[0], states(), n)


@pytest.mark.slow
def test_heads_in_half_precision():
    layer = MultiHeadAttention(C, H).bfloat16()
    assert_same(layer, lambda layer, states: layer(states)[0], states(torch.bfloat16))


@pytest.mark.slow
@pytest.mark.parametrize("positions", [RelativePositions(H), ShawPositions(C // H, max_distance=2)])
def test_heads_with_learned_positions(positions):
    layer = nn.ModuleDict({"attend": MultiHeadAttention(C, H), "positions": positions})
    assert_same(layer, lambda each, x: each["attend"](x, bias=each["positions"]())[0], states())


@pytest.mark.slow
def test_heads_over_a_memory():
    layer = MultiHeadAttention(C, H, key_value_dim=K)
    memory, n = torch.randn(B, M, K), torch.tensor([4, 9])
    assert_same(layer, lambda layer, x, m, n: layer(x, m, mask=lengths(n))[0], states(), memory, n)


@pytest.mark.slow
def test_steps_with_a_cache():
    def decode(layer, states):
        cache, out = layer.empty_cache(B), []
        for place in range(3):
            mixed, cache = layer(states[:, place : place + 1], cache=cache)
            out.append(mixed)
        return torch.cat(out, dim=1)

    assert_same(MultiHeadAttention(C, H), decode, states())


@pytest.mark.parametrize("has_one_query", [True, False])
def test_additive_attention(has_one_query):
    def ask(layer, query, memory, n):
        query = query[:, 0] if has_one_query else query
        return layer(query, layer.prepare(memory), memory, mask=lengths(n))

    memory, n = torch.randn(B, M, K), torch.tensor([4, 9])
    assert_same(AdditiveAttention(C, K, 8), ask, states(), memory, n)


@pytest.mark.slow
@pytest.mark.parametrize(
    "layer",
    [
        DotAttention(),
        BilinearAttention(C, C),
        LocationAttention(C, N),
        *(KernelAttention(name, bandwidth=6.0) for name in ("gaussian", "laplace", "box")),
        KernelAttention("epanechnikov", bandwidth=9.0),
    ],
)
def test_other_single_heads(layer):
    n = torch.tensor([4, 7])
    assert_same(
        layer, lambda layer, x, n: layer(x, layer.prepare(x), x, mask=lengths(n)), states(), n
    )


def test_pooling():
    layer = AttentionPooling(C, num_queries=2)
    n = torch.tensor([4, 7])
    assert_same(layer, lambda layer, x, n: layer(x, mask=lengths(n)), states(), n)


def test_a_learned_sink():
    layer = nn.ParameterDict({"sink": torch.zeros(H)})

    def ask(layer, states):
        heads = states.view(B, N, H, C // H).transpose(1, 2)
        return attend(heads, heads, weighting=Softmax(layer["sink"]), mask=causal())

    assert_same(layer, ask, states())
