"""Baselines of sentences and their parts: shared words in a sliding window, and TextRank."""

import math
import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations, pairwise

import numpy as np

from regard.metrics.rouge import words as rouge_words
from regard.text.normalization import has_unspaced, word_spans

_SENTENCE_END = re.compile(r"[.!?…]+[\"'”’)\]]*(?=\s|$)|[。！？!?]+[”’」』）]*|\n+")
# Most words of a candidate; of unspaced text, characters.
_LONGEST = 20
_MOST_FREQUENT = 100  # words that are everywhere, which answer nothing
# Probability that a random walk follows an edge, and does not start anew.
DAMPING = 0.85


@dataclass(frozen=True, slots=True)
class Word:
    """A word of a text, in lower case, and where it stands."""

    text: str
    start: int
    end: int

    @property
    def is_mark(self) -> bool:
        """Whether it is punctuation."""
        return not any(char.isalnum() for char in self.text)


def words_of(text: str) -> list[Word]:
    """The words of a text with their spans; spaces are none."""
    plain = re.sub(r"\s", " ", text)
    return [Word(plain[start:end].lower(), start, end) for start, end in word_spans(plain)]


def sentences_of(text: str) -> list[tuple[int, int]]:
    """Start and end of each sentence, without the space around it."""
    cuts = [0, *(match.end() for match in _SENTENCE_END.finditer(text)), len(text)]
    spans = []
    for start, end in pairwise(cuts):
        sentence = text[start:end]
        if any(char.isalnum() for char in sentence):
            first = start + len(sentence) - len(sentence.lstrip())
            spans.append((first, first + len(sentence.strip())))
    return spans


class SlidingWindow:
    """Answers where most of the question stands nearby, among stretches between punctuation.

    Richardson et al. (2013), https://aclanthology.org/D13-1020, algorithm 1; as SQuAD's baseline in
    Rajpurkar et al. (2016), https://arxiv.org/abs/1606.05250, section 5.1.
    """

    def __init__(self, frequent: Collection[str]) -> None:
        self._frequent = frozenset(frequent)

    @classmethod
    def learn(cls, texts: Sequence[str]) -> "SlidingWindow":
        """Fit the words that occur most in these texts; unspaced text has none such."""
        if any(has_unspaced(text) for text in texts[:10]):
            return cls(())
        counts = Counter(w.text for text in texts for w in words_of(text) if not w.is_mark)
        return cls([word for word, _ in counts.most_common(_MOST_FREQUENT)])

    def answer(self, question: str, context: str) -> tuple[int, int]:
        """Start and end of the answer in the context."""
        query = {word.text for word in words_of(question) if not word.is_mark}
        words, weights = _weighed(context)
        best, span = -1.0, (0, len(context))
        for sentence in self._nearest(context, words, weights, query):
            for candidate in self._candidates(sentence, query):
                targets = query | {word.text for word in candidate}
                score = _best_window(words, weights, targets)
                if score > best:
                    best, span = score, (candidate[0].start, candidate[-1].end)
        return span

    def score(self, question: str, answer: str, context: str) -> float:
        """The weight of question and answer words that stand near each other in the context."""
        words, weights = _weighed(context)
        targets = {w.text for w in (*words_of(question), *words_of(answer)) if not w.is_mark}
        return _best_window(words, weights, targets)

    def shared(self, question: str, sentence: str, context: str) -> float:
        """The weight of the question's words that stand in a sentence of the context."""
        _, weights = _weighed(context)
        query = {word.text for word in words_of(question) if not word.is_mark}
        there = {word.text for word in words_of(sentence)}
        return math.fsum(weights.get(word, 0.0) for word in query & there)

    def _nearest(
        self, context: str, words: Sequence[Word], weights: Mapping[str, float], query: set[str]
    ) -> list[list[Word]]:
        """The words of those sentences with candidates that share most with the question."""
        by_shared: dict[float, list[list[Word]]] = {0.0: []}
        for start, end in sentences_of(context):
            sentence = [word for word in words if start <= word.start < end]
            if self._candidates(sentence, query):
                shared = math.fsum(weights[text] for text in {w.text for w in sentence} & query)
                by_shared.setdefault(shared, []).append(sentence)
        return by_shared[max(by_shared)]

    def _candidates(self, sentence: Sequence[Word], query: set[str]) -> list[list[Word]]:
        """The stretches of a sentence that may be an answer."""
        candidates: list[list[Word]] = [[]]
        for word in sentence:
            if word.is_mark or word.text in query or word.text in self._frequent:
                candidates.append([])
            else:
                candidates[-1].append(word)
        return [candidate[:_LONGEST] for candidate in candidates if candidate]


@lru_cache(maxsize=256)  # of one text there are several questions
def _weighed(context: str) -> tuple[list[Word], dict[str, float]]:
    """The words of a text, and the weight of each."""
    words = words_of(context)
    counts = Counter(word.text for word in words)
    return words, {word: math.log1p(1 / count) for word, count in counts.items()}


def _best_window(words: Sequence[Word], weights: Mapping[str, float], targets: set[str]) -> float:
    """The most that the wanted words of a window weigh, which is as long as they are many."""
    gains = [weights[word.text] if word.text in targets else 0.0 for word in words]
    size = len(targets)
    total = sum(gains[:size], start=0.0)
    best = total
    for end in range(size, len(gains)):
        total += gains[end] - gains[end - size]
        best = max(best, total)
    return best


def text_rank(sentences: Sequence[str]) -> list[float]:
    """Centrality of each sentence: Mihalcea & Tarau (2004), https://aclanthology.org/W04-3252.

    The ranks solve ``r_i = (1 − d) + d Σ_j w_ij r_j / Σ_k w_jk``, without iteration.
    """
    count = len(sentences)
    cut = [rouge_words(sentence) for sentence in sentences]
    held = [set(words) for words in cut]
    weights = np.zeros((count, count))
    for i, j in combinations(range(count), 2):
        length = math.log(max(len(cut[i]), 1)) + math.log(max(len(cut[j]), 1))
        if length > 0:  # of two words alone it is not
            weights[i, j] = weights[j, i] = len(held[i] & held[j]) / length
    leaving = weights.sum(axis=0)
    shares = np.divide(weights, leaving, out=np.zeros_like(weights), where=leaving > 0)
    ranks = np.linalg.solve(np.eye(count) - DAMPING * shares, np.full(count, 1 - DAMPING))
    return [float(rank) for rank in ranks]
