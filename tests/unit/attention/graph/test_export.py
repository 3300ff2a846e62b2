"""``attend`` inside ``torch.export``: one program for all lengths."""

import io

import pytest
import torch
from tests.cases import slow_but
from torch import nn
from torch.export import Dim

from regard.attention import Additive, Custom, Softmax, alibi, attend, causal, lengths, window
from regard.errors import SettingError, ShapeError
from regard.layers import MultiHeadAttention

H, D = 6, 4


pytestmark = pytest.mark.usefixtures("as_users_have_it")


class Layer(nn.Module):
    """Attention by options that may use a learned tensor and the lengths of the keys."""

    def __init__(self, options):
        super().__init__()
        self.options = options
        self.w = nn.Parameter(torch.randn(5, D))

    def forward(self, query, key, n):
        return attend(query, key, **self.options(self.w, n))


def inputs(batch, queries, keys, groups=H):
    n = torch.randint(0, keys + 1, (batch,))
    return torch.randn(batch, H, queries, D), torch.randn(batch, groups, keys, D), n


def exported(layer):
    """The layer for any batch and any lengths, after a way through a file."""
    B, N, M = Dim("B"), Dim("N"), Dim("M")
    sizes = ({0: B, 2: N}, {0: B, 2: M}, {0: B})
    program = torch.export.export(layer, inputs(2, 5, 7), dynamic_shapes=sizes)
    file = io.BytesIO()
    torch.export.save(program, file)
    file.seek(0)
    return torch.export.load(file)


CASES = {
    "plain": lambda w, n: {},
    "causal": lambda w, n: {"mask": causal()},
    "lengths": lambda w, n: {"mask": lengths(n)},
    "window": lambda w, n: {"mask": window(3, 1)},
    "place": lambda w, n: {"mask": causal(first=n.shape[0])},
    "additive": lambda w, n: {"score": Additive(w[0]), "mask": lengths(n)},
    "all": lambda w, n: {"mask": lengths(n) & causal(), "bias": alibi(), "weighting": Softmax(0.5)},
}


@pytest.mark.parametrize("case", slow_but(["plain", "additive", "all"], CASES))
def test_one_program_serves_all_lengths(case):
    layer = Layer(CASES[case])
    program = exported(layer).module()
    # At these lengths eager calls take other backends, too.
    for sizes in [(2, 5, 7), (3, 11, 11), (1, 1, 1), (1, 2, 300), (2, 700, 700)]:
        args = inputs(*sizes)
        torch.testing.assert_close(program(*args), layer(*args))


def test_dropout_draws_anew():
    program = exported(Layer(lambda w, n: {"dropout": 0.5})).module()
    args = inputs(2, 5, 7)
    assert not torch.equal(program(*args), program(*args))


def test_a_dot_product_without_a_mask_is_torchs_own():
    program = exported(Layer(CASES["plain"]))
    names = [str(node.target) for node in program.graph.nodes]
    assert any("scaled_dot_product_attention" in name for name in names)
    assert not any("regard" in name for name in names)


def test_errors_are_raised_when_the_program_runs():
    program = exported(Layer(CASES["lengths"])).module()
    query, key, _ = inputs(2, 5, 7)
    with pytest.raises(ShapeError, match=r"lengths must be at most M = 7; got 9\."):
        program(query, key, torch.tensor([3, 9]))


class CausalHeads(nn.Module):
    def __init__(self):
        super().__init__()
        self.heads = MultiHeadAttention(2 * D, 2)

    def forward(self, states):
        return self.heads(states, mask=causal())[0]


def test_an_onnx_graph_of_causal_attention_holds_torchs_operators_alone(monkeypatch):
    """The exporter itself is not at hand; what it is given is torch's program while it works."""
    layer, states = CausalHeads().eval(), torch.randn(2, 5, 2 * D)
    monkeypatch.setattr(torch.onnx, "is_in_onnx_export", lambda: True)
    sizes = ({0: Dim("B"), 1: Dim("N")},)
    program = torch.export.export(layer, (states,), dynamic_shapes=sizes)
    names = [str(node.target) for node in program.graph.nodes]
    assert any("scaled_dot_product_attention" in name for name in names)
    assert not any("regard" in name for name in names)
    monkeypatch.undo()
    for batch in (states, torch.randn(3, 11, 2 * D)):
        torch.testing.assert_close(program.module()(batch), layer(batch))


def test_what_onnx_cannot_hold_is_refused_with_what_to_use_instead(monkeypatch):
    layer = Layer(lambda w, n: {"dropout": 0.5})
    monkeypatch.setattr(torch.onnx, "is_in_onnx_export", lambda: True)
    message = r"attend must be without dropout .* ONNX graph; got one of them\. Use torch\.export"
    with pytest.raises(SettingError, match=message):
        torch.export.export(layer, inputs(2, 5, 7))


@pytest.mark.filterwarnings("ignore::torch.jit.TracerWarning")
@pytest.mark.filterwarnings("ignore:.*torch.jit.trace.*:DeprecationWarning")
def test_a_tracer_that_keeps_one_examples_sizes_is_refused(monkeypatch):
    layer, states = MultiHeadAttention(2 * D, 2).eval(), torch.randn(2, 5, 2 * D)
    message = (
        r"got torch\.jit\.trace, whose graph is right for one example\. Use torch\.export\.expor"
    )
    with pytest.raises(SettingError, match=message):
        torch.jit.trace(layer, (states,))
    monkeypatch.setattr(torch.onnx, "is_in_onnx_export", lambda: True)  # its older exporter traces
    with pytest.raises(SettingError, match=r"Use torch\.onnx\.export\(\.\.\., dynamo=True\)\."):
        torch.jit.trace(layer, (states,))


def test_what_a_user_wrote_cannot_be_exported():
    layer = Layer(lambda w, n: {"score": Custom(lambda q, k: q @ k.mT)})
    with pytest.raises(SettingError, match="score must be built in to be part of a graph"):
        exported(layer)
