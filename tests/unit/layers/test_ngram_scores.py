"""Scores of n-grams: formulas against plain loops, padding, unknown n-grams, gradients."""

from math import exp, log

import pytest
import torch

from regard.attention import observe
from regard.errors import SettingError
from regard.layers.ngram_scores import STEP, NgramScores

V, K = 13, 3
# Texts of 5, 2 and 3 positions with up to 4 n-grams each; 1 is unknown, 0 padding.
PARTS = torch.tensor(
    [
        [[2, 7, 0, 0], [3, 2, 5, 12], [1, 0, 0, 0], [2, 2, 0, 0], [9, 1, 4, 0]],
        [[11, 0, 0, 0], [6, 1, 8, 0], [0, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0]],
        [[1, 0, 0, 0], [10, 5, 0, 0], [1, 1, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0]],
    ]
)


@pytest.fixture
def layer():
    torch.manual_seed(0)
    made = NgramScores(V, K).double()
    for parameter in made.parameters():
        torch.nn.init.normal_(parameter)
    return made


def known_ngrams(text):
    return [(place, gram) for place, row in enumerate(text) for gram in row if gram > 1]


def test_scores_are_one_softmax_over_all_known_ngrams_of_a_text(layer):
    expected = []
    for text in PARTS.tolist():
        grams = [gram for _, gram in known_ngrams(text)]
        weights = [exp(STEP * layer.keys[gram].item()) for gram in grams]
        mixed = [
            sum(w * STEP * layer.values[g, k].item() for w, g in zip(weights, grams, strict=True))
            for k in range(K)
        ]
        expected.append([STEP * layer.scale.item() * each / sum(weights) for each in mixed])
    torch.testing.assert_close(layer(PARTS), torch.tensor(expected, dtype=torch.float64))


def test_observers_see_the_weight_of_each_position(layer):
    calls = []
    with observe(calls.append):
        layer(PARTS)
    (call,) = calls
    assert (call.kind, call.layer) == ("cross", 1)
    weights = call.weights().flatten(1)
    assert weights.shape == PARTS.shape[:2]
    for row, text in zip(weights, PARTS.tolist(), strict=True):
        every = [(place, exp(STEP * layer.keys[gram].item())) for place, gram in known_ngrams(text)]
        total = sum(weight for _, weight in every)
        for place in range(len(text)):
            ours = sum(weight for at, weight in every if at == place) / total
            assert row[place].item() == pytest.approx(ours)


def test_padding_changes_nothing_and_a_text_without_known_ngrams_has_no_scores(layer):
    text = PARTS[1:2, :2, :3]
    torch.testing.assert_close(layer(text), layer(PARTS)[1:2])
    none = torch.tensor([[[1, 0], [0, 0]]])
    scores = layer(none)
    assert scores.tolist() == [[0.0] * K]
    scores.sum().backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in layer.parameters())


def test_gradients(layer):
    def scores(keys, values, scale):
        tensors = {"keys": keys, "values": values, "scale": scale}
        return torch.func.functional_call(layer, tensors, (PARTS,))

    inputs = [each.detach().clone().requires_grad_() for each in layer.parameters()]
    assert torch.autograd.gradcheck(scores, inputs)


def test_scores_begin_as_log_count_ratios():
    made, labels = NgramScores(V, K), [0, 2, 2]
    made.initialise(list(PARTS), labels)
    sets = [{gram for _, gram in known_ngrams(text)} for text in PARTS.tolist()]
    pairs = list(zip(sets, labels, strict=True))
    known = range(2, V)
    for label in range(K):
        ours = [1 + sum(g in grams and k == label for grams, k in pairs) for g in known]
        others = [1 + sum(g in grams and k != label for grams, k in pairs) for g in known]
        ratios = [
            log(a / sum(ours)) - log(b / sum(others)) for a, b in zip(ours, others, strict=True)
        ]
        torch.testing.assert_close(STEP * made.values[2:, label], torch.tensor(ratios))
    assert made.values[:2].eq(0).all()
    assert made.keys.eq(0).all()


def test_there_must_be_ngrams():
    with pytest.raises(
        SettingError, match=r"parts_vocab must be above 0; got 0\. Scores of n-grams need ids"
    ):
        NgramScores(0, K)
