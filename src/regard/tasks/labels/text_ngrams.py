"""The word and character n-grams of texts, weighed by TF-IDF."""

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import chain
from pathlib import Path
from typing import TypedDict

import numpy as np
import torch
from jaxtyping import Float32, Int32

from regard.tasks.labels.logistic_regression import SparseRows
from regard.text import Piece
from regard.text.files import read_saved, write_plain
from regard.text.normalization import has_unspaced

# Words, and runs of other signs.
_RUN = re.compile(r"[\w'’]+|[^\w\s'’]+")
_CHUNK = re.compile(r"\S+")
_LEAST_TEXTS = 2  # that have an n-gram: one of one text says only which text it is
_LONGEST = 6  # characters of an n-gram of a word, with the spaces around it
_LONGEST_UNSPACED = 5
_FILE = "ngrams.json"
_WORD = "  "  # before words, so that they are not mistaken for their characters


class _Saved(TypedDict):
    texts: int
    counts: dict[str, int]


def ngrams(text: str) -> Iterator[tuple[int, Sequence[str]]]:
    """The n-grams of a text by the index that they end at, itself not included.

    Of words these are the words, pairs of neighbours, and 2 to 6 characters within a word and the
    spaces around it; where no spaces are written, all of 1 to 5 characters, signs among them.
    """
    lower = text.lower()
    if len(lower) != len(text):  # few characters have a lower case of two
        lower = "".join(one.lower() if len(one.lower()) == 1 else one for one in text)
    before = None
    for chunk in _CHUNK.finditer(lower):
        if has_unspaced(chunk[0]):
            before = None
            for end in range(chunk.start() + 1, chunk.end() + 1):
                first = max(chunk.start(), end - _LONGEST_UNSPACED)
                yield end, tuple(lower[at:end] for at in range(first, end))
            continue
        for run in _RUN.finditer(lower, *chunk.span()):
            word, start = run[0], run.start()
            *inner, last = _of_word(word)
            yield from zip(range(start + 1, run.end()), inner, strict=True)
            yield run.end(), last if before is None else (*last, f"{_WORD}{before} {word}")
            before = word


@lru_cache(maxsize=200_000)
def _of_word(word: str) -> tuple[tuple[str, ...], ...]:
    """The n-grams that end at each character of a word, the word among those of its last."""
    marked, size = f" {word} ", len(word)
    ends = [
        tuple(marked[at : end + 1] for at in range(max(0, end + 1 - _LONGEST), end))
        for end in range(1, size + 2)
    ]
    return (*ends[: size - 1], (*ends[size - 1], *ends[size], f"{_WORD}{word}"))


class TextNgrams:
    """The n-grams of a training text that enough of its texts have.

    The rarity of each is its inverse document frequency, ``1 + log((1 + texts) / (1 + count))``.
    """

    def __init__(self, counts: Mapping[str, int], texts: int) -> None:
        self.counts, self.texts = dict(counts), texts
        self._numbers = {unit: number for number, unit in enumerate(self.counts)}
        counts_of_texts = np.array([*self.counts.values()], np.float32)
        self._rarity = 1 + np.log((1 + texts) / (1 + counts_of_texts))
        self._are_words = np.array([unit.startswith(_WORD) for unit in self.counts], bool)

    @classmethod
    def learn(cls, texts: Sequence[str]) -> "TextNgrams":
        """The n-grams of texts, in the order in which they are met."""
        counts: Counter[str] = Counter()
        for text in texts:
            counts.update([*dict.fromkeys(_grams(text))])
        frequent = {unit: count for unit, count in counts.items() if count >= _LEAST_TEXTS}
        return cls(frequent, len(texts))

    @classmethod
    def load(cls, folder: Path) -> "TextNgrams":
        """The n-grams that ``save`` wrote; RunError if they are missing or damaged."""
        table = read_saved(folder, _FILE, _Saved)
        return cls(table["counts"], table["texts"])

    def save(self, folder: Path) -> None:
        """Write the n-grams and their counts."""
        write_plain(folder, {"texts": self.texts, "counts": self.counts}, _FILE)

    def __len__(self) -> int:
        return len(self.counts)

    def tfidf(self, text: str) -> tuple[Int32[np.ndarray, " M"], Float32[np.ndarray, " M"]]:
        """The numbers of a text's n-grams, each once, without unknown ones, and their TF-IDF.

        ``(1 + log count) · rarity``, divided so that the squares sum to one: those of words and
        pairs of words, and those of characters; in a text without spaces between words, of all.
        """
        counts = Counter(_grams(text))
        numbered = [(self._numbers[gram], counts[gram]) for gram in counts if gram in self._numbers]
        numbers = np.array([number for number, _ in numbered], np.int32)
        values = 1 + np.log(np.array([count for _, count in numbered], np.float32))
        values *= self._rarity[numbers]
        part = (self._are_words[numbers] & (not has_unspaced(text))).astype(np.int64)
        length = np.sqrt(np.bincount(part, values**2, minlength=2)).astype(np.float32)
        return numbers, values / length[part]

    def of_pieces(self, text: str, pieces: Sequence[Piece]) -> list[list[int]]:
        """The numbers of the n-grams that end in each piece of a text, each where it ends first."""
        rows: list[list[int]] = [[] for _ in (*pieces, None)]  # the last for n-grams in no piece
        ends, met = [piece.end for piece in pieces], set[int]()
        for end, grams in ngrams(text):
            numbers = {self._numbers[gram] for gram in grams if gram in self._numbers} - met
            rows[bisect_left(ends, end)] += sorted(numbers)
            met |= numbers
        return rows[:-1]

    def inputs(
        self, rows: Sequence[tuple[Int32[np.ndarray, "_"], Float32[np.ndarray, "_"]]]
    ) -> SparseRows:
        """The matrix of texts, a row each, from their ``tfidf``."""
        numbers = np.concatenate([np.zeros(0, np.int32), *(columns for columns, _ in rows)])
        values = np.concatenate([np.zeros(0, np.float32), *(weights for _, weights in rows)])
        starts = torch.tensor([0, *(len(columns) for columns, _ in rows)]).cumsum(0)
        return SparseRows(
            torch.from_numpy(numbers).long(), torch.from_numpy(values), starts, len(self)
        )


def _grams(text: str) -> Iterator[str]:
    return chain.from_iterable(grams for _, grams in ngrams(text))
