"""Sentences of words with a tag each: CoNLL-U, columns with blank lines between, JSONL."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Unpack

from regard.choices import choose
from regard.config import JsonValue
from regard.errors import DataError
from regard.text.normalization import normalize
from regard.text.reading.lines import Line, read_lines, readable, text_suffix
from regard.text.reading.records import Handling, found_at, record_in, usable
from regard.text.reading.tables import Field, TextTable, table_of

# What a sentence's words and its tags are called in JSONL.
_KEYS = {"word": ("tokens", "words"), "tag": ("tags", "labels", "ner_tags", "pos_tags")}
# A line of CoNLL that begins like this is a comment, if it has no tabs or says what something is.
_COMMENT = re.compile(r"#(\s|begin |end |[\w.]+ ?=)")
_SAYING = re.compile(r"# ?[\w.:-]+ ?=|# .*\w=\w")
# The word that stands where a document begins.
DOCUMENT_MARK = "-DOCSTART-"
_SPACES = re.compile("[ \t]+")
# Lines by which columns are known.
_FIRST_LINES = 100
# What headers call the column that says which sentence a word is of.
_SENTENCE = frozenset(
    ("sentence", "sentence #", "sentence id", "sentence_id", "sentence_idx", "sent_id", "句子")
)


@dataclass(frozen=True, slots=True)
class TaggedWords:
    """A sentence of words, with tags unless those are to be predicted."""

    words: tuple[str, ...]
    tags: tuple[str, ...] | None
    where: str


def read_tagged(
    path: Path,
    *,
    word: int | str = 1,
    tag: int | str = 2,
    **handling: Unpack[Handling],
) -> Iterator[TaggedWords]:
    """Read the sentences of one file of words and tags.

    Of ``.conllu`` files, words and universal tags (columns 2 and 4); a contraction's line (``1-2``)
    and an empty node's (``8.1``) are skipped. Of ``.conll`` (``.bio``, ``.iob`` and others),
    ``.tsv`` and ``.txt`` files, columns separated by a tab, or in lines without one by spaces, and
    of ``.csv`` by a comma. A sentence ends at a blank line; or where a column whose header is
    ``sentence`` (``Sentence #``, ``sent_id``) changes or is filled. Comments (``# text = …``) and
    lines of ``-DOCSTART-`` are skipped. Of ``.jsonl`` and tables, the lists at "tokens" and "tags",
    or at the given names.
    """
    read = choose(f"the ending of {path}", text_suffix(path), _READERS)
    yield from usable(
        read(path, (Field("word", word), Field("tag", tag))),
        lambda block: block(),
        "sentences",
        rule=f"{path} must hold sentences of words and tags",
        **handling,
    )


def read_words(path: Path, *, word: int | str = 1) -> Iterator[TaggedWords]:
    """Read sentences of columns whose tags are not looked at."""
    is_conllu = text_suffix(path) == ".conllu"
    fields = (Field("word", 2 if is_conllu else word),)
    table = word_table(read_lines(path), text_suffix(path), fields)
    place = table.columns["word"]
    for block in _sentences(table):
        lines = [line for line in block if not (is_conllu and line.text.startswith("#"))]
        rows = [_cells(line, place, place) for line in lines]
        kept = [row for row in rows if not is_conllu or row[0].isdecimal()]
        words = tuple(normalize(row[place - 1]) or row[place - 1] for row in kept)
        if words:
            yield TaggedWords(words, None, block[0].where)


# What is left of a sentence's lines once they are parsed.
_Block = Callable[[], TaggedWords]


def _columns(path: Path, fields: Sequence[Field]) -> Iterator[_Block]:
    table = word_table(read_lines(path), text_suffix(path), fields)
    word, tag = table.columns["word"], table.columns["tag"]
    for lines in _sentences(table):
        yield lambda lines=lines: _sentence(  # type: ignore[misc]
            [_cells(line, word, tag) for line in lines], word - 1, tag - 1, lines[0].where
        )


def word_table(lines: Iterable[Line], ending: str, fields: Sequence[Field]) -> TextTable:
    """Rows of words and tags with tabs, without comments; marks of documents are blank lines."""
    return table_of(lines if ending in (".csv", ".conllu") else _columns_of(lines), ending, fields)


def sentence_column(table: TextTable) -> int | None:
    """The place of the column that says which sentence a word is of, from 0, if there is one."""
    names = [name.casefold() for name in table.header or ()]
    return next((place for place, name in enumerate(names) if name in _SENTENCE), None)


def _columns_of(lines: Iterable[Line]) -> Iterator[Line]:
    """Lines of columns with a tab between, without comments; marks of documents are blank."""
    lines = iter(lines)
    head = list(islice(lines, _FIRST_LINES))
    rows = [one.text for one in head if one.text.strip() and not _COMMENT.match(one.text)]
    width = len(_parted(rows[0])) if rows else 0
    has_tabs = any("\t" in row for row in rows)
    wide = {len(row.split("\t")) for row in rows}
    is_aligned = len(wide) > 1 and len({len(re.split("\t+", row)) for row in rows}) == 1
    for line in chain(head, lines):
        cells = re.split("\t+", line.text) if is_aligned else _parted(line.text)
        is_row = "\t" in line.text or (
            not has_tabs and len(cells) == width and not _SAYING.match(line.text)
        )
        if _COMMENT.match(line.text) and not is_row:
            continue
        text = "" if cells[0] == DOCUMENT_MARK else "\t".join(cells)
        yield line if text == line.text else replace(line, text=text)


def _parted(text: str) -> list[str]:
    return text.split("\t") if "\t" in text else _SPACES.split(text.strip(" "))


def _conllu(path: Path, fields: Sequence[Field]) -> Iterator[_Block]:
    for lines in _paragraphs(read_lines(path)):
        kept = [line for line in lines if not line.text.startswith("#")]
        if kept:
            yield lambda lines=kept: _sentence(  # type: ignore[misc]
                [cells for line in lines if (cells := _cells(line, 2, 4, 10))[0].isdecimal()],
                1,
                3,
                lines[0].where,
            )


def _jsonl(path: Path, fields: Sequence[Field]) -> Iterator[_Block]:
    for line in read_lines(path):
        yield partial(_record, line, fields)


def _record(line: Line, fields: Sequence[Field]) -> TaggedWords:
    record = record_in(readable(line))
    members: Mapping[str, JsonValue] = {} if isinstance(record, str) else record
    keys = [
        (f.column, *_KEYS[f.name]) if isinstance(f.column, str) else _KEYS[f.name] for f in fields
    ]
    words, tags = (found_at(members, *each) for each in keys)
    (first, *_), (second, *_) = keys
    if words is None or tags is None:
        raise DataError(
            f'{line.where}: expected a JSON object {{"{first}": [...], "{second}": [...]}}, '
            f"found {line.text[:60]!r}."
        )
    if not (isinstance(words, list) and isinstance(tags, list) and len(words) == len(tags)):
        raise DataError(
            f"{line.where}: tags must be as many as tokens, one each; got {_count(tags)} for "
            f"{_count(words)}. Correct the line, or leave it out."
        )
    for name, each in (("tokens", words), ("tags", tags)):
        odd = [value for value in each if not isinstance(value, str | int) or value == ""]
        if odd:
            raise DataError(f"{line.where}: {name} must be texts; got {odd[0]!r} among them.")
    return _sentence([[str(w), str(t)] for w, t in zip(words, tags, strict=True)], 0, 1, line.where)


def _count(value: object) -> object:
    return len(value) if isinstance(value, list) else value


def _sentence(rows: Sequence[Sequence[str]], word: int, tag: int, where: str) -> TaggedWords:
    if not rows:
        raise DataError(f"{where}: the sentence has no words.")
    words = tuple(normalize(row[word]) or row[word] for row in rows)
    return TaggedWords(words, tuple(row[tag].strip() for row in rows), where)


def _cells(line: Line, word: int, tag: int, least: int = 0) -> list[str]:
    cells, least = readable(line).split("\t"), max(word, tag, least)
    if len(cells) < least:
        raise DataError(
            f"{line.where}: expected at least {least} columns, found {len(cells)}. "
            "A tab must stand between the word and its tag, and a blank line between sentences."
        )
    for name, cell in (("word", cells[word - 1]), ("tag", cells[tag - 1].strip())):
        if not cell:
            raise DataError(
                f"{line.where}: the {name} is empty. Fill it in, or leave the sentence out."
            )
    return cells


def _sentences(table: TextTable) -> Iterator[list[Line]]:
    """The rows of each sentence."""
    column = sentence_column(table)
    for lines in _paragraphs(table.lines):
        begun: list[Line] = []
        last = ""
        for line in lines:
            cell = "" if column is None else (line.text.split("\t")[column : column + 1] or [""])[0]
            if begun and cell and cell != last:
                yield begun
                begun = []
            last = cell or last
            begun.append(line)
        yield begun


def _paragraphs(every: Iterable[Line]) -> Iterator[list[Line]]:
    """The lines between blank lines."""
    lines: list[Line] = []
    for line in every:
        if line.text.strip():
            lines.append(line)
        elif lines:
            yield lines
            lines = []
    if lines:
        yield lines


_READERS: dict[str, Callable[[Path, Sequence[Field]], Iterator[_Block]]] = {
    ".conll": _columns,
    ".conllu": _conllu,
    ".csv": _columns,
    ".jsonl": _jsonl,
    ".tsv": _columns,
    ".txt": _columns,
}
