"""A text as one vector: formulas, padding, queries."""

from itertools import product

import pytest
import torch

from regard.attention import observe
from regard.errors import SettingError
from regard.layers.pooling import POOLINGS, Pooling

B, M, C, ASPECTS, HOPS, HIDDEN = 3, 7, 5, 4, 2, 11
LENGTHS = torch.tensor([7, 1, 4])


def pooling(name):
    sizes = {"num_hops": HOPS, "hidden_dim": HIDDEN}
    module = Pooling(name, C, num_aspects=ASPECTS if name == "aspect" else 0, **sizes)
    for parameter in module.parameters():
        torch.nn.init.normal_(parameter)
    return module


def pool(module, states, lengths=LENGTHS):
    aspects = torch.tensor([2, 0, 3])[: len(states)] if module.name == "aspect" else None
    return module(states, lengths, aspects=aspects)


def by_formula(module, states):
    """One text, all of it real."""
    if module.name == "first":
        return states[0]
    if module.name == "mean":
        return states.mean(0)
    if module.name == "maximum":
        return states.max(0).values
    if module.name == "tanh_query":
        return (looks_of(module.pool.w, states) @ states)[0].tanh()
    if module.name == "structured":
        return (looks_of(module.pool.queries, states @ module.pool.key.weight.T) @ states).flatten()
    if module.name == "query":
        layer = module.pool.pool
        scores = layer.key(states) @ layer.queries[0] / C**0.5
    else:
        layer = module.pool.attention
        query = states.mean(0) if module.name == "state" else module.pool.queries[2]
        scores = torch.tanh(layer.query(query) + layer.key(states)) @ layer.w
    return scores.softmax(0) @ states


def looks_of(rows, states):
    """softmax over places t of row · tanh(state_t), row by row."""
    return torch.stack([(states.tanh() @ row).softmax(0) for row in rows])


@pytest.mark.parametrize("name", sorted(POOLINGS))
def test_each_is_its_formula_and_padding_is_not_in_it(name):
    module, states = pooling(name), torch.randn(B, M, C)
    pooled = pool(module, states)
    torch.testing.assert_close(pooled[0], by_formula(module, states[0]), atol=1e-5, rtol=1e-5)
    changed = states.clone()
    changed[1, 1:], changed[2, 4:] = 1e4, -1e4
    torch.testing.assert_close(pool(module, changed), pooled)
    assert pooled.shape == (B, module.output_dim)
    single = states[1, 0].tanh() if name == "tanh_query" else states[1, 0]
    torch.testing.assert_close(pooled[1], single.repeat(module.output_dim // C))


def test_the_penalty_is_how_far_the_hops_are_from_looking_at_one_word_each_and_another():
    """‖A Aᵀ − I‖² of Lin et al. (2017), of each text; of nothing but hops."""
    module, states = pooling("structured"), torch.randn(B, M, C)
    for parameter in module.parameters():
        parameter.data /= 2
    penalty = module.penalty(states, LENGTHS)
    for row, length in enumerate(LENGTHS.tolist()):
        looks = looks_of(module.pool.queries, states[row, :length] @ module.pool.key.weight.T)
        expected = sum(
            (one @ other - float(i == j)) ** 2
            for (i, one), (j, other) in product(enumerate(looks), repeat=2)
        )
        torch.testing.assert_close(penalty[row], expected, atol=1e-5, rtol=1e-5)
    assert pooling("query").penalty(states, LENGTHS).tolist() == [0.0] * B
    optimizer = torch.optim.Adam(module.parameters(), lr=0.1)
    for _ in range(100):
        optimizer.zero_grad()
        module.penalty(states, LENGTHS).sum().backward()
        optimizer.step()
    # The hops look at one word each, and at another one, where there are two.
    assert module.penalty(states, LENGTHS)[[0, 2]].max() < 0.05


@pytest.mark.parametrize("name", ["query", "tanh_query", "structured", "state", "aspect"])
def test_an_observer_sees_a_head_for_each_query(name):
    calls = []
    with observe(calls.append):
        pool(pooling(name), torch.randn(B, M, C))
    assert [(each.kind, each.layer) for each in calls] == [("cross", 0)]
    if name == "structured":
        assert calls[0].weights().shape == (B, HOPS, 1, M)


def test_a_text_read_for_another_aspect_is_another_vector():
    module, states = pooling("aspect"), torch.randn(1, M, C).expand(2, M, C)
    first, second = module(states, torch.tensor([M, M]), aspects=torch.tensor([0, 1]))
    assert (first - second).abs().max() > 1e-3


def test_what_is_wrong_is_named():
    with pytest.raises(SettingError, match="num_aspects must be at least 1; got 0"):
        Pooling("aspect", C)
    with pytest.raises(SettingError, match="num_hops must be at least 1; got 0"):
        Pooling("structured", C, num_hops=0)
    states, one = torch.randn(B, M, C), torch.tensor([1, 1, 1])
    with pytest.raises(SettingError, match="with pooling 'aspect' alone; got some with 'mean'"):
        pooling("mean")(states, LENGTHS, aspects=one)
    with pytest.raises(SettingError, match="with pooling 'aspect' alone; got none with 'aspect'"):
        pooling("aspect")(states, LENGTHS)
