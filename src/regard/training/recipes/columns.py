"""Columns of a table: the meaning of their names, and the kind of their cells."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path

from regard.checks import plural
from regard.errors import DataError
from regard.metrics.labels import combined_labels, entity_tags
from regard.text.normalization import has_unspaced, unspaced_runs
from regard.text.reading.headers import (
    CODE,
    DATE,
    LINK,
    NUMBER,
    count_header_rows,
    count_titles,
    without_row_names,
)
from regard.text.reading.lines import Line
from regard.text.reading.tables import csv_rows, header_names, usual_names

LEAST_ROWS = 12
# Labels are few, short, and come again and again; and so many of a column are listed.
_MOST_LABELS, _LONGEST_LABEL, _LEAST_REPEATS, _LISTED_LABELS = 100, 25, 3, 4
# Labels of several words may be longer, and come more often.
_LONGEST_PHRASE, _PHRASE_REPEATS = 80, 10
# Numbers of so few kinds may be labels; a share of cells that decides the kind of a column.
_LABEL_NUMBERS, MOST = 20, 0.9
# The start of a text that tells its script, and the share of characters that make it Chinese.
_START, _UNSPACED_SHARE = 2000, 0.2
# The words of a name: review_text, reviewText, Review Text.
_NAME_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+|[^\W\d_A-Za-z]+|#")
# A tag among those of a sentence, in a list or with spaces between.
_TAG = re.compile(r"[^\s,'\"\[\]]+")
# Names of columns that are about an example rather than a part of it, that are a headline, and
# that grade a text.
_REMARKS, _HEADLINES, _GRADES = (
    frozenset(names.split())
    for names in (
        "id ids idx index no uuid guid key asin isbn user users username author authors byline "
        "name nickname screenname location place date time timestamp created updated year month "
        "day url link image file filename path publisher hostname host language lang locale "
        "country region timezone split fold subset partition set query flag count "
        "votes likes retweets confidence attribution licence license keyword keywords annotator "
        "worker rater gender age genre "
        "编号 序号 日期 时间 链接 网址 用户 用户名 昵称 作者 来源 地区 语言",
        "title titles headline headlines subject heading 标题 题目 主题 新闻标题",
        "score overall grade",
    )
)
_SUMMARIES = usual_names("answer") - _HEADLINES
_SUMMARIES -= {"answer", "answers", "abstract", "答案", "回答"}


@dataclass(frozen=True, eq=False)
class Column:
    """A column of a table by its name or its number from 1, or the values at a key of objects."""

    called: int | str
    cells: Sequence[str]
    number: int = 0  # from 1; 0 in objects

    @property
    def name(self) -> str:
        """The name in small letters; empty where there is none."""
        return self.called.casefold() if isinstance(self.called, str) else ""

    @cached_property
    def words(self) -> list[str]:
        """The words of the name."""
        if isinstance(self.called, int):
            return []
        return [word.casefold() for word in _NAME_WORD.findall(self.called)]

    @cached_property
    def kind(self) -> str:
        """``text``, ``label``, ``number``, ``date``, ``link``, ``code``, or ``none`` of these."""
        cells = [cell for cell in self.cells if cell and cell.casefold() not in ("nan", "null")]
        is_named = self.is_called("label") and not self.has_name("target", "text")
        is_named = is_named and not self.is_remark
        is_constant = len(set(cells)) < 2 and len(cells) >= LEAST_ROWS
        is_begun = len(cells) >= LEAST_ROWS and self.has_name("label")  # some are annotated
        is_sparse = len(cells) < len(self.cells) / 2 and not is_begun
        if is_sparse or (is_constant and self.name not in usual_names()):
            return "none"
        if most_match(DATE, cells):
            return "date"
        if most_match(NUMBER, cells):
            return "label" if self._has_classes(cells, is_named=is_named) else "number"
        is_class = is_label(cells) and not self.is_remark
        is_text = self.has_name("text", "first", "second")
        if not is_text and (is_class or (is_named and not self.has_words)):
            return "label"
        if most_match(LINK, cells):
            return "link"
        if (most_match(CODE, cells) or self.is_remark) and not self.has_words:
            return "code"
        return "text"

    def _has_classes(self, cells: Sequence[str], *, is_named: bool) -> bool:
        kinds = set(cells)
        is_whole = all(re.fullmatch(r"-?\d+(\.0*)?", cell) for cell in kinds)
        if is_named:
            return is_whole or len(kinds) <= _LABEL_NUMBERS
        return is_whole and len(kinds) <= _LABEL_NUMBERS and is_label(cells) and not self.is_remark

    def has_name(self, *fields: str) -> bool:
        """Whether it has one of the names of one of these fields."""
        return any(self.name in usual_names(field) for field in fields)

    def is_called(self, *fields: str) -> bool:
        """Match the name or its last word with a field's; a label's may stand anywhere in it."""
        names = {name for field in fields for name in usual_names(field)}
        if self.name in names or ("label" in fields and usual_names("label") & {*self.words}):
            return True
        last = self.words[-1] if self.words else None
        return last in names or any(
            not name.isascii() and self.name.endswith(name) for name in names
        )

    @property
    def is_remark(self) -> bool:
        """Whether its name says that it is about an example rather than a part of it."""
        last = self.words[-1] if self.words else ""
        if last in usual_names("text") | usual_names("label"):
            return False
        is_number_of = bool(usual_names("label") & {*self.words}) and last in ("id", "index")
        return not is_number_of and self._is_one_of(_REMARKS)

    @property
    def ends_as_remark(self) -> bool:
        """Whether its name is, or ends in, that of something about an example."""
        return bool(_REMARKS & {self.name, *self.words[-1:]})

    @property
    def is_named_label(self) -> bool:
        """Whether its name is that of a label, or of a grade."""
        return self.is_called("label") or bool(_GRADES & {*self.words})

    @property
    def is_headline(self) -> bool:
        """Whether its name is that of a headline."""
        return self._is_one_of(_HEADLINES)

    @property
    def is_summary(self) -> bool:
        """Whether its name is that of a summary."""
        return self._is_one_of(_SUMMARIES)

    def _is_one_of(self, names: frozenset[str]) -> bool:
        return bool(names & {self.name, *self.words})

    @property
    def is_mixed(self) -> bool:
        """Whether its cells change as those of labels do, not as those of chapters of a book."""
        changes = sum(cell != following for cell, following in pairwise(self.cells))
        return changes > 3 * len(set(self.cells))

    @property
    def is_numeric(self) -> bool:
        """Whether most of its cells are numbers."""
        return most_match(NUMBER, self.cells)

    @property
    def is_score(self) -> bool:
        """Whether it measures something."""
        return not self.is_remark and any("." in cell or "," in cell for cell in self.cells)

    @property
    def is_row_number(self) -> bool:
        """Whether it numbers its rows."""
        try:
            steps = {int(following) - int(cell) for cell, following in pairwise(self.cells)}
        except ValueError:
            return False
        return steps == {1} and self.cells[0] in ("0", "1") and len(self.cells) >= LEAST_ROWS

    @cached_property
    def has_words(self) -> bool:
        """Whether most of its cells are of several words."""
        several = sum(" " in cell or has_unspaced(cell) for cell in self.cells)
        return several > len(self.cells) / 2

    @property
    def has_tags(self) -> bool:
        """Whether its cells have an entity's tag for each word of a sentence."""
        cells = [_TAG.findall(cell) for cell in self.cells]
        tags = {tag for cell in cells for tag in cell}
        return "O" in tags and max(map(len, cells)) > 1 and entity_tags(tags) is not None

    @cached_property
    def size(self) -> float:
        """Characters of a cell, in the mean."""
        return sum(map(len, self.cells)) / len(self.cells)

    @cached_property
    def is_varied(self) -> bool:
        """Whether nearly every cell is filled, and unlike the others."""
        return len({*self.cells} - {""}) >= MOST * len(self.cells)

    @property
    def title(self) -> str:
        """The name in quotes, or the number."""
        return f"column {self.called}" if isinstance(self.called, int) else repr(self.called)

    def __str__(self) -> str:
        if self.kind != "label":
            texts = f"texts of some {self.size:.0f} characters"
            contents = {"text": texts, "code": "ids", "none": "few values"}
            return f"{self.title} has {contents.get(self.kind, plural(self.kind))}"
        labels = list(dict.fromkeys(filter(None, self.cells)))
        more = ", …" if len(labels) > _LISTED_LABELS else ""
        named = f"{self.title} has labels ({', '.join(labels[:_LISTED_LABELS])}{more})"
        several = combined_labels(labels)
        return f"{named}; {several[0]!r}, of several, is a class of its own" if several else named


