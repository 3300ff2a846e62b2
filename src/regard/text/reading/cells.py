"""Tables whose cells hold objects and lists, as lines of JSON: of datasets, of Label Studio."""

import ast
import csv
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import chain

from regard.text.reading.encodings import MARK

# The start of a cell that is an object, or a list of objects, texts or numbers.
_OBJECT = re.compile(r"""\[?\{["']\w+["']:|\[(["'][^,]|-?\d+[ ,\]])""")
_LONGEST = 1 << 24
# The share of rows with objects from which the cells of a table are taken for objects.
_LEAST_OBJECTS = 0.05
# Arrays as numpy prints them, by themselves and in lists without commas.
_ARRAY = re.compile(r"array\((\[.*?\])(?:, dtype=\w+)?\)", re.DOTALL)
_SPACED = re.compile(r"""('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|\b\d+)\s+(?=['"\d-])""")


def have_object_cells(lines: Sequence[str]) -> bool:
    """Whether some rows below the first have a cell of objects, or most one that is a list."""
    rows = [row for row in _rows(lines) if row][1:]
    objects = sum(any(cell.lstrip(" [").startswith("{") for cell in row) for row in rows)
    cells = sum(map(_has_object, rows))
    return cells > len(rows) / 2 or (cells > 0 and min(cells, objects) > _LEAST_OBJECTS * len(rows))


def lines_of_cells(lines: Iterable[bytes]) -> Iterator[bytes]:
    """Rows of a table as objects of JSON, their cells parsed; without a header by numbers.

    A cell that begins like an object and is none makes its row a line that is no JSON.
    """
    rows = _rows(line.removeprefix(MARK).decode("utf-8", "surrogateescape") for line in lines)
    first = next(rows, [])
    names = first
    if _has_object(first):
        rows, names = chain([first], rows), [f"column{n}" for n in range(1, len(first) + 1)]
    for row in filter(None, rows):
        cells = {name: _value(cell) for name, cell in zip(names, row, strict=False)}
        broken = [cell for cell in cells.values() if isinstance(cell, bytes)]
        yield broken[0] + b"\n" if broken else json_line(cells)


def _rows(lines: Iterable[str]) -> Iterator[list[str]]:
    """The cells of each row; an error of the table ends it."""
    lines = iter(lines)
    first = next(lines, "")
    csv.field_size_limit(_LONGEST)
    with suppress(csv.Error):
        yield from csv.reader(chain([first], lines), delimiter=max("\t,;", key=first.count))


def _has_object(row: Sequence[str]) -> bool:
    return any(_OBJECT.match(cell.strip()) for cell in row)


def line_of_cell(line: bytes) -> bytes:
    """The line of JSON for an object as Python prints it; the line itself where it is none."""
    value = _value(line.removeprefix(MARK).decode("utf-8", "surrogateescape"))
    return json_line(value) if isinstance(value, dict) else line


def _value(cell: str) -> object:
    """The object or list of a cell, in JSON, Python or numpy; its bytes if it is broken."""
    text = cell.strip()
    if not _OBJECT.match(text):
        return text
    with suppress(ValueError, RecursionError):
        return json.loads(text)
    with suppress(ValueError, SyntaxError, TypeError, RecursionError, MemoryError):
        python = _SPACED.sub(r"\1, ", _ARRAY.sub(r"\1", text))
        return json.loads(json.dumps(ast.literal_eval(python)))
    is_whole = text.startswith(("{", "[{")) or text.endswith("]")
    return " ".join(text.split()).encode("utf-8", "surrogateescape") if is_whole else text


def json_line(record: object) -> bytes:
    """A value as a line of JSON."""
    try:
        return f"{json.dumps(record, ensure_ascii=False)}\n".encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:  # half of a character, which JSON may spell
        return f"{json.dumps(record)}\n".encode()
