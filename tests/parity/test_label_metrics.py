"""Accuracy, F1 and entities against scikit-learn and seqeval."""

import random

import pytest
from seqeval.metrics import f1_score as entity_f1
from seqeval.metrics.sequence_labeling import get_entities
from seqeval.scheme import BILOU, IOBES
from sklearn.metrics import accuracy_score, f1_score, precision_recall_fscore_support

from regard.errors import DataError
from regard.metrics.labels import (
    accuracy,
    by_label,
    confusion,
    entities,
    entity_scores,
    macro_f1,
    to_scheme,
)

pytestmark = [pytest.mark.parity, pytest.mark.slow]
TAGS = ["O", "B-A", "I-A", "B-B", "I-B"]


def random_labels(kinds, count, seed):
    return random.Random(seed).choices(kinds, k=count)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.filterwarnings("ignore::UserWarning", "ignore::RuntimeWarning")
def test_labels_score_as_in_scikit_learn(seed):
    predicted, true = random_labels("abcd", 97, seed), random_labels("abce", 97, seed + 100)
    assert accuracy(predicted, true) == pytest.approx(100 * accuracy_score(true, predicted))
    assert macro_f1(predicted, true) == pytest.approx(
        100 * f1_score(true, predicted, average="macro", zero_division=0)
    )
    expected = precision_recall_fscore_support(true, predicted, zero_division=0)
    for index, score in enumerate(by_label(predicted, true)):
        figures = (score.precision, score.recall, score.f1, score.count)
        assert figures == pytest.approx(
            [*(100 * each[index] for each in expected[:3]), expected[3][index]]
        )
    assert sum(confusion(predicted, true).values()) == 97


@pytest.mark.parametrize("seed", range(20))
def test_entities_are_those_of_seqeval(seed):
    tags = random_labels(TAGS, 23, seed)
    peer = [(kind, first, last + 1) for kind, first, last in get_entities(tags)]
    assert entities(tags) == peer


def test_entity_f1_is_that_of_seqeval():
    predicted = [random_labels(TAGS, 11, seed) for seed in range(30)]
    true = [random_labels(TAGS, 11, seed + 1000) for seed in range(30)]
    for predicted_tags, true_tags in zip(predicted, true, strict=True):
        predicted_tags[:6] = true_tags[:6]
    assert entity_scores(predicted, true)[0].f1 == pytest.approx(100 * entity_f1(true, predicted))


@pytest.mark.parametrize("scheme", [IOBES, BILOU])
def test_entity_f1_of_whole_schemes_is_that_of_strict_seqeval(scheme):
    tag_set = ["B-A", "I-A", "E-A", "S-A"] if scheme is IOBES else ["B-A", "I-A", "L-A", "U-A"]
    predicted = [to_scheme(random_labels(TAGS, 11, seed), tag_set) for seed in range(30)]
    true = [to_scheme(random_labels(TAGS, 11, seed + 1000), tag_set) for seed in range(30)]
    true[:15] = [mine[:6] + theirs[6:] for mine, theirs in zip(predicted, true[:15], strict=False)]
    true = [to_scheme(tags, tag_set) for tags in true]
    expected = entity_f1(
        *([list(tags) for tags in all_] for all_ in (true, predicted)), mode="strict", scheme=scheme
    )
    assert entity_scores(predicted, true)[0].f1 == pytest.approx(100 * expected)


def test_counts_that_differ_are_named():
    with pytest.raises(DataError, match="labels must be as many as are right; got 1 for 2 texts"):
        accuracy(["a"], ["a", "b"])
    with pytest.raises(DataError, match="tags must be as many as are right; got 1 for 2 words"):
        entity_scores([["O"]], [["O", "O"]])
