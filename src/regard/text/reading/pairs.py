"""Sentence pairs from files: two files of lines, TSV, JSONL."""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import chain, zip_longest
from pathlib import Path
from typing import Unpack

from regard.checks import as_path, check_choice, check_kind, choose
from regard.config import JsonValue
from regard.errors import DataError, SettingError
from regard.fields import check_fields
from regard.text.normalization import normalize
from regard.text.reading.foreign import check_no_markup
from regard.text.reading.forms import text_suffix
from regard.text.reading.lines import BLANK, BadLines, Line, read_lines, readable
from regard.text.reading.records import Handling, OnBadLine, example_of, usable, value_at
from regard.text.reading.tables import Field, row_splitter, table_of

# The first two columns, as each command is told them.
_COLUMNS_CURE = "the source's first: --set 'data.columns=[1,2]'"


@dataclass(frozen=True, slots=True)
class Pair:
    r"""A sentence and its translation, both normalised.

    Attributes:
        source: The sentence to translate.
        target: A right translation.
        references: Every right translation, ``target`` first.
        where: ``file:line`` it was read at.
        target_where: The same of the target, where that is in a file of its own.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "pairs.tsv"
        >>> _ = path.write_text("你好\tHello\n你好\tHi\n", encoding="utf-8")
        >>> (pair,) = read_pairs(path, layout=PairLayout(merge_references=True))
        >>> pair.source, pair.target, pair.references
        ('你好', 'Hello', ('Hello', 'Hi'))
    """

    source: str
    target: str
    references: tuple[str, ...]
    where: str
    target_where: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class PairLayout:
    """The columns of the sides of a pair in a file.

    Attributes:
        columns: Columns of source, target and further references, counted from 1, or their
            names in the header. Of JSONL and tables (Parquet, Arrow), names are the keys, which are
            else "source", "target" and "references", a list of all right translations;
            ``translation.en`` is the key in an object. Empty means a file of exactly two columns,
            or of more whose header says which is which.
        merge_references: Whether all pairs with one source become one pair with several
            references, as for evaluation. Off, each is a pair of its own, as for training.

    Raises:
        SettingError: ``columns`` names one alone, the same one twice, one below 1, or some
            by number and some by name.

    Example:
        >>> layout = PairLayout(columns=("translation.zh", "translation.en"))
        >>> layout.keys
        ('translation.zh', 'translation.en', 'references')
        >>> PairLayout(columns=(2, 2))
        Traceback (most recent call last):
        regard.errors.SettingError: columns must differ from each other; got [2, 2]. Name both, the
        source's first: --set 'data.columns=[1,2]'.
    """

    columns: tuple[int | str, ...] = ()
    merge_references: bool = False

    @property
    def fields(self) -> tuple[Field, ...]:
        """The source, the target and further references, as tables and objects have them."""
        columns = self.columns or (1, 2)
        names = ("source", "target", *(f"reference {n}" for n in range(2, len(columns))))
        is_fixed = bool(self.columns)
        return tuple(
            Field(name, column, is_fixed) for name, column in zip(names, columns, strict=True)
        )

    def __post_init__(self) -> None:
        check_fields(self)
        if len(self.columns) == 1:
            raise SettingError(
                f"columns must name the source's and the target's column; got {self.columns[0]} "
                f"alone. Name both, {_COLUMNS_CURE}."
            )
        if len({type(column) for column in self.columns}) > 1:
            raise SettingError(
                f"columns must all be numbers, or all names; got {list(self.columns)}."
            )
        if any(isinstance(column, int) and column < 1 for column in self.columns):
            raise SettingError(
                f"columns must be at least 1; got {list(self.columns)}. The first column is 1."
            )
        if len(set(self.columns)) < len(self.columns):
            raise SettingError(
                f"columns must differ from each other; got {list(self.columns)}. "
                f"Name both, {_COLUMNS_CURE}."
            )

    @property
    def keys(self) -> tuple[str, ...]:
        """Keys of the source, the target and further references in JSONL."""
        names = tuple(column for column in self.columns if isinstance(column, str))
        return names if len(names) > 2 else (*(names or ("source", "target")), "references")


