"""Sentences of words with a tag each: CoNLL-U, columns with blank lines between, JSONL."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from regard.choices import choose
from regard.errors import DataError
from regard.text.lines import BadLines, Line, read_lines, readable, text_suffix
from regard.text.normalization import normalize
from regard.text.records import OnBadLine, columns_by_number, member, usable


@dataclass(frozen=True, slots=True)
class TaggedWords:
    """A sentence.

    Attributes:
        words: As they were cut; of Chinese, often single characters.
        tags: One a word; None where they are asked for.
        where: ``file:line`` it begins at.
    """

    words: tuple[str, ...]
    tags: tuple[str, ...] | None
    where: str


def read_tagged(
    path: Path,
    *,
    word: int | str = 1,
    tag: int | str = 2,
    on_bad_line: OnBadLine = "error",
    bad_lines: BadLines | None = None,
) -> Iterator[TaggedWords]:
    r"""The sentences of one file.

    Of ``.conllu`` files words and universal tags (columns 2 and 4) are read; a contraction's line
    (``1-2``) and an empty node's (``8.1``) are passed over, its words are lines of their own. Of
    ``.conll``, ``.tsv`` and ``.txt`` files, columns parted by a tab, a sentence's end by a blank
    line. Of ``.jsonl`` and tables, the lists at "tokens" and "tags", or at the names given.

    Args:
        path: The file, which may be compressed: ``.gz``, ``.zst``.
        word: The word's column, from 1, or its name; not of CoNLL-U.
        tag: The tag's column.
        on_bad_line: Whether a sentence that cannot be used is an error, or is left out.
        bad_lines: Where sentences left out are counted.

    Raises:
        DataError: The file is missing, damaged or holds no sentence that can be used, or one
            cannot be used and ``on_bad_line`` is ``"error"``.
        SettingError: The file's ending does not say how to read it, or a column is named by name
            in a file that has none.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "names.conll"
        >>> _ = path.write_text("江\tB-PER\n\n在\tO\n京\tB-LOC\n", encoding="utf-8")
        >>> [(found.words, found.tags) for found in read_tagged(path)]
        [(('江',), ('B-PER',)), (('在', '京'), ('O', 'B-LOC'))]
    """
    read = choose(f"the ending of {path}", text_suffix(path), _READERS)
    yield from usable(
        read(path, {"word": word, "tag": tag}),
        lambda parse: parse(),
        "sentences",
        on_bad_line=on_bad_line,
        bad_lines=bad_lines,
        rule=f"{path} must hold sentences of words and tags",
    )


# A sentence still to be parsed.
_Parse = Callable[[], TaggedWords]
# What ``word`` and ``tag`` are.
_Names = Mapping[str, int | str]


def _columns(path: Path, columns: _Names) -> Iterator[_Parse]:
    numbers = columns_by_number(columns, text_suffix(path))
    for lines in _paragraphs(path):
        yield partial(_of_columns, lines, numbers["word"], numbers["tag"])


def _of_columns(lines: Sequence[Line], word: int, tag: int) -> TaggedWords:
    rows = [_cells(line, word, tag) for line in lines]
    return _sentence(rows, word - 1, tag - 1, lines[0].where)


def _conllu(path: Path, columns: _Names) -> Iterator[_Parse]:
    for lines in _paragraphs(path):
        kept = [line for line in lines if not line.text.startswith("#")]
        if kept:
            yield partial(_of_conllu, kept)


def _of_conllu(lines: Sequence[Line]) -> TaggedWords:
    rows = [cells for line in lines if (cells := _cells(line, 2, 4, 10))[0].isdecimal()]
    return _sentence(rows, 1, 3, lines[0].where)


def _jsonl(path: Path, columns: _Names) -> Iterator[_Parse]:
    for line in read_lines(path):
        yield partial(_record, line, columns)


def _record(line: Line, columns: _Names) -> TaggedWords:
    usual = {"word": "tokens", "tag": "tags"}
    keys = [key if isinstance(key, str) else usual[name] for name, key in columns.items()]
    try:
        record = json.loads(readable(line))
        words, tags = (member(record, key) for key in keys)
        if words is None or tags is None:
            raise KeyError
    except (ValueError, KeyError, AttributeError, TypeError, RecursionError):
        raise DataError(
            f'{line.where}: expected a JSON object {{"{keys[0]}": [...], "{keys[1]}": [...]}}, '
            f"found {line.text[:60]!r}."
        ) from None
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


def _paragraphs(path: Path) -> Iterator[list[Line]]:
    """The lines between blank lines."""
    lines: list[Line] = []
    for line in read_lines(path):
        if line.text.strip():
            lines.append(line)
        elif lines:
            yield lines
            lines = []
    if lines:
        yield lines


_READERS: dict[str, Callable[[Path, _Names], Iterator[_Parse]]] = {
    ".conll": _columns,
    ".conllu": _conllu,
    ".jsonl": _jsonl,
    ".tsv": _columns,
    ".txt": _columns,
}
