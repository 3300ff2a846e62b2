"""Kneser-Ney against its formula, written as loops over lists."""

import math
import random

import numpy as np
import pytest

from regard.errors import SettingError
from regard.tasks.running_text.kneser_ney import KneserNey

V = 5


def by_formula(text, history, word, order):
    """P(word | history) as the docstring has it."""

    def grams(length):
        """Every n-gram of that length with its count: how often, or, if shorter, in how many."""
        runs = [tuple(text[i : i + order]) for i in range(len(text) - order + 1)]
        counted = {run: runs.count(run) for run in set(runs)}
        for _ in range(order - length):
            ends = [run[1:] for run in counted]
            counted = {end: ends.count(end) for end in set(ends)}
        return counted

    def probability(history):
        lower = 1 / V if not history else probability(history[1:])
        counted = grams(len(history) + 1)
        continuations = {run: count for run, count in counted.items() if run[:-1] == history}
        if not continuations:
            return lower
        num_once = sum(count == 1 for count in counted.values())
        num_twice = sum(count == 2 for count in counted.values())
        discount = num_once / (num_once + 2 * num_twice) if num_once else 0.5
        total = sum(continuations.values())
        own = max(continuations.get((*history, word), 0) - discount, 0) / total
        return own + discount * len(continuations) / total * lower

    if not history:
        lower = 1 / V
        return probability(()) if order > 0 else lower
    return probability(tuple(history[-(order - 1) :]) if order > 1 else ())


@pytest.mark.parametrize("order", [1, 2, 3])
def test_probabilities_are_those_of_the_formula(order):
    dice = random.Random(order)
    text = [min(dice.randrange(V), dice.randrange(V)) for _ in range(60)]
    unseen = [dice.randrange(V) for _ in range(20)]
    model = KneserNey(np.array(text), vocab_size=V, order=order)
    log_probs = model.log_probs(np.array(unseen))
    for position in range(1, len(unseen)):
        expected = by_formula(text, unseen[:position], unseen[position], order)
        assert log_probs[position - 1] == pytest.approx(math.log(expected), abs=1e-12), position


@pytest.mark.parametrize("order", [1, 2, 4])
def test_probabilities_of_all_tokens_sum_to_one(order):
    dice = random.Random(7)
    text = np.array([dice.randrange(V) for _ in range(200)])
    model = KneserNey(text, vocab_size=V, order=order)
    for history in ([0, 1, 2], [4, 4, 4], [3]):
        rows = [np.exp(model.log_probs(np.array([*history, word]))[-1]) for word in range(V)]
        assert sum(rows) == pytest.approx(1, abs=1e-12)


def test_n_grams_are_no_longer_than_a_number_holds():
    text = np.arange(8000)
    assert KneserNey(text, vocab_size=8000, order=9).order == 4
    with pytest.raises(SettingError, match="order must be at least 1; got 0"):
        KneserNey(text, vocab_size=8000, order=0)
