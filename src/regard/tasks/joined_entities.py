"""Lists of names whose separators are left out, as they are where each stands in its own column."""

from collections.abc import Sequence
from itertools import pairwise

from regard.metrics.spans import entities
from regard.text.tagged import TaggedWords


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
