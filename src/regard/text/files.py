"""The plain files a tokenizer is kept in: read with the file named when something is wrong."""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import TypeVar

from regard.config import JsonValue, parse_json, read_file
from regard.errors import RunError, SettingError, excerpt
from regard.fields import checked_table

TableT = TypeVar("TableT", bound=Mapping[str, object])

FORMAT = 1
TABLE_FILE = "tokenizer.json"


def write_plain(folder: Path, table: Mapping[str, JsonValue], name: str = TABLE_FILE) -> None:
    """Write ``table`` and the format's number as JSON into ``folder``, which is made if need be."""
    folder.mkdir(parents=True, exist_ok=True)
    text = json.dumps({"format": FORMAT, **table}, ensure_ascii=False, indent=1)
    (folder / name).write_text(text + "\n", encoding="utf-8")


def read_plain(path: Path, *, digest: str | None = None) -> bytes:
    """Return the bytes of a file, whose SHA-256 must be ``digest``, or raise RunError."""
    try:
        data = read_file(path)
    except FileNotFoundError:
        raise RunError(f"{path} must exist; it does not. Is the folder complete?") from None
    except OSError as error:
        raise RunError(f"{path} must be readable; got: {error.strerror}.") from error
    if digest is not None and hashlib.sha256(data).hexdigest() != digest:
        raise RunError(f"{path} must be as it was written; its checksum differs. It is damaged.")
    return data


def read_saved(folder: Path, name: str, kind: type[TableT]) -> TableT:
    """Read a table of a known kind, or raise RunError."""
    return known(read_table(folder, name), kind, folder / name)


def known(table: Mapping[str, JsonValue], kind: type[TableT], path: Path) -> TableT:
    """Check that a table holds what its kind says, or raise RunError."""
    try:
        return checked_table(str(path), table, kind)
    except SettingError as error:
        raise RunError(f"{error} It is damaged.") from error


def read_table(folder: Path, name: str = TABLE_FILE) -> dict[str, JsonValue]:
    """Read a table of ``write_plain``; one that is damaged or of a newer format is a RunError."""
    path = folder / name
    try:
        table = parse_json(read_plain(path))
    except ValueError as error:
        raise RunError(f"{path} must hold JSON; {error}. It is damaged.") from error
    if not isinstance(table, dict) or "format" not in table:
        raise RunError(f"{path} must hold a table with a format; it does not. It is damaged.")
    if table["format"] != FORMAT:
        raise RunError(
            f"{path} must have format {FORMAT}; got {excerpt(table['format'])}. "
            f"A newer version of regard wrote it: install that version."
        )
    return table
