"""Scores of n-grams: formulas against plain loops, padding, unknown n-grams, gradients."""

from math import exp, log, sqrt

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


def make_layer(num_aspects=0):
    torch.manual_seed(0)
    layer = NgramScores(V, K, num_aspects=num_aspects).double()
    for parameter in layer.parameters():
        torch.nn.init.normal_(parameter)
    return layer


@pytest.fixture
def layer():
    return make_layer()


def known_ngrams(text):
    return [(position, gram) for position, row in enumerate(text) for gram in row if gram > 1]


@pytest.mark.parametrize("num_aspects", [0, 4])
def test_scores_are_one_softmax_over_all_known_ngrams_of_a_text(num_aspects):
    layer, aspects = make_layer(num_aspects), [3, 0, 1]
    expected = []
    for text, aspect in zip(PARTS.tolist(), aspects, strict=True):
        grams = [gram for _, gram in known_ngrams(text)]
        if num_aspects:
            grams += [gram + (1 + aspect) * V for gram in grams]
        weights = [exp(STEP * layer.keys[gram].item()) for gram in grams]
        mixed = [
            sum(w * STEP * layer.values[g, k].item() for w, g in zip(weights, grams, strict=True))
            for k in range(K)
        ]
        length = sqrt(sum(w**2 for w in weights))
        expected.append([STEP * layer.scale.item() * each / length for each in mixed])
    scores = layer(PARTS, torch.tensor(aspects) if num_aspects else None)
    torch.testing.assert_close(scores, torch.tensor(expected, dtype=torch.float64))


def test_observers_see_the_weight_of_each_position(layer):
    calls = []
    with observe(calls.append):
        layer(PARTS)
    (call,) = calls
    assert (call.kind, call.layer) == ("cross", 1)
    weights = call.weights().flatten(1)
    assert weights.shape == PARTS.shape[:2]
    for row, text in zip(weights, PARTS.tolist(), strict=True):
        ngram_weights = [
            (position, exp(STEP * layer.keys[gram].item())) for position, gram in known_ngrams(text)
        ]
        total = sum(weight for _, weight in ngram_weights)
        for position in range(len(text)):
            expected = sum(weight for at, weight in ngram_weights if at == position) / total
            assert row[position].item() == pytest.approx(expected)


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


def test_keys_begin_as_logarithms_of_idf_and_ratios():
    layer, labels = NgramScores(V, K), [0, 2, 2]
    layer.initialise(list(PARTS), labels)
    sets = [{gram for _, gram in known_ngrams(text)} for text in PARTS.tolist()]
    pairs = list(zip(sets, labels, strict=True))
    known = range(2, V)
    ratios = []
    for label in range(K):
        ours = [1 + sum(g in grams and k == label for grams, k in pairs) for g in known]
        others = [1 + sum(g in grams and k != label for grams, k in pairs) for g in known]
        ratios.append(
            [log(a / sum(ours)) - log(b / sum(others)) for a, b in zip(ours, others, strict=True)]
        )
    telling = [max(map(abs, each)) + 0.05 for each in zip(*ratios, strict=True)]
    rare = [1 + log(4 / (1 + sum(g in grams for grams in sets))) for g in known]
    expected = [log(idf * ratio) for idf, ratio in zip(rare, telling, strict=True)]
    torch.testing.assert_close(STEP * layer.keys[2:, 0], torch.tensor(expected))
    assert layer.values.eq(0).all()


def test_ngrams_of_an_aspect_are_those_of_enough_of_its_texts():
    layer = NgramScores(V, 2, num_aspects=2)
    texts = [torch.tensor([[2], [3]])] * 3 + [torch.tensor([[2], [4]])] * 2
    layer.initialise(texts, [0, 1, 1, 0, 0], [0, 0, 0, 1, 1])
    weights = layer.keys.exp().view(3, V)
    assert (weights[:, 2:5] > 0).tolist() == [[True] * 3, [True, True, False], [False] * 3]


def test_ngrams_of_an_aspect_are_left_out_by_themselves_in_training():
    layer, V = NgramScores(3, 1, num_aspects=1, dropout=0.5), 3
    torch.nn.init.zeros_(layer.keys)
    with torch.no_grad():
        layer.values[2], layer.values[V + 2] = 1.0, 10.0
        texts, aspects = torch.full((400, 1, 1), 2), torch.zeros(400, dtype=torch.long)
        drawn = layer(texts, aspects).unique(return_counts=True)
        whole = layer.eval()(texts, aspects).unique()
    scale = STEP**2 * layer.scale.item()
    expected = [0.0, scale, 11 * scale / sqrt(2), 10 * scale]  # none, one, both, that of the aspect
    assert sorted(drawn[0].tolist()) == pytest.approx(sorted(expected), rel=1e-5)
    assert (drawn[1] > 60).all()
    assert whole.tolist() == pytest.approx([11 * scale / sqrt(2)], rel=1e-5)


def test_there_must_be_ngrams():
    with pytest.raises(
        SettingError, match=r"parts_vocab must be above 0; got 0\. Scores of n-grams need ids"
    ):
        NgramScores(0, K)
