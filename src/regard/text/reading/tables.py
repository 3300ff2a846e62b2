"""Tables of text: rows of TSV and CSV files, their header, and columns by number or by name."""

import csv
import re
from collections import Counter, deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import chain, dropwhile, islice
from pathlib import Path
from typing import TypeAlias

from regard.checks import nearest
from regard.errors import DataError
from regard.fields import Count
from regard.text.reading.forms import text_suffix
from regard.text.reading.headers import (
    FIRST_ROWS,
    count_further,
    count_header_rows,
    count_titles,
    without_row_names,
)
from regard.text.reading.lines import OPEN_QUOTE, Line, read_lines, readable

# A column: its number from 1, or its name in the header.
Column: TypeAlias = Count | str

TABLES = (".csv", ".tsv")
_DELIMITERS = (",", ";", "\t", "|")
# The line with which Excel names the delimiter, and the rows that are looked at where none does.
_SEPARATOR = re.compile(r'"?sep=(.)"?', re.IGNORECASE)
_FIRST_ROWS = 50
# A word of a name, as in English_sentence.
_NAME_WORD = re.compile(r"[^\W_]+")
# A cell longer than this, in characters, is one whose quote does not close.
_LONGEST = 1 << 24

# Names of each field in headers, and keys of JSON, besides its own.
_LANGUAGES = (
    "ar cs da de el en es fi fr he hi hu it ja ko nl pl pt ro ru sv th tr uk vi zh "
    "arabic chinese english french german italian japanese korean portuguese russian spanish "
    "中文 英文 英语 汉语 日文 日语 德语 法语"
)
_NAMES: Mapping[str, str] = {
    "text": "sentence review content comment tweet message document body utterance sms "
    "文本 句子 内容 评论 正文 评价",
    "label": "class category sentiment polarity target rating stars intent gold_label is_duplicate "
    "标签 类别 分类 情感",
    "aspect": "cat topic 方面",
    "first": "sentence1 text1 text_a question1 premise s1 sentence_a 句子1 文本1",
    "second": "sentence2 text2 text_b question2 hypothesis s2 sentence_b 句子2 文本2",
    "source": f"src input 原文 源文 {_LANGUAGES}",
    "target": f"tgt output translation 译文 目标 {_LANGUAGES}",
    "document": "text article context abstract body content dialogue passage 正文 文章 内容 文本",
    "question": "query 问题 提问",
    "answer": "answers summary summaries highlights title headline abstract 摘要 标题 答案 回答",
    "context": "passage paragraph document 段落 文章 正文",
    "word": "token words tokens form 词 字",
    "tag": "label ner ner_tag ner_tags pos upos 标签 标注",
}


@dataclass(frozen=True, slots=True)
class Field:
    """A column to read: its name in JSONL and messages, and its number or header in a table."""

    name: str
    column: int | str
    is_fixed: bool = False

    @classmethod
    def of(cls, settings: object, name: str) -> "Field":
        """The field that a setting of this name has the column of; fixed if it is not as usual."""
        column = getattr(settings, name)
        # Not fields(), which makes a list of all: this is asked of every line.
        usual = settings.__dataclass_fields__[name].default  # type: ignore[attr-defined]
        return cls(name, column, is_fixed=column != usual)

    @property
    def keys(self) -> tuple[str, ...]:
        """Names of the field in headers, the preferred one first; case does not matter."""
        if isinstance(self.column, str):
            return (self.column, self.name)
        return _names_of(self.name)


@dataclass(frozen=True, slots=True)
class TextTable:
    """A table with its header read: columns by field, counted from 1, and lines with tabs."""

    columns: Mapping[str, int]
    header: tuple[str, ...] | None
    lines: Iterator[Line]


def usual_names(field: str | None = None) -> frozenset[str]:
    """Lower-case header names of a field, or of all."""
    names = [field] if field is not None else list(_NAMES)
    return frozenset(word for name in names for word in _names_of(name))


@cache
def header_names() -> frozenset[str]:
    """Lower-case names by which a row of any table is known to be a header."""
    return usual_names() | {"id"}


@cache
def _names_of(field: str) -> tuple[str, ...]:
    return (field, *_NAMES.get(field, "").split())


