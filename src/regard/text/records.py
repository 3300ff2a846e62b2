"""Records with named fields from TSV and JSONL files: labelled texts, questions, points."""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from regard.choices import choose
from regard.errors import DataError
from regard.text.lines import BadLines, Line, read_lines, readable, text_suffix

OnBadLine = Literal["error", "skip"]
Record = dict[str, str]


@dataclass(frozen=True, slots=True)
class Field:
    """One thing that a record says.

    Attributes:
        name: Its key in JSONL, and in messages.
        column: Its column in TSV, from 1.
    """

    name: str
    column: int


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
        path: A ``.tsv`` or ``.jsonl`` file, which may be compressed: ``.gz``, ``.zst``.
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
    parse = choose(f"the ending of {path}", text_suffix(path), _PARSERS)(fields)
    is_empty = True
    for line in read_lines(path):
        try:
            record = parse(line)
        except DataError as error:
            if on_bad_line == "error":
                raise
            if bad_lines is not None:
                bad_lines.add("records", str(error))
            continue
        is_empty = False
        yield record, line.where
    if is_empty:
        names = ", ".join(field.name for field in fields)
        raise DataError(f"{path} must hold records of {names}; got none that can be used.")


def _tsv(fields: Sequence[Field]) -> Callable[[Line], Record]:
    last = max(field.column for field in fields)
    expected: int | None = None

    def parse(line: Line) -> Record:
        nonlocal expected
        cells = readable(line).split("\t")
        if expected is None:
            expected = max(len(cells), last)
        if len(cells) != expected:
            what = ", ".join(f"{field.name} in column {field.column}" for field in fields)
            raise DataError(
                f"{line.where}: expected {expected} columns, found {len(cells)}. It should hold "
                f"{what}."
            )
        return {field.name: _filled(cells[field.column - 1], field, line) for field in fields}

    return parse


def _jsonl(fields: Sequence[Field]) -> Callable[[Line], Record]:
    def parse(line: Line) -> Record:
        try:
            record = json.loads(readable(line))
        except (ValueError, RecursionError) as error:
            raise DataError(f"{line.where}: not JSON: {error}.") from None
        if not isinstance(record, dict):
            raise DataError(f"{line.where}: expected a JSON object, found {record!r}.")
        return {field.name: _filled(_member(record, field, line), field, line) for field in fields}

    return parse


def _member(record: dict[str, object], field: Field, line: Line) -> str:
    if field.name not in record:
        raise DataError(
            f"{line.where}: expected the key {field.name!r}; found "
            f"{', '.join(map(repr, record)) or 'none'}."
        )
    value = record[field.name]
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise DataError(f"{line.where}: {field.name} must be text; got {value!r}.")
    return str(value)


def _filled(value: str, field: Field, line: Line) -> str:
    if not value.strip():
        raise DataError(f"{line.where}: the {field.name} is empty.")
    return value


_PARSERS: dict[str, Callable[[Sequence[Field]], Callable[[Line], Record]]] = {
    ".jsonl": _jsonl,
    ".tsv": _tsv,
}
