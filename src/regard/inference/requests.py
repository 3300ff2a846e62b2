"""Records of programs, as tasks take them."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import cast

from regard.config import JsonValue
from regard.errors import DataError
from regard.text.reading.records import record_in
from regard.text.reading.sources import items_of, plain


def records_in(records: object) -> Sequence[object]:
    """One record or several as a sequence: of an array or a data frame its rows."""
    if isinstance(records, str | Path | Mapping | int | float):
        return [records]
    return records if isinstance(records, list | tuple) else items_of(records)


def typed_record(value: object, where: str) -> str | Mapping[str, JsonValue]:
    """A record as tasks take it, where a text in braces is an object of JSON."""
    record = record_of(value, where)
    return record_in(record) if isinstance(record, str) else record


def record_of(record: object, where: str) -> str | dict[str, JsonValue]:
    """A record as tasks take it: a line, or an object with names."""
    is_data = isinstance(record, str | Mapping | int | float | list | tuple)
    value = plain(record) if is_data or hasattr(record, "tolist") else None
    if isinstance(value, str):
        return value
    if isinstance(value, dict):
        return cast("dict[str, JsonValue]", value)
    cells = value if isinstance(value, list) else [value]
    if cells and all(isinstance(cell, list) for cell in cells):
        return {"pixels": cast("list[JsonValue]", cells)}
    if not cells or not all(isinstance(cell, str | int | float) for cell in cells):
        raise DataError(
            f"{where} must be a text, an object of names and values, or a row; got "
            f"{type(record).__name__} {str(record)[:60]!r}."
        )
    return "\t".join(" ".join(str(cell).split()) for cell in cells)
