"""Points from tables of numbers: inputs and a target, from CSV, TSV, JSONL and Parquet files."""

import csv
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Unpack

from regard.checks import choose, nearest
from regard.errors import DataError
from regard.text.reading.forms import text_suffix
from regard.text.reading.lines import Line, filled, read_lines, readable
from regard.text.reading.records import Handling, object_of, usable
from regard.text.reading.tables import csv_rows, is_index_name

# Rows of CSV are read as lines with tabs. Of lines of JSON there is none: the keys are the header.
_DELIMITERS = {".csv": "\t", ".tsv": "\t", ".jsonl": ""}
# Numbers with a comma for a point; those that may be of thousands; and of thousands, by points.
_COMMA = re.compile(r"[-+]?(\d+,(\d{1,2}|\d{4,})|0,\d+|\d{1,3}(\.\d{3})+,\d+)")
_UNCLEAR = re.compile(r"[-+]?\d{1,3},\d{3}")
# Signs of money and of hundredths around a number.
_UNIT = re.compile(r"^[$€£¥]\s?(?=[-+.\d])|(?<=\d)\s?[%€£¥]$")
_THOUSANDS = re.compile(r"[-+]?\d{1,3}(\.\d{3})+")
# Rows that say which of them a table has.
_FIRST_ROWS = 1000


@dataclass(frozen=True, slots=True)
class Point:
    """One row of a table; its target is None where that is to be predicted."""

    inputs: tuple[float, ...]
    target: float | None
    names: tuple[str, ...]
    where: str


def read_points(
    path: Path, *, inputs: Sequence[str] = (), target: str = "", **handling: Unpack[Handling]
) -> Iterator[Point]:
    """Read the rows of a file of numbers; inputs are all columns but the target, or some."""
    ending = text_suffix(path)
    delimiter = choose(f"the ending of {path}", ending, _DELIMITERS)
    rows = csv_rows(read_lines(path)) if ending == ".csv" else read_lines(path)
    head = list(islice(rows, _FIRST_ROWS))
    lines: Iterable[Line] = chain(head, rows)
    if (first := next(filled(head), None)) is not None:
        names = cells_of(first, delimiter) if delimiter else [*object_of(first.text, first.where)]
        cells = (cell for line in head for cell in line.text.split(delimiter or None))
        has_commas = any(_COMMA.fullmatch(cell.strip(' "')) for cell in cells)
        layout = _layout(names, first, inputs, target, has_commas=has_commas)
        if layout.has_header and delimiter:
            lines = (line for line in lines if line is not first)

    def point(line: Line) -> Point:
        if delimiter:
            return layout.point(cells_of(line, delimiter), line)
        record = object_of(readable(line), line.where)
        cells = (record.get(name) for name in layout.columns)
        return layout.point(["" if cell is None else str(cell) for cell in cells], line)

    rule = f"{path} must hold rows of numbers"
    yield from usable(lines, point, "points", rule=rule, **handling)


def cells_of(line: Line, delimiter: str) -> list[str]:
    """The stripped cells of a line; a quoted one may hold the delimiter."""
    text = readable(line)
    try:
        (row,) = csv.reader([text], delimiter=delimiter, strict=True)
    except (csv.Error, ValueError) as error:
        raise DataError(f"{line.where}: not a row of a table: {error}.") from None
    return [cell.strip() for cell in row]


def number_of(cell: str, name: str, where: str, *, has_commas: bool = False) -> float:
    """Parse the number in a cell; ``has_commas`` says that other cells have a decimal comma."""
    if (number := _number(cell, has_commas=has_commas)) is not None and math.isfinite(number):
        return number
    if not cell:
        raise DataError(f"{where}: {name} must be a number; the cell is empty. Leave the row out.")
    cure = "Correct it, or leave the row out."
    if _UNCLEAR.fullmatch(cell):
        small = _number(cell, has_commas=True)
        cure = f"Write {cell.replace(',', '')} or {small:g}, whichever it is."
    raise DataError(f"{where}: {name} must be a number; got {cell!r}. {cure}")


@dataclass(frozen=True, slots=True)
class _Layout:
    """The positions of inputs and target in a row."""

    columns: tuple[str, ...]
    inputs: tuple[int, ...]
    target: int
    names: tuple[str, ...]
    has_header: bool
    has_commas: bool

    def point(self, cells: Sequence[str], line: Line) -> Point:
        if not any(cells[len(self.columns) :]):
            cells = cells[: len(self.columns)]
        if len(cells) != len(self.columns):
            raise DataError(
                f"{line.where}: expected {len(self.columns)} columns ({', '.join(self.columns)}), "
                f"found {len(cells)}. Complete the row, or leave it out."
            )
        called = self.columns if self.has_header else [f"column {name}" for name in self.columns]
        *inputs, target = (
            number_of(cells[index], called[index], line.where, has_commas=self.has_commas)
            for index in (*self.inputs, self.target)
        )
        return Point(tuple(inputs), target, self.names, line.where)


def _layout(
    cells: Sequence[str], line: Line, inputs: Sequence[str], target: str, *, has_commas: bool
) -> _Layout:
    numbers = [_number(cell) is not None for cell in cells]
    has_header = not any(numbers)
    usable_columns = {str(n) for n, is_number in enumerate(numbers, 1) if is_number}
    are_usable = bool(inputs and target) and usable_columns >= {*inputs, target}
    if not (has_header or all(numbers) or are_usable):
        odd = cells[numbers.index(False)]
        raise DataError(
            f"{line.where}: the first line must be all names or all numbers; got {odd!r} beside "
            f"{cells[numbers.index(True)]!r}."
        )
    columns = tuple(cells) if has_header else tuple(str(n + 1) for n in range(len(cells)))
    if len(set(columns)) < len(columns):
        twice = next(name for name in columns if columns.count(name) > 1)
        raise DataError(f"{line.where}: columns must have different names; got {twice!r} twice.")
    goal = _column_index(target, "target", columns, line) if target else len(columns) - 1
    if inputs:
        indices = tuple(_column_index(name, "inputs", columns, line) for name in inputs)
    else:
        first = int(is_index_name(columns[0]))  # pandas numbers the rows
        indices = tuple(n for n in range(first, len(columns)) if n != goal)
    if not indices or goal in indices:
        raise DataError(
            f"{line.where}: there must be an input column beside the target {columns[goal]!r}; got "
            f"the columns {', '.join(columns)}. Set data.inputs and data.target."
        )
    names = tuple(columns[index] for index in indices)
    return _Layout(columns, indices, goal, names, has_header, has_commas)


def _column_index(name: str, setting: str, columns: Sequence[str], line: Line) -> int:
    if name in columns:
        return columns.index(name)
    close = nearest(name, columns)
    cure = f"Did you mean {close!r}?" if close else f"There are {', '.join(columns)}."
    raise DataError(
        f"{line.where}: there is no column {name!r}, which data.{setting} names. {cure}"
    )


def _number(cell: str, *, has_commas: bool = False) -> float | None:
    cell = _UNIT.sub("", cell)
    if _COMMA.fullmatch(cell) or (has_commas and "," in cell):
        cell = cell.replace(".", "").replace(",", ".")
    elif has_commas and _THOUSANDS.fullmatch(cell):
        cell = cell.replace(".", "")
    try:
        return None if "_" in cell else float(cell)
    except ValueError:
        return None