def check_no_tags(columns: Sequence[Column], path: Path) -> None:
    """Raise DataError for a column with the tags of whole sentences."""
    if tags := next((column for column in columns if column.has_tags), None):
        raise DataError(
            f"{path} must have a word and its tag a line, or lists of both; got the tags of a "
            f"whole sentence in a cell of {tags.title}. Write each sentence as a line of a .jsonl "
            'file: {"tokens": ["Ann", "sat"], "tags": ["B-PER", "O"]}.'
        )


def columns_of(
    lines: Sequence[Line], ending: str, later: Sequence[Sequence[Line]] = ()
) -> list[Column]:
    """The columns of a table, called as its header does if it has one; none of no rows."""
    rows = list(_rows(lines, ending))
    for part in later:
        with suppress(DataError):  # the first may begin within a row
            rows += _rows(part, ending)
    if not rows:
        return []
    rows = rows[count_titles(rows, header_names()) :]
    if without_row_names(rows):
        rows[0].insert(0, "")
    width = Counter(map(len, rows)).most_common(1)[0][0]
    rows = [row for row in rows if len(row) == width]
    count = count_header_rows(rows, header_names())
    names = [cell.strip() for cell in rows[0]] if count else [""] * width
    counts = Counter(map(str.casefold, names))
    below = [row for row in rows[count:] if not count or row != rows[0]]
    columns = enumerate(zip(*below, strict=True), 1)
    return [
        Column(
            name if name and not name.isdecimal() and counts[name.casefold()] == 1 else number,
            [cell.strip() for cell in cells],
            number,
        )
        for name, (number, cells) in zip(names, columns, strict=True)
    ]


