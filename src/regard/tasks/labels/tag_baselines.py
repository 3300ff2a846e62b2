"""Baselines of tags: those of a word or an entity in training; regression on words around."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, chain, pairwise

import torch
from torch.nn.utils.rnn import pad_sequence

from regard.layers.crf import Crf
from regard.metrics.labels import entities, is_bio
from regard.tasks.labels.logistic_regression import SparseRows, fit_with
from regard.tasks.labels.tags import transitions
from regard.text.reading.tagged import TaggedWords

# Words that the regression is fitted to, so that it takes seconds.
_ENOUGH = 200_000
_LEAST = 2  # words that have an input
_COST = 1.0  # C
_EDGES = (1, 2, 3, 4)  # letters of a word's beginning and end
REGRESSION = "logistic regression on the words around"
_OUTSIDE = "\x03"  # in place of words before the first and after the last


def most_frequent_tags(
    train: Sequence[TaggedWords], examples: Sequence[TaggedWords]
) -> list[tuple[str, ...]]:
    """Each word's most frequent tag in training; the most frequent of all for the others."""
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for sentence in train:
        for word, tag in zip(sentence.words, sentence.tags or (), strict=True):
            counts[word][tag] += 1
    (most, _), *_ = sum(counts.values(), Counter[str]()).most_common(1)
    best = {word: tags.most_common(1)[0][0] for word, tags in counts.items()}
    return [tuple(best.get(word, most) for word in example.words) for example in examples]


def entities_of_training(
    train: Sequence[TaggedWords], examples: Sequence[TaggedWords]
) -> list[tuple[str, ...]]:
    """Training's entities wherever their words occur, from left to right, the longest first.

    Almost the baseline of Tjong Kim Sang & De Meulder (2003), https://aclanthology.org/W03-0419.
    """
    kinds: dict[tuple[str, ...], Counter[str]] = defaultdict(Counter)
    for sentence in train:
        for kind, first, end in entities(sentence.tags or ()):
            kinds[sentence.words[first:end]][kind] += 1
    best = {words: counts.most_common(1)[0][0] for words, counts in kinds.items()}
    longest = max(map(len, best), default=0)
    return [_looked_up(example.words, best, longest) for example in examples]


class LocalTagger:
    """Logistic regression of each word's tag on its letters and the words around it.

    Nearly the model of Ratnaparkhi (1996), https://aclanthology.org/W96-0213, but for the tags of
    the words before; of all sequences that BIO allows, the likeliest.
    """

    def __init__(self, train: Sequence[TaggedWords]) -> None:
        drawn = train[:: -(-sum(len(sentence.words) for sentence in train) // _ENOUGH)]
        self._names = sorted({tag for sentence in drawn for tag in sentence.tags or ()})
        counts = Counter(chain.from_iterable(chain.from_iterable(_inputs(s.words) for s in drawn)))
        inputs = (name for name, count in counts.items() if count >= _LEAST)
        self._columns = {name: column for column, name in enumerate(inputs)}
        numbers = {name: number for number, name in enumerate(self._names)}
        tags = torch.tensor([numbers[tag] for sentence in drawn for tag in sentence.tags or ()])
        rows = self._rows(sentence.words for sentence in drawn)
        self._model = fit_with(rows, tags, len(self._names), cost=_COST)
        allowed = transitions(self._names) if is_bio(self._names) else None
        self._sequences = Crf(len(self._names), allowed=allowed)  # without scores of pairs of tags

    def tags(self, sentences: Sequence[tuple[str, ...]]) -> list[tuple[str, ...]]:
        """The likeliest tags of each sentence."""
        sizes = [len(words) for words in sentences]
        scores = self._model.logits(self._rows(sentences)).log_softmax(1)
        ends = [*accumulate(sizes)]
        rows = [scores[end - size : end] for end, size in zip(ends, sizes, strict=True)]
        best = self._sequences.best(pad_sequence(rows, batch_first=True), torch.tensor(sizes))
        return [
            tuple(self._names[number] for number in row[:size])
            for row, size in zip(best.tolist(), sizes, strict=True)
        ]

    def _rows(self, sentences: Iterable[Sequence[str]]) -> SparseRows:
        columns_by_name = self._columns
        columns = [
            [columns_by_name[name] for name in names if name in columns_by_name]
            for words in sentences
            for names in _inputs(words)
        ]
        ones = ([1.0] * len(row) for row in columns)
        return SparseRows.of(columns, ones, num_columns=len(columns_by_name))


def _inputs(words: Sequence[str]) -> Iterator[list[str]]:
    """Names of the features of each word: its letters, and the words around it."""
    around = [_OUTSIDE, _OUTSIDE, *words, _OUTSIDE, _OUTSIDE]
    pairs = [f"{left} {right}" for left, right in pairwise(around)]
    for at, word in enumerate(words):
        shape = "".join("d" if c.isdigit() else "X" if c.isupper() else "x" for c in word[:8])
        yield [
            f"shape {shape}",
            f"lower {word.lower()}",
            *(f"begin {word[:size]}" for size in _EDGES if size < len(word)),
            *(f"end {word[-size:]}" for size in _EDGES if size < len(word)),
            *(f"{near - 2} {around[at + near]}" for near in range(5)),
            *(f"{near - 2} and next {pairs[at + near]}" for near in range(4)),
        ]


def _looked_up(
    words: tuple[str, ...], best: dict[tuple[str, ...], str], longest: int
) -> tuple[str, ...]:
    tags: list[str] = []
    while len(tags) < len(words):
        at = len(tags)
        for size in range(min(longest, len(words) - at), 0, -1):
            kind = best.get(words[at : at + size])
            if kind is not None:
                name = f"-{kind}" if kind else ""
                tags += [f"B{name}", *[f"I{name}"] * (size - 1)]
                break
        else:
            tags.append("O")
    return tuple(tags)
