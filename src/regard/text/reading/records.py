"""Records with named fields from TSV and JSONL files: labelled texts, questions, points."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal, TypedDict, TypeVar

from regard.choices import check_choice, choose
from regard.config import JsonValue
from regard.errors import DataError
from regard.text.reading.lines import (
    BLANK,
    BadLines,
    Line,
    filled,
    read_lines,
    readable,
    text_suffix,
)
from regard.text.reading.tables import Field, cells_of_row, read_table

# Characters shown of a line that is no object.
_SHOWN = 60
ItemT = TypeVar("ItemT")
MadeT = TypeVar("MadeT")
OnBadLine = Literal["error", "skip"]
OnLong = Literal["error", "skip"]
Record = dict[str, str]
# The lines of a file, and what makes a record of one.
_Read = tuple[Iterable[Line], Callable[[Line], Record]]


# Why a pair is left out that its judges did not agree about, as SNLI has them, and its label there.
UNLABELLED = "pairs without an agreed label"
_GOLD, _NO_GOLD = "gold_label", "-"


# Reasons to leave lines out that are no fault of a file.
HARMLESS = (BLANK, UNLABELLED)


class _UnlabelledError(DataError):
    """A record says of itself that it has no label: it is left out, and no error."""


class Handling(TypedDict):
    """Handling of unusable lines: ``error`` or ``skip``."""

    on_bad_line: OnBadLine
    bad_lines: BadLines | None


def read_records(
    path: Path,
    fields: Sequence[Field],
    *,
    on_bad_line: OnBadLine = "error",
    bad_lines: BadLines | None = None,
) -> Iterator[tuple[Record, str]]:
    r"""The records of one file, each with its ``file:line``.

    Every row of a table must have as many columns as the first; how tables are read, and what a
    header says, is in ``read_table``.

    Args:
        path: A ``.tsv``, ``.csv`` or ``.jsonl`` file, which may be compressed: ``.gz``, ``.zst``;
            or a table of Arrow's, ``.parquet`` or ``.arrow``, whose columns are as keys of JSONL.
        fields: What a record must say; none may be empty.
        on_bad_line: Whether a line that cannot be used is an error, or is left out.
        bad_lines: Where lines left out are counted.

    Raises:
        DataError: The file is missing, damaged or holds no record that can be used, or a line
            cannot be used and ``on_bad_line`` is ``"error"``.
        SettingError: The file's ending does not say how to read it.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "reviews.tsv"
        >>> _ = path.write_text("1\t很好。\n0\t不好。\n", encoding="utf-8")
        >>> [record for record, _ in read_records(path, [Field("label", 1), Field("text", 2)])]
        [{'label': '1', 'text': '很好。'}, {'label': '0', 'text': '不好。'}]
    """
    lines, parse = choose(f"the ending of {path}", text_suffix(path), _READERS)(path, fields)
    yield from usable(
        lines,
        lambda line: (parse(line), line.where),
        "records",
        on_bad_line=on_bad_line,
        bad_lines=bad_lines,
        rule=f"{path} must hold records of {', '.join(field.name for field in fields)}",
    )


def usable(
    items: Iterable[ItemT],
    make: Callable[[ItemT], MadeT],
    name: str,
    *,
    on_bad_line: OnBadLine,
    bad_lines: BadLines | None,
    rule: str | None = None,
) -> Iterator[MadeT]:
    """Convert each item; one that cannot be converted is an error, or is skipped.

    Args:
        items: Lines, of which blank ones are left out, or what is read of them.
        make: Makes one thing of one item, or raises a DataError.
        name: What items left out are counted as.
        on_bad_line: Whether such an item is an error, or is left out.
        bad_lines: Where items left out are counted.
        rule: What is broken where nothing at all is made; None lets that be.

    Raises:
        DataError: An item cannot be used and ``on_bad_line`` is ``"error"``, or the rule is broken.
        SettingError: ``on_bad_line`` is neither.
    """
    check_choice("on_bad_line", on_bad_line, OnBadLine)
    is_empty, first = True, ""
    for item in filled(items, [] if bad_lines is None else [bad_lines]):
        try:
            made = make(item)
        except _UnlabelledError as error:
            if bad_lines is not None:
                bad_lines.add(UNLABELLED, str(error))
            continue
        except DataError as error:
            if on_bad_line == "error":
                raise
            if bad_lines is not None:
                bad_lines.add(name, str(error))
            first = first or f" {error}"
            continue
        is_empty = False
        yield made
    if is_empty and rule is not None:
        raise DataError(f"{rule}; got none that can be used.{first}")


def object_of(text: str, where: str) -> dict[str, JsonValue]:
    """Parse the JSON object of a line."""
    try:
        record = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise DataError(f"{where}: not JSON: {error}.") from None
    if not isinstance(record, dict):
        raise DataError(f"{where}: expected a JSON object, found {text[:_SHOWN]}.")
    return record


def found_at(record: Mapping[str, JsonValue], *keys: str) -> JsonValue:
    """The first value at any of these keys, which may be dotted paths into inner objects."""
    return next((value for key in keys if (value := _at(record, key)) is not None), None)


def member(record: Mapping[str, JsonValue], field: Field) -> JsonValue:
    """Value of a field in a record, by the first of its names; None if none is there."""
    return found_at(record, *field.keys)


def _at(record: Mapping[str, JsonValue], key: str) -> JsonValue:
    if key in record:
        return record[key]
    first, dot, rest = key.partition(".")
    inner = record.get(first)
    return _at(inner, rest) if dot and isinstance(inner, Mapping) else None


def record_in(text: str) -> str | dict[str, JsonValue]:
    """Parse a text in braces as a JSON object, if it is one."""
    if not text.lstrip().startswith("{"):
        return text
    try:
        return dict(json.loads(text))
    except (ValueError, RecursionError):
        return text  # which may begin with a brace


def _table(path: Path, fields: Sequence[Field]) -> _Read:
    table = read_table(path, fields)
    last = max(table.columns.values())
    expected = None if table.header is None else len(table.header)
    is_gold = table.header and "label" in table.columns and _GOLD in table.header
    gold = table.header.index(_GOLD) if table.header and is_gold else None

    def parse(line: Line) -> Record:
        nonlocal expected
        if expected is None:
            expected = max(len(readable(line).split("\t")), last)
        cells = cells_of_row(line, expected)
        if len(cells) != expected:
            what = ", ".join(f"{name} in column {n}" for name, n in table.columns.items())
            raise DataError(
                f"{line.where}: expected {expected} columns, found {len(cells)}. It should hold "
                f"{what}."
            )
        if gold is not None:
            _check_labelled({_GOLD: cells[gold]}, line)
        return {name: _filled(cells[n - 1], name, line) for name, n in table.columns.items()}

    return table.lines, parse


def _jsonl(path: Path, fields: Sequence[Field]) -> _Read:
    has_label = any(field.name == "label" for field in fields)

    def parse(line: Line) -> Record:
        record = object_of(readable(line), line.where)
        if has_label:
            _check_labelled(record, line)
        return {f.name: _filled(_text(record, f, line), f.name, line) for f in fields}

    return read_lines(path), parse


def _check_labelled(record: Mapping[str, object], line: Line) -> None:
    if record.get(_GOLD) == _NO_GOLD:
        raise _UnlabelledError(f"{line.where}: its {_GOLD} is {_NO_GOLD}.")


def _text(record: Mapping[str, JsonValue], field: Field, line: Line) -> str:
    value = member(record, field)
    if isinstance(value, list) and field.name == "label":
        if len(value) != 1:
            raise DataError(
                f"{line.where}: a text must have one label; got {len(value)} "
                f"({', '.join(map(str, value[:_SHOWN]))}). Keep one, or leave such texts out."
            )
        value = value[0]
    if value is None and not any(key in record for key in field.keys):
        raise DataError(
            f"{line.where}: expected the key {field.keys[0]!r}; found "
            f"{', '.join(map(repr, record)) or 'none'}. Say which it is: "
            f"--set data.{field.name}=KEY."
        )
    kinds = (str, int, float) if field.name == "label" else (str, int)  # 4.0 stars
    if isinstance(value, bool) or not isinstance(value, kinds):
        raise DataError(f"{line.where}: {field.name} must be text; got {value!r}.")
    return str(value)


def _filled(value: str, name: str, line: Line) -> str:
    if not value.strip():
        raise DataError(f"{line.where}: the {name} is empty. Fill it in, or leave the line out.")
    return value


_READERS: dict[str, Callable[[Path, Sequence[Field]], _Read]] = {
    ".csv": _table,
    ".jsonl": _jsonl,
    ".tsv": _table,
}
