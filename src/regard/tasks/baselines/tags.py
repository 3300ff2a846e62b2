"""Tags that take no model: each word's most frequent one, entities met in training."""

from collections import Counter, defaultdict
from collections.abc import Sequence

from regard.metrics.labels import entities
from regard.text.reading.tagged import TaggedWords


def most_frequent_tags(
    train: Sequence[TaggedWords], examples: Sequence[TaggedWords]
) -> list[tuple[str, ...]]:
    """Each word's most frequent tag in training; the most frequent of all for the others.

    Example:
        >>> train = [TaggedWords(("a", "b", "b"), ("X", "Y", "Y"), "t:1")]
        >>> most_frequent_tags(train, [TaggedWords(("a", "c"), None, "e:1")])
        [('X', 'Y')]
    """
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
    """The entities of the training text wherever their words occur, from left to right, longest first.

    One that is met with several types has the most frequent: the baseline of Tjong Kim Sang &
    De Meulder (2003), https://aclanthology.org/W03-0419, which keeps those of one type alone.

    Example:
        >>> train = [TaggedWords(("New", "York", "wins"), ("B-LOC", "I-LOC", "O"), "t:1")]
        >>> entities_of_training(train, [TaggedWords(("in", "New", "York"), None, "e:1")])
        [('O', 'B-LOC', 'I-LOC')]
    """  # noqa: E501
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
