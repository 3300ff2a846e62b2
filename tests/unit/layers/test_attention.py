"""Additive attention as a layer."""

import pytest
import torch

from regard.attention import lengths
from regard.errors import SettingError, ShapeError
from regard.layers import (
    AdditiveAttention,
    AttentionPooling,
    BilinearAttention,
    DotAttention,
    KernelAttention,
    LocationAttention,
)


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


def softmax_of(scores, n):
    hidden = torch.arange(scores.shape[-1]) >= n[:, None, None]
    return torch.softmax(scores.masked_fill(hidden, float("-inf")), dim=-1)


def laplace(query, key, bandwidth):
    return -((query[:, :, None] - key[:, None]).abs() / bandwidth).sum(-1)


SCORES = {
    "dot": (
        lambda: DotAttention(is_scaled=False),
        lambda layer, q, k: q @ k.mT,
    ),
    "scaled dot": (DotAttention, lambda layer, q, k: q @ k.mT / 6**0.5),
    "bilinear": (lambda: BilinearAttention(6, 6), lambda layer, q, k: q @ layer.w @ k.mT),
    "laplace": (
        lambda: KernelAttention("laplace", bandwidth=2.0, dim=6),
        lambda layer, q, k: laplace(q, k, layer.bandwidth),
    ),
    "gaussian": (
        lambda: KernelAttention(bandwidth=1.5),
        lambda layer, q, k: -(torch.cdist(q, k) ** 2) / 2 / 1.5**2,
    ),
    "location": (
        lambda: LocationAttention(6, 9),
        lambda layer, q, k: q @ layer.w[: k.shape[1]].T,
    ),
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


@pytest.mark.slow
def test_a_kernel_regression_learns_its_bandwidth():
    torch.manual_seed(0)
    x = torch.linspace(0, 5, 60)[None, :, None]
    y = 2 * x.sin() + x**0.8 + 0.3 * torch.randn_like(x)
    layer = KernelAttention(bandwidth=3.0)
    optimizer = torch.optim.Adam(layer.parameters(), lr=0.1)
    others = ~torch.eye(60, dtype=torch.bool)  # leave one out, or a bandwidth of zero is best
    losses = []
    for _ in range(60):
        loss = (layer(x, x, y, mask=others) - y).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0] / 4
    assert 0.05 < layer.bandwidth.item() < 1


def test_pooling_gathers_what_each_query_asks_for():
    layer, n = AttentionPooling(6, num_queries=2).double(), torch.tensor([5, 3])
    states = torch.randn(2, 5, 6).double()
    scores = layer.queries.expand(2, 2, 6) @ layer.key(states).mT / 6**0.5
    want = (softmax_of(scores, n) @ states).flatten(1)
    torch.testing.assert_close(layer(states, mask=lengths(n)), want)


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: BilinearAttention(0, 3), SettingError, "query_dim must be above 0"),
        (lambda: LocationAttention(3, 0), SettingError, "max_length must be above 0"),
        (lambda: KernelAttention(bandwidth=0.0), SettingError, "bandwidth must be above 0"),
        (lambda: KernelAttention("gausian"), SettingError, "Did you mean 'gaussian'"),
        (lambda: AttentionPooling(3, num_queries=0), SettingError, "num_queries must be above 0"),
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
