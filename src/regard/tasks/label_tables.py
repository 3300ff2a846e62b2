"""Where an accuracy comes from, in tables: by label, by length, what was taken for what."""

from collections.abc import Sequence
from itertools import pairwise

from regard.metrics.labels import accuracy, by_label, confusion
from regard.tasks.job import Table

# Lengths a row ends at; one more takes what is longer. Labels that a confusion table has room for.
_EDGES, _MOST_LABELS = (10, 20, 50, 100, 200, 500), 20


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
