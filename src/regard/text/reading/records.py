"""Records with named fields from TSV and JSONL files: labelled texts, questions, points."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal, TypedDict, TypeVar, Unpack, cast

from regard.checks import check_choice, choose
from regard.config import JsonValue
from regard.errors import DataError
from regard.text.reading.annotations import LEFT_OUT, REJECTED, UNANNOTATED, as_record
from regard.text.reading.foreign import UNTRANSLATED
from regard.text.reading.forms import text_suffix
from regard.text.reading.lines import BLANK, BadLines, Line, filled, read_lines, readable
from regard.text.reading.tables import Field, read_table, row_splitter

# Characters shown of a line that is no object.
_SHOWN = 60
# Texts that pandas and Excel write for a missing value.
_NO_VALUE = ("nan", "#n/a")
ItemT = TypeVar("ItemT")
MadeT = TypeVar("MadeT")
OnBadLine = Literal["error", "skip"]
Record = dict[str, str]

# Why a pair without an agreed label is skipped, as SNLI has them, and its label there.
UNLABELLED = "pairs without an agreed label"
_GOLD, _NO_GOLD = "gold_label", "-"
# Reasons to leave lines out that are no fault of a file.
_NO_LABELS = (UNLABELLED, REJECTED, UNANNOTATED, UNTRANSLATED)
HARMLESS = (BLANK, *_NO_LABELS)


class Handling(TypedDict, total=False):
    """Handling of unusable lines: an error unless they are skipped, and where they are counted."""

    on_bad_line: OnBadLine
    bad_lines: BadLines | None


def read_records(
    path: Path, fields: Sequence[Field], **handling: Unpack[Handling]
) -> Iterator[tuple[Record, str]]:
    """Read the records of a ``.tsv``, ``.csv`` or ``.jsonl`` file, each with its ``file:line``."""
    lines, parse = choose(f"the ending of {path}", text_suffix(path), _READERS)(path, fields)
    rule = f"{path} must hold records of {', '.join(field.name for field in fields)}"
    yield from usable(
        lines, lambda line: (parse(line), line.where), "records", rule=rule, **handling
    )


def usable(
    items: Iterable[ItemT],
    make: Callable[[ItemT], MadeT],
    name: str | None,
    *,
    rule: str | None = None,
    on_bad_line: OnBadLine = "error",
    bad_lines: BadLines | None = None,
) -> Iterator[MadeT]:
    """Convert each item; unusable ones are errors or counted, and ``rule`` breaks if all are."""
    check_choice("on_bad_line", on_bad_line, OnBadLine)
    is_empty, first = True, ""
    for item in filled(items, bad_lines):
        try:
            made = make(item)
        except DataError as error:
            is_unlabelled = error.reason in _NO_LABELS
            if on_bad_line == "error" and not is_unlabelled:
                raise
            if bad_lines is not None:
                bad_lines.add((not is_unlabelled and name) or str(error.reason), str(error))
            first = first or f" {error}"
            continue
        is_empty = False
        yield made
    if is_empty and rule is not None:
        raise DataError(f"{rule}; got none that can be used.{first}")


def object_of(text: str, where: str) -> dict[str, JsonValue]:
    """Parse the JSON object of a line, or the record of an annotation tool: see ``as_record``."""
    try:
        record = as_record(json.loads(text))
    except (ValueError, RecursionError) as error:
        raise DataError(f"{where}: not JSON: {error}.", "JSON") from None
    if not isinstance(record, dict):
        raise DataError(f"{where}: expected a JSON object, found {text[:_SHOWN]}.", "JSON")
    return record


def example_of(line: Line) -> dict[str, JsonValue]:
    """The object of a line to learn from; DataError of one whose annotation was rejected."""
    record = object_of(readable(line), line.where)
    if isinstance(reason := record.get(LEFT_OUT), str):
        raise DataError(f"{line.where}: {reason}.", reason)
    return record


def value_at(record: Mapping[str, JsonValue], *keys: str) -> JsonValue:
    """The first value at any of these keys, which may be dotted paths into inner objects."""
    return next((value for key in keys if (value := _at(record, key)) is not None), None)


def member(record: Mapping[str, JsonValue], field: Field) -> JsonValue:
    """Value of a field in a record, by the first of its names; None if none is there."""
    return value_at(record, *field.keys)


def _at(record: Mapping[str, JsonValue], key: str) -> JsonValue:
    if key in record:
        return record[key]
    first, dot, remainder = key.partition(".")
    inner = record.get(first)
    return _at(inner, remainder) if dot and isinstance(inner, Mapping) else None


def record_in(text: str) -> str | dict[str, JsonValue]:
    """Parse a text in braces as a JSON object, if it is one."""
    if not text.lstrip().startswith("{"):
        return text
    try:
        return dict(cast(dict[str, JsonValue], as_record(json.loads(text))))
    except (ValueError, RecursionError):
        return text  # which may begin with a brace


# The lines of a file, and the parser of a record from one.
_Read = tuple[Iterable[Line], Callable[[Line], Record]]


def _table(path: Path, fields: Sequence[Field]) -> _Read:
    table = read_table(path, fields)
    gold = table.header.index(_GOLD) if table.header and _GOLD in table.header else None

    def wrong_columns(line: Line, count: int, expected: int) -> DataError:
        names = ", ".join(f"{name} in column {n}" for name, n in table.columns.items())
        return DataError(
            f"{line.where}: expected {expected} columns, found {count}. It should hold {names}."
        )

    split = row_splitter(table, wrong_columns)

    def parse(line: Line) -> Record:
        cells = split(line)
        if gold is not None and "label" in table.columns:
            _check_labelled(cells[gold], line)
        return {name: _filled(cells[n - 1], name, line) for name, n in table.columns.items()}

    return table.lines, parse


def _jsonl(path: Path, fields: Sequence[Field]) -> _Read:
    has_label = any(field.name == "label" for field in fields)

    def parse(line: Line) -> Record:
        record = example_of(line)
        if has_label:
            _check_labelled(record.get(_GOLD), line)
        return {f.name: _filled(_text(record, f, line), f.name, line) for f in fields}

    return read_lines(path), parse


def _check_labelled(label: object, line: Line) -> None:
    if label == _NO_GOLD:
        raise DataError(f"{line.where}: its {_GOLD} is {_NO_GOLD}.", UNLABELLED)


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
    if value is None:
        return ""
    if isinstance(value, bool) and field.name == "label":
        return json.dumps(value)
    if isinstance(value, bool) or not isinstance(value, kinds):
        raise DataError(f"{line.where}: {field.name} must be text; got {value!r}.")
    return str(value)


def _filled(value: str, name: str, line: Line) -> str:
    if not value.strip():
        raise DataError(f"{line.where}: the {name} is empty. Fill it in, or leave the line out.")
    if name == "label" and value.strip().casefold() in _NO_VALUE:
        raise DataError(
            f"{line.where}: the label is {value.strip()}, which says that there is none. Fill it "
            "in, or leave such lines out: --on-bad-line skip."
        )
    return value


_READERS: dict[str, Callable[[Path, Sequence[Field]], _Read]] = {
    ".csv": _table,
    ".jsonl": _jsonl,
    ".tsv": _table,
}
