"""The lines of a text: in chunks, and at a first look how many, a sample and some held out."""

import json
import zlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby, islice, zip_longest
from operator import itemgetter
from pathlib import Path
from typing import Literal

from regard.errors import DataError
from regard.files import fill_file, sync_file
from regard.tasks.streaming import Chunk, Shard
from regard.text import open_text, read_lines
from regard.text.reading.forms import text_suffix
from regard.text.reading.lines import readable
from regard.text.reading.tables import csv_rows
from regard.training.corpora.cache import as_json_text, raw_of

# Lines that are parsed and encoded together.
CHUNK_LINES = 8000

# A line of a shard, and that of its targets' file.
RawLine = tuple[bytes, bytes | None]
# Different lines that a tokenizer is learned from, and those that are held out to validate on.
SAMPLE, HELD = 200_000, 1000
HELD_SHARE = 0.02
# Lines of a text's end that are held out at most.
_HELD_END = 100_000
# Lines after which it is told how far it is.
_REPORT_EVERY = 50_000


def raw_lines(shard: Shard) -> Iterator[RawLine]:
    """The lines of a shard, as they stand there; the rows of one of CSV, as TSV has them."""
    source, target = shard
    if text_suffix(source) == ".csv" and target is None:
        # A row may be several lines, and positions in a text are counted in rows.
        for row in csv_rows(read_lines(source)):
            yield f"{readable(row)}\n".encode(), None
        return
    with open_text(source) as lines:
        if target is None:
            yield from ((line, None) for line in lines)
            return
        with open_text(target) as target_lines:
            for number, (line, target_line) in enumerate(zip_longest(lines, target_lines), start=1):
                if line is None or target_line is None:
                    shorter, longer = (source, target) if line is None else (target, source)
                    raise DataError(
                        f"{source} and {target} must have as many lines as each other; {shorter} "
                        f"ends before line {number} of {longer}. Line n of one must translate line "
                        "n of the other."
                    )
                yield line, target_line


def chunks(
    shards: Sequence[Shard], lines: Sequence[int], *, skip: int = 0, until: int | None = None
) -> Iterator[Chunk]:
    """The lines of all shards but the first ``skip`` chunks, always in the same chunks."""
    remaining = sum(lines) if until is None else until
    for shard, count in zip(shards, lines, strict=True):
        count_here = min(count, remaining)
        remaining -= count_here
        num_chunks = -(-count_here // CHUNK_LINES)
        if num_chunks > skip:
            yield from _chunks(shard, count_here, skip)
        skip = max(0, skip - num_chunks)


def _chunks(shard: Shard, count: int, skip: int) -> Iterator[Chunk]:
    rows = raw_lines(shard)
    header = b""
    for first in range(0, count, CHUNK_LINES):
        part = list(islice(rows, min(CHUNK_LINES, count - first)))
        if first == 0 and part:
            header = part[0][0]
        if len(part) < min(CHUNK_LINES, count - first):
            raise DataError(
                f"{shard[0]} must stay as it is while it is read; it has fewer lines than before. "
                "Start again."
            )
        if first >= skip * CHUNK_LINES:
            targets = [target_line for _, target_line in part if target_line is not None]
            lines = [line for line, _ in part]
            numbers = range(first + 1, first + 1 + len(part))
            yield Chunk(shard, numbers, lines, targets or None, header)


@dataclass(frozen=True, slots=True)
class SampledLine:
    """A line of a shard, by its number from 1, and that of the targets' file."""

    shard: int
    number: int
    raw: RawLine


@dataclass(slots=True)
class _Smallest:
    """The lines with the smallest hashes, each different line once: any text's own sample."""

    most: int
    by_hash: dict[int, SampledLine] = field(default_factory=dict)
    limit: int = 1 << 32

    def offer(self, shard: int, number: int, raw: RawLine) -> None:
        source, target = raw
        hashed = zlib.crc32(target, zlib.crc32(source)) if target else zlib.crc32(source)
        if hashed < self.limit and hashed not in self.by_hash:
            self.by_hash[hashed] = SampledLine(shard, number, raw)
            if len(self.by_hash) >= self.most * 5 // 4:
                self._drop()

    def lines(self) -> list[SampledLine]:
        self._drop()
        return [self.by_hash[hashed] for hashed in sorted(self.by_hash)]

    def _drop(self) -> None:
        smallest = sorted(self.by_hash)[: self.most]
        self.by_hash = {hashed: self.by_hash[hashed] for hashed in smallest}
        if len(smallest) == self.most:
            self.limit = smallest[-1]


@dataclass(frozen=True, slots=True)
class Scan:
    """Statistics of all lines; the held-out part begins after ``until`` lines of all shards."""

    lines: list[int]
    headers: list[bytes]
    until: int
    sample: list[SampledLine]
    held: list[SampledLine]


def scan(
    shards: Sequence[Shard],
    held_out: Literal["hash", "end"] | None,
    *,
    share: float = HELD_SHARE,
    progress: Callable[[int], None] = lambda count: None,
) -> Scan:
    """Look at all lines once; hold out those with the smallest hashes, the last ones or none."""
    smallest = _Smallest(SAMPLE + HELD)
    last: deque[SampledLine] = deque(maxlen=_HELD_END if held_out == "end" else 0)
    counts, headers = list[int](), list[bytes]()
    for shard_index, shard in enumerate(shards):
        number, header = 0, b""
        for number, raw in enumerate(raw_lines(shard), start=1):
            header = header if number > 1 else raw[0]
            smallest.offer(shard_index, number, raw)
            if held_out == "end":
                last.append(SampledLine(shard_index, number, raw))
            if number % _REPORT_EVERY == 0:
                progress(_REPORT_EVERY)
        progress(number % _REPORT_EVERY)
        counts.append(number)
        headers.append(header)
    total, lines = sum(counts), smallest.lines()
    if held_out == "hash":
        num_held = min(HELD, max(1, round(total * share)))
        return Scan(counts, headers, total, lines[num_held:][:SAMPLE], lines[:num_held])
    held = list(last)[-min(len(last), round(total * share)) :] if held_out and share else []
    first = (held[0].shard, held[0].number) if held else (len(shards), 0)
    learned = [line for line in lines[:SAMPLE] if (line.shard, line.number) < first]
    return Scan(counts, headers, total - len(held), learned, held)


def write_lines(path: Path, lines: Iterable[SampledLine]) -> None:
    """Lines into a file of JSON, in the order of the text."""
    ordered = sorted(lines, key=lambda line: (line.shard, line.number))
    rows = (json.dumps([line.shard, line.number, *map(as_json_text, line.raw)]) for line in ordered)
    fill_file(path, "".join(f"{row}\n" for row in rows).encode())
    sync_file(path)


def read_chunks(path: Path, shards: Sequence[Shard], headers: Sequence[str]) -> Iterator[Chunk]:
    """Read the output of ``write_lines``, shard by shard."""
    with path.open("rb") as file:
        rows = (json.loads(line) for line in file)
        for shard_index, shard_rows in groupby(rows, key=itemgetter(0)):
            while group := list(islice(shard_rows, CHUNK_LINES)):
                numbers, lines = [row[1] for row in group], [raw_of(row[2]) for row in group]
                targets = [raw_of(row[3]) for row in group if row[3] is not None]
                header = raw_of(headers[shard_index])
                yield Chunk(shards[shard_index], numbers, lines, targets or None, header)