def read_pairs(
    source: str | Path,
    target: str | Path | None = None,
    *,
    layout: PairLayout | None = None,
    on_bad_line: OnBadLine = "error",
    bad_lines: BadLines | None = None,
) -> Iterator[Pair]:
    r"""The sentence pairs of one file, or of two whose lines belong together.

    They are read as they are asked for, so a message about line 118 comes when it is reached.

    Args:
        source: A ``.tsv``, ``.csv`` or ``.jsonl`` file, or one of Arrow's tables, ``.parquet`` or
            ``.arrow``; or, with ``target``, the sentences of one side. Each may be compressed:
            ``.gz``, ``.zst``. How rows and headers are read is in ``read_table``.
        target: The translations of the lines of ``source``, line by line.
        layout: Where each side is. None reads two columns, or the usual keys.
        on_bad_line: Whether a line that cannot be used is an error, or is left out.
        bad_lines: Where lines left out are counted.

    Raises:
        DataError: A file is missing, empty or damaged; the two have different numbers of lines; or
            a line cannot be used and ``on_bad_line`` is ``"error"``.
        SettingError: The ending of ``source`` does not say how to read it.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "pairs.tsv"
        >>> _ = path.write_text("我爱中国。\tI love China.\n", encoding="utf-8")
        >>> [(pair.source, pair.target) for pair in read_pairs(path)]
        [('我爱中国。', 'I love China.')]
    """
    check_choice("on_bad_line", on_bad_line, OnBadLine)
    source, layout = as_path("source", source), layout or PairLayout()
    check_kind("layout", layout, PairLayout)
    if bad_lines is not None:
        check_kind("bad_lines", bad_lines, BadLines)
    skipped = BadLines()  # of these files; those of the caller may be of others too
    handling: Handling = {"on_bad_line": on_bad_line, "bad_lines": skipped}
    if target is not None:
        sides = source, as_path("target", target)
        pairs = usable(_side_by_side(*sides), _from_lines, None, **handling)
    else:
        ending = text_suffix(source)
        read = choose(f"the ending of {source}", ending, _READERS)
        lines, parse = read(read_lines(source), ending, layout)
        pairs = usable(lines, parse, None, **handling)
    is_empty = True
    try:
        for pair in merged(pairs) if layout.merge_references else pairs:
            is_empty = False
            yield pair
    finally:
        if bad_lines is not None:
            bad_lines.merge(skipped)
    if is_empty:
        raise DataError(_nothing_usable(source, skipped))


def pairs_of_lines(
    lines: Sequence[Line],
    targets: Sequence[Line] | None = None,
    *,
    ending: str,
    header: Line,
    layout: PairLayout | None = None,
    **handling: Unpack[Handling],
) -> Iterator[Pair]:
    """Pairs of some lines of a file, of which none need be usable; ``header`` is its first line."""
    if targets is not None:
        both = zip(lines, targets, strict=True)
        yield from usable(both, _from_lines, None, **handling)
        return
    read = choose(f"the ending of {header.where}", ending, _READERS)
    rows, parse = read([header], ending, layout or PairLayout())
    if not list(rows):  # it names the columns
        lines = [line for line in lines if line.where != header.where]
    else:
        with suppress(DataError):
            parse(header)
    yield from usable(lines, parse, None, **handling)


def _nothing_usable(path: Path, bad_lines: BadLines) -> str:
    bad_lines = bad_lines.without(BLANK)
    if not bad_lines.total:
        return f"{path} must hold sentence pairs; got an empty file."
    reasons = ", ".join(f"{reason}: {count}" for reason, count in bad_lines.counts.items())
    first = bad_lines.examples[next(iter(bad_lines.counts))][0]
    return (
        f"{path} must hold sentence pairs; got only lines that cannot be used ({reasons}). {first}"
    )


def merged(pairs: Iterable[Pair]) -> list[Pair]:
    """The pairs, those with one source as one with several references."""
    by_source: dict[str, Pair] = {}
    for pair in pairs:
        first = by_source.setdefault(pair.source, pair)
        references = tuple(dict.fromkeys([*first.references, *pair.references]))
        by_source[pair.source] = replace(first, references=references)
    return list(by_source.values())


