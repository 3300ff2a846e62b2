"""TextRank beside its own iteration, Mihalcea and Tarau (2004), as they print it."""

import math
import random

import pytest

from regard.tasks.baselines import text_rank

WORDS = ["king", "queen", "son", "ran", "old", "mill", "a", "the"]


def iterated(texts: list[str], rounds: int = 300) -> list[float]:
    cut = [text.split() for text in texts]

    def weight(i: int, j: int) -> float:
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
def test_the_ranks_are_what_the_iteration_ends_at(seed: int) -> None:
    rng = random.Random(seed)
    texts = [" ".join(rng.choices(WORDS, k=rng.randint(2, 7))) for _ in range(11)]
    assert text_rank(texts) == pytest.approx(iterated(texts))


def test_two_sentences_of_one_word_are_not_joined() -> None:
    hub = 0.405 / 0.2775  # of the system of equations, by hand
    ranks = text_rank(["Ran.", "Ran!", "...", "He ran."])
    assert ranks == pytest.approx([0.15 + 0.425 * hub, 0.15 + 0.425 * hub, 0.15, hub])
    assert text_rank(["Ran."]) == pytest.approx([0.15])
