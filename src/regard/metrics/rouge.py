"""ROUGE of summaries and answers: their overlap with a right one.

Lin (2004), https://aclanthology.org/W04-1013. Words are runs of letters or of digits, without case
and without stems; every character of Chinese and of other scripts without spaces is a word. On
ASCII text the figures are those of Google's ``rouge-score``.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence, Sized

import numpy as np

from regard.checks import check_count
from regard.metrics.score import (
    SEED,
    MetricScore,
    References,
    answers,
    check_as_many,
    check_texts,
    floored,
    interval,
    num_references,
    streams,
)

# One character of Chinese, Japanese, Thai, Lao, Burmese or Khmer; or a run of letters and digits.
_UNSPACED = (
    "\u0e01-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"
)
_WORD = re.compile(rf"[{_UNSPACED}]|[^\W_{_UNSPACED}]+")
# Size of the overlap of two texts, and the units of each.
_Shared = tuple[int, Sized, Sized]


def rouge_l(
    hypotheses: Sequence[str], references: References, *, resamples: int = 0
) -> MetricScore:
    """ROUGE-L: the mean over outputs, in percent.

    ``F = 2 P R / (P + R)`` of the longest common subsequence, where P is its share of the output
    and R that of the reference; the best over the references.

    Arguments are those of `bleu`, and so is its DataError.

    Example:
        >>> round(rouge_l(["the king was sad"], [["because the king felt sad", "sad"]]).value, 1)
        66.7
        >>> round(rouge_l(["国王很伤心。"], ["国王伤心极了。"]).value, 1)
        72.7
    """
    return _mean("ROUGE-L", sentence_rouge_l(hypotheses, references), references, resamples)


def rouge_n(
    hypotheses: Sequence[str], references: References, *, n: int, resamples: int = 0
) -> MetricScore:
    """ROUGE-1 for ``n = 1``, ROUGE-2 for 2: the mean over outputs, in percent.

    ``F = 2 P R / (P + R)`` of the n-grams in common, each as often as in both.

    Arguments are those of `bleu`, and so is its DataError; ``n``, the words of an n-gram, is one at
    least.

    Example:
        >>> [round(rouge_n(["the sad king"], ["the king was sad"], n=n).value, 1) for n in (1, 2)]
        [85.7, 0.0]
    """
    values = sentence_rouge_n(hypotheses, references, n=n)
    return _mean(f"ROUGE-{n}", values, references, resamples)


def sentence_rouge_l(hypotheses: Sequence[str], references: References) -> list[float]:
    """ROUGE-L of each output by itself.

    Example:
        >>> sentence_rouge_l(["the king was sad", "who?"], ["the king felt sad", "his son"])
        [75.0, 0.0]
    """
    return _best(
        hypotheses, references, lambda ours, right: (common_length(ours, right), ours, right)
    )


def sentence_rouge_n(hypotheses: Sequence[str], references: References, *, n: int) -> list[float]:
    """ROUGE-1, ROUGE-2 and so on of each output by itself.

    Example:
        >>> found = sentence_rouge_n(["the sad king", "who?"], ["the king was sad", "his son"], n=1)
        >>> [round(value, 1) for value in found]
        [85.7, 0.0]
    """
    check_count("n", n)

    def shared(output: Sequence[str], reference: Sequence[str]) -> _Shared:
        first, second = n_grams(output, n), n_grams(reference, n)
        return (Counter(first) & Counter(second)).total(), first, second

    return _best(hypotheses, references, shared)


def signature_of(references: References) -> str:
    """How ROUGE was computed, in sacrebleu's form."""
    return f"nrefs:{num_references(references)}|case:lc|stem:no|F1"


def n_grams(items: Sequence[str], n: int) -> list[tuple[str, ...]]:
    """Every n words in a row."""
    return list(zip(*(items[first:] for first in range(n)), strict=False))


def words(text: str) -> list[str]:
    """Return the tokens that ROUGE compares."""
    return _WORD.findall(text.lower())


def first_words(text: str, count: int) -> str:
    """Cut a text after so many words."""
    ends = [word.end() for word in _WORD.finditer(text)]
    return text[: ends[count - 1]] if len(ends) > count else text


def common_length(first: Sequence[str], second: Sequence[str]) -> int:
    """Length of the longest common subsequence, by a row of its table as bits: Hyyrö (2004)."""
    positions: dict[str, int] = defaultdict(int)
    for index, word in enumerate(first):
        positions[word] |= 1 << index
    every = (1 << len(first)) - 1
    row = every
    for word in second:
        matched = row & positions.get(word, 0)
        row = ((row + matched) | (row - matched)) & every
    return len(first) - row.bit_count()


def _best(
    hypotheses: Sequence[str],
    references: References,
    shared: Callable[[Sequence[str], Sequence[str]], _Shared],
) -> list[float]:
    """``F = 2 P R / (P + R)`` of each output beside the reference that it is nearest to."""
    streams(hypotheses, references)
    return [
        100 * max(_f1(*shared(words(output), words(reference))) for reference in right)
        for output, right in zip(hypotheses, answers(references), strict=True)
    ]


def _f1(common: int, output: Sized, reference: Sized) -> float:
    return 2 * common / (len(output) + len(reference)) if common else 0.0


def _mean(
    name: str, values: Sequence[float], references: References, resamples: int
) -> MetricScore:
    check_count("resamples", resamples, 0)
    signature, mean, margin = signature_of(references), None, None
    if resamples:
        indices = np.random.default_rng(SEED).integers(0, len(values), (resamples, len(values)))
        mean, margin = interval(np.asarray(values)[indices].mean(axis=1))
        margin = floored(margin, float(np.mean(values)), len(values))
        signature = f"{signature}|bs:{resamples}|seed:{SEED}"
    value = float(np.mean(values))
    return MetricScore(name=name, value=value, signature=signature, mean=mean, margin=margin)


def novelty(outputs: Sequence[str], sources: Sequence[str], *, n: int) -> float:
    """The share of the outputs' n-grams that their sources do not hold, in percent.

    Figure 6 of See et al. (2017), https://arxiv.org/abs/1704.04368. Words are those of ROUGE. 0 if
    there are no n-grams.

    Example:
        >>> novelty(["the sad king ran off"], ["The king was sad. The sad king left."], n=2)
        50.0
    """
    check_count("n", n)
    check_texts("outputs", outputs)
    check_texts("sources", sources)
    check_as_many("sources", sources, "outputs", outputs)
    is_new = []
    for output, source in zip(outputs, sources, strict=True):
        there = set(n_grams(words(source), n))
        is_new += [n_gram not in there for n_gram in n_grams(words(output), n)]
    return _percent(is_new)


def repetition(outputs: Sequence[str], *, n: int) -> float:
    """The share of the outputs' n-grams that the same output has said before, in percent.

    Example:
        >>> repetition(["a king and a king"], n=2)
        25.0
    """
    check_count("n", n)
    check_texts("outputs", outputs)
    is_repeated = []
    for output in outputs:
        ngrams_before: set[tuple[str, ...]] = set()
        for n_gram in n_grams(words(output), n):
            is_repeated.append(n_gram in ngrams_before)
            ngrams_before.add(n_gram)
    return _percent(is_repeated)


def _percent(marks: Sequence[bool]) -> float:
    return 100 * sum(marks) / len(marks) if marks else 0.0