def _side_by_side(source: Path, target: Path) -> Iterator[tuple[Line, Line]]:
    pairs = zip_longest(read_lines(source), read_lines(target))
    for number, (source_line, target_line) in enumerate(pairs):
        if number == 0 and source_line is not None:
            check_no_markup(source, source_line.text)
        if source_line is None or target_line is None:
            remaining = chain([(source_line, target_line)], pairs)
            are_filled = [any(line and line.text.strip() for line in pair) for pair in remaining]
            if not any(are_filled):
                return  # blank lines end one of them
            longer = number + len(are_filled)
            counts = (number, longer) if source_line is None else (longer, number)
            raise DataError(
                f"{source} and {target} must have as many lines as each other; got {counts[0]} "
                f"and {counts[1]}. Line n of one must translate line n of the other."
            )
        yield source_line, target_line


def _from_lines(lines: tuple[Line, Line]) -> Pair:
    source, target = (readable(line) for line in lines)
    return _pair(source, [target], lines[0].where, target_where=lines[1].where)


# The lines of a file, and the parser of a pair from one.
_Read = tuple[Iterable[Line], Callable[[Line], Pair]]


def _table(lines: Iterable[Line], ending: str, layout: PairLayout) -> _Read:
    """Reads rows of columns; if they were chosen, the first line says how many there are."""
    which = f"Say which to read, {_COLUMNS_CURE}."
    table = table_of(lines, ending, layout.fields, cure=which)
    sign = "delimiter" if ending == ".csv" else "tab"

    def wrong_columns(line: Line, count: int, expected: int) -> DataError:
        if count > 1 and line.where.endswith(":1"):
            cure = which
        elif count < expected:
            cure = f"A {sign} must stand between the sentences."
        else:
            cure = f"Is there a {sign} inside a sentence?"
        message = f"{line.where}: expected {expected} columns, found {count}. {cure}"
        return DataError(message, "columns")

    split = row_splitter(table, wrong_columns, None if layout.columns else 2)

    def parse(line: Line) -> Pair:
        cells = split(line)
        source, *targets = (cells[column - 1] for column in table.columns.values())
        return _pair(source, targets, line.where)

    return table.lines, parse


def _jsonl(lines: Iterable[Line], ending: str, layout: PairLayout) -> _Read:
    def parse(line: Line) -> Pair:
        record = example_of(line)
        source_key, target_key, *more_keys = layout.keys
        references = [text for key in more_keys for text in _texts(record, key, line)]
        targets = _texts(record, target_key, line) or references[:1]
        sources = _texts(record, source_key, line)
        if not sources:
            raise _no_text("source", (source_key,), record, line)
        if not targets:
            raise _no_text("target", (target_key, *more_keys), record, line)
        return _pair(sources[0], [*targets, *references], line.where)

    return lines, parse


def _texts(record: dict[str, JsonValue], key: str, line: Line) -> list[str]:
    """The text, or list of texts, at ``key``; empty if there is no such key, or nothing there."""
    value = value_at(record, key)
    members = [] if value is None else value if isinstance(value, list) else [value]
    texts = [text for text in members if isinstance(text, str)]
    if len(texts) < len(members):
        raise DataError(f"{line.where}: {key} must be text; got {value!r}.", "not text")
    return texts


def _no_text(side: str, keys: Sequence[str], record: dict[str, JsonValue], line: Line) -> DataError:
    """Error where none of the ``keys`` of a side gives a text."""
    present = [key for key in keys if key in record]
    if present:
        return DataError(
            f"{line.where}: {present[0]} must hold text; got {json.dumps(record[present[0]])}. "
            f"Write the sentence there, or take the line out.",
            f"empty {side}",
        )
    return DataError(
        f"{line.where}: expected the key {keys[0]!r}; found "
        f"{', '.join(map(repr, record)) or 'none'}. Give the {side} the key {keys[0]!r}, or say "
        "which it has: data.columns.",
        "missing key",
    )


def _pair(source: str, targets: list[str], where: str, target_where: str | None = None) -> Pair:
    source = normalize(source)
    references = tuple(dict.fromkeys(text for target in targets if (text := normalize(target))))
    if not source:
        raise DataError(f"{where}: the source is empty.", "empty source")
    if not normalize(targets[0]):
        raise DataError(f"{target_where or where}: the target is empty.", "empty target")
    return Pair(source, references[0], references, where, target_where)


_READERS: dict[str, Callable[[Iterable[Line], str, PairLayout], _Read]] = {
    ".csv": _table,
    ".jsonl": _jsonl,
    ".tsv": _table,
}
