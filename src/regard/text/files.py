"""The plain files a tokenizer is kept in: read with the file named when something is wrong."""

import hashlib
import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import TypeVar

from regard.config import JsonValue, parse_json, read_file
from regard.errors import RunError, SettingError, excerpt
from regard.fields import checked_table
from regard.files import write_file

TableT = TypeVar("TableT", bound=Mapping[str, object])

FORMAT = 1
_MOST = 2**28  # bytes
TABLE_FILE = "tokenizer.json"


def write_plain(folder: Path, table: Mapping[str, JsonValue], name: str = TABLE_FILE) -> None:
    """Write ``table`` and the format's number as JSON into ``folder``, which is made if need be."""
    folder.mkdir(parents=True, exist_ok=True)
    text = json.dumps({"format": FORMAT, **table}, ensure_ascii=False, indent=1)
    write_file(folder / name, f"{text}\n".encode())


def read_plain(path: Path, *, digest: str | None = None) -> bytes:
    """Return the bytes of a file, whose SHA-256 must be ``digest``, or raise RunError."""
    try:
        data = read_file(path, most=_MOST)
    except FileNotFoundError:
        raise RunError(f"{path} must exist; it does not. Is the folder complete?") from None
    except OSError as error:
        raise RunError(f"{path} must be readable; got: {error.strerror}.") from error
    if digest is not None and hashlib.sha256(data).hexdigest() != digest:
        raise RunError(f"{path} must be as it was written; its checksum differs. It is damaged.")
    return data


def read_saved(folder: Path, name: str, kind: type[TableT]) -> TableT:
    """Read a table of a known kind, or raise RunError."""
    return parse_saved(read_table(folder, name), kind, folder / name)


def parse_saved(table: Mapping[str, JsonValue], kind: type[TableT], path: Path) -> TableT:
    """Check that a table fits its kind, each word of a list once, or raise RunError."""
    try:
        checked = checked_table(str(path), table, kind)
    except SettingError as error:
        raise RunError(f"{error} It is damaged.") from error
    for name, values in checked.items():
        words = values if isinstance(values, list) else []
        counts = Counter(word for word in words if isinstance(word, str))
        if twice := [word for word, count in counts.items() if count > 1]:
            raise RunError(
                f"{name} of {path} must hold each once; got {excerpt(twice[0])} twice. "
                "It is damaged."
            )
    return checked


def read_table(folder: Path, name: str = TABLE_FILE) -> dict[str, JsonValue]:
    """Read a table of ``write_plain``; one that is damaged or of a newer format is a RunError."""
    path = folder / name
    try:
        table = parse_json(read_plain(path))
    except ValueError as error:
        raise RunError(f"{path} must hold JSON; {error}. It is damaged.") from error
    if not isinstance(table, dict) or "format" not in table:
        raise RunError(f"{path} must hold a table with a format; it does not. It is damaged.")
    made = table["format"]
    if type(made) is not int or made != FORMAT:
        is_newer = type(made) is int and made > FORMAT
        cure = "A newer version of regard wrote it: install that version." if is_newer else ""
        raise RunError(
            f"{path} must have format {FORMAT}; got {excerpt(made)}. {cure or 'It is damaged.'}"
        )
    return table
