"""Word alignments read off attention weights, and how wrong they are.

Links are pairs (source place, target place). Everything here is plain data and pure functions.
"""

from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from regard.errors import ShapeError

Link = tuple[int, int]
Span = tuple[int, int]


def links_from_weights(weights: Float[Tensor, "T S"]) -> list[Link]:
    """The most looked-at source place of each target place.

    A target place whose weights are all zero has no link; of equal weights the first counts.

    Args:
        weights: One row per target place.

    Returns:
        (source, target) for each target place, in order.

    Example:
        >>> links_from_weights(torch.tensor([[0.1, 0.9], [0.7, 0.3]]))
        [(1, 0), (0, 1)]
    """
    if weights.dim() != 2:
        raise ShapeError(f"weights must have two axes, (T, S); got {tuple(weights.shape)}.")
    if not weights.shape[1]:
        return []
    most, source = weights.max(dim=1)
    return [
        (place, target)
        for target, (place, weight) in enumerate(zip(source.tolist(), most.tolist(), strict=True))
        if weight > 0
    ]


def words_from_tokens(
    weights: Float[Tensor, "T S"],
    source_tokens: Sequence[Span],
    target_tokens: Sequence[Span],
    source_words: Sequence[Span],
    target_words: Sequence[Span],
) -> Float[Tensor, "V W"]:
    """Attention between words, from attention between tokens.

    What a word looks at is the mean of its tokens' rows; what a word receives is the largest weight
    of its tokens. So a word is linked to the one that holds its most looked-at token, as is usual
    for subwords (Zenkel et al., 2020, https://arxiv.org/abs/2004.14675); a sum would favour words
    of many tokens, whose small weights add up. A token belongs to the word it shares most
    characters with, the first of equals; one that touches no word (a space, the end of the
    sentence) is left out.

    Args:
        weights: One row per target token.
        source_tokens: Where each source token begins and ends, in characters.
        target_tokens: The same for the target.
        source_words: Where each source word begins and ends.
        target_words: The same for the target.

    Returns:
        One row per target word, of zeros for a word without a token. A row need not sum to one.

    Raises:
        ShapeError: ``weights`` is not of one row per target and one column per source token.

    Example:
        >>> weights = torch.tensor([[0.5, 0.3, 0.2]])
        >>> words_from_tokens(weights, [(0, 2), (2, 4), (4, 5)], [(0, 3)], [(0, 4), (4, 5)], [(0, 3)])
        tensor([[0.5000, 0.2000]])
    """  # noqa: E501
    if tuple(weights.shape) != (len(target_tokens), len(source_tokens)):
        raise ShapeError(
            f"weights must have shape (target tokens, source tokens) = ({len(target_tokens)}, "
            f"{len(source_tokens)}); got {tuple(weights.shape)}."
        )
    looking = _membership(target_tokens, target_words).to(weights)
    rows = (looking / looking.sum(dim=0).clamp(min=1)).T @ weights
    received = rows[:, :, None] * _membership(source_tokens, source_words).to(weights)
    return received.amax(dim=1) if len(source_tokens) else received.sum(dim=1)


def diagonal_links(source_length: int, target_length: int) -> list[Link]:
    """The baseline that knows no words: each target place with the source place as far along.

    Example:
        >>> diagonal_links(2, 4)
        [(0, 0), (0, 1), (1, 2), (1, 3)]
    """
    if not source_length:
        return []
    return [
        (min(source_length - 1, (2 * target + 1) * source_length // (2 * target_length)), target)
        for target in range(target_length)
    ]


@dataclass(frozen=True, slots=True)
class AlignmentCounts:
    """What the error of Och & Ney is made of; add counts of sentences to get a corpus's.

    Attributes:
        predicted: |A|, links predicted.
        sure: |S|, links that any annotator would draw.
        predicted_sure: |A ∩ S|.
        predicted_possible: |A ∩ P|.
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
    gold = list(sure)
    maybe: list[Set[Link]] = [frozenset()] * len(gold) if possible is None else list(possible)
    counts = (
        count_links(links, must, may, linked_only=linked_only)
        for links, must, may in zip(predicted, gold, maybe, strict=True)
    )
    return sum(counts, AlignmentCounts()).error_rate


def _membership(tokens: Sequence[Span], words: Sequence[Span]) -> Tensor:
    """(tokens, words): one where a token belongs to a word."""
    table = torch.zeros(len(tokens), len(words))
    for place, (start, end) in enumerate(tokens):
        shared = [min(end, stop) - max(start, begin) for begin, stop in words]
        if shared and max(shared) > 0:
            table[place, shared.index(max(shared))] = 1
    return table
