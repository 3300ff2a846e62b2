"""How far links between words are from those that people, or a grammar, set.

Links are pairs (source position, target position); where they come from is no matter here.
"""

from collections.abc import Iterable, Set
from dataclasses import dataclass

from regard.metrics.score import check_as_many

Link = tuple[int, int]


@dataclass(frozen=True, slots=True)
class AlignmentCounts:
    """Counts of the alignment error rate of Och & Ney; sum them over sentences for a corpus.

    Attributes:
        predicted: |A|, links predicted.
        sure: |S|, links that any annotator would draw.
        predicted_sure: |A ∩ S|.
        predicted_possible: |A ∩ P|.

    Example:
        >>> first = AlignmentCounts(predicted=3, sure=2, predicted_sure=2, predicted_possible=3)
        >>> second = AlignmentCounts(predicted=1, sure=2, predicted_sure=0, predicted_possible=0)
        >>> first.error_rate, second.error_rate, (first + second).error_rate
        (0.0, 1.0, 0.375)
    """

    predicted: int = 0
    sure: int = 0
    predicted_sure: int = 0
    predicted_possible: int = 0

    def __add__(self, other: "AlignmentCounts") -> "AlignmentCounts":
        """The counts of both."""
        return AlignmentCounts(
            self.predicted + other.predicted,
            self.sure + other.sure,
            self.predicted_sure + other.predicted_sure,
            self.predicted_possible + other.predicted_possible,
        )

    @property
    def error_rate(self) -> float:
        """1 − (|A ∩ S| + |A ∩ P|) / (|A| + |S|); 0 where there is nothing to link."""
        total = self.predicted + self.sure
        return 1 - (self.predicted_sure + self.predicted_possible) / total if total else 0.0


def count_links(
    predicted: Iterable[Link],
    sure: Set[Link],
    possible: Set[Link] = frozenset(),
    *,
    linked_only: bool = False,
) -> AlignmentCounts:
    """The counts of one sentence.

    Args:
        predicted: The links to be judged, A.
        sure: Links that must be there, S.
        possible: Links that may be there; the sure ones are always among them, P ⊇ S.
        linked_only: Judge only target words that have a gold link: the arg-max links every
            target word, so without this it is blamed for the words that have none.

    Example:
        >>> count_links([(0, 0), (1, 1)], {(0, 0)}, {(2, 1)}).error_rate
        0.33333333333333337
        >>> count_links([(0, 0), (1, 1)], {(0, 0)}, linked_only=True).error_rate
        0.0
    """
    links, allowed = set(predicted), sure | possible
    if linked_only:
        linked = {target for _, target in allowed}
        links = {link for link in links if link[1] in linked}
    return AlignmentCounts(len(links), len(sure), len(links & sure), len(links & allowed))


def alignment_error_rate(
    predicted: Iterable[Iterable[Link]],
    sure: Iterable[Set[Link]],
    possible: Iterable[Set[Link]] | None = None,
    *,
    linked_only: bool = False,
) -> float:
    """The alignment error rate of a corpus: Och & Ney (2003), section 6.2.

    ``1 − (|A ∩ S| + |A ∩ P|) / (|A| + |S|)`` with counts over all sentences, not a mean of rates.

    Args:
        predicted: For each sentence, the links to be judged.
        sure: For each sentence, the links that must be there.
        possible: For each sentence, links that may be there. None: no others.
        linked_only: Judge only target words that have a gold link.

    Example:
        >>> alignment_error_rate([[(0, 0)], [(1, 0)]], [{(0, 0)}, {(0, 0)}])
        0.5
    """
    links_of, gold = list(predicted), list(sure)
    maybe: list[Set[Link]] = [frozenset()] * len(gold) if possible is None else list(possible)
    check_as_many("predicted", links_of, "sure", gold)
    check_as_many("possible", maybe, "sure", gold)
    counts = (
        count_links(links, must, may, linked_only=linked_only)
        for links, must, may in zip(links_of, gold, maybe, strict=True)
    )
    return sum(counts, AlignmentCounts()).error_rate
