"""Other segmentations of a word than the best: subword regularisation.

sentencepiece draws them too, but from version 0.2.2 on what it draws differs from process to
process, whatever the seed; a training that was interrupted could not go on to the same bytes.
"""

import math
from collections.abc import Callable, Mapping
from functools import lru_cache
from random import Random

# What a character outside the vocabulary costs below the rarest piece, as in sentencepiece.
_UNKNOWN_COST = 10.0

# Cuts a word into pieces: (word, random numbers) → pieces.
Segmenter = Callable[[str, Random], list[str]]


def bpe_dropout(scores: Mapping[str, float], rate: float) -> Segmenter:
    """Byte pair encoding that leaves out some merges: Provilkov et al. (2020), algorithm 1.

    https://arxiv.org/abs/1910.13267. At each step every possible merge is left out with
    probability ``rate``, and the best of the others is made; where none is left, the word is done.

    Args:
        scores: Every piece that is not one character, and how early its merge comes (higher first).
        rate: 0 gives the segmentation of plain byte pair encoding.

    Example:
        >>> bpe_dropout({"lo": -1.0, "low": -2.0}, 0.0)("lowl", Random(1))
        ['low', 'l']
    """

    def cut(word: str, rng: Random) -> list[str]:
        pieces = list(word)
        while len(pieces) > 1:
            best, place = -math.inf, -1
            for i in range(len(pieces) - 1):
                score = scores.get(pieces[i] + pieces[i + 1])
                if score is not None and score > best and (not rate or rng.random() >= rate):
                    best, place = score, i
            if place < 0:
                break
            pieces[place : place + 2] = [pieces[place] + pieces[place + 1]]
        return pieces

    return cut


def unigram_sampling(scores: Mapping[str, float], alpha: float) -> Segmenter:
    """A segmentation with its probability to the power of ``alpha``: Kudo (2018), section 3.3.

    https://arxiv.org/abs/1804.10959. All segmentations take part, not the best few: forward
    filtering sums over them, backward sampling draws one.

    Args:
        scores: The log-probability of every piece.
        alpha: Near 0 all segmentations are alike; a large one gives the most probable.

    Example:
        >>> cut = unigram_sampling({"a": -2.0, "b": -2.0, "ab": -1.0}, 100.0)
        >>> cut("abb", Random(1))
        ['ab', 'b']
    """
    longest = max(map(len, scores), default=1)
    unknown = min(scores.values(), default=0.0) - _UNKNOWN_COST

    @lru_cache(maxsize=1 << 16)  # words come again
    def ways_to(word: str) -> list[tuple[list[int], list[float]]]:
        """For each end in the word, the starts of the pieces that end there, and their shares."""
        ways: list[tuple[list[int], list[float]]] = [([], [])]
        sums = [0.0]
        for end in range(1, len(word) + 1):
            starts, weights = [], []
            for start in range(max(0, end - longest), end):
                score = scores.get(word[start:end], unknown if start == end - 1 else None)
                if score is not None:
                    starts.append(start)
                    weights.append(sums[start] + alpha * score)
            most = max(weights)
            total = most + math.log(sum(math.exp(weight - most) for weight in weights))
            ways.append((starts, [math.exp(weight - total) for weight in weights]))
            sums.append(total)
        return ways

    def cut(word: str, rng: Random) -> list[str]:
        ways = ways_to(word)
        pieces: list[str] = []
        end = len(word)
        while end:
            starts, shares = ways[end]
            start = starts[0] if len(starts) == 1 else rng.choices(starts, shares)[0]
            pieces.append(word[start:end])
            end = start
        return pieces[::-1]

    return cut
