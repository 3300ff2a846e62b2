"""A text as one vector: formulas, padding, who is asked."""

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
    made = Pooling(name, C, num_aspects=ASPECTS if name == "aspect" else 0, **sizes)
    for parameter in made.parameters():
        torch.nn.init.normal_(parameter)
    return made


def pool(made, states, lengths=LENGTHS):
    aspects = torch.tensor([2, 0, 3])[: len(states)] if made.name == "aspect" else None
    return made(states, lengths, aspects=aspects)


def by_formula(made, states):
    """One text, all of it real."""
    if made.name == "first":
        return states[0]
    if made.name == "mean":
        return states.mean(0)
    if made.name == "maximum":
        return states.max(0).values
    if made.name == "tanh_query":
        return (looks_of(made.pool.w, states) @ states)[0].tanh()
    if made.name == "structured":
        return (looks_of(made.pool.queries, states @ made.pool.key.weight.T) @ states).flatten()
    if made.name == "query":
        layer = made.pool.pool
        scores = layer.key(states) @ layer.queries[0] / C**0.5
    else:
        layer = made.pool.look
        query = states.mean(0) if made.name == "state" else made.pool.queries[2]
        scores = torch.tanh(layer.query(query) + layer.key(states)) @ layer.w
    return scores.softmax(0) @ states


def looks_of(rows, states):
    """softmax over places t of row · tanh(state_t), row by row."""
    return torch.stack([(states.tanh() @ row).softmax(0) for row in rows])


@pytest.mark.parametrize("name", sorted(POOLINGS))
def test_each_is_its_formula_and_padding_is_not_in_it(name):
    made, states = pooling(name), torch.randn(B, M, C)
    found = pool(made, states)
    torch.testing.assert_close(found[0], by_formula(made, states[0]), atol=1e-5, rtol=1e-5)
    other = states.clone()
    other[1, 1:], other[2, 4:] = 1e4, -1e4
    torch.testing.assert_close(pool(made, other), found)
    assert found.shape == (B, made.output_dim)
    one = states[1, 0].tanh() if name == "tanh_query" else states[1, 0]
    torch.testing.assert_close(found[1], one.repeat(made.output_dim // C))


def test_the_penalty_is_how_far_the_hops_are_from_looking_at_one_word_each_and_another():
    """‖A Aᵀ − I‖² of Lin et al. (2017), of each text; of nothing but hops."""
    made, states = pooling("structured"), torch.randn(B, M, C)
    for parameter in made.parameters():
        parameter.data /= 2
    found = made.penalty(states, LENGTHS)
    for row, length in enumerate(LENGTHS.tolist()):
        looks = looks_of(made.pool.queries, states[row, :length] @ made.pool.key.weight.T)
        want = sum(
            (one @ other - float(i == j)) ** 2
            for (i, one), (j, other) in product(enumerate(looks), repeat=2)
        )
        torch.testing.assert_close(found[row], want, atol=1e-5, rtol=1e-5)
    assert pooling("query").penalty(states, LENGTHS).tolist() == [0.0] * B
    optimizer = torch.optim.Adam(made.parameters(), lr=0.1)
    for _ in range(100):
        optimizer.zero_grad()
        made.penalty(states, LENGTHS).sum().backward()
        optimizer.step()
    # The hops look at one word each, and at another one, where there are two.
    assert made.penalty(states, LENGTHS)[[0, 2]].max() < 0.05


@pytest.mark.parametrize("name", ["query", "tanh_query", "structured", "state", "aspect"])
def test_an_observer_sees_a_head_for_each_query(name):
    seen = []
    with observe(seen.append):
        pool(pooling(name), torch.randn(B, M, C))
    assert [(each.kind, each.layer) for each in seen] == [("cross", 0)]
    if name == "structured":
        assert seen[0].weights().shape == (B, HOPS, 1, M)


def test_a_text_read_for_another_aspect_is_another_vector():
    made, states = pooling("aspect"), torch.randn(1, M, C).expand(2, M, C)
    one, other = made(states, torch.tensor([M, M]), aspects=torch.tensor([0, 1]))
    assert (one - other).abs().max() > 1e-3


def test_what_is_wrong_is_named():
    with pytest.raises(SettingError, match="pooling must be one of aspect, first, maximum, mean"):
        Pooling("means", C)
    with pytest.raises(SettingError, match="num_aspects must be above 0; got 0"):
        Pooling("aspect", C)
    with pytest.raises(SettingError, match="num_hops must be above 0; got 0"):
        Pooling("structured", C, num_hops=0)
    states, one = torch.randn(B, M, C), torch.tensor([1, 1, 1])
    with pytest.raises(SettingError, match="with pooling 'aspect' alone; got some with 'mean'"):
        pooling("mean")(states, LENGTHS, aspects=one)
    with pytest.raises(SettingError, match="with pooling 'aspect' alone; got none with 'aspect'"):
        pooling("aspect")(states, LENGTHS)
