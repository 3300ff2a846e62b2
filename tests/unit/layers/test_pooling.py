"""A text as one vector: formulas, padding, who is asked."""

import pytest
import torch

from regard.attention import observe
from regard.errors import SettingError
from regard.layers.pooling import POOLINGS, Pooling

B, M, C, ASPECTS = 3, 7, 5, 4
LENGTHS = torch.tensor([7, 1, 4])


def pooling(name):
    made = Pooling(name, C, num_aspects=ASPECTS if name == "aspect" else 0)
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
    if made.name == "query":
        layer = made.pool.pool
        scores = layer.key(states) @ layer.queries[0] / C**0.5
    else:
        layer = made.pool.look
        query = states.mean(0) if made.name == "state" else made.pool.queries[2]
        scores = torch.tanh(layer.query(query) + layer.key(states)) @ layer.w
    return scores.softmax(0) @ states


@pytest.mark.parametrize("name", sorted(POOLINGS))
def test_each_is_its_formula_and_padding_is_not_in_it(name):
    made, states = pooling(name), torch.randn(B, M, C)
    found = pool(made, states)
    torch.testing.assert_close(found[0], by_formula(made, states[0]), atol=1e-5, rtol=1e-5)
    other = states.clone()
    other[1, 1:], other[2, 4:] = 1e4, -1e4
    torch.testing.assert_close(pool(made, other), found)
    torch.testing.assert_close(found[1], states[1, 0])


@pytest.mark.parametrize("name", ["query", "state", "aspect"])
def test_an_observer_sees_what_is_looked_at(name):
    seen = []
    with observe(seen.append):
        pool(pooling(name), torch.randn(B, M, C))
    assert [(each.kind, each.layer) for each in seen] == [("cross", 0)]


def test_a_text_read_for_another_aspect_is_another_vector():
    made, states = pooling("aspect"), torch.randn(1, M, C).expand(2, M, C)
    one, other = made(states, torch.tensor([M, M]), aspects=torch.tensor([0, 1]))
    assert (one - other).abs().max() > 1e-3


def test_what_is_wrong_is_named():
    with pytest.raises(SettingError, match="pooling must be one of aspect, first, maximum, mean"):
        Pooling("means", C)
    with pytest.raises(SettingError, match="num_aspects must be above 0; got 0"):
        Pooling("aspect", C)
    states, one = torch.randn(B, M, C), torch.tensor([1, 1, 1])
    with pytest.raises(SettingError, match="with pooling 'aspect' alone; got some with 'mean'"):
        pooling("mean")(states, LENGTHS, aspects=one)
    with pytest.raises(SettingError, match="with pooling 'aspect' alone; got none with 'aspect'"):
        pooling("aspect")(states, LENGTHS)
