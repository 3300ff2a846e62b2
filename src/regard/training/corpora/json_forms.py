"""Lines and counts as JSON holds them in the cache."""

from collections import Counter
from typing import cast

from regard.config import JsonValue
from regard.text import BadLines


def as_json_text(raw: bytes | None) -> str | None:
    """A line as JSON can hold it, whether it is UTF-8 or not."""
    return None if raw is None else raw.decode("utf-8", "surrogateescape")


def raw_of(text: str) -> bytes:
    """The line that ``as_json_text`` was given."""
    return text.encode("utf-8", "surrogateescape")


def counted(lines: BadLines) -> dict[str, JsonValue]:
    """Lines left out as JSON can hold them."""
    return {"counts": {**lines.counts}, "examples": {k: [*v] for k, v in lines.examples.items()}}


def bad_lines_of(table: JsonValue) -> BadLines:
    """Decode the arguments of ``counted``."""
    found = cast(dict[str, JsonValue], table)
    counts = Counter(cast(dict[str, int], found["counts"]))
    return BadLines(counts, cast(dict[str, list[str]], found["examples"]))
