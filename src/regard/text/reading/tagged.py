"""Sentences of words with a tag each: CoNLL-U, columns with blank lines between, JSONL, spans."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, islice, pairwise
from pathlib import Path
from typing import NamedTuple, Unpack

from regard.checks import choose
from regard.config import JsonValue
from regard.errors import DataError
from regard.text.normalization import has_unspaced, normalize
from regard.text.reading.annotations import SPANS, TEXTS, are_spans, tagged_words, words_of
from regard.text.reading.forms import text_suffix
from regard.text.reading.lines import Line, read_lines, readable
from regard.text.reading.records import Handling, example_of, usable, value_at
from regard.text.reading.tables import Field, TextTable, table_of

# Keys of a sentence's words and tags in JSONL.
KEYS = {"word": ("tokens", "words"), "tag": ("tags", "labels", "ner_tags", "ner", "pos_tags")}
# A line of CoNLL that begins like this is a comment, if it has no tabs or sets a name to a value.
_COMMENT = re.compile(r"#(\s|begin |end |[\w.]+ ?=)")
_SAYING = re.compile(r"# ?[\w.:-]+ ?=|# .*\w=\w")
# The word that stands where a document begins.
DOCUMENT_MARK = "-DOCSTART-"
_SPACES = re.compile("[ \t]+")
# A character with its position in a word, as in Weibo's entities.
_NUMBERED = re.compile(r"\S\d{1,2}")
_ENDINGS = (".conll", ".conllu", ".csv", ".jsonl", ".tsv", ".txt")
# Lines by which columns are known.
_FIRST_LINES = 100
# Rows from which a column of numbers is known to count.
_LEAST_COUNTED = 8
# Names in headers of the column that numbers the sentences.
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
    path: Path, *, word: int | str = 1, tag: int | str = 2, **handling: Unpack[Handling]
) -> Iterator[TaggedWords]:
    """Read the sentences of one file of words and tags: CoNLL(-U), columns, CSV, JSONL, tables."""
    ending, fields = text_suffix(path), (Field("word", word), Field("tag", tag))
    choose(f"the ending of {path}", ending, dict.fromkeys(_ENDINGS))
    rule, lines = f"{path} must hold sentences of words and tags", read_lines(path)
    if ending == ".jsonl":
        parse = partial(_from_record, fields=fields)
        yield from usable(lines, parse, "sentences", rule=rule, **handling)
    else:
        blocks = _blocks(lines, ending, fields)
        yield from usable(blocks, _tagged, "sentences", rule=rule, **handling)


def read_words(lines: Iterable[Line], ending: str, word: Field) -> Iterator[TaggedWords]:
    """Read sentences of columns whose tags are not looked at."""
    sentences = map(_tagged, _blocks(lines, ending, (word,)))
    return (sentence for sentence in sentences if sentence.words)


class _SentenceLines(NamedTuple):
    """Lines of a sentence; its columns of words and perhaps tags, from 1, and how many it needs."""

    lines: list[Line]
    columns: Sequence[int]
    least: int
    is_conllu: bool


def _blocks(
    lines: Iterable[Line], ending: str, fields: Sequence[Field]
) -> Iterator[_SentenceLines]:
    if ending == ".conllu":
        for block in _paragraphs(line for line in lines if not line.text.startswith("#")):
            has_tags = len(fields) > 1
            yield _SentenceLines(
                block, [2, 4] if has_tags else [2], 10 if has_tags else 2, is_conllu=True
            )
        return
    table = word_table(lines, ending, fields)
    columns = [table.columns[field.name] for field in fields]
    blocks = sentences_of(table)
    head = list(islice(blocks, _FIRST_LINES))
    _check_words(head, columns[0])
    for block in chain(head, blocks):
        yield _SentenceLines(block, columns, max(columns), is_conllu=False)


def _check_words(blocks: Sequence[Sequence[Line]], column: int) -> None:
    """Raise DataError if the column of words counts them, or has them with their positions."""
    cells = [[line.text.split("\t")[column - 1 : column] for line in block] for block in blocks]
    if all(map(all, cells)) and counts([[cell for (cell,) in block] for block in cells]):
        width = len(blocks[0][0].text.split("\t"))
        raise DataError(
            f"{blocks[0][0].where}: the words must be those of a text; column {column} counts "
            f"them ({', '.join(cell for (cell,) in cells[0][:3])}, …). Say which has the words, "
            f"and which the tags: --set data.word={min(column + 1, width)} --set data.tag={width}."
        )
    words = [cell for block in cells for row in block for cell in row]
    is_unspaced = sum(map(has_unspaced, words)) > len(words) / 2
    if len(words) >= _LEAST_COUNTED and is_unspaced and all(map(_NUMBERED.fullmatch, words)):
        raise DataError(
            f"{blocks[0][0].where}: the words must be those of a text; all in column {column} end "
            f"in their position in a word ({', '.join(words[:3])}, …), as Weibo's do. Take the "
            r"digits out: sed -E 's/^(.)[0-9]{1,2}([[:space:]])/\1\2/'"
        )


def counts(blocks: Sequence[Sequence[str]]) -> bool:
    """Whether a column counts the words of each sentence, or of all."""
    if sum(map(len, blocks)) < _LEAST_COUNTED or max(map(len, blocks)) < 2:
        return False
    if not all(cell.isdecimal() for block in blocks for cell in block):
        return False
    return all(int(b) - int(a) == 1 for block in blocks for a, b in pairwise(block))


def _tagged(block: _SentenceLines) -> TaggedWords:
    rows = [_cells(line, block) for line in block.lines]
    if block.is_conllu:
        rows = [row for row in rows if row[0].isdecimal()]
    where = block.lines[0].where
    if not rows and len(block.columns) > 1:
        raise DataError(f"{where}: the sentence has no words.")
    words, *tags = ([row[column - 1] for row in rows] for column in block.columns)
    return _sentence(words, tags[0] if tags else None, where)


def _cells(line: Line, block: _SentenceLines) -> list[str]:
    cells = readable(line).split("\t")
    if len(cells) < block.least:
        raise DataError(
            f"{line.where}: expected at least {block.least} columns, found {len(cells)}. "
            "A tab must stand between the word and its tag, and a blank line between sentences."
        )
    for name, column in zip(("word", "tag"), block.columns, strict=False):
        cell = cells[column - 1]
        if not (cell.strip() if name == "tag" else cell):
            raise DataError(
                f"{line.where}: the {name} is empty. Fill it in, or leave the sentence out."
            )
    return cells


def _sentence(words: Sequence[str], tags: Sequence[str] | None, where: str) -> TaggedWords:
    return TaggedWords(
        tuple(normalize(word) or word for word in words),
        None if tags is None else tuple(tag.strip() for tag in tags),
        where,
    )


def word_table(lines: Iterable[Line], ending: str, fields: Sequence[Field]) -> TextTable:
    """Rows of words and tags with tabs, without comments; marks of documents are blank lines."""
    rows = lines if ending in (".csv", ".conllu") else _columns_of(lines)
    return table_of(rows, ending, fields, by_kind=False)


def text_columns(blocks: Sequence[Sequence[Sequence[str]]]) -> list[int]:
    """The columns, from 0, that neither count words nor have one value in each sentence."""
    width = min(len(row) for block in blocks for row in block)
    columns = [[[row[n] for row in block] for block in blocks] for n in range(width)]
    is_one = all(len(block) == 1 for block in blocks)
    return [
        n
        for n, cells in enumerate(columns)
        if not counts(cells) and (is_one or any(len({*block}) > 1 for block in cells))
    ]


def sentence_column(table: TextTable) -> int | None:
    """The index of the column that says which sentence a word is of, from 0, if there is one."""
    names = [name.casefold() for name in table.header or ()]
    return next((index for index, name in enumerate(names) if name in _SENTENCE), None)


def _columns_of(lines: Iterable[Line]) -> Iterator[Line]:
    """Lines of columns with a tab between, without comments; marks of documents are blank."""
    lines = iter(lines)
    head = list(islice(lines, _FIRST_LINES))
    rows = [one.text for one in head if one.text.strip() and not _COMMENT.match(one.text)]
    has_tabs = any("\t" in row for row in rows)
    wide = {len(row.split("\t")) for row in rows}
    is_aligned = len(wide) > 1 and len({len(re.split("\t+", row)) for row in rows}) == 1
    width = len(re.split("\t+", rows[0]) if is_aligned else _parted(rows[0])) if rows else 0
    for line in chain(head, lines):
        cells = re.split("\t+", line.text) if is_aligned else _parted(line.text)
        is_row = ("\t" in line.text) == has_tabs and len(cells) == width
        is_row = is_row and (has_tabs or not _SAYING.match(line.text))
        if _COMMENT.match(line.text) and not is_row:
            continue
        text = "" if cells[0] == DOCUMENT_MARK else "\t".join(cells)
        yield line if text == line.text else replace(line, text=text)


def _parted(text: str) -> list[str]:
    return text.split("\t") if "\t" in text else _SPACES.split(text.strip(" "))


def _from_record(line: Line, fields: Sequence[Field]) -> TaggedWords:
    record = example_of(line)
    if (spans := _spans_in(record, *fields)) is not None:
        return _sentence(*tagged_words(*spans, line.where), line.where)
    keys = [
        (f.column, *KEYS[f.name]) if isinstance(f.column, str) else KEYS[f.name] for f in fields
    ]
    words, tags = (value_at(record, *names) for names in keys)
    (first, *_), (second, *_) = keys
    if words is None or tags is None:
        raise DataError(
            f'{line.where}: expected a JSON object {{"{first}": [...], "{second}": [...]}}, or a '
            f"text and a list of spans of its characters; found {line.text[:60]!r}."
        )
    if not (isinstance(words, list) and isinstance(tags, list) and len(words) == len(tags)):
        raise DataError(
            f"{line.where}: tags must be as many as tokens, one each; got {_count(tags)} for "
            f"{_count(words)}. Correct the line, or leave it out."
        )
    for name, values in (("tokens", words), ("tags", tags)):
        odd = [value for value in values if not isinstance(value, str | int) or value == ""]
        if odd:
            raise DataError(f"{line.where}: {name} must be texts; got {odd[0]!r} among them.")
    return _sentence([str(word) for word in words], [str(tag) for tag in tags], line.where)


def words_in(record: Mapping[str, JsonValue], word: Field) -> list[JsonValue]:
    """The words of a record, which are those of its text where it has none; empty without any."""
    words = value_at(record, "tokens", *_keys(word))
    if isinstance(words, list) and not any(isinstance(item, Mapping) for item in words):
        return words
    text = value_at(record, *_keys(word, TEXTS))
    return [text[a:b] for a, b in words_of(text)] if isinstance(text, str) else []


def _keys(field: Field, names: Sequence[str] = ()) -> Sequence[str]:
    """The key of a field, where it is named; else its usual ones."""
    return (field.column,) if isinstance(field.column, str) else names or KEYS[field.name]


def _spans_in(
    record: Mapping[str, JsonValue], word: Field, tag: Field
) -> tuple[str, list[JsonValue]] | None:
    """A text and the spans of its characters; None if the record has words with tags."""
    text, spans = value_at(record, *_keys(word, TEXTS)), value_at(record, *_keys(tag, SPANS))
    words = value_at(record, *KEYS["word"])
    has_words = isinstance(words, list) and all(isinstance(item, str) for item in words)
    if not isinstance(text, str) or (has_words and not are_spans(spans)):
        return None
    if spans is None and isinstance(tag.column, str):
        return text, []  # the text has none, as exports leave the key out then
    return (text, spans) if isinstance(spans, list) else None


def _count(value: object) -> object:
    return len(value) if isinstance(value, list) else value


def sentences_of(table: TextTable) -> Iterator[list[Line]]:
    """The rows of each sentence."""
    column = sentence_column(table)
    for lines in _paragraphs(table.lines):
        sentence: list[Line] = []
        last = ""
        for line in lines:
            cell = "" if column is None else (line.text.split("\t")[column : column + 1] or [""])[0]
            if sentence and cell and cell != last:
                yield sentence
                sentence = []
            last = cell or last
            sentence.append(line)
        yield sentence


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
