"""The tags of a sentence: which may follow which, and the entities they mark."""

from collections.abc import Sequence
from itertools import pairwise

import torch
from jaxtyping import Bool
from torch import Tensor

from regard.metrics.labels import entities
from regard.tasks.tables import Table
from regard.text.reading.tagged import TaggedWords


def transitions(tags: Sequence[str]) -> Bool[Tensor, "rows K"]:
    """Allowed transitions of tags: I-X only after B-X or I-X, and never first.

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


def novelty_table(given: Sequence[str], right: Sequence[str], novel: Sequence[bool]) -> Table:
    """Accuracy of tags over the words known from training, and over those that are novel.

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


def joined(example: TaggedWords) -> TaggedWords | None:
    """The sentence without the mark between two entities of one type; None if it has no such mark.

    Lists of delegates are printed one name after another. Few sentences are such lists, and many
    hold the same names with a mark between them.

    Example:
        >>> list_ = TaggedWords(("李", "、", "王", "来"), ("B-PER", "O", "B-PER", "O"), "a:1")
        >>> print(joined(list_).words, joined(list_).tags)
        ('李', '王', '来') ('B-PER', 'B-PER', 'O')
    """
    left_out = _marks(example.words, example.tags or ())
    if not left_out:
        return None
    kept = [place for place in range(len(example.words)) if place not in left_out]
    words, tags = example.words, example.tags or ()
    return TaggedWords(
        tuple(words[place] for place in kept), tuple(tags[place] for place in kept), example.where
    )


def _marks(words: Sequence[str], tags: Sequence[str]) -> set[int]:
    found = entities(tags)
    return {
        end
        for (kind, _, end), (next_kind, first, _) in pairwise(found)
        if first == end + 1 and kind == next_kind and not any(map(str.isalnum, words[end]))
    }


def marked(words: Sequence[str], tags: Sequence[str]) -> str:
    """The words with their entities in brackets; single characters without spaces between.

    Example:
        >>> marked("江主席到京", ["B-PER", "O", "O", "O", "B-LOC"])
        '[江 PER]主席到[京 LOC]'
        >>> marked(["in", "New", "York"], ["O", "B-LOC", "I-LOC"])
        'in [New York LOC]'
    """
    space = "" if all(len(word) == 1 for word in words) else " "
    shown, at = [], 0
    for kind, first, end in entities(tags):
        shown += [*words[at:first], f"[{space.join(words[first:end])} {kind}]"]
        at = end
    return space.join([*shown, *words[at:]])


def compared(words: Sequence[str], tags: Sequence[str], right: Sequence[str]) -> str:
    """The marked words; behind them what is marked wrongly, and what should have been.

    Example:
        >>> compared("江主席到京", ["B-PER", "I-PER", "O", "O", "O"], ["B-PER", "O", "O", "O", "O"])
        '[江主 PER]席到京  (wrong: 江主 PER; right: 江 PER)'
    """
    space = "" if all(len(word) == 1 for word in words) else " "
    found, gold = entities(tags), entities(right)
    differing = {
        "wrong": [each for each in found if each not in gold],
        "right": [each for each in gold if each not in found],
    }
    notes = [
        f"{name}: "
        + ", ".join(f"{space.join(words[first:end])} {kind}" for kind, first, end in each)
        for name, each in differing.items()
        if each
    ]
    text = marked(words, tags)
    return f"{text}  ({'; '.join(notes)})" if notes else text
