"""Lines of files and of stdin, in groups worth answering together."""

import errno
import json
import os
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import TypeAlias

from regard.errors import DataError
from regard.text import Line, decode_lines, open_text
from regard.text.reading.lines import text_suffix
from regard.text.reading.tables import TABLES, Field, read_table
from regard.text.reading.tagged import read_words

# A line as a file has it, or one that was read of a table.
RawLine: TypeAlias = bytes | Line

# Files of words that are to be tagged.
_WORD_A_LINE = (".conll", ".conllu", *TABLES)
# Lines answered at once, and bytes read at once where they are there.
_LINES = 256
_BYTES = 1 << 16


def arriving(read: Callable[[int], bytes]) -> Iterator[list[bytes]]:
    """Lines as they come: all that are there, and a wait only where none is."""
    rest = b""
    while chunk := read(_BYTES):
        *lines, rest = (rest + chunk).split(b"\n")
        whole = iter([line + b"\n" for line in lines])
        while group := list(islice(whole, _LINES)):
            yield group
    if rest:
        yield [rest]


def of_file(path: Path) -> Iterator[list[bytes]]:
    """The lines of a file, compressed or not, in groups worth answering together."""
    with open_text(path) as lines:
        group: list[bytes] = []
        try:
            for line in lines:
                group.append(line)
                if len(group) == _LINES:
                    yield group
                    group = []
        except Exception:
            yield group  # what came before the damage
            raise
        if group:
            yield group


def of_table(path: Path, fields: Sequence[Field]) -> Iterator[list[Line]]:
    """The rows of a table in groups, each as the JSON object of the fields that it has."""
    table = read_table(path, fields)
    keys = {field.name: field.keys[0] for field in fields}
    only = keys[fields[0].name] if len(fields) == 1 else None

    def record(row: Line) -> Line:
        cells = row.text.split("\t")
        found = {
            keys[name]: cells[place - 1]
            for name, place in table.columns.items()
            if place <= len(cells)
        }
        if not found and len(cells) == 1 and only is not None:
            found = {only: row.text}
        text = json.dumps(found, ensure_ascii=False) if row.text.strip() else ""
        return replace(row, text=text)

    rows = map(record, table.lines)
    while group := list(islice(rows, _LINES)):
        yield group


def of_sentences(path: Path, word: Field) -> Iterator[list[Line]]:
    """The sentences of a file with a word a line in groups, each as a JSON object of its words."""
    found = read_words(path, word=word.column)
    sentences = (Line(json.dumps({"tokens": each.words}), each.where) for each in found)
    while group := list(islice(sentences, _LINES)):
        yield group


def groups_of(
    file: Path | None, fields: Sequence[Field] = ()
) -> tuple[Iterator[Sequence[RawLine]], str, str]:
    """The raw lines of a file or of stdin in groups, what they are called, and their ending."""
    if file is None:
        return arriving(_read_stdin), "stdin", ""
    if [field.name for field in fields] == ["word"] and text_suffix(file) in _WORD_A_LINE:
        return of_sentences(file, fields[0]), str(file), ".jsonl"
    if fields and text_suffix(file) in TABLES:
        return of_table(file, fields), str(file), ".jsonl"
    return of_file(file), str(file), text_suffix(file)


def _read_stdin(count: int) -> bytes:
    """At most so many bytes of stdin, as soon as there are any."""
    try:
        if sys.stdin is None:
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))
        stdin = sys.stdin.buffer
        return getattr(stdin, "read1", stdin.read)(count)
    except OSError as error:
        raise DataError(
            f"stdin must be open to be read; got: {error.strerror}. Pipe text in, or name a file."
        ) from error


def numbered(groups: Iterable[Sequence[RawLine]], name: str) -> Iterator[list[Line]]:
    """Groups of raw lines as lines that know their places."""
    waiting: deque[bytes] = deque()
    decoded = decode_lines(iter(waiting.popleft, None), name)
    for group in groups:
        waiting.extend(line for line in group if isinstance(line, bytes))
        yield [line if isinstance(line, Line) else next(decoded) for line in group]
