"""Overlap of two texts in numbers: the words they share, of which rare ones count more."""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, pairwise
from pathlib import Path
from typing import NotRequired, TypedDict

from regard.tasks.sentence_baselines import words_of
from regard.text.files import read_saved, write_plain

# Numbers of ``Overlap.features``; shares are of the weight of the first text's words.
OVERLAP_FEATURES = (
    "shared words",
    "shared words, all alike",
    "words with the same beginning",
    "shared pairs of neighbours",
    "shared names and numbers, as written",
    "rarest shared word",
    "rarest missing word",
    "shared words that stand close",
    "shared words, by how often",
    "length of the second text",
    "weight of the first text",
    "length of the first text",
    "names of the second text alone",
    "numbers of the second text alone",
    "shared runs of four letters",
    "names that are missing, by how rare they are",
    "rarest missing name",
)
# Numbers of ``Overlap.among`` besides, of one of several texts such as a passage's sentences.
AMONG_FEATURES = (
    "shared words, by how few of the texts have them",
    "shared words, of those that any of the texts has",
    "shared words that no other text has",
    "shared beginnings of words, by how few of the texts have them",
)
_FIRST_FEATURES = 14  # that runs had before the rest was added
_FILE = "overlap.json"
_BEGINNING = 5  # letters that words of one stem share
_RUN = 4  # letters that words share which are not written alike
_CLOSE = 20  # words of a stretch that shared words stand close in
_SCALE = 5.0  # of numbers that vary by about 0.2
_LEAST = 2  # texts; a word of one text alone is as rare as one that none has


class _Saved(TypedDict):
    texts: int
    counts: dict[str, int]
    features: NotRequired[int]


@dataclass(frozen=True, slots=True, eq=False)
class _Words:
    """Words of a text in lower case, their pairs and beginnings, and names as they are written."""

    order: list[str]
    counts: Counter[str]
    pairs: set[tuple[str, str]]
    beginnings: set[str]
    written: set[str]
    names: set[str]
    runs: set[str]


