"""Messages between a program and its encoding processes: JSON and arrays, no code."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, cast

import numpy as np

from regard.config import JsonValue
from regard.tasks.streaming import Chunk
from regard.text import BadLines

Table = Mapping[str, object]
Message = tuple[dict[str, JsonValue], list[np.ndarray]]


def send(into: IO[bytes], table: Table, arrays: Sequence[np.ndarray] = ()) -> None:
    """Write a message: a line of JSON, which says what arrays follow it.

    Args:
        into: Where to.
        table: What JSON can hold.
        arrays: Of one axis each.
    """
    follow = [[array.dtype.str, len(array)] for array in arrays]
    into.write(json.dumps({"table": table, "arrays": follow}).encode() + b"\n")
    for array in arrays:
        into.write(array.tobytes())
    into.flush()


def receive(source: IO[bytes]) -> Message | None:
    """Read what ``send`` wrote; None where the other side has ended, perhaps within a message."""
    line = source.readline()
    if not line.endswith(b"\n"):
        return None
    said = json.loads(line)
    arrays = []
    for kind, count in said["arrays"]:
        dtype = np.dtype(kind)
        content = source.read(count * dtype.itemsize)
        if len(content) < count * dtype.itemsize:
            return None
        arrays.append(np.frombuffer(content, dtype))
    return said["table"], arrays


def as_json_text(raw: bytes | None) -> str | None:
    """A line as JSON can hold it, whether it is UTF-8 or not."""
    return None if raw is None else raw.decode("utf-8", "surrogateescape")


def raw_of(text: str) -> bytes:
    """The line that ``as_json_text`` was given."""
    return text.encode("utf-8", "surrogateescape")


def chunk_table(chunk: Chunk) -> dict[str, object]:
    """A chunk as JSON can hold it."""
    return {
        "shard": [None if file is None else str(file) for file in chunk.shard],
        "numbers": [*chunk.numbers],
        "lines": [as_json_text(line) for line in chunk.lines],
        "targets": None if chunk.targets is None else [as_json_text(t) for t in chunk.targets],
        "header": as_json_text(chunk.header),
    }


def chunk_of(table: Mapping[str, JsonValue]) -> Chunk:
    """The chunk that ``chunk_table`` was given."""
    source, target = cast("tuple[str, str | None]", table["shard"])
    targets = cast("list[str] | None", table["targets"])
    return Chunk(
        (Path(source), None if target is None else Path(target)),
        cast(list[int], table["numbers"]),
        [raw_of(line) for line in cast(list[str], table["lines"])],
        None if targets is None else [raw_of(line) for line in targets],
        raw_of(cast(str, table["header"])),
    )


def counted(lines: BadLines) -> dict[str, JsonValue]:
    """Lines left out as JSON can hold them."""
    return {"counts": {**lines.counts}, "examples": {k: [*v] for k, v in lines.examples.items()}}


def bad_lines_of(table: JsonValue) -> BadLines:
    """Decode the arguments of ``counted``."""
    found = cast(dict[str, JsonValue], table)
    counts = Counter(cast(dict[str, int], found["counts"]))
    return BadLines(counts, cast(dict[str, list[str]], found["examples"]))
