"""ROUGE-L of summaries and answers: the longest common subsequence with a right one."""

import re
from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from regard.metrics.references import References, answers, streams
from regard.metrics.score import MetricScore

# One character of Chinese, Japanese, Thai, Lao, Burmese or Khmer; or a run of letters and digits.
_UNSPACED = (
    "\u0e01-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"
)
_WORD = re.compile(rf"[{_UNSPACED}]|[^\W_{_UNSPACED}]+")


def rouge_l(
    hypotheses: Sequence[str],
    references: References,
    *,
    resamples: int = 0,
) -> MetricScore:
    """ROUGE-L (Lin, 2004), https://aclanthology.org/W04-1013: the mean over outputs, in percent.

    ``F = 2 P R / (P + R)`` of the longest common subsequence, where P is its share of the output
    and R that of the reference; the best over the references. Words are runs of letters or of
    digits, without case and without stems; every character of Chinese and of other scripts without
    spaces is a word. On ASCII text it is the figure of Google's ``rouge-score``.

    Args:
        hypotheses: The outputs.
        references: One right answer of each, or several; their number may differ.
        resamples: Bootstrap resamples for the interval; none are drawn for 0.

    Raises:
        DataError: Outputs and references do not pair up.

    Example:
        >>> round(rouge_l(["the king was sad"], [["because the king felt sad", "sad"]]).value, 1)
        66.7
        >>> round(rouge_l(["国王很伤心。"], ["国王伤心极了。"]).value, 1)
        72.7
    """
    values = np.array(sentence_rouge_l(hypotheses, references))
    counts = {len(known) for known in answers(references)}
    signature = f"nrefs:{counts.pop() if len(counts) == 1 else 'var'}|case:lc|stem:no|F1"
    mean = margin = None
    if resamples:
        places = np.random.default_rng(12345).integers(0, len(values), (resamples, len(values)))
        drawn = values[places].mean(axis=1)
        low, high = np.quantile(drawn, [0.025, 0.975])
        mean, margin = float(drawn.mean()), float(high - low) / 2
        signature = f"{signature}|bs:{resamples}|seed:12345"
    return MetricScore(
        name="ROUGE-L", value=float(values.mean()), signature=signature, mean=mean, margin=margin
    )


def sentence_rouge_l(hypotheses: Sequence[str], references: References) -> list[float]:
    """The same of each output by itself.

    Raises:
        DataError: Outputs and references do not pair up.
    """
    streams(hypotheses, references)
    return [
        100 * max(_f_measure(words(one), words(other)) for other in known)
        for one, known in zip(hypotheses, answers(references), strict=True)
    ]


def words(text: str) -> list[str]:
    """What is compared.

    Example:
        >>> words("The King's 3 sons, 王子")
        ['the', 'king', 's', '3', 'sons', '王', '子']
    """
    return _WORD.findall(text.lower())


def _f_measure(output: Sequence[str], reference: Sequence[str]) -> float:
    common = common_length(output, reference)
    if not common:
        return 0.0
    return 2 * common / (len(output) + len(reference))  # the harmonic mean of P and R


def common_length(first: Sequence[str], second: Sequence[str]) -> int:
    """How long the longest common subsequence is.

    By the row of its table as the bits of one number: Hyyrö (2004), where a zero marks a place at
    which the length grows.

    Example:
        >>> common_length("abcbdab", "bdcaba")
        4
    """
    places: dict[str, int] = defaultdict(int)
    for place, word in enumerate(first):
        places[word] |= 1 << place
    every = (1 << len(first)) - 1
    row = every
    for word in second:
        matched = row & places.get(word, 0)
        row = ((row + matched) | (row - matched)) & every
    return len(first) - row.bit_count()
