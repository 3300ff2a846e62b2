"""Accuracy, F1 and entities beside scikit-learn and seqeval."""

import random

import pytest
from seqeval.metrics import f1_score as entity_f1
from seqeval.metrics.sequence_labeling import get_entities
from seqeval.scheme import BILOU, IOBES
from sklearn.metrics import accuracy_score, f1_score, precision_recall_fscore_support

from regard.errors import DataError
from regard.metrics.labels import (
    accuracy,
    as_known,
    by_label,
    confusion,
    entities,
    entity_scores,
    macro_f1,
)

pytestmark = [pytest.mark.parity, pytest.mark.slow]
TAGS = ["O", "B-A", "I-A", "B-B", "I-B"]


def drawn(kinds, count, seed):
    return random.Random(seed).choices(kinds, k=count)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.filterwarnings("ignore::UserWarning", "ignore::RuntimeWarning")
def test_labels_score_as_in_scikit_learn(seed):
    given, right = drawn("abcd", 97, seed), drawn("abce", 97, seed + 100)
    assert accuracy(given, right) == pytest.approx(100 * accuracy_score(right, given))
    assert macro_f1(given, right) == pytest.approx(
        100 * f1_score(right, given, average="macro", zero_division=0)
    )
    peer = precision_recall_fscore_support(right, given, zero_division=0)
    for place, score in enumerate(by_label(given, right)):
        found = (score.precision, score.recall, score.f1, score.count)
        assert found == pytest.approx([*(100 * each[place] for each in peer[:3]), peer[3][place]])
    assert sum(confusion(given, right).values()) == 97


@pytest.mark.parametrize("seed", range(20))
def test_entities_are_those_of_seqeval(seed):
    tags = drawn(TAGS, 23, seed)
    peer = [(kind, first, last + 1) for kind, first, last in get_entities(tags)]
    assert entities(tags) == peer


def test_entity_f1_is_that_of_seqeval():
    given = [drawn(TAGS, 11, seed) for seed in range(30)]
    right = [drawn(TAGS, 11, seed + 1000) for seed in range(30)]
    for ours, theirs in zip(given, right, strict=True):
        ours[:6] = theirs[:6]
    assert entity_scores(given, right)[0].f1 == pytest.approx(100 * entity_f1(right, given))


@pytest.mark.parametrize("scheme", [IOBES, BILOU])
def test_entity_f1_of_whole_schemes_is_that_of_strict_seqeval(scheme):
    known = ["B-A", "I-A", "E-A", "S-A"] if scheme is IOBES else ["B-A", "I-A", "L-A", "U-A"]
    given = [as_known(drawn(TAGS, 11, seed), known) for seed in range(30)]
    right = [as_known(drawn(TAGS, 11, seed + 1000), known) for seed in range(30)]
    right[:15] = [mine[:6] + theirs[6:] for mine, theirs in zip(given, right[:15], strict=False)]
    right = [as_known(tags, known) for tags in right]
    peer = entity_f1(
        *([list(tags) for tags in all_] for all_ in (right, given)), mode="strict", scheme=scheme
    )
    assert entity_scores(given, right)[0].f1 == pytest.approx(100 * peer)


def test_counts_that_differ_are_named():
    with pytest.raises(DataError, match="labels must be as many as are right; got 1 for 2 texts"):
        accuracy(["a"], ["a", "b"])
    with pytest.raises(DataError, match="tags must be as many as are right; got 1 for 2 words"):
        entity_scores([["O"]], [["O", "O"]])
