"""Columns of a table: what their names say, and the kind of their cells."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

from regard.errors import DataError
from regard.text.normalization import has_unspaced, unspaced_runs
from regard.text.reading.lines import Line
from regard.text.reading.tables import csv_rows, known_names

LEAST_ROWS = 12
# Labels are few, short, and come again and again; and so many of a column are listed.
_MOST_LABELS, _LONGEST_LABEL, _LEAST_REPEATS, _LISTED_LABELS = 100, 25, 3, 4
# Numbers of so few kinds may be labels; a share of cells that decides what a column holds.
_LABEL_NUMBERS, MOST = 20, 0.9
# The start of a text that tells its script, and the share of characters that make it Chinese.
_START, _UNSPACED_SHARE = 2000, 0.2
_NAME = re.compile(r"#?[^\W\d][\w.-]*( [\w#.-]+){0,3}|#\d( \w+)?")
_NUMBER = re.compile(
    r"(?=.*\d)[-+]?[$€£¥]?[-+]?(\d+|\d{1,3}(,\d{3})+)?(\.\d*)?([eE][-+]?\d+)?\s?%?"
    r"|[-+]?\d{1,3}(\.\d{3})*,\d+|[-+]?\d+,\d+"
)
_DATE = re.compile(
    r"\d{4}([-/.])\d{1,2}\1\d{1,2}\b.*|\d{1,2}([-/.])\d{1,2}\2\d{2,4}\b.*|\d{4}-\d{2}"
    r"|\d{1,2}:\d{2}(:\d{2})?([.,]\d+)?( ?[ap]m)?|\d{4}年(\d{1,2}月(\d{1,2}日)?)?.*"
    r"|((mon|tue|wed|thu|fri|sat|sun)[a-z]*,? )?((jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)"
    r"[a-z]*\.? \d{1,2}|\d{1,2}(st|nd|rd|th)?[ -](jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)"
    r"[a-z]*)\b.*\d{2,4}",
    re.IGNORECASE,
)
_LINK = re.compile(r"(https?://|www\.|/)\S*|[\w.+-]+@[\w-]+\.\w+|[\w-]+(\.[\w-]+)*\.[a-z]{2,4}")
# A word that has a digit or a sign of codes in it.
_CODE = re.compile(r"@\w+|#?(?=\S*\d)[\w.:/+#-]+|[0-9a-fA-F]{8}[0-9a-fA-F-]*|\S+_\S+")
# The words of a name: review_text, reviewText, Review Text.
_NAME_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+|[^\W\d_A-Za-z]+|#")
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
_SUMMARIES = known_names("answer") - _HEADLINES
_SUMMARIES -= {"answer", "answers", "abstract", "答案", "回答"}


@dataclass(frozen=True, eq=False)
class Column:
    """A column of a table by its name or its number from 1, or the values at a key of objects."""

    called: int | str
    cells: Sequence[str]

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
        if len(cells) < len(self.cells) / 2 or (is_constant and self.name not in known_names()):
            return "none"
        if most_match(_DATE, cells):
            return "date"
        if most_match(_NUMBER, cells):
            return "label" if self._has_classes(cells, is_named=is_named) else "number"
        is_class = is_label(cells) and not self.is_remark
        is_text = self.has_name("text", "first", "second")
        if not is_text and (is_class or (is_named and not self.has_words)):
            return "label"
        if most_match(_LINK, cells):
            return "link"
        if (most_match(_CODE, cells) or self.is_remark) and not self.has_words:
            return "code"
        return "text"

    def _has_classes(self, cells: Sequence[str], *, is_named: bool) -> bool:
        """Whether these numbers are labels."""
        kinds = set(cells)
        is_whole = all(re.fullmatch(r"-?\d+(\.0*)?", cell) for cell in kinds)
        if is_named:
            return is_whole or len(kinds) <= _LABEL_NUMBERS
        return is_whole and len(kinds) <= _LABEL_NUMBERS and is_label(cells) and not self.is_remark

    def has_name(self, *fields: str) -> bool:
        """Whether it has one of the names of one of these fields."""
        return any(self.name in known_names(field) for field in fields)

    def is_called(self, *fields: str) -> bool:
        """Match the name or its last word with a field's; a label's may stand anywhere in it."""
        names = {name for field in fields for name in known_names(field)}
        if self.name in names or ("label" in fields and known_names("label") & {*self.words}):
            return True
        last = self.words[-1] if self.words else None
        return last in names or any(
            not name.isascii() and self.name.endswith(name) for name in names
        )

    @property
    def is_remark(self) -> bool:
        """Whether its name says that it is about an example rather than a part of it."""
        last = self.words[-1] if self.words else ""
        if last in known_names("text") | known_names("label"):
            return False
        is_number_of = bool(known_names("label") & {*self.words}) and last in ("id", "index")
        return not is_number_of and self._is_one_of(_REMARKS)

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
        changes = sum(one != other for one, other in pairwise(self.cells))
        return changes > 3 * len(set(self.cells))

    @property
    def is_numeric(self) -> bool:
        """Whether most of its cells are numbers."""
        return most_match(_NUMBER, self.cells)

    @property
    def is_score(self) -> bool:
        """Whether it measures something."""
        return not self.is_remark and any("." in cell or "," in cell for cell in self.cells)

    @property
    def is_row_number(self) -> bool:
        """Whether it numbers its rows."""
        try:
            steps = {int(other) - int(one) for one, other in pairwise(self.cells)}
        except ValueError:
            return False
        return steps == {1} and self.cells[0] in ("0", "1") and len(self.cells) >= LEAST_ROWS

    @cached_property
    def has_words(self) -> bool:
        """Whether most of its cells are of several words."""
        several = sum(" " in cell or has_unspaced(cell) for cell in self.cells)
        return several > len(self.cells) / 2

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
            texts = f"texts of {self.size:.0f} characters"
            contents = {"text": texts, "code": "ids", "none": "few values"}
            return f"{self.title} has {contents.get(self.kind, f'{self.kind}s')}"
        labels = list(dict.fromkeys(self.cells))
        more = ", …" if len(labels) > _LISTED_LABELS else ""
        return f"{self.title} has {len(labels)} labels ({', '.join(labels[:_LISTED_LABELS])}{more})"


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
    width = Counter(map(len, rows)).most_common(1)[0][0]
    rows = [row for row in rows if len(row) == width]
    columns = [[row[number].strip() for row in rows] for number in range(width)]
    if not _has_header(columns):
        return [Column(number, cells) for number, cells in enumerate(columns, 1)]
    return [
        Column(cells[0] if cells[0] and not cells[0].isdecimal() else number, cells[1:])
        for number, cells in enumerate(columns, 1)
    ]


def _rows(lines: Sequence[Line], ending: str) -> Iterator[list[str]]:
    for line in csv_rows(lines) if ending == ".csv" else lines:
        if line.text.strip() and line.problem is None:
            yield line.text.split("\t")


def _has_header(columns: Sequence[Sequence[str]]) -> bool:
    names = [cells[0] for cells in columns if cells[0]]
    if len(columns[0]) < 2 or len(set(names)) < len(names) or len(names) < len(columns) / 3:
        return False
    if not names or not all(map(_NAME.fullmatch, names)):
        return False
    known = known_names() | {"id"}
    return any(name.casefold() in known for name in names) or any(
        cells[0] not in cells[1:] and Column(1, cells[1:]).kind not in ("text", "code", "none")
        for cells in columns
    )


def most_match(pattern: re.Pattern[str], cells: Sequence[str]) -> bool:
    """Whether most of the cells that are filled match a pattern."""
    filled = [cell for cell in cells if cell]
    return bool(filled) and sum(map(bool, map(pattern.fullmatch, filled))) >= MOST * len(filled)


def is_label(cells: Sequence[str]) -> bool:
    """Whether these are labels: few, short, each again and again."""
    kinds = set(cells)
    is_short = max(map(len, kinds), default=0) <= _LONGEST_LABEL and "" not in kinds
    is_few = len(kinds) <= _MOST_LABELS and len(cells) >= _LEAST_REPEATS * len(kinds)
    return is_short and is_few and len(kinds) > 1 and len(cells) >= LEAST_ROWS


def is_chinese(texts: Sequence[str]) -> bool:
    """Whether most texts are in a script without spaces, apart from names in English ones."""

    def is_unspaced(text: str) -> bool:
        start = text[:_START]
        unspaced = sum(end - begin for begin, end in unspaced_runs(start))
        return unspaced > _UNSPACED_SHARE * len(start)

    return sum(map(is_unspaced, texts)) > len(texts) / 2
