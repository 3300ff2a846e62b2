"""ROUGE-L beside Google's."""

import random

import pytest
from rouge_score import rouge_scorer

from regard.metrics import rouge_l, sentence_rouge_l

VOCABULARY = ["the", "king's", "king", "sad", "Sad,", "a", "(long)", "time", "3", "33", "kings."]


def texts(seed: int, count: int) -> list[str]:
    rng = random.Random(seed)
    return [" ".join(rng.choices(VOCABULARY, k=rng.randint(0, 12))) for _ in range(count)]


def test_the_figure_is_that_of_rouge_score() -> None:
    scorer = rouge_scorer.RougeScorer(["rougeL"])
    outputs, first, second = (texts(seed, 40) for seed in (1, 2, 3))
    references = list(zip(first, second, strict=True))
    found = sentence_rouge_l(outputs, references)
    for output, known, value in zip(outputs, references, found, strict=True):
        wanted = max(scorer.score(one, output)["rougeL"].fmeasure for one in known)
        assert value == pytest.approx(100 * wanted)
    assert len(set(found)) > 10
    assert rouge_l(outputs, references).value == pytest.approx(sum(found) / len(found))
