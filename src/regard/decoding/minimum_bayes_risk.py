"""The answer that agrees best with all the others, instead of the likeliest one."""

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from regard.checks import check_at_least
from regard.errors import SettingError

T = TypeVar("T", bound=Hashable)


@dataclass(frozen=True, slots=True)
class Judged(Generic[T]):
    """A candidate, and what it is worth.

    Attributes:
        answer: The candidate.
        utility: Its mean utility over the references.

    Example:
        >>> best, *others = minimum_bayes_risk(["ab", "ab", "cd"], lambda a, b: float(a == b))
        >>> best.answer, round(best.utility, 3)
        ('ab', 0.667)
        >>> [judged.answer for judged in others]
        ['cd']
    """

    answer: T
    utility: float


def minimum_bayes_risk(
    candidates: Sequence[T],
    utility: Callable[[T, T], float],
    *,
    references: Sequence[T] | None = None,
    weights: Sequence[float] | None = None,
) -> list[Judged[T]]:
    """The candidates in the order of their expected utility, best first.

    ``u(h) = Σ_r w_r utility(h, r) / Σ_r w_r``, where the references r stand for what the model
    holds true: Kumar & Byrne (2004), https://aclanthology.org/N04-1022. With unbiased samples of
    the model as candidates and as references, and all w = 1, it is that of Eikema & Aziz (2020),
    https://arxiv.org/abs/2005.10283. The utility of a pair is asked for once.

    Args:
        candidates: What to choose from: texts, token ids, or whatever ``utility`` takes. Equal
            ones are one candidate.
        utility: How good the first is if the second is right; higher is better.
        references: What may be right, repeated as often as it was drawn. None is ``candidates``.
        weights: How likely each reference is, in any unit. None weighs all alike.

    Returns:
        Each candidate once; equally good ones in the order given.

    Raises:
        SettingError: There is nothing to choose from or compare with, there is not one weight per
            reference, a weight is negative or all are zero, or a utility is not a number.

    Example:
        >>> def overlap(hypothesis, reference):
        ...     return len(set(hypothesis) & set(reference)) / len(set(hypothesis + reference))
        >>> ranked = minimum_bayes_risk(["abx", "abc", "abd", "xyz"], overlap)
        >>> ranked[0].answer, ranked[-1].answer
        ('abx', 'xyz')
    """
    references = candidates if references is None else references
    check_at_least("number of candidates", len(candidates), 1)
    check_at_least("number of references", len(references), 1)
    weighed = _weighed(references, weights)
    total = math.fsum(weighed.values())
    judged = [
        Judged(
            one,
            math.fsum(
                weight * _number(utility(one, reference), one, reference)
                for reference, weight in weighed.items()
            )
            / total,
        )
        for one in dict.fromkeys(candidates)
    ]
    return sorted(judged, key=lambda each: -each.utility)


def _weighed(references: Sequence[T], weights: Sequence[float] | None) -> dict[T, float]:
    """Each reference once, with the weight of all that are equal to it."""
    each = [1.0] * len(references) if weights is None else list(weights)
    if len(each) != len(references):
        raise SettingError(
            f"weights must be one per reference: {len(references)}; got {len(each)}."
        )
    if not (all(weight >= 0 for weight in each) and 0 < sum(each) < math.inf):
        raise SettingError(
            f"weights must be at least 0, finite, and not all 0; got {each}. "
            "Take the exponential of log-probabilities."
        )
    weighed: dict[T, float] = {}
    for reference, weight in zip(references, each, strict=True):
        weighed[reference] = weighed.get(reference, 0.0) + weight
    return weighed


def _number(value: float, hypothesis: object, reference: object) -> float:
    if not math.isfinite(value):
        raise SettingError(
            f"utility must give finite numbers; got {value} for {hypothesis!r} and {reference!r}."
        )
    return value
