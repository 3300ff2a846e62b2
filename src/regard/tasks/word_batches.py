"""Sentences of words as ids, and padded batches of them."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Int
from torch import Tensor, nn

from regard.text import PAD_ID, UNK_ID


@dataclass(frozen=True, slots=True)
class EncodedWords:
    """A sentence as ids.

    Attributes:
        texts: Its words.
        words: Of its words.
        parts: Of each word's parts; empty where words are not read from them.
        tags: Of the tags; -1 where not known.
        rare: Whether each word occurs once in training.
    """

    texts: tuple[str, ...]
    words: list[int]
    parts: list[list[int]]
    tags: list[int]
    rare: list[bool]


@dataclass(frozen=True, slots=True, eq=False)
class WordBatch:
    """Padded sentences, batch first; one that is too long takes several rows.

    Attributes:
        words: Ids of the words.
        lengths: How many of each row are real.
        parts: Ids of the words' parts; None where words are not read from them.
        tags: Ids of the tags; -1 where not known, and in padding.
        owners: Which sentence each row is part of.
        texts: The words of each sentence.
    """

    words: Int[Tensor, "R N"]
    lengths: Int[Tensor, " R"]
    parts: Int[Tensor, "R N L"] | None
    tags: Int[Tensor, "R N"]
    owners: list[int]
    texts: list[tuple[str, ...]]


def word_batch(
    encoded: Sequence[EncodedWords],
    *,
    longest: int,
    drop_words: float = 0.0,
    drop_parts: float = 0.0,
    generator: torch.Generator | None = None,
) -> WordBatch:
    """Sentences side by side.

    Args:
        encoded: The sentences.
        longest: Words of a row; a longer sentence takes several.
        drop_words: The probability that a rare word becomes unknown, where there is a generator.
        drop_parts: The probability that a part does.
        generator: Draws which do; None leaves everything as it is.
    """
    pieces = [
        (owner, slice(first, first + longest))
        for owner, each in enumerate(encoded)
        for first in range(0, len(each.words), longest)
    ]
    words = _padded([encoded[owner].words[part] for owner, part in pieces], PAD_ID)
    spelled = [encoded[owner].parts[part] for owner, part in pieces]
    parts = _boxed(spelled, words.shape[1]) if any(spelled) else None
    if generator is not None and drop_words:
        rare = _padded([encoded[owner].rare[part] for owner, part in pieces], False)
        drawn = torch.rand(words.shape, generator=generator) < drop_words
        words = words.masked_fill(rare.bool() & drawn, UNK_ID)
    if generator is not None and drop_parts and parts is not None:
        drawn = torch.rand(parts.shape, generator=generator) < drop_parts
        parts = parts.masked_fill((parts != PAD_ID) & drawn, UNK_ID)
    return WordBatch(
        words=words,
        lengths=torch.tensor([len(encoded[owner].words[part]) for owner, part in pieces]),
        parts=parts,
        tags=_padded([encoded[owner].tags[part] for owner, part in pieces], -1),
        owners=[owner for owner, _ in pieces],
        texts=[each.texts for each in encoded],
    )


def _padded(rows: Sequence[Sequence[int]], fill: int) -> Int[Tensor, "R N"]:
    return nn.utils.rnn.pad_sequence(
        [torch.tensor(row, dtype=torch.long) for row in rows], batch_first=True, padding_value=fill
    )


def _boxed(rows: Sequence[Sequence[Sequence[int]]], width: int) -> Int[Tensor, "R N L"]:
    most = max(len(ids) for row in rows for ids in row)
    nothing = [[PAD_ID] * most]
    return torch.tensor(
        [
            [[*ids, *[PAD_ID] * (most - len(ids))] for ids in row] + nothing * (width - len(row))
            for row in rows
        ]
    )
