"""Scores of n-grams against their formula, and where they come from."""

import pytest
import torch

from regard.errors import TokenError
from regard.layers.ngram_scores import NgramScores

V, K = 7, 3


def fitted():
    torch.manual_seed(0)
    layer = NgramScores(V, K)
    layer.set(torch.randn(V, K), torch.randn(K))
    return layer


def by_formula(layer, ids, values):
    sums = layer.bias.clone()
    for number, value in zip(ids, values, strict=True):
        sums += value * layer.weights[number] if number else 0
    return sums


def test_scores_are_those_of_the_formula_whatever_the_padding():
    layer = fitted()
    rows = [[1, 4, 7, 0, 0], [2, 3, 0, 0, 0], [0, 0, 0, 0, 0]]
    values = torch.rand(3, 5)
    expected = torch.stack([by_formula(layer, *row) for row in zip(rows, values, strict=True)])
    torch.testing.assert_close(layer(torch.tensor(rows), values), expected)
    assert layer(torch.zeros(2, 0, dtype=torch.long), torch.zeros(2, 0)).equal(
        layer.bias.expand(2, K)
    )


def test_the_scale_is_of_all_scores():
    layer, ids, values = fitted(), torch.tensor([[1, 4]]), torch.rand(1, 2)
    before = layer(ids, values)
    layer.scale.fill_(0.25)
    torch.testing.assert_close(layer(ids, values), before / 4)


def test_what_ngrams_add_sums_to_the_label_beyond_the_mean_of_the_others():
    layer = fitted()
    layer.scale.fill_(0.5)
    ids, values = torch.tensor([1, 4, 7]), torch.rand(3)
    logits = layer(ids[None], values[None])[0] - 0.5 * layer.bias
    for label in range(K):
        others = (logits.sum() - logits[label]) / (K - 1)
        total = layer.log_odds(ids, values, label).sum()
        torch.testing.assert_close(total, logits[label] - others)


def test_no_step_of_training_changes_them_and_a_file_has_them():
    layer = fitted()
    assert not [*layer.parameters()]
    again = NgramScores(V, K)
    again.load_state_dict(layer.state_dict())
    ids, values = torch.tensor([[1, 4, 7]]), torch.rand(1, 3)
    assert again(ids, values).equal(layer(ids, values))


def test_unknown_ids_are_named():
    with pytest.raises(TokenError, match="ngrams must be from 0 to 7"):
        fitted()(torch.tensor([[V + 1]]), torch.ones(1, 1))
