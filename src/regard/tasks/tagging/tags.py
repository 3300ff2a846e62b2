"""The tags of a sentence, their numbers, which may follow which, and which words they suit."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool
from torch import Tensor

from regard.config import JsonValue
from regard.errors import DataError
from regard.tasks.task import Table
from regard.text.tagged import TaggedWords


@dataclass(frozen=True, slots=True)
class Tags:
    """The tags of one sentence.

    Attributes:
        words: What is tagged.
        tags: One a word.
    """

    words: tuple[str, ...]
    tags: tuple[str, ...]

    def text(self) -> str:
        """``word/tag`` with spaces between."""
        return " ".join(f"{word}/{tag}" for word, tag in zip(self.words, self.tags, strict=True))

    def to_dict(self) -> dict[str, JsonValue]:
        """Plain data, ready for JSON."""
        return {"tokens": list(self.words), "tags": list(self.tags)}


def transitions(tags: Sequence[str]) -> Bool[Tensor, "rows K"]:
    """Which tag may follow which: I-X only B-X or I-X, and none may come first.

    Example:
        >>> transitions(["B-PER", "I-PER", "O"]).int()
        tensor([[1, 1, 1],
                [1, 1, 1],
                [1, 0, 1],
                [1, 0, 1]], dtype=torch.int32)
    """
    allowed = torch.ones(len(tags) + 1, len(tags), dtype=torch.bool)
    for place, tag in enumerate(tags):
        if tag.startswith("I-"):
            before = [other.partition("-")[2] == tag[2:] for other in tags]
            allowed[:, place] = torch.tensor([*before, False])
    return allowed


def numbers_of(example: TaggedWords, tags: Sequence[str]) -> list[int]:
    """The numbers of a sentence's tags; −1 where they are not known.

    Raises:
        DataError: A tag was not met in training.
    """
    if example.tags is None:
        return [-1] * len(example.words)
    numbers = {tag: number for number, tag in enumerate(tags)}
    for place, (word, tag) in enumerate(zip(example.words, example.tags, strict=True), 1):
        if tag not in numbers:
            raise DataError(
                f"{example.where}: tags must be ones met in training "
                f"({', '.join(tags[:20])}); got {tag!r} for {word!r}, word {place} "
                "of the sentence. Correct it, or add sentences that have it to data.train."
            )
    return [numbers[tag] for tag in example.tags]


def novelty_table(given: Sequence[str], right: Sequence[str], novel: Sequence[bool]) -> Table:
    """Accuracy over the words known from training, and over the others.

    Args:
        given: The tags of all words.
        right: The right ones.
        novel: Which words training had not.

    Example:
        >>> novelty_table(["a", "b", "b"], ["a", "b", "a"], [False, True, True]).rows
        (('known from training', 100.0, 1), ('unknown', 50.0, 2))
    """
    rows = []
    for name, is_novel in (("known from training", False), ("unknown", True)):
        hits = [a == b for a, b, new in zip(given, right, novel, strict=True) if new is is_novel]
        if hits:
            rows.append((name, 100 * sum(hits) / len(hits), len(hits)))
    return Table("by word", ("words", "accuracy", "count"), tuple(rows))
