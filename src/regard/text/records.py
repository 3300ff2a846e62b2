"""Records with named fields from TSV and JSONL files: labelled texts, questions, points."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypedDict, TypeVar

from regard.choices import check_choice, choose
from regard.config import JsonValue
from regard.errors import DataError, SettingError
from regard.text.lines import BadLines, Line, read_lines, readable, text_suffix

ItemT = TypeVar("ItemT")
MadeT = TypeVar("MadeT")
OnBadLine = Literal["error", "skip"]
OnLong = Literal["error", "skip"]
Record = dict[str, str]


class Handling(TypedDict):
    """What becomes of lines that cannot be used, as readers take it."""

    on_bad_line: OnBadLine
    bad_lines: BadLines | None


@dataclass(frozen=True, slots=True)
class Field:
    """One thing that a record says.

    Attributes:
        name: What it is called in messages, and its key in JSONL unless its column has a name.
        column: Its column in TSV, from 1; or its key in JSONL, see ``member``.
    """

    name: str
    column: int | str

    @property
    def key(self) -> str:
        """Its key in JSONL."""
        return self.column if isinstance(self.column, str) else self.name


def read_records(
    path: Path,
    fields: Sequence[Field],
    *,
    on_bad_line: OnBadLine = "error",
    bad_lines: BadLines | None = None,
) -> Iterator[tuple[Record, str]]:
    r"""The records of one file, each with its ``file:line``.

    A TSV file is split at line ends and tabs only; no quoting is known. Every line must have as
    many columns as the first.

    Args:
        path: A ``.tsv`` or ``.jsonl`` file, which may be compressed: ``.gz``, ``.zst``; or a table,
            ``.parquet`` or ``.arrow``.
        fields: What a record must say; none may be empty.
        on_bad_line: Whether a line that cannot be used is an error, or is left out.
        bad_lines: Where lines left out are counted.

    Raises:
        DataError: The file is missing, damaged or holds no record that can be used, or a line
            cannot be used and ``on_bad_line`` is ``"error"``.
        SettingError: The file's ending does not say how to read it, or a column is named by name
            in a file that has none.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "reviews.tsv"
        >>> _ = path.write_text("1\t很好。\n0\t不好。\n", encoding="utf-8")
        >>> [record for record, _ in read_records(path, [Field("label", 1), Field("text", 2)])]
        [{'label': '1', 'text': '很好。'}, {'label': '0', 'text': '不好。'}]
    """
    parse = choose(f"the ending of {path}", text_suffix(path), _PARSERS)(fields)
    yield from usable(
        read_lines(path),
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
    """What is made of each item; one that nothing can be made of is an error, or is left out.

    Args:
        items: Lines, or what is read of them.
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
    for item in items:
        try:
            made = make(item)
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
    """The JSON object of a line.

    Raises:
        DataError: The line is not JSON, or something else than an object.
    """
    try:
        record = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise DataError(f"{where}: not JSON: {error}.") from None
    if not isinstance(record, dict):
        raise DataError(f"{where}: expected a JSON object, found {record!r}.")
    return record


def member(record: Mapping[str, JsonValue], key: str) -> JsonValue:
    """What a record holds at a key; where there is none, inside objects, at a path with dots.

    None where there is nothing.

    Example:
        >>> member({"translation": {"de": "ja", "en": "yes"}}, "translation.en")
        'yes'
    """
    if key in record:
        return record[key]
    first, dot, rest = key.partition(".")
    inner = record.get(first)
    return member(inner, rest) if dot and isinstance(inner, Mapping) else None


def columns_by_number(columns: Mapping[str, int | str], ending: str) -> dict[str, int]:
    """Columns of a file that knows no names, such as TSV.

    Args:
        columns: By what they hold.
        ending: Of the file.

    Raises:
        SettingError: One is named by name.
    """
    named = {name: column for name, column in columns.items() if isinstance(column, str)}
    for name, column in named.items():
        raise SettingError(
            f"the column of the {name} must be a number in a {ending} file; got {column!r}. "
            "Columns have names in .jsonl, .parquet and .arrow."
        )
    return {name: int(column) for name, column in columns.items()}


def record_in(text: str) -> str | dict[str, JsonValue]:
    """A text, or the JSON object that one in braces is.

    Example:
        >>> record_in('{"text": "So it is."}'), record_in("{so it is}")
        ({'text': 'So it is.'}, '{so it is}')
    """
    if not text.lstrip().startswith("{"):
        return text
    try:
        return dict(json.loads(text))
    except (ValueError, RecursionError):
        return text  # which may begin with a brace


def _tsv(fields: Sequence[Field]) -> Callable[[Line], Record]:
    columns = columns_by_number({field.name: field.column for field in fields}, ".tsv")
    last = max(columns.values())
    expected: int | None = None

    def parse(line: Line) -> Record:
        nonlocal expected
        cells = readable(line).split("\t")
        if expected is None:
            expected = max(len(cells), last)
        if len(cells) != expected:
            what = ", ".join(f"{name} in column {column}" for name, column in columns.items())
            raise DataError(
                f"{line.where}: expected {expected} columns, found {len(cells)}. It should hold "
                f"{what}."
            )
        return {
            field.name: _filled(cells[columns[field.name] - 1], field, line) for field in fields
        }

    return parse


def _jsonl(fields: Sequence[Field]) -> Callable[[Line], Record]:
    def parse(line: Line) -> Record:
        record = object_of(readable(line), line.where)
        return {field.name: _filled(_member(record, field, line), field, line) for field in fields}

    return parse


def _member(record: Mapping[str, JsonValue], field: Field, line: Line) -> str:
    value = member(record, field.key)
    if value is None and field.key not in record:
        raise DataError(
            f"{line.where}: expected the key {field.key!r}; found "
            f"{', '.join(map(repr, record)) or 'none'}. Say which it is: data.{field.name}."
        )
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise DataError(f"{line.where}: {field.name} must be text; got {value!r}.")
    return str(value)


def _filled(value: str, field: Field, line: Line) -> str:
    if not value.strip():
        raise DataError(
            f"{line.where}: the {field.name} is empty. Fill it in, or leave the line out."
        )
    return value


_PARSERS: dict[str, Callable[[Sequence[Field]], Callable[[Line], Record]]] = {
    ".jsonl": _jsonl,
    ".tsv": _tsv,
}
