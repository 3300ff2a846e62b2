"""Additive attention as a layer."""

import pytest
import torch

from regard.attention import lengths
from regard.errors import SettingError
from regard.layers.attention import AdditiveAttention


def by_formula(layer, query, memory, n):
    hidden = (layer.query(query)[:, :, None] + layer.key(memory)[:, None]).tanh()
    scores = hidden @ layer.w
    hidden_keys = torch.arange(memory.shape[1]) >= n[:, None, None]
    return torch.softmax(scores.masked_fill(hidden_keys, float("-inf")), dim=-1) @ memory


def test_all_queries_at_once_are_the_formula():
    layer, n = AdditiveAttention(4, 6, 8).double(), torch.tensor([5, 3])
    query, memory = torch.randn(2, 7, 4).double(), torch.randn(2, 5, 6).double()
    out = layer(query, layer.prepare(memory), memory, mask=lengths(n))
    torch.testing.assert_close(out, by_formula(layer, query, memory, n))


def test_one_query_at_a_time_gives_the_same():
    layer, mask = AdditiveAttention(4, 6, 8).double(), lengths([5, 3])
    query, memory = torch.randn(2, 7, 4).double(), torch.randn(2, 5, 6).double()
    keys = layer.prepare(memory)
    whole = layer(query, keys, memory, mask=mask)
    for step in range(7):
        one = layer(query[:, step], keys, memory, mask=mask)
        torch.testing.assert_close(one, whole[:, step])


def test_every_parameter_gets_a_gradient():
    layer, memory = AdditiveAttention(4, 6, 8), torch.randn(2, 5, 6)
    layer(torch.randn(2, 4), layer.prepare(memory), memory).square().sum().backward()
    grads = {name: p.grad for name, p in layer.named_parameters()}
    assert all(grad is not None and grad.isfinite().all() for grad in grads.values())
    assert grads["w"].abs().max() > 0


@pytest.mark.parametrize("name", ["query_dim", "key_dim", "hidden_dim"])
def test_widths_must_be_positive(name):
    sizes = {"query_dim": 4, "key_dim": 6, "hidden_dim": 8, name: 0}
    with pytest.raises(SettingError, match=f"{name} must be above 0; got 0"):
        AdditiveAttention(**sizes)


def test_dropout_is_for_training_only():
    layer, memory = AdditiveAttention(4, 6, 8, dropout=0.5), torch.randn(2, 5, 6)
    keys, query = layer.prepare(memory), torch.randn(2, 4)
    assert not torch.equal(layer(query, keys, memory), layer(query, keys, memory))
    layer.eval()
    assert torch.equal(layer(query, keys, memory), layer(query, keys, memory))
