"""Baselines of sentences: TextRank against its own iteration, overlap in any order of sets."""

import math
import os
import random
import subprocess
import sys

import pytest

from regard.tasks.sentence_baselines import text_rank

WORDS = ["king", "queen", "son", "ran", "old", "mill", "a", "the"]


def iterated(texts, rounds=300):
    cut = [text.split() for text in texts]

    def weight(i, j):
        if i == j:
            return 0.0
        length = math.log(len(cut[i])) + math.log(len(cut[j]))
        return len(set(cut[i]) & set(cut[j])) / length

    count, ranks = len(texts), [1.0] * len(texts)
    leaving = [sum(weight(i, j) for j in range(count)) for i in range(count)]
    for _ in range(rounds):
        ranks = [
            0.15
            + 0.85 * sum(weight(j, i) / leaving[j] * ranks[j] for j in range(count) if leaving[j])
            for i in range(count)
        ]
    return ranks


@pytest.mark.parametrize("seed", range(5))
def test_the_ranks_are_what_the_iteration_ends_at(seed):
    rng = random.Random(seed)
    texts = [" ".join(rng.choices(WORDS, k=rng.randint(2, 7))) for _ in range(11)]
    assert text_rank(texts) == pytest.approx(iterated(texts))


def test_two_sentences_of_one_word_are_not_joined():
    hub = 0.405 / 0.2775  # of the system of equations, by hand
    ranks = text_rank(["Ran.", "Ran!", "...", "He ran."])
    assert ranks == pytest.approx([0.15 + 0.425 * hub, 0.15 + 0.425 * hub, 0.15, hub])
    assert text_rank(["Ran."]) == pytest.approx([0.15])


SHARES = """
from regard.tasks.sentence_baselines import SlidingWindow
from regard.tasks.overlap import Overlap

words = [f"w{place}" for place in range(60)]
texts = [" ".join(words[first:]) for first in range(40)]
overlap = Overlap.learn(texts)
context = " ".join(" ".join(words[: place + 1]) for place in range(60))
print([overlap.features(text, texts[20]) for text in texts])
print([SlidingWindow(()).shared(text, texts[20], context) for text in texts])
"""


def shares(seed):
    environment = {**os.environ, "PYTHONHASHSEED": str(seed)}
    command = [sys.executable, "-c", SHARES]
    return subprocess.run(command, env=environment, capture_output=True, check=True).stdout


def test_shares_do_not_depend_on_the_order_of_sets():
    assert shares(1) == shares(2) == shares(3)
