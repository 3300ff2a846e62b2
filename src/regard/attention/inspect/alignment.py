"""Word alignments read off attention weights: links between tokens, and between words.

Links are pairs (source position, target position). Here are plain data and pure functions; how
far links are from those that people set is a metric: ``regard.metrics.alignment_error_rate``.
"""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from regard.errors import ShapeError

Link = tuple[int, int]
Span = tuple[int, int]


def links_from_weights(weights: Float[Tensor, "T S"], *, mutual: bool = False) -> list[Link]:
    """Links (source, target) to the source position with most weight; none where all are zero."""
    # ``mutual`` keeps links that hold both ways: Och & Ney (2003), section 4.4.
    if weights.dim() != 2:
        raise ShapeError(f"weights must have two axes, (T, S); got {tuple(weights.shape)}.")
    if not weights.numel():
        return []
    # Of one sentence, lists are ten times as fast as tensors.
    most, source = (result.tolist() for result in weights.max(dim=1))
    best_target = weights.max(dim=0).indices.tolist() if mutual else None
    return [
        (position, target)
        for target, (position, weight) in enumerate(zip(source, most, strict=True))
        if weight > 0 and (best_target is None or best_target[position] == target)
    ]


def words_from_tokens(
    weights: Float[Tensor, "T S"],
    source_tokens: Sequence[Span],
    target_tokens: Sequence[Span],
    source_words: Sequence[Span],
    target_words: Sequence[Span],
) -> Float[Tensor, "V W"]:
    """Attention between words: of a word's tokens the mean row, the largest weight received."""
    # As is usual for subwords: Zenkel et al. (2020), https://arxiv.org/abs/2004.14675. A sum would
    # favour words of many tokens, whose small weights add up.
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
    """The baseline without words: each target position with the source position as far along."""
    if not source_length:
        return []
    return [
        (min(source_length - 1, (2 * target + 1) * source_length // (2 * target_length)), target)
        for target in range(target_length)
    ]


def _membership(tokens: Sequence[Span], words: Sequence[Span]) -> Tensor:
    """(tokens, words): one where a token belongs to a word."""
    table = torch.zeros(len(tokens), len(words))
    for token, (start, end) in enumerate(tokens):
        shared = [min(end, stop) - max(start, begin) for begin, stop in words]
        if shared and max(shared) > 0:
            table[token, shared.index(max(shared))] = 1
    return table
