"""Layers of attention with one head, each against its formula."""

import pytest
import torch

from regard.attention import lengths
from regard.errors import SettingError, ShapeError
from regard.layers import AdditiveAttention, BilinearAttention, DotAttention, LocationAttention
from regard.layers.attention import AttentionPooling


def test_dropout_is_for_training_only():
    layer, memory = AdditiveAttention(4, 6, 8, dropout=0.5), torch.randn(2, 5, 6)
    keys, query = layer.prepare(memory), torch.randn(2, 4)
    assert not torch.equal(layer(query, keys, memory), layer(query, keys, memory))
    layer.eval()
    assert torch.equal(layer(query, keys, memory), layer(query, keys, memory))


def softmax_of(scores, n):
    hidden = torch.arange(scores.shape[-1]) >= n[:, None, None]
    return torch.softmax(scores.masked_fill(hidden, float("-inf")), dim=-1)


def additive(layer, query, key):
    return (layer.query(query)[:, :, None] + layer.key(key)[:, None]).tanh() @ layer.w


SCORES = {
    "additive": (lambda: AdditiveAttention(6, 6, 8), additive),
    "dot": (lambda: DotAttention(is_scaled=False), lambda layer, q, k: q @ k.mT),
    "scaled dot": (DotAttention, lambda layer, q, k: q @ k.mT / 6**0.5),
    "bilinear": (lambda: BilinearAttention(6, 6), lambda layer, q, k: q @ layer.w @ k.mT),
    "location": (lambda: LocationAttention(6, 9), lambda layer, q, k: q @ layer.w[: k.shape[1]].T),
}


@pytest.mark.parametrize("name", SCORES)
def test_each_layer_is_its_formula(name):
    make, formula = SCORES[name]
    layer, n = make().double(), torch.tensor([5, 3])
    query, memory = torch.randn(2, 7, 6).double(), torch.randn(2, 5, 6).double()
    want = softmax_of(formula(layer, query, memory), n) @ memory
    memory.requires_grad_()
    keys = layer.prepare(memory)
    out = layer(query, keys, memory, mask=lengths(n))
    torch.testing.assert_close(out, want)
    torch.testing.assert_close(layer(query[:, 3], keys, memory, mask=lengths(n)), want[:, 3])
    out.square().sum().backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in layer.parameters())


def test_pooling_mixes_states_for_each_query():
    layer, n = AttentionPooling(6).double(), torch.tensor([5, 3])
    states = torch.randn(2, 5, 6).double()
    scores = layer.queries.expand(2, 1, 6) @ layer.key(states).mT / 6**0.5
    want = (softmax_of(scores, n) @ states).flatten(1)
    torch.testing.assert_close(layer(states, mask=lengths(n)), want)


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: AdditiveAttention(0, 6, 8), SettingError, "query_dim must be at least 1; got 0"),
        (lambda: AdditiveAttention(4, 0, 8), SettingError, "key_dim must be at least 1; got 0"),
        (lambda: AdditiveAttention(4, 6, 0), SettingError, "hidden_dim must be at least 1; got 0"),
        (lambda: BilinearAttention(0, 3), SettingError, "query_dim must be at least 1"),
        (lambda: LocationAttention(3, 0), SettingError, "max_length must be at least 1"),
        (lambda: DotAttention(dropout=1.0), SettingError, "dropout must be at least 0 and below 1"),
        (
            lambda: LocationAttention(3, 4).prepare(torch.ones(1, 5, 3)),
            ShapeError,
            "memory must be at most 4 positions long; got 5",
        ),
    ],
)
def test_what_no_layer_can_be_made_of_is_refused(make, error, message):
    with pytest.raises(error, match=message):
        make()
