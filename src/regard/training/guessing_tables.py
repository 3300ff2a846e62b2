"""Which job a table is for, by its header and what its columns hold."""

import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from regard.errors import DataError
from regard.text.guessing import guess_language
from regard.text.lines import Line
from regard.text.normalization import has_unspaced
from regard.text.tables import csv_rows, known_names
from regard.training.guess import (
    PAIRS,
    Guess,
    Guesses,
    columns_set,
    is_label,
    labelled,
    summaries,
)

# A summary's share of its document's length, and the characters from which a text is a document.
_SUMMARY_SHARE, _LONG = 0.5, 150
_SHOWN = 4  # labels
_NAME = re.compile(r"[^\W\d][\w-]*( [\w-]+){0,2}")


@dataclass(frozen=True, slots=True)
class _Column:
    """A column of a table: what to call it in settings, and its cells below a header."""

    called: int | str
    cells: Sequence[str]

    @property
    def is_mixed(self) -> bool:
        """Whether its cells change as those of labels do, not as those of chapters of a book."""
        changes = sum(one != other for one, other in pairwise(self.cells))
        return changes > 3 * len(set(self.cells))

    @property
    def is_label(self) -> bool:
        if _is_called(self, "text"):
            return False
        is_named = _is_called(self, "label") and not _is_called(self, "target")
        return is_label(self.cells) or (is_named and not self.has_words)

    @property
    def has_words(self) -> bool:
        """Whether most of its cells are of several words."""
        several = sum(" " in cell or has_unspaced(cell) for cell in self.cells)
        return several > len(self.cells) / 2

    @property
    def size(self) -> float:
        return sum(map(len, self.cells)) / len(self.cells)

    def __str__(self) -> str:
        called = f"column {self.called}" if isinstance(self.called, int) else repr(self.called)
        if not self.is_label:
            return f"{called} has texts of {self.size:.0f} characters"
        labels = list(dict.fromkeys(self.cells))
        more = ", …" if len(labels) > _SHOWN else ""
        return f"{called} has {len(labels)} labels ({', '.join(labels[:_SHOWN])}{more})"


def of_table(path: Path, lines: Sequence[Line], ending: str) -> Guesses | None:
    """What a table may be for; None if it is no more than lines of text.

    Raises:
        DataError: It has no text.
    """
    columns = _columns(lines, ending)
    if len(columns) < 2:
        return None
    if all(map(_are_numbers, (column.cells for column in columns))):
        guess = Guess("numbers to guess a number from", "all its cells are numbers", "regression")
        return Guesses((guess,), is_sure=True)
    labels = [column for column in columns if column.is_label]
    texts = [column for column in columns if not column.is_label and not _are_numbers(column.cells)]
    if not texts:  # few sentences, that come again and again
        texts = [column for column in labels if column.has_words]
        labels = [column for column in labels if not column.has_words]
    why = "; ".join(map(str, [*texts, *labels][:4]))
    if not texts:
        raise DataError(
            f"{path} must hold texts; {why}. Name a recipe and its columns: regard recipes."
        )
    if labels:
        return _of_labels(texts, labels, why)
    return None if len(texts) < 2 else _of_texts(texts, why, is_whole=len(columns) == 2)


def _of_labels(texts: Sequence[_Column], labels: Sequence[_Column], why: str) -> Guesses:
    """Texts, or pairs of texts, with labels."""
    ranked = sorted(labels, key=lambda column: not _is_called(column, "label"))
    is_clear = len(labels) == 1 or (_is_called(ranked[0], "label") and len(texts) == 1)
    longest = max(texts, key=lambda column: column.size)
    found = [
        labelled(longest.cells, why, columns_set(text=longest.called, label=label.called))
        for label in ranked
    ]
    if len(texts) == 2 and len(labels) == 1:
        first, second = texts
        columns = columns_set(first=first.called, second=second.called, label=labels[0].called)
        pairs = Guess(PAIRS, why, "pair-matching", columns)
        is_named = _is_called(labels[0], "label")
        is_one = guess_language(first.cells) == guess_language(second.cells)
        if is_named or (is_one and labels[0].is_mixed):
            return Guesses((pairs, *found), is_sure=True)
        translation = _pairs(first, second, why, is_whole=False)
        return Guesses((translation, pairs, *found), is_sure=not is_one)
    if len(ranked) > 1:
        aspect = columns_set(text=longest.called, label=ranked[0].called, aspect=ranked[1].called)
        what = "texts with labels, for one aspect or another"
        found.insert(1, Guess(what, why, "classification-aspect", aspect))
    return Guesses(tuple(found), is_sure=is_clear and len(texts) == 1)


def _of_texts(texts: Sequence[_Column], why: str, *, is_whole: bool) -> Guesses:
    """Sentence pairs, or documents and summaries."""
    first, second = texts[:2]
    languages = [guess_language(column.cells) for column in (first, second)]
    if languages[0] != languages[1] and None not in languages:
        why = f"{why}; in {languages[0]} and {languages[1]}"
        return Guesses((_pairs(first, second, why, is_whole=is_whole),), is_sure=True)
    pairs = _pairs(first, second, why, is_whole=is_whole)
    document, summary = sorted((first, second), key=lambda column: -column.size)
    columns = columns_set(document=document.called, answer=summary.called)
    short = summaries(document.cells, why, columns)
    if document.size >= _LONG and summary.size <= _SUMMARY_SHARE * document.size:
        return Guesses((short, pairs), is_sure=True)
    return Guesses((pairs, short), is_sure=is_whole)


def _columns(lines: Sequence[Line], ending: str) -> list[_Column]:
    """The columns of a table, called as its header does if it has one."""
    rows = list(_rows(lines, ending))
    width = Counter(map(len, rows)).most_common(1)[0][0]
    rows = [row for row in rows if len(row) == width]
    columns = [[row[place].strip() for row in rows] for place in range(width)]
    if not _has_header(columns):
        return [_Column(place, cells) for place, cells in enumerate(columns, 1)]
    return [
        _Column(cells[0] if cells[0] and not cells[0].isdecimal() else place, cells[1:])
        for place, cells in enumerate(columns, 1)
    ]


def _rows(lines: Sequence[Line], ending: str) -> Iterator[list[str]]:
    for line in csv_rows(lines) if ending == ".csv" else lines:
        if line.text.strip():
            yield line.text.split("\t")


def _has_header(columns: Sequence[Sequence[str]]) -> bool:
    names = [cells[0] for cells in columns]
    if len(columns[0]) < 2 or len(set(names)) < len(names) or not all(map(_NAME.fullmatch, names)):
        return False
    known = set(known_names())
    return any(name.casefold() in known for name in names) or any(
        cells[0] not in cells[1:] and (is_label(cells[1:]) or _are_numbers(cells[1:]))
        for cells in columns
    )


def _is_called(column: _Column, name: str) -> bool:
    return str(column.called).casefold() in known_names(name)


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _are_numbers(cells: Sequence[str]) -> bool:
    return all(map(_is_number, cells))


def _pairs(first: _Column, second: _Column, why: str, *, is_whole: bool) -> Guess:
    columns = json.dumps([first.called, second.called], ensure_ascii=False)
    is_usual = is_whole and (first.called, second.called) == (1, 2)
    return Guess("sentence pairs", why, None, () if is_usual else (f"data.columns={columns}",))
