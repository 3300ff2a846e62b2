"""Tables of evaluation figures: by label, by length, by kind of question and answer."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from rich.cells import cell_len

from regard.metrics.labels import LabelScore, by_label, confusion
from regard.text.normalization import has_unspaced, split_words

# Last lengths of the rows of a table by length; one row more has longer texts.
_EDGES, _LONG_EDGES = (10, 20, 50, 100, 200, 500), (500, 1000, 2000)
_MOST_LABELS = 20  # of a confusion table
_ASKING = (
    *("how many", "how much", "how long", "how", "what", "which", "whose", "who", "when", "where"),
    *("why", "多少", "几", "哪里", "哪儿", "何处", "何时", "什么时候", "什么时间", "为什么"),
    *("为何", "如何", "怎么", "怎样", "谁", "哪", "什么", "何"),
)
_ASKED = re.compile("|".join(rf"\b{w}\b" if w.isascii() else w for w in _ASKING))
# Words of a clause rather than of a name or a phrase; characters, of unspaced text.
_CLAUSE, _UNSPACED_CLAUSE = 6, 10


@dataclass(frozen=True, slots=True)
class Table:
    """Figures in rows.

    Attributes:
        title: Their subject.
        columns: Names of the columns.
        rows: As many cells each; floats are figures in percent.
        is_matrix: Whether rows and columns are the same things, so that it can be drawn as a map.

    Example:
        >>> table = confusion_table(["good", "bad", "bad"], ["good", "good", "bad"])
        >>> table.title, table.columns, table.is_matrix
        ('true label ↓ predicted label →', ('', 'good', 'bad'), True)
        >>> table.rows
        (('good', 1, 1), ('bad', 0, 1))
    """

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str | int | float, ...], ...]
    is_matrix: bool = False

    def lines(self) -> list[str]:
        """The title, and the rows with their columns lined up; Chinese characters take two."""
        cells = [self.columns, *(tuple(map(_cell, row)) for row in self.rows)]
        widths = [max(map(cell_len, column)) for column in zip(*cells, strict=True)]
        lines = []
        for row in cells:
            spaces = [" " * (w - cell_len(text)) for text, w in zip(row, widths, strict=True)]
            padded = (f"{space}{text}" for space, text in zip(spaces[1:], row[1:], strict=True))
            lines.append("  ".join((row[0] + spaces[0], *padded)).rstrip())
        return [self.title, *lines]


def label_table(scores: Sequence[LabelScore], name: str = "label", title: str = "label") -> Table:
    """Precision, recall and F1 of each label."""
    rows = tuple((s.label, s.precision, s.recall, s.f1, s.count) for s in scores)
    return Table(f"by {title}", (name, "precision", "recall", "F1", "count"), rows)


def confusion_table(predicted: Sequence[str], true: Sequence[str]) -> Table:
    """The confusion matrix: true labels in rows, predicted ones in columns, most frequent first."""
    counts = confusion(predicted, true)
    labels = [score.label for score in sorted(by_label(predicted, true), key=lambda s: -s.count)]
    columns = labels[:_MOST_LABELS]
    rows: list[tuple[str | int, ...]] = [
        (row, *(counts.get((row, column), 0) for column in columns)) for row in columns
    ]
    return Table("true label ↓ predicted label →", ("", *columns), tuple(rows), is_matrix=True)


def by_group(
    title: str,
    groups: Sequence[str],
    scores: Mapping[str, Sequence[float]],
    *,
    column: str | None = None,
) -> Table:
    """The mean of each score over each group's examples, in percent; numeric groups in order."""
    members: dict[str, list[int]] = {}
    for index, group in enumerate(groups):
        members.setdefault(group, []).append(index)

    def key(group: str) -> tuple[int, str]:
        digits = re.match(r"\d+", group)
        return (int(digits[0]) if digits else -len(members[group])), group

    rows: list[tuple[str | int | float, ...]] = []
    for group in sorted(members, key=key):
        inside = members[group]
        means = (100 * sum(values[i] for i in inside) / len(inside) for values in scores.values())
        rows.append((group, *means, len(inside)))
    return Table(f"by {title}", (column or title, *scores, "count"), tuple(rows))


def _cell(value: str | int | float) -> str:
    if isinstance(value, float):
        return f"{value:.1f}"
    return f"{value:,}" if isinstance(value, int) else value


def length_group(length: int, *, of_contexts: bool = False) -> str:
    """The range of lengths that one is in, for ``by_group``; contexts have wider ones."""
    edges = _LONG_EDGES if of_contexts else _EDGES
    for low, high in pairwise((0, *edges)):
        if length <= high:
            return f"{low + 1}-{high}"
    return f"{edges[-1] + 1}+"


def question_word(question: str) -> str:
    """The word that asks."""
    match = _ASKED.search(question.lower())
    return "other" if match is None else match[0]


def kind_of_answer(answer: str) -> str:
    """Kind of an answer: ``none``, a ``number``, a ``name``, a ``phrase`` or a ``clause``."""
    words = [word.strip() for word in split_words(" ".join(answer.split()))]
    words = [word for word in words if any(char.isalnum() for char in word)]
    if not words:
        return "none"
    if len(words) > (_UNSPACED_CLAUSE if has_unspaced(answer) else _CLAUSE):
        return "clause"
    if any(char.isdigit() for char in answer):
        return "number"
    return "name" if all(word[0].isupper() for word in words) else "phrase"
