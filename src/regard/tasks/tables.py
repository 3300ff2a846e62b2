"""Where figures come from, in tables: by label, by length, by what is asked and answered."""

import re
from collections.abc import Mapping, Sequence
from itertools import pairwise

from regard.metrics.labels import accuracy, by_label, confusion
from regard.tasks.task import Table
from regard.text.normalization import has_unspaced, split_words

# Lengths a row ends at; one more takes what is longer. Labels that a confusion table has room for.
_EDGES, _MOST_LABELS = (10, 20, 50, 100, 200, 500), 20

_ASKING = (
    *("how many", "how much", "how long", "how", "what", "which", "whose", "who", "when", "where"),
    *(
        "why",
        "多少",
        "几",
        "哪里",
        "哪儿",
        "何处",
        "何时",
        "什么时候",
        "什么时间",
        "为什么",
        "为何",
    ),
    *("如何", "怎么", "怎样", "谁", "哪", "什么", "何"),
)
_ASKED = re.compile("|".join(rf"\b{w}\b" if w.isascii() else w for w in _ASKING))
# Words of a clause rather than of a name or a phrase; characters, of unspaced text.
_CLAUSE, _UNSPACED_CLAUSE = 6, 10


def label_table(given: Sequence[str], right: Sequence[str]) -> Table:
    """Precision, recall and F1 of each label.

    Example:
        >>> label_table(["a", "b"], ["a", "a"]).rows
        (('a', 100.0, 50.0, 66.66666666666667, 2), ('b', 0.0, 0.0, 0.0, 0))
    """
    rows = tuple((s.label, s.precision, s.recall, s.f1, s.count) for s in by_label(given, right))
    return Table("by label", ("label", "precision", "recall", "F1", "count"), rows)


def length_table(
    lengths: Sequence[int], given: Sequence[str], right: Sequence[str], *, unit: str = "characters"
) -> Table:
    """Accuracy over the texts of each length; lengths without a text have no row.

    Example:
        >>> length_table([3, 30], ["a", "b"], ["a", "a"]).rows
        (('1-10', 100.0, 1), ('21-50', 0.0, 1))
    """
    rows = []
    for low, high in pairwise((0, *_EDGES, max([*lengths, _EDGES[-1] + 1]))):
        places = [place for place, length in enumerate(lengths) if low < length <= high]
        if places:
            share = accuracy([given[i] for i in places], [right[i] for i in places])
            name = f"{low + 1}-{high}" if high in _EDGES else f"{low + 1}+"
            rows.append((name, share, len(places)))
    return Table(f"by length in {unit}", ("length", "accuracy", "count"), tuple(rows))


def confusion_table(given: Sequence[str], right: Sequence[str]) -> Table:
    """How often each label (a row) was taken for each (a column), the most frequent first.

    Example:
        >>> confusion_table(["a", "b", "a"], ["a", "a", "a"]).rows
        (('a', 2, 1), ('b', 0, 0))
    """
    counts = confusion(given, right)
    labels = [score.label for score in sorted(by_label(given, right), key=lambda s: -s.count)]
    shown = labels[:_MOST_LABELS]
    rows: list[tuple[str | int, ...]] = [
        (row, *(counts.get((row, column), 0) for column in shown)) for row in shown
    ]
    return Table("right label ↓ taken for →", ("", *shown), tuple(rows), is_matrix=True)


def question_word(question: str) -> str:
    """The word that asks.

    Example:
        >>> question_word("In what year did how many leave?"), question_word("泡泡堂是谁开发的？")
        ('what', '谁')
    """
    found = _ASKED.search(question.lower())
    return "other" if found is None else found[0]


def kind_of_answer(answer: str) -> str:
    """Kind of an answer: ``none``, a ``number``, a ``name``, a ``phrase`` or a ``clause``.

    Example:
        >>> [kind_of_answer(each) for each in ("250,000", "Ann Lee", "the black cat", "")]
        ['number', 'name', 'phrase', 'none']
    """
    words = [word.strip() for word in split_words(" ".join(answer.split()))]
    words = [word for word in words if any(char.isalnum() for char in word)]
    if not words:
        return "none"
    if len(words) > (_UNSPACED_CLAUSE if has_unspaced(answer) else _CLAUSE):
        return "clause"
    if any(char.isdigit() for char in answer):
        return "number"
    return "name" if all(word[0].isupper() for word in words) else "phrase"


def by_group(
    title: str,
    groups: Sequence[str],
    scores: Mapping[str, Sequence[float]],
    *,
    ordered: bool = False,
) -> Table:
    """The mean of each score, in percent, over the examples of each group.

    Args:
        title: What groups them.
        groups: The group of each example.
        scores: From 0 to 1, one an example, by name.
        ordered: Whether groups begin with numbers that order them; else the largest comes first.

    Example:
        >>> by_group("word", ["who", "how", "who"], {"F1": [1.0, 0.0, 0.5]}).rows
        (('who', 75.0, 2), ('how', 0.0, 1))
    """
    places: dict[str, list[int]] = {}
    for place, group in enumerate(groups):
        places.setdefault(group, []).append(place)

    def key(group: str) -> tuple[int, str]:
        digits = re.match(r"\d+", group)
        return (int(digits[0]) if ordered and digits else -len(places[group])), group

    rows: list[tuple[str | int | float, ...]] = []
    for group in sorted(places, key=key):
        inside = places[group]
        means = (100 * sum(each[i] for i in inside) / len(inside) for each in scores.values())
        rows.append((group, *means, len(inside)))
    return Table(f"by {title}", (title, *scores, "count"), tuple(rows))


def length_group(length: int) -> str:
    """The range of lengths that one is in, for ``by_group``.

    Example:
        >>> length_group(500), length_group(501), length_group(9999)
        ('1-500', '501-1000', '2001+')
    """
    for low, high in ((1, 500), (501, 1000), (1001, 2000)):
        if length <= high:
            return f"{low}-{high}"
    return "2001+"
