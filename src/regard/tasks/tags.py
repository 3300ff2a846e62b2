"""The tags of a sentence: transitions between them, the entities they mark, their baselines."""

from collections import Counter, defaultdict
from collections.abc import Sequence
from itertools import pairwise

import torch
from jaxtyping import Bool
from torch import Tensor

from regard.errors import DataError
from regard.metrics.labels import entities
from regard.text.reading.tagged import TaggedWords


def transitions(tags: Sequence[str]) -> Bool[Tensor, "rows K"]:
    """Allowed transitions of tags: I-X only after B-X or I-X, and never first."""
    allowed = torch.ones(len(tags) + 1, len(tags), dtype=torch.bool)
    for place, tag in enumerate(tags):
        if tag.startswith("I-"):
            before = [other.partition("-")[2] == tag[2:] for other in tags]
            allowed[:, place] = torch.tensor([*before, False])
    return allowed


def without_marks(example: TaggedWords) -> TaggedWords | None:
    """The sentence without marks between entities of one type; None if it has no such mark.

    Lists of delegates are printed one name after another. Few sentences are such lists, and many
    hold the same names with a mark between them.
    """
    words, tags = example.words, example.tags or ()
    marks = {
        end
        for (kind, _, end), (next_kind, first, _) in pairwise(entities(tags))
        if first == end + 1 and kind == next_kind and not any(map(str.isalnum, words[end]))
    }
    if not marks:
        return None
    kept = [place for place in range(len(words)) if place not in marks]
    left, left_tags = (tuple(each[place] for place in kept) for each in (words, tags))
    return TaggedWords(left, left_tags, example.where)


def marked(words: Sequence[str], tags: Sequence[str]) -> str:
    """The words with their entities in brackets; single characters without spaces between."""
    space = "" if all(len(word) == 1 for word in words) else " "
    text, at = [], 0
    for kind, first, end in entities(tags):
        text += [*words[at:first], f"[{space.join(words[first:end])} {kind}]"]
        at = end
    return space.join([*text, *words[at:]])


def compared(words: Sequence[str], tags: Sequence[str], right: Sequence[str]) -> str:
    """The marked words; behind them the wrong entities, and those that are right."""
    space = "" if all(len(word) == 1 for word in words) else " "
    predicted, true = entities(tags), entities(right)
    notes = [
        f"{name}: "
        + ", ".join(f"{space.join(words[first:end])} {kind}" for kind, first, end in each)
        for name, each in (
            ("wrong", [one for one in predicted if one not in true]),
            ("right", [one for one in true if one not in predicted]),
        )
        if each
    ]
    text = marked(words, tags)
    return f"{text}  ({'; '.join(notes)})" if notes else text


def tag_numbers(example: TaggedWords, tags: Sequence[str]) -> list[int]:
    """The numbers of a sentence's tags; −1 where they are not known."""
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


def most_frequent_tags(
    train: Sequence[TaggedWords], examples: Sequence[TaggedWords]
) -> list[tuple[str, ...]]:
    """Each word's most frequent tag in training; the most frequent of all for the others."""
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for sentence in train:
        for word, tag in zip(sentence.words, sentence.tags or (), strict=True):
            counts[word][tag] += 1
    (most, _), *_ = sum(counts.values(), Counter[str]()).most_common(1)
    best = {word: tags.most_common(1)[0][0] for word, tags in counts.items()}
    return [tuple(best.get(word, most) for word in example.words) for example in examples]


def entities_of_training(
    train: Sequence[TaggedWords], examples: Sequence[TaggedWords]
) -> list[tuple[str, ...]]:
    """Training's entities wherever their words occur, from left to right, the longest first.

    One that is met with several types has the most frequent: the baseline of Tjong Kim Sang &
    De Meulder (2003), https://aclanthology.org/W03-0419, which keeps those of one type alone.
    """
    kinds: dict[tuple[str, ...], Counter[str]] = defaultdict(Counter)
    for sentence in train:
        for kind, first, end in entities(sentence.tags or ()):
            kinds[sentence.words[first:end]][kind] += 1
    best = {words: counts.most_common(1)[0][0] for words, counts in kinds.items()}
    longest = max(map(len, best), default=0)
    return [_looked_up(example.words, best, longest) for example in examples]


def _looked_up(
    words: tuple[str, ...], best: dict[tuple[str, ...], str], longest: int
) -> tuple[str, ...]:
    tags: list[str] = []
    while len(tags) < len(words):
        at = len(tags)
        for size in range(min(longest, len(words) - at), 0, -1):
            kind = best.get(words[at : at + size])
            if kind is not None:
                tags += [f"B-{kind}", *[f"I-{kind}"] * (size - 1)]
                break
        else:
            tags.append("O")
    return tuple(tags)
