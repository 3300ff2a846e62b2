"""Naive Bayes against its formula, written out over n-grams."""

import math
import random
from itertools import pairwise

import pytest
from benchmarks.naive_bayes import NaiveBayes

WORDS = ["good", "bad", "so", "a", "film"]


def grams(text):
    words = text.split()
    return {(w,) for w in words} | set(pairwise(words))


def log_probability(text, label, examples):
    """``log p(label) + Σ log p(gram | label)`` over known grams, each counted once more."""
    known = set().union(*(grams(t) for t, _ in examples))
    with_label = [grams(t) for t, each in examples if each == label]
    total = sum(len(each) for each in with_label) + len(known)
    total_log_prob = math.log(len(with_label) / len(examples))
    for gram in grams(text) & known:
        total_log_prob += math.log((1 + sum(gram in each for each in with_label)) / total)
    return total_log_prob


@pytest.mark.parametrize("seed", range(5))
def test_the_label_is_the_most_probable_by_the_formula(seed):
    dice = random.Random(seed)
    texts = [" ".join(dice.choices(WORDS, k=dice.randint(1, 6))) for _ in range(40)]
    examples = [(text, dice.choice("xyz")) for text in texts[:30]]
    bayes = NaiveBayes(examples)
    for text in (*texts[30:], "never seen words", "so never seen"):
        by_formula = {label: log_probability(text, label, examples) for label in "xyz"}
        best = max(by_formula.values())
        assert by_formula[bayes.label(text)] == pytest.approx(best)
        likelihoods = {label: math.exp(log_prob) for label, log_prob in by_formula.items()}
        expected = {
            label: likelihood / sum(likelihoods.values())
            for label, likelihood in likelihoods.items()
        }
        assert bayes.probabilities(text) == pytest.approx(expected)


def test_probabilities_of_long_texts_are_numbers():
    bayes = NaiveBayes([("好" * 9, "1"), ("坏" * 9, "0"), ("好坏" * 9, "0")])
    assert bayes.probabilities("好" * 5000)["1"] > 0.5
    texts = {label: " ".join(f"{label}{n}" for n in range(9999)) for label in "yn"}
    bayes = NaiveBayes([(text, label) for label, text in texts.items()])
    assert bayes.probabilities(texts["y"]) == {"y": 1.0, "n": 0.0}
