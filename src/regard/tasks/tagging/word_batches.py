"""Sentences of words as ids, and padded batches of them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import torch
from jaxtyping import Int
from torch import Tensor

from regard.tasks.tagging.word_pieces import PieceRows, piece_rows
from regard.text import PAD_ID, UNK_ID
from regard.text.padding import lengths_of, padded


@dataclass(frozen=True, slots=True)
class EncodedWords:
    """A sentence as ids.

    Attributes:
        texts: Its words.
        words: Of its words.
        parts: Of each word's parts; empty where words are not read from them.
        tags: Of the tags; -1 where not known.
        rare: Whether each word occurs once in training.
        pieces: Of each word's pieces; empty where words are not cut into any.
    """

    texts: tuple[str, ...]
    words: list[int]
    parts: list[list[int]]
    tags: list[int]
    rare: list[bool]
    pieces: list[list[int]] = field(default_factory=list)

    @property
    def sizes(self) -> list[int]:
        """Tokens that each word takes."""
        return [len(ids) for ids in self.pieces] or [1] * len(self.words)


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
        pieces: What is read instead of the words, where they are cut into pieces.
    """

    words: Int[Tensor, "R N"]
    lengths: Int[Tensor, " R"]
    parts: Int[Tensor, "R N L"] | None
    tags: Int[Tensor, "R N"]
    owners: list[int]
    texts: list[tuple[str, ...]]
    pieces: PieceRows | None = None


def word_batch(
    encoded: Sequence[EncodedWords],
    *,
    longest: int,
    begins: bool = False,
    drop_words: float = 0.0,
    drop_parts: float = 0.0,
    generator: torch.Generator | None = None,
) -> WordBatch:
    """Sentences side by side.

    Args:
        encoded: The sentences.
        longest: Words of a row, or pieces of them; a longer sentence takes several.
        begins: Whether a row of pieces has the begin first.
        drop_words: The probability that a rare word becomes unknown, where there is a generator.
        drop_parts: The probability that a part does.
        generator: Draws which do; None leaves everything as it is.
    """
    rows = [
        (owner, part)
        for owner, each in enumerate(encoded)
        for part in _stretches(each.sizes, longest)
    ]
    rows_of_words = [encoded[owner].words[part] for owner, part in rows]
    words = padded(rows_of_words)
    spelled = [encoded[owner].parts[part] for owner, part in rows]
    pieces = [encoded[owner].pieces[part] for owner, part in rows]
    parts = _boxed(spelled, words.shape[1]) if any(spelled) else None
    if generator is not None and drop_words:
        rare = padded([encoded[owner].rare[part] for owner, part in rows], False)
        drawn = torch.rand(words.shape, generator=generator) < drop_words
        words = words.masked_fill(rare.bool() & drawn, UNK_ID)
    if generator is not None and drop_parts and parts is not None:
        drawn = torch.rand(parts.shape, generator=generator) < drop_parts
        parts = parts.masked_fill((parts != PAD_ID) & drawn, UNK_ID)
    return WordBatch(
        words=words,
        lengths=lengths_of(rows_of_words),
        parts=parts,
        tags=padded([encoded[owner].tags[part] for owner, part in rows], -1),
        owners=[owner for owner, _ in rows],
        texts=[each.texts for each in encoded],
        pieces=piece_rows(pieces, begins=begins) if any(pieces) else None,
    )


def _stretches(sizes: Sequence[int], longest: int) -> Iterator[slice]:
    """Words in a row, as many at a time as take at most so much; one at least."""
    first, taken = 0, 0
    for place, size in enumerate(sizes):
        if place > first and taken + size > longest:
            yield slice(first, place)
            first, taken = place, 0
        taken += size
    if sizes:
        yield slice(first, len(sizes))


def _boxed(rows: Sequence[Sequence[Sequence[int]]], width: int) -> Int[Tensor, "R N L"]:
    most = max(len(ids) for row in rows for ids in row)
    nothing = [[PAD_ID] * most]
    return torch.tensor(
        [
            [[*ids, *[PAD_ID] * (most - len(ids))] for ids in row] + nothing * (width - len(row))
            for row in rows
        ]
    )
