"""How near an answer comes to those that people gave: exact match and F1 of its words."""

import re
import string
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache

_ARTICLES = re.compile(r"\b(a|an|the)\b")
# One character of Chinese or Japanese; or a run of letters or digits of other scripts.
_UNSPACED = re.compile(
    "[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]"
)
_WORD = re.compile(rf"{_UNSPACED.pattern}|(?:(?!{_UNSPACED.pattern})[^\W_])+")


@lru_cache(maxsize=1 << 16)
def answer_words(text: str, *, beside: str = "") -> tuple[str, ...]:
    """The words that an answer is compared by.

    As in the program that came with SQuAD (Rajpurkar et al., 2016,
    https://arxiv.org/abs/1606.05250): lower case, without punctuation and articles. Of Chinese, as
    in CMRC 2018's (Cui et al., 2019, https://arxiv.org/abs/1810.07366), characters.

    Example:
        >>> answer_words("The 250,000 people."), answer_words("《泡泡堂》2代")
        (('250000', 'people'), ('泡', '泡', '堂', '2', '代'))
    """
    lowered = text.lower()
    if _UNSPACED.search(lowered + beside):
        return tuple(_WORD.findall(lowered))
    kept = "".join(char for char in lowered if char not in string.punctuation)
    return tuple(_ARTICLES.sub(" ", kept).split())


def exact_match(given: str, right: Sequence[str]) -> float:
    """1 if the answer has the very words of a right one, else 0.

    Args:
        given: The answer; empty for none.
        right: All right ones; none where there is no answer.

    Example:
        >>> exact_match("the Cat!", ["dog", "cat"]), exact_match("", [])
        (1.0, 1.0)
    """
    return float(
        any(answer_words(given, beside=each) == answer_words(each) for each in right or [""])
    )


def f1(given: str, right: Sequence[str]) -> float:
    """How far the words agree with those of the right answer that is nearest, from 0 to 1.

    Twice the words in both over the words of either. Of Chinese, those in both are the longest run
    of characters that is.

    Args:
        given: The answer; empty for none.
        right: All right ones; none where there is no answer.

    Example:
        >>> f1("the black cat", ["a cat"]), f1("泡泡堂2代", ["泡泡堂"]), f1("cat", [])
        (0.6666666666666666, 0.75, 0.0)
    """
    return max(_f1(given, each) for each in right or [""])


@lru_cache(maxsize=1 << 16)
def _f1(given: str, right: str) -> float:
    ours, theirs = answer_words(given, beside=right), answer_words(right)
    if not ours or not theirs:
        return float(ours == theirs)
    if _UNSPACED.search(right):
        shared = _longest_run(ours, theirs)
    else:
        shared = (Counter(ours) & Counter(theirs)).total()
    return 2 * shared / (len(ours) + len(theirs))


def _longest_run(first: Sequence[str], second: Sequence[str]) -> int:
    """The length of the longest stretch of words that stands in both."""
    longest = 0
    runs = [0] * (len(second) + 1)  # that end at the last word seen, and at each of the second
    for word in first:
        runs = [0, *(runs[at] + 1 if other == word else 0 for at, other in enumerate(second))]
        longest = max(longest, *runs)
    return longest
