"""How near an answer comes to those that people gave: exact match and F1 of its words."""

import re
import string
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache

from regard.metrics.score import check_list

_ARTICLES = re.compile(r"\b(a|an|the)\b")
# One character of Chinese or Japanese; or a run of letters or digits of other scripts.
_UNSPACED = re.compile(
    "[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]"
)
_WORD = re.compile(rf"{_UNSPACED.pattern}|(?:(?!{_UNSPACED.pattern})[^\W_])+")


@lru_cache(maxsize=1 << 16)
def answer_words(text: str, *, reference: str = "") -> tuple[str, ...]:
    """Lower-case words of an answer, without punctuation and articles; characters of Chinese.

    Rajpurkar et al. (2016), https://arxiv.org/abs/1606.05250, and Cui et al. (2019),
    https://arxiv.org/abs/1810.07366. Either of both texts decides whether it is Chinese.
    """
    lowered = text.lower()
    if _UNSPACED.search(lowered + reference):
        return tuple(_WORD.findall(lowered))
    plain = "".join(char for char in lowered if char not in string.punctuation)
    return tuple(_ARTICLES.sub(" ", plain).split())


def exact_match(answer: str, references: Sequence[str]) -> float:
    """1 if the answer has the very words of a right one, else 0.

    Args:
        answer: The answer; empty for none.
        references: All right ones; none where there is no answer.

    Example:
        >>> exact_match("the Cat!", ["dog", "cat"]), exact_match("", [])
        (1.0, 1.0)
    """
    check_list("references", references)
    return float(
        any(
            answer_words(answer, reference=right) == answer_words(right)
            for right in references or [""]
        )
    )


def f1(answer: str, references: Sequence[str]) -> float:
    """F1 of the words in common with the nearest reference; of Chinese, of the longest run."""
    check_list("references", references)
    return max(_f1(answer, reference) for reference in references or [""])


@lru_cache(maxsize=1 << 16)
def _f1(answer: str, reference: str) -> float:
    ours, theirs = answer_words(answer, reference=reference), answer_words(reference)
    if not ours or not theirs:
        return float(ours == theirs)
    if _UNSPACED.search(reference):
        shared = _longest_run(ours, theirs)
    else:
        shared = (Counter(ours) & Counter(theirs)).total()
    return 2 * shared / (len(ours) + len(theirs))


def _longest_run(first: Sequence[str], second: Sequence[str]) -> int:
    """The length of the longest stretch of words that stands in both."""
    longest = 0
    runs = [0] * (len(second) + 1)  # that end at the last word seen, and at each of the second
    for word in first:
        runs = [0, *(runs[at] + 1 if end == word else 0 for at, end in enumerate(second))]
        longest = max(longest, *runs)
    return longest