def read_table(path: Path, fields: Sequence[Field]) -> TextTable:
    """Read the header of a ``.tsv`` or ``.csv`` file, and find the columns of the fields."""
    return table_of(read_lines(path), text_suffix(path), fields)


def table_of(
    lines: Iterable[Line],
    ending: str,
    fields: Sequence[Field],
    *,
    cure: str = "",
    by_kind: bool = True,
) -> TextTable:
    """Rows of lines that are already read, of a file with this ending.

    A header is known by its names or, by default, by the kinds of its cells. An error about a
    column that the header lacks ends with ``cure``.
    """
    rows = csv_rows(lines) if ending == ".csv" else iter(lines)
    rows = dropwhile(lambda row: not row.text.strip(), rows)
    head = list(islice(rows, FIRST_ROWS if by_kind else 1))
    if not head:
        return TextTable({field.name: _number(field) for field in fields}, None, iter(()))
    cells, *below = table = [[cell.strip() for cell in row.text.split("\t")] for row in head]
    if by_kind and (titles := count_titles(table, header_names())):
        head, (cells, *below) = head[titles:], table[titles:]
    if by_kind and without_row_names([cells, *below]):
        cells = ["", *cells]
    columns, further = _named(cells, fields, head[0], cure), 0
    if columns is None and (count := count_header_rows([cells, *below], header_names())):
        columns, further = _columns_at(fields, {}, cells, head[0], cure), count - 1
    elif columns is not None:
        further = count_further(below)
    if columns is None:
        return TextTable({f.name: _number(f) for f in fields}, None, chain(head, rows))
    again = (row for row in chain(head[1 + further :], rows) if row.text != head[0].text)
    return TextTable(columns, tuple(cells), again)


def csv_rows(lines: Iterable[Line]) -> Iterator[Line]:
    """Rows of CSV as lines with tabs; one whose quote stays open has a problem."""
    csv.field_size_limit(_LONGEST)
    # With spaces for carriage returns, as they become in cells: csv refuses them.
    lines = (
        replace(line, text=line.text.replace("\r", " ")) if "\r" in line.text else line
        for line in lines
    )
    first = list(islice(lines, _FIRST_ROWS))
    if not first:
        return
    waiting = deque(first)
    delimiter = delimiter_of(first)
    if _SEPARATOR.fullmatch(first[0].text):
        waiting.popleft()
    width: int | None = None
    while waiting or (waiting := deque(islice(lines, 1))):
        line = waiting.popleft()
        if '"' not in line.text:
            cells, read = line.text.split(delimiter), [line]
        else:
            cells, read = _quoted(line, waiting, lines, delimiter, width)
        text = "\t".join([" ".join(cell.split()) for cell in cells])
        if not read:
            yield Line(text, line.where, OPEN_QUOTE)
            continue
        odd = next((part for part in read if part.problem is not None), line)
        yield Line(text, line.where, odd.problem)
        if text:
            width = width or len(cells)


def _quoted(
    line: Line, waiting: deque[Line], remaining: Iterator[Line], delimiter: str, width: int | None
) -> tuple[list[str], list[Line]]:
    """The cells of a row and the lines it spans; no lines where a quote does not close."""
    parsed = partial(csv.reader, delimiter=delimiter, strict=True, skipinitialspace=True)
    with suppress(csv.Error):
        return next(parsed((line.text,))), [line]
    read = [line]

    def texts() -> Iterator[str]:
        yield f"{line.text}\n"
        while following := [waiting.popleft()] if waiting else list(islice(remaining, 1)):
            read.extend(following)
            yield f"{read[-1].text}\n"

    cells: list[str] = []
    with suppress(csv.Error):
        cells = next(parsed(texts()))
    if cells and width in (None, len(cells)):
        return cells, read
    waiting.extendleft(reversed(read[1:]))
    lenient = csv.reader([f"{line.text}\n", ""], delimiter=delimiter, skipinitialspace=True)
    cells = literal = line.text.split(delimiter)
    with suppress(csv.Error):
        cells = next(lenient)
    if lenient.line_num > 1:
        return literal, []
    escaped: list[str] = []  # the cells of a row whose quotes stand behind backslashes
    with suppress(csv.Error):
        escaped = next(csv.reader([line.text], delimiter=delimiter, strict=True, escapechar="\\"))
    fitting = (candidate for candidate in (escaped, literal, cells) if len(candidate) == width)
    return next(fitting, escaped or cells), [line]


