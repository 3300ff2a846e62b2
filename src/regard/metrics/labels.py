"""How well labels were chosen: accuracy, F1, confusion."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from regard.errors import DataError


@dataclass(frozen=True, slots=True)
class LabelScore:
    """How well one label was found.

    Attributes:
        label: Which.
        precision: Of those given it, the share that have it, in percent.
        recall: Of those that have it, the share given it, in percent.
        f1: The harmonic mean of both.
        count: How many have it.
    """

    label: str
    precision: float
    recall: float
    f1: float
    count: int


def accuracy(given: Sequence[str], right: Sequence[str]) -> float:
    """The share of right labels, in percent.

    Example:
        >>> accuracy(["a", "b"], ["a", "a"])
        50.0
    """
    _check(given, right)
    return 100 * sum(a == b for a, b in zip(given, right, strict=True)) / max(1, len(right))


def by_label(given: Sequence[str], right: Sequence[str]) -> list[LabelScore]:
    """Precision, recall and F1 of each label that is given or right, in alphabetical order.

    Example:
        >>> by_label(["a", "b", "a"], ["a", "a", "a"])[0]
        LabelScore(label='a', precision=100.0, recall=66.66666666666667, f1=80.0, count=3)
    """
    _check(given, right)
    hits = Counter(a for a, b in zip(given, right, strict=True) if a == b)
    given_counts, right_counts = Counter(given), Counter(right)
    return [
        label_score(label, hits[label], given_counts[label], right_counts[label])
        for label in sorted(given_counts | right_counts)
    ]


def label_score(label: str, hits: int, given: int, right: int) -> LabelScore:
    """The score from counts; what would divide by nothing is zero."""
    total = given + right
    return LabelScore(
        label=label,
        precision=100 * hits / given if given else 0.0,
        recall=100 * hits / right if right else 0.0,
        f1=100 * 2 * hits / total if total else 0.0,
        count=right,
    )


def macro_f1(given: Sequence[str], right: Sequence[str]) -> float:
    """F1 averaged over labels, each counting alike, in percent.

    Example:
        >>> macro_f1(["a", "b", "a"], ["a", "a", "a"])
        40.0
    """
    scores = by_label(given, right)
    return sum(score.f1 for score in scores) / max(1, len(scores))


def confusion(given: Sequence[str], right: Sequence[str]) -> dict[tuple[str, str], int]:
    """How often each label was right and each given: (right, given) → count.

    Example:
        >>> confusion(["a", "b", "a"], ["a", "a", "a"])
        {('a', 'a'): 2, ('a', 'b'): 1}
    """
    _check(given, right)
    return dict(Counter(zip(right, given, strict=True)))


def _check(given: Sequence[str], right: Sequence[str]) -> None:
    if len(given) != len(right):
        raise DataError(
            f"labels must be as many as are right; got {len(given)} for {len(right)} texts."
        )
