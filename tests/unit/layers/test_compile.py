"""Layers inside ``torch.compile``: one graph, the numbers of eager calls."""

import copy

import pytest
import torch
from tests.cases import slow_but
from torch import nn

from regard.attention import Softmax, attend, causal, lengths
from regard.layers import (
    AdditiveAttention,
    LocationAttention,
    MultiHeadAttention,
    RelativePositions,
    RotaryPositions,
    ShawPositions,
)
from regard.layers.attention import AttentionPooling
from regard.models.kernel_regression import KERNELS

B, N, M, C, K, H = 2, 7, 9, 12, 5, 3
STATES, MEMORY = torch.randn(B, N, C), torch.randn(B, M, K)
SHORT, LONG = torch.tensor([4, 7]), torch.tensor([4, 9])

# torch's own warning about an autograd function that a compiler traces.
pytestmark = pytest.mark.filterwarnings("ignore:.*should not be instantiated:DeprecationWarning")


@pytest.fixture(autouse=True)
def _without_graphs_of_before(as_users_have_it):
    torch._dynamo.reset()


def assert_same(layer, call, *inputs):
    """Answer and gradients of the compiled call agree with those of the call itself."""
    answers, grads = [], []
    for module, run in (
        (copy.deepcopy(layer), call),
        (layer, torch.compile(call, backend="aot_eager", fullgraph=True)),
    ):
        args = [t.clone().requires_grad_() if t.is_floating_point() else t for t in inputs]
        torch.manual_seed(5)
        answers.append(run(module, *args))
        answers[-1].square().sum().backward()
        learned = [*args, *module.parameters()]
        grads.append([t.grad for t in learned if t.requires_grad])
    torch.testing.assert_close(answers[1], answers[0])
    for gradient, expected in zip(grads[1], grads[0], strict=True):
        assert (gradient is None) == (expected is None)
        if gradient is not None:
            torch.testing.assert_close(gradient, expected, rtol=1e-4, atol=1e-4)


def heads(rest=lambda n: {}, **options):
    """Heads over their own states."""
    layer = MultiHeadAttention(C, H, **options)
    return layer, lambda layer, x, n: layer(x, **rest(n))[0], (STATES, SHORT)


def single(layer, memory=STATES, n=SHORT, has_one_query=False):
    """A layer of one head over a memory."""

    def ask(layer, query, memory, n):
        query = query[:, 0] if has_one_query else query
        return layer(query, layer.prepare(memory), memory, mask=lengths(n))

    return layer, ask, (STATES, memory, n)


def with_positions(positions):
    layer = nn.ModuleDict({"attend": MultiHeadAttention(C, H), "positions": positions})
    return layer, lambda each, x: each["attend"](x, bias=each["positions"]())[0], (STATES,)


def decode(layer, states):
    cache, out = layer.empty_cache(B), []
    for position in range(3):
        mixed, cache = layer(states[:, position : position + 1], cache=cache)
        out.append(mixed)
    return torch.cat(out, dim=1)


def with_sink(layer, states):
    split = states.view(B, N, H, C // H).transpose(1, 2)
    return attend(split, split, weighting=Softmax(layer["sink"]), mask=causal())


CASES = {
    "plain": heads(),
    "causal and lengths": heads(lambda n: {"mask": causal() & lengths(n)}),
    "dropout": heads(lambda n: {"mask": lengths(n)}, dropout=0.3),
    "grouped": heads(lambda n: {"mask": lengths(n)}, num_key_heads=1),
    "rotary": heads(lambda n: {"mask": causal()}, rotary=RotaryPositions(C // H)),
    "half precision": (
        MultiHeadAttention(C, H).bfloat16(),
        lambda layer, x: layer(x)[0],
        (STATES.bfloat16(),),
    ),
    "relative": with_positions(RelativePositions(H)),
    "shaw": with_positions(ShawPositions(C // H, max_distance=2)),
    "memory": (
        MultiHeadAttention(C, H, key_value_dim=K),
        lambda layer, x, m, n: layer(x, m, mask=lengths(n))[0],
        (STATES, MEMORY, LONG),
    ),
    "cache": (MultiHeadAttention(C, H), decode, (STATES,)),
    "additive, one query": single(AdditiveAttention(C, K, 8), MEMORY, LONG, has_one_query=True),
    "additive": single(AdditiveAttention(C, K, 8), MEMORY, LONG),
    "location": single(LocationAttention(C, N)),
    **{
        each: (
            nn.ParameterDict({"bandwidth": torch.tensor(9.0)}),
            lambda layer, x, score=score: attend(x, x, score=score(layer["bandwidth"])),
            (STATES,),
        )
        for each, score in KERNELS.items()
    },
    "pooling": (
        AttentionPooling(C),
        lambda layer, x, n: layer(x, mask=lengths(n)),
        (STATES, SHORT),
    ),
    "sink": (nn.ParameterDict({"sink": torch.zeros(H)}), with_sink, (STATES,)),
}
QUICK = ["causal and lengths", "additive, one query", "additive", "pooling", "sink"]


@pytest.mark.parametrize("case", slow_but(QUICK, CASES))
def test_a_layer_is_one_graph_with_the_same_numbers(case):
    layer, call, inputs = CASES[case]
    assert_same(layer, call, *inputs)
