"""Parts of a word that its embedding sums: characters, n-grams of them, or pairs of words."""

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Literal

WordPartsName = Literal["characters", "neighbours", "ngrams"]

# Where a word or a sentence begins and ends.
BEGIN, END = "\x02", "\x03"

# Characters of a word that are read: its beginning and its end decide.
_MOST = 20

# How long n-grams of characters are.
_LENGTHS = (3, 4, 5)


def characters(words: Sequence[str]) -> list[list[str]]:
    r"""The characters of each word between marks of its begin and its end, so that endings show.

    Of a word longer than twenty characters, the first ten and the last ten.

    Example:
        >>> characters(["at", "I"])
        [['\x02', 'a', 't', '\x03'], ['\x02', 'I', '\x03']]
    """
    return [[BEGIN, *_ends(word), END] for word in words]


def neighbours(words: Sequence[str]) -> list[list[str]]:
    r"""The pairs of each word with the one before it and the one after it.

    Where the words are characters, as Chinese is often cut, a pair is often a word: the bigrams of
    Chen et al. (2015), https://aclanthology.org/D15-1141, and Zhang & Yang (2018),
    https://arxiv.org/abs/1805.02023.

    Example:
        >>> neighbours(["北", "京"])
        [['\x02 北', '北 京'], ['北 京', '京 \x03']]
    """
    pairs = [f"{one} {other}" for one, other in pairwise([BEGIN, *words, END])]
    return [[before, after] for before, after in pairwise(pairs)]


def ngrams(words: Sequence[str]) -> list[list[str]]:
    r"""All runs of three to five characters of each word, with marks of its begin and its end.

    Bojanowski et al. (2017), section 3.2, https://arxiv.org/abs/1607.04606: "unwatchable" shares
    its beginning with "unfunny" and its end with "watchable".

    Example:
        >>> ngrams(["at", "I"])
        [['\x02at', 'at\x03', '\x02at\x03'], ['\x02I\x03']]
    """
    marked = [BEGIN + _ends(word) + END for word in words]
    return [
        [word[at : at + length] for length in _LENGTHS for at in range(len(word) - length + 1)]
        for word in marked
    ]


WORD_PARTS: dict[str, Callable[[Sequence[str]], list[list[str]]]] = {
    "characters": characters,
    "neighbours": neighbours,
    "ngrams": ngrams,
}


def reads_parts(model: object) -> bool:
    """Whether a model of these settings reads words from their parts too."""
    return getattr(model, "parts", "none") != "none"


def _ends(word: str) -> str:
    half = _MOST // 2
    return word if len(word) <= _MOST else word[:half] + word[-half:]
