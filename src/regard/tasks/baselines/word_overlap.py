"""The overlap of two texts' words: what a model of pairs has to beat."""

import math
import random
from collections import Counter
from collections.abc import Sequence

from regard.metrics.question_answering import answer_words

# Pairs that the threshold is chosen on.
_ENOUGH = 4000


class WordOverlap:
    """Two labels told apart by the share of the first text's words that the second has.

    Rare words count more: the logarithm of the second texts over those that have the word. The
    share from which on a pair has one label, and not the other, is the best for training.

    Args:
        examples: First text, second text and label.

    Example:
        >>> alike, other = ("a cat", "the cat sat", "yes"), ("a cat", "the dog ran", "no")
        >>> WordOverlap([alike, other]).label("my dog", "my dog ran")
        'yes'
    """

    def __init__(self, examples: Sequence[tuple[str, str, str]]) -> None:
        texts = dict.fromkeys(second for _, second, _ in examples)
        counts = Counter(word for text in texts for word in set(answer_words(text)))
        self._rarity = {word: math.log(len(texts) / count) for word, count in counts.items()}
        self._rarest = max(self._rarity.values(), default=1.0)
        # Drawn, since files often alternate labels, and every second line has one of them alone.
        known = random.Random(0).sample(examples, min(len(examples), _ENOUGH))
        self._threshold, self._above, self._below = _split_at(
            [self._share(first, second) for first, second, _ in known],
            [label for _, _, label in known],
        )

    def label(self, first: str, second: str) -> str:
        """The label of a pair."""
        return self._above if self._share(first, second) >= self._threshold else self._below

    def _share(self, first: str, second: str) -> float:
        words, there = set(answer_words(first)), set(answer_words(second))
        # A set's order is another in every process, and with it the last digit of a plain sum.
        total = math.fsum(self._rarity.get(word, self._rarest) for word in words)
        shared = math.fsum(self._rarity.get(word, self._rarest) for word in words & there)
        return shared / total if total else 0.0


def _split_at(scores: Sequence[float], labels: Sequence[str]) -> tuple[float, str, str]:
    """Where scores part two labels best: from there on the first label, below it the second."""
    names = sorted(set(labels))
    order = sorted(range(len(scores)), key=lambda place: scores[place])
    found = []
    for above, below in ((names[0], names[-1]), (names[-1], names[0])):
        right = labels.count(above)
        found.append((right, scores[order[0]], above, below))
        for place, after in zip(order, [*order[1:], None], strict=True):
            right += (labels[place] == below) - (labels[place] == above)
            threshold = math.inf if after is None else scores[after]
            if threshold > scores[place]:
                found.append((right, threshold, above, below))
    _, threshold, above, below = max(found)
    return threshold, above, below