class Overlap:
    """Numbers about the words that two texts share, of which rare ones count more.

    A word weighs its inverse document frequency, ``log((1 + texts) / texts that have it)`` (Spärck
    Jones, 1972, https://doi.org/10.1108/eb026526); older runs have fewer features.
    """

    def __init__(
        self, counts: Mapping[str, int], texts: int, num_features: int = len(OVERLAP_FEATURES)
    ) -> None:
        self.counts, self.texts, self.num_features = dict(counts), texts, num_features
        self._counts_of_runs = Counter[str]()  # as often as all words that have them
        for word, count in self.counts.items():
            self._counts_of_runs.update(dict.fromkeys(_runs(word), count))
        self._words = lru_cache(maxsize=100_000)(_words)  # a text has several questions

    @classmethod
    def learn(cls, texts: Iterable[str]) -> "Overlap":
        """Fit the rarity of words to these texts."""
        number, counts = 0, Counter[str]()
        for text in texts:
            number += 1
            counts.update({word.text for word in words_of(text) if not word.is_mark})
        return cls({word: n for word, n in sorted(counts.items()) if n >= _LEAST}, number)

    @classmethod
    def load(cls, folder: Path) -> "Overlap":
        """The counts that ``save`` wrote; RunError if they are missing or damaged."""
        table = read_saved(folder, _FILE, _Saved)
        return cls(table["counts"], table["texts"], table.get("features", _FIRST_FEATURES))

    def save(self, folder: Path) -> None:
        """Write the counts."""
        sizes = {"texts": self.texts, "features": self.num_features}
        write_plain(folder, {**sizes, "counts": dict(self.counts)}, _FILE)

    def rarity(self, word: str) -> float:
        """Weight of a word."""
        return math.log((1 + self.texts) / self.counts.get(word, 1))

    def shared(self, first: str, second: str) -> float:
        """Sum of the weights of the words that both texts have."""
        return self._weight(self._words(first).counts.keys() & self._words(second).counts.keys())

    def features(self, first: str, second: str) -> list[float]:
        """``OVERLAP_FEATURES`` of two texts, so large that they vary by about one."""
        a, b = self._words(first), self._words(second)
        shared, missing = a.counts.keys() & b.counts.keys(), a.counts.keys() - b.counts.keys()
        alike = {w for w in missing if len(w) > _BEGINNING - 2 and w[:_BEGINNING] in b.beginnings}
        rarity, total = self.rarity, self._weight(a.counts) or 1.0
        added, absent = b.names - a.written, [rarity(name.lower()) for name in a.names - b.written]
        count = sum(name[0].isdigit() for name in added)
        repeated = math.fsum(rarity(word) * math.log1p(b.counts[word]) for word in shared)
        numbers = [
            self._weight(shared) / total,
            len(shared) / max(1, len(a.counts)),
            self._weight(alike) / total,
            math.fsum(sum(map(rarity, pair)) for pair in a.pairs & b.pairs) / total / 2,
            len(a.names & b.written) / max(1, len(a.names)),
            max(map(rarity, shared), default=0.0) / 10,
            max(map(rarity, missing - alike), default=0.0) / 10,
            self._closest(b.order, shared) / total,
            repeated / total,
            math.log1p(len(b.order)) / 5,
            total / 50,
            len(a.order) / 20,
            math.log1p(len(added) - count) / 3,
            math.log1p(count) / 3,
            self._weight_of_runs(a.runs & b.runs) / (self._weight_of_runs(a.runs) or 1.0),
            math.fsum(absent) / total,
            max(absent, default=0.0) / 10,
        ]
        return [_SCALE * number for number in numbers[: self.num_features]]

    @property
    def num_among(self) -> int:
        """Number of features of each text in ``among``."""
        is_early = self.num_features < len(OVERLAP_FEATURES)
        return self.num_features + (0 if is_early else len(AMONG_FEATURES))

    def among(self, first: str, seconds: Sequence[str]) -> list[list[float]]:
        """``features`` of each of several texts, and ``AMONG_FEATURES`` of it beside the others."""
        a, candidates = self._words(first), [self._words(second) for second in seconds]
        shared = [a.counts.keys() & candidate.counts.keys() for candidate in candidates]
        begun = [a.beginnings & candidate.beginnings for candidate in candidates]
        counts, starts = Counter(chain.from_iterable(shared)), Counter(chain.from_iterable(begun))
        total, present = self._weight(a.counts) or 1.0, self._weight(counts) or 1.0
        rows = []
        for second, words, beginnings in zip(seconds, shared, begun, strict=True):
            numbers = [
                math.fsum(self.rarity(word) / counts[word] for word in words) / total,
                self._weight(words) / present,
                self._weight(word for word in words if counts[word] == 1) / total,
                math.fsum(1 / starts[start] for start in beginnings) / max(1, len(a.beginnings)),
            ]
            both = [*self.features(first, second), *(_SCALE * number for number in numbers)]
            rows.append(both[: self.num_among])
        return rows

    def _weight(self, words: Iterable[str]) -> float:
        # A set's order is another in every process, and with it the last digit of a plain sum.
        return math.fsum(map(self.rarity, words))

    def _weight_of_runs(self, runs: Iterable[str]) -> float:
        counts, most = self._counts_of_runs, 1 + self.texts
        return math.fsum(math.log(most / min(most, counts.get(run, 1))) for run in runs)

    def _closest(self, order: list[str], shared: Iterable[str]) -> float:
        """The most that the shared words of one stretch weigh."""
        targets = set(shared)
        positions = [position for position, word in enumerate(order) if word in targets]
        best = 0.0
        for number, first in enumerate(positions):
            near = {order[position] for position in positions[number:] if position < first + _CLOSE}
            best = max(best, self._weight(near))
            if near == targets:
                break
        return best


def _words(text: str) -> _Words:
    words = [word for word in words_of(text) if not word.is_mark]
    order = [word.text for word in words]
    written = [text[word.start : word.end] for word in words]
    # The first word has a capital whatever it is.
    names = {word for word in written[1:] if word != word.lower() or word[0].isdigit()}
    return _Words(
        order,
        Counter(order),
        set(pairwise(order)),
        {word[:_BEGINNING] for word in order},
        set(written),
        names,
        {run for word in set(order) for run in _runs(word)},
    )


def _runs(word: str) -> set[str]:
    """Runs of letters of a word, with marks of its begin and its end."""
    marked = f"<{word}>"
    return {marked[at : at + _RUN] for at in range(max(1, len(marked) - _RUN + 1))}
