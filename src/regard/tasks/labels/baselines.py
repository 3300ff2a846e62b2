"""Baselines of labels: logistic regression on TF-IDF of a text, on the word overlap of two."""

import random
from collections.abc import Sequence

import torch

from regard.tasks.labels.logistic_regression import SparseRows, fit
from regard.tasks.labels.text_ngrams import TextNgrams
from regard.tasks.overlap import OVERLAP_FEATURES, Overlap

TFIDF, OVERLAP = "TF-IDF and logistic regression", "logistic regression on overlap"
# Pairs that the overlap is learned from.
_ENOUGH = 10_000


class TfidfClassifier:
    """Logistic regression on TF-IDF of word and character n-grams."""

    def __init__(self, examples: Sequence[tuple[str, str]]) -> None:
        texts, labels = zip(*examples, strict=True)
        self._names = sorted(set(labels))
        self._ngrams = TextNgrams.learn(texts)
        self._model = fit(self._inputs(texts), _numbers(labels, self._names), len(self._names))

    def labels(self, texts: Sequence[str]) -> list[str]:
        """The most probable label of each text."""
        return [self._names[n] for n in self._model.logits(self._inputs(texts)).argmax(1).tolist()]

    def _inputs(self, texts: Sequence[str]) -> SparseRows:
        return self._ngrams.inputs([self._ngrams.tfidf(text) for text in texts])


class OverlapClassifier:
    """Logistic regression on the numbers of ``Overlap``, each with mean 0 and deviation 1."""

    def __init__(self, examples: Sequence[tuple[str, str, str]]) -> None:
        # Drawn, since files often alternate labels, and every second line has one of them alone.
        drawn = random.Random(0).sample(examples, min(len(examples), _ENOUGH))
        self._names = sorted({label for _, _, label in drawn})
        self._overlap = Overlap.learn(dict.fromkeys(second for _, second, _ in examples))
        rows = self._rows(drawn)
        self._mean, self._deviation = rows.mean(0), rows.std(0, correction=0).clamp(min=1e-6)
        labels = _numbers([label for *_, label in drawn], self._names)
        self._model = fit(self._inputs(rows), labels, len(self._names))

    def labels(self, pairs: Sequence[tuple[str, str]]) -> list[str]:
        """The most probable label of each pair."""
        logits = self._model.logits(self._inputs(self._rows(pairs)))
        return [self._names[number] for number in logits.argmax(1).tolist()]

    def _rows(self, pairs: Sequence[tuple[str, ...]]) -> torch.Tensor:
        rows = [self._overlap.features(first, second) for first, second, *_ in pairs]
        return torch.tensor(rows).view(len(pairs), len(OVERLAP_FEATURES))

    def _inputs(self, rows: torch.Tensor) -> SparseRows:
        values = ((rows - self._mean) / self._deviation).tolist()
        columns = [range(len(OVERLAP_FEATURES))] * len(values)
        return SparseRows.of(columns, values, num_columns=len(OVERLAP_FEATURES))


def _numbers(labels: Sequence[str], names: Sequence[str]) -> torch.Tensor:
    numbers = {name: number for number, name in enumerate(names)}
    return torch.tensor([numbers[label] for label in labels])