def _rows(lines: Sequence[Line], ending: str) -> Iterator[list[str]]:
    for line in csv_rows(lines) if ending == ".csv" else lines:
        if line.text.strip() and line.problem is None:
            yield line.text.split("\t")


def most_match(pattern: re.Pattern[str], cells: Sequence[str]) -> bool:
    """Whether most of the cells that are filled match a pattern."""
    filled = [cell for cell in cells if cell]
    return bool(filled) and sum(map(bool, map(pattern.fullmatch, filled))) >= MOST * len(filled)


def is_label(cells: Sequence[str]) -> bool:
    """Whether these are labels: few, short, each again and again."""
    kinds = set(cells)
    longest = max(map(len, kinds), default=0)
    is_frequent = longest <= _LONGEST_PHRASE and len(cells) >= _PHRASE_REPEATS * len(kinds)
    is_short = (longest <= _LONGEST_LABEL or is_frequent) and "" not in kinds
    is_few = len(kinds) <= _MOST_LABELS and len(cells) >= _LEAST_REPEATS * len(kinds)
    return is_short and is_few and len(kinds) > 1 and len(cells) >= LEAST_ROWS


def is_chinese(texts: Sequence[str]) -> bool:
    """Whether most texts are in a script without spaces, apart from names in English ones."""

    def is_unspaced(text: str) -> bool:
        start = text[:_START]
        unspaced = sum(end - begin for begin, end in unspaced_runs(start))
        return unspaced > _UNSPACED_SHARE * len(start)

    return sum(map(is_unspaced, texts)) > len(texts) / 2
