"""Naive Bayes on n-grams of a text."""

import math
from collections import Counter
from collections.abc import Iterable, Sequence

from regard.text.languages import side_script


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
