"""Records as lines of JSON, such as the metrics of a training in ``metrics.jsonl``."""

import json
import math
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import cast

from regard.config import JsonValue, parse_json
from regard.errors import RunError, excerpt
from regard.runs.files import RunWarning, append, cut, read_file

_MOST = 2**28  # bytes


def append_record(path: Path, record: Mapping[str, object]) -> None:
    """Add a line to ``path``, or nothing of it."""
    line = json.dumps(finite(record), ensure_ascii=False, allow_nan=False) + "\n"
    append(path, line.encode(errors="replace"))


def cut_records(path: Path, length: int, *, step: int = 0) -> None:
    """Shorten a file to ``length`` bytes and whole lines; a RunWarning says which are missing."""
    content = read_file(path)[:length] if path.exists() else b""
    whole = content.rfind(b"\n") + 1
    cut(path, whole)
    if whole < length:
        warnings.warn(
            f"{path} must hold {length:,} bytes of figures, written up to update {step}; it holds "
            f"{whole:,}{_end(content[:whole])}. The others are lost, and training goes on.",
            RunWarning,
            stacklevel=4,
        )


def _end(content: bytes) -> str:
    try:
        last = parse_json(content.splitlines()[-1])
    except (IndexError, ValueError):
        return ""
    update = last.get("update") if isinstance(last, dict) else None
    return f", up to update {update}" if isinstance(update, int) else ""


def read_records(path: Path) -> list[dict[str, JsonValue]]:
    """The records of a file, none if it is missing; a last line that a kill tore is left out."""
    if not path.exists():
        return []
    records = []
    *lines, _ = read_file(path, most=_MOST).split(b"\n")
    for number, line in enumerate(lines, start=1):
        try:
            record = parse_json(line)
        except ValueError as error:
            raise RunError(f"{path}:{number} must be a line of JSON; {error}.") from error
        if not isinstance(record, dict):
            raise RunError(f"{path}:{number} must be a JSON object; got {excerpt(record)}.")
        records.append(record)
    return records


def finite(value: object) -> JsonValue:
    """``value`` with null for infinities and NaN, which JSON does not have."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {key: finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [finite(item) for item in value]
    return cast(JsonValue, value)