def delimiter_of(lines: Sequence[Line]) -> str:
    """The sign by which most rows have as many cells; a comma if it can be."""
    if named := _SEPARATOR.fullmatch(lines[0].text):
        return named[1]

    def rows(sign: str) -> tuple[int, int]:
        counts: Counter[int] = Counter()
        for line in lines:
            with suppress(csv.Error):  # a cell that is too long
                counts[len(next(csv.reader([line.text], delimiter=sign), []))] += 1
        del counts[0], counts[1]
        return max(counts.values(), default=0), counts.total()

    return max(_DELIMITERS, key=rows)


def is_index_name(name: str) -> bool:
    """Whether a header calls a column like that in which pandas numbers the rows."""
    return not name.strip() or name.casefold() == "unnamed: 0"


def row_splitter(
    table: TextTable, complain: Callable[[Line, int, int], DataError], expected: int | None = None
) -> Callable[[Line], list[str]]:
    """A function that splits rows into cells, as many as in the header or else the first row."""
    expected = expected if table.header is None else len(table.header)

    def split(row: Line) -> list[str]:
        nonlocal expected
        cells = readable(row).split("\t")
        expected = expected or max(len(cells), *table.columns.values())
        if not any(cell.strip() for cell in cells[expected:]):
            cells = cells[:expected]
        if len(cells) != expected:
            raise complain(row, len(cells), expected)
        return cells

    return split


def _number(field: Field) -> int:
    assert isinstance(field.column, int)
    return field.column


def _named(
    cells: Sequence[str], fields: Sequence[Field], first: Line, cure: str
) -> dict[str, int] | None:
    """The columns of the fields if these cells are a header, else None."""
    folded = [cell.casefold() for cell in cells]
    numbers: dict[str, int] = {}
    is_header = any(isinstance(field.column, str) for field in fields)
    for field in fields:
        number = _cell_number(folded, field, numbers.values())
        if isinstance(field.column, str) and number is None:
            close = nearest(field.column, cells)
            header = f"The first line must name the columns; it holds {', '.join(cells)}."
            hint = f"Did you mean {close!r}?" if close else header
            raise DataError(
                f"{first.where}: there is no column {field.column!r} for the {field.name}. "
                f"{hint} {cure}".rstrip()
            )
        if number is not None:
            numbers[field.name] = number
    if not is_header:
        usual = usual_names()
        for field in fields:
            number = _number(field)
            is_name = (
                field.is_fixed and number <= len(cells) and _is_called(folded[number - 1], usual)
            )
            if number <= len(cells) and field.name not in numbers and not is_name:
                return None
        if not numbers:
            return None
    return _columns_at(fields, numbers, cells, first, cure)


def _columns_at(
    fields: Sequence[Field],
    numbers: Mapping[str, int],
    cells: Sequence[str],
    first: Line,
    cure: str,
) -> dict[str, int]:
    """The columns of the fields: those that are known, and else their own; all must be there."""
    columns = {
        field.name: numbers[field.name] if field.name in numbers else _number(field)
        for field in fields
    }
    for name, number in columns.items():
        if number > len(cells):
            raise DataError(
                f"{first.where}: there is no column {number} for the {name}. "
                f"There are {len(cells)}: {', '.join(cells)}. {cure}".rstrip()
            )
    return columns


def _cell_number(cells: Sequence[str], field: Field, taken: Collection[int]) -> int | None:
    """The number of the cell that is called like a field: by its own name, or else the first."""
    name, *aliases = names = [key.casefold() for key in field.keys]
    free = [n for n in range(1, len(cells) + 1) if n not in taken]
    if field.is_fixed and isinstance(field.column, int):
        free = [n for n in free if n == field.column]
    named = [n for n in free if cells[n - 1] == name]
    if isinstance(field.column, str):
        return next(iter(named), None)
    named = named or [n for n in free if cells[n - 1] in aliases]
    return next(iter(named or [n for n in free if _is_called(cells[n - 1], names)]), None)


def _is_called(cell: str, names: Collection[str]) -> bool:
    """Whether a cell is one of these names, or one with other known ones: english sentence."""
    words = _NAME_WORD.findall(cell)
    are_usual = usual_names().issuperset(words)
    return cell in names or (are_usual and not set(words).isdisjoint(names))
