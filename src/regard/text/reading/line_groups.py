"""Lines of files and of stdin, in groups worth answering together."""

import errno
import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path

from regard.errors import DataError
from regard.text.reading.forms import lines_of, text_suffix
from regard.text.reading.lines import Line, decode_lines
from regard.text.reading.tables import TABLES, Field, table_of
from regard.text.reading.tagged import read_words

# Files of words that are to be tagged.
_WORD_A_LINE = (".conll", ".conllu", *TABLES)
# Lines answered at once, and bytes read at once where they are there.
_LINES = 256
_BYTES = 1 << 16


def arriving(read: Callable[[int], bytes]) -> Iterator[list[bytes]]:
    """Lines as they come: all that are there, and a wait only where none is."""
    unfinished = b""
    while chunk := read(_BYTES):
        *lines, unfinished = (unfinished + chunk).split(b"\n")
        whole = iter([line + b"\n" for line in lines])
        while group := list(islice(whole, _LINES)):
            yield group
    if unfinished:
        yield [unfinished]


def groups_of(
    file: Path | None, fields: Sequence[Field] = (), *, name: str | None = None
) -> tuple[Iterator[list[Line]], str]:
    """The lines of a file, or of stdin, in groups, and its ending; rows of a table are JSON."""
    if file is None:
        return _decoded(arriving(_read_stdin)), ""
    ending, lines = text_suffix(file), decode_lines(lines_of(file), name or str(file))
    if [field.name for field in fields] == ["word"] and ending in _WORD_A_LINE:
        words = read_words(lines, ending, fields[0])
        texts = (Line(json.dumps({"tokens": sentence.words}), sentence.where) for sentence in words)
        return _whole_groups(texts), ".jsonl"
    if fields and ending in TABLES:
        return _whole_groups(_records(lines, ending, fields)), ".jsonl"
    return grouped(lines), ending


def grouped(lines: Iterable[Line]) -> Iterator[list[Line]]:
    """The lines of a file in groups; those before an error come before it."""
    group: list[Line] = []
    try:
        for line in lines:
            group.append(line)
            if len(group) == _LINES:
                yield group
                group = []
    except Exception:
        yield group
        raise
    if group:
        yield group


def _whole_groups(lines: Iterator[Line]) -> Iterator[list[Line]]:
    """Lines in groups; an error, such as of a missing column, comes before its group."""
    while group := list(islice(lines, _LINES)):
        yield group


def _decoded(groups: Iterable[Sequence[bytes]]) -> Iterator[list[Line]]:
    first = 1
    for group in groups:
        numbers = range(first, first + len(group))
        yield list(decode_lines(group, "stdin", numbers=numbers))
        first = numbers.stop


def _records(lines: Iterable[Line], ending: str, fields: Sequence[Field]) -> Iterator[Line]:
    """The rows of a table, each as the JSON object of the fields that it has."""
    table = table_of(lines, ending, fields)
    keys = {field.name: field.keys[0] for field in fields}
    for row in table.lines:
        cells = row.text.split("\t")
        columns = {n: c for n, c in table.columns.items() if c <= len(cells)}
        record = {keys[name]: cells[column - 1] for name, column in columns.items()}
        if not record and len(cells) == len(fields) == 1:
            record = {keys[fields[0].name]: row.text}
        text = json.dumps(record, ensure_ascii=False) if row.text.strip() else ""
        yield replace(row, text=text)


def _read_stdin(count: int) -> bytes:
    """Up to ``count`` bytes of stdin, as soon as there are any."""
    try:
        if sys.stdin is None:
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))
        stdin = sys.stdin.buffer
        return getattr(stdin, "read1", stdin.read)(count)
    except OSError as error:
        raise DataError(
            f"stdin must be open to be read; got: {error.strerror}. Pipe text in, or name a file."
        ) from error
