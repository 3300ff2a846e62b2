"""The lines of the files of a text, in chunks that are worked on one by one."""

from collections.abc import Iterator, Sequence
from itertools import islice, zip_longest

from regard.errors import DataError
from regard.tasks.streaming import Chunk, Shard
from regard.text import open_text, read_lines
from regard.text.reading.lines import readable, text_suffix
from regard.text.reading.tables import csv_rows

# Lines that are parsed and encoded together.
CHUNK_LINES = 8000

# A line of a shard, and that of its targets' file.
RawLine = tuple[bytes, bytes | None]


def raw_lines(shard: Shard) -> Iterator[RawLine]:
    """The lines of a shard, as they stand there; the rows of one of CSV, as TSV has them."""
    source, target = shard
    if text_suffix(source) == ".csv" and target is None:
        # A row may be several lines, and the places of a text are counted in what can stand alone.
        for row in csv_rows(read_lines(source)):
            yield f"{readable(row)}\n".encode(), None
        return
    with open_text(source) as lines:
        if target is None:
            yield from ((line, None) for line in lines)
            return
        with open_text(target) as others:
            for number, (line, other) in enumerate(zip_longest(lines, others), start=1):
                if line is None or other is None:
                    shorter, longer = (source, target) if line is None else (target, source)
                    raise DataError(
                        f"{source} and {target} must have as many lines as each other; {shorter} "
                        f"ends before line {number} of {longer}. Line n of one must translate line "
                        "n of the other."
                    )
                yield line, other


def chunks(
    shards: Sequence[Shard], lines: Sequence[int], *, skip: int = 0, until: int | None = None
) -> Iterator[Chunk]:
    """The lines of all shards but the first ``skip`` chunks, always in the same chunks."""
    left = sum(lines) if until is None else until
    for shard, count in zip(shards, lines, strict=True):
        wanted = min(count, left)
        left -= wanted
        own = -(-wanted // CHUNK_LINES)
        if own > skip:
            yield from _chunks(shard, wanted, skip)
        skip = max(0, skip - own)


def _chunks(shard: Shard, wanted: int, skip: int) -> Iterator[Chunk]:
    found = raw_lines(shard)
    header = b""
    for first in range(0, wanted, CHUNK_LINES):
        part = list(islice(found, min(CHUNK_LINES, wanted - first)))
        if first == 0 and part:
            header = part[0][0]
        if len(part) < min(CHUNK_LINES, wanted - first):
            raise DataError(
                f"{shard[0]} must stay as it is while it is read; it has fewer lines than before. "
                "Start again."
            )
        if first >= skip * CHUNK_LINES:
            targets = [other for _, other in part if other is not None]
            lines = [line for line, _ in part]
            numbers = range(first + 1, first + 1 + len(part))
            yield Chunk(shard, numbers, lines, targets or None, header)
