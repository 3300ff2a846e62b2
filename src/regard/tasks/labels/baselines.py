"""Baselines of labels: naive Bayes on n-grams of a text, word overlap of two."""

import math
import random
from collections import Counter
from collections.abc import Iterable, Sequence

from regard.metrics.question_answering import answer_words
from regard.text.languages import side_script

# Pairs that the threshold of an overlap is chosen on.
_ENOUGH = 4000


class NaiveBayes:
    """Multinomial naive Bayes on n-grams, each once a text: Wang & Manning (2012), section 2.1."""

    def __init__(self, examples: Iterable[tuple[str, str]]) -> None:
        examples = list(examples)
        scripts = side_script([text for text, _ in examples[:1000]])
        self._by_words = scripts != "Han or kana"
        labels = Counter(label for _, label in examples)
        grams: dict[str, Counter[str]] = {label: Counter() for label in labels}
        for text, label in examples:
            grams[label].update(self._grams(text))
        known = len(set().union(*grams.values()))
        self._prior = {label: math.log(n / labels.total()) for label, n in labels.items()}
        self._unseen = {label: -math.log(counts.total() + known) for label, counts in grams.items()}
        self._gain = {
            label: {gram: math.log(n + 1) for gram, n in counts.items()}
            for label, counts in grams.items()
        }
        self._known = set().union(*grams.values())

    def label(self, text: str) -> str:
        """The most probable label."""
        scores = self._joint(text)
        return max(scores, key=scores.__getitem__)

    def probabilities(self, text: str) -> dict[str, float]:
        """Of each label, given the text."""
        scores = self._joint(text)
        best = max(scores.values())
        shares = {label: math.exp(each - best) for label, each in scores.items()}
        total = sum(shares.values())
        return {label: share / total for label, share in shares.items()}

    def _joint(self, text: str) -> dict[str, float]:
        """``log p(label, text)`` of each label."""
        grams = [gram for gram in self._grams(text) if gram in self._known]
        return {
            label: self._prior[label]
            + sum(self._gain[label].get(gram, 0.0) for gram in grams)
            + len(grams) * self._unseen[label]
            for label in self._prior
        }

    def _grams(self, text: str) -> set[str]:
        units: Sequence[str] = text.lower().split() if self._by_words else text
        longest = 2 if self._by_words else 3
        return {
            "\x00".join(units[start : start + length])
            for length in range(1, longest + 1)
            for start in range(len(units) - length + 1)
        }


class WordOverlap:
    """Two labels told apart by the share of the first text's words that the second has."""

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
    order = sorted(range(len(scores)), key=lambda index: scores[index])
    splits = []
    for above, below in ((names[0], names[-1]), (names[-1], names[0])):
        right = labels.count(above)
        splits.append((right, scores[order[0]], above, below))
        for index, after in zip(order, [*order[1:], None], strict=True):
            right += (labels[index] == below) - (labels[index] == above)
            threshold = math.inf if after is None else scores[after]
            if threshold > scores[index]:
                splits.append((right, threshold, above, below))
    _, threshold, above, below = max(splits)
    return threshold, above, below
