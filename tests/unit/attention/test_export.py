"""``attend`` inside ``torch.export``: one program for all lengths."""

import io

import pytest
import torch
from torch import nn
from torch.export import Dim

from regard.attention import Additive, Custom, Softmax, alibi, attend, causal, lengths, window
from regard.errors import SettingError, ShapeError

H, D = 3, 4


pytestmark = pytest.mark.usefixtures("as_users_have_it")


class Layer(nn.Module):
    """Attention by options that may use a learned tensor and the lengths of the keys."""

    def __init__(self, options):
        super().__init__()
        self.options = options
        self.w = nn.Parameter(torch.rand(D))

    def forward(self, query, key, n):
        return attend(query, key, **self.options(self.w, n))


def inputs(batch, queries, keys):
    n = torch.randint(0, keys + 1, (batch,))
    return torch.randn(batch, H, queries, D), torch.randn(batch, H, keys, D), n


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
    "additive": lambda w, n: {"score": Additive(w), "mask": lengths(n)},
    "all": lambda w, n: {"mask": lengths(n) & causal(), "bias": alibi(), "weighting": Softmax(0.5)},
}


@pytest.mark.parametrize("case", CASES)
def test_one_program_serves_all_lengths(case):
    layer = Layer(CASES[case])
    program = exported(layer).module()
    # At these lengths eager calls take other backends, too.
    for sizes in [(2, 5, 7), (3, 11, 11), (1, 1, 1), (1, 2, 300), (2, 700, 700)]:
        given = inputs(*sizes)
        torch.testing.assert_close(program(*given), layer(*given))


def test_dropout_draws_anew():
    program = exported(Layer(lambda w, n: {"dropout": 0.5})).module()
    given = inputs(2, 5, 7)
    assert not torch.equal(program(*given), program(*given))


def test_a_dot_product_without_a_mask_is_torchs_own():
    program = exported(Layer(CASES["plain"]))
    names = [str(node.target) for node in program.graph.nodes]
    assert any("scaled_dot_product_attention" in name for name in names)
    assert not any("regard" in name for name in names)


def test_what_is_wrong_is_said_when_the_program_runs():
    program = exported(Layer(CASES["lengths"])).module()
    query, key, _ = inputs(2, 5, 7)
    with pytest.raises(ShapeError, match=r"lengths must be at most M = 7; got 9\."):
        program(query, key, torch.tensor([3, 9]))


def test_what_a_user_wrote_cannot_be_exported():
    layer = Layer(lambda w, n: {"score": Custom(lambda q, k: q @ k.mT)})
    with pytest.raises(SettingError, match="score must be built in to be part of a graph"):
        exported(layer)
