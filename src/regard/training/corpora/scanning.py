"""A first look at all lines of a text: how many there are, a sample, and some held out."""

import json
import zlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby, islice
from operator import itemgetter
from pathlib import Path
from typing import Literal

from regard.runs.files import fill_file, sync_file
from regard.tasks.streaming import Chunk, Shard
from regard.training.corpora.cache import as_json_text, raw_of
from regard.training.corpora.shard_lines import CHUNK_LINES, RawLine, raw_lines

# Different lines that a tokenizer is learned from, and those that are held out to validate on.
SAMPLE, HELD = 200_000, 1000
HELD_SHARE = 0.02
# Lines of a text's end that are held out at most.
_HELD_END = 100_000
# Lines after which it is told how far it is.
_TOLD_EVERY = 50_000


@dataclass(frozen=True, slots=True)
class KeptLine:
    """A line of a shard, by its number from 1, and that of the targets' file."""

    shard: int
    number: int
    raw: RawLine


@dataclass(slots=True)
class _Smallest:
    """The lines with the smallest hashes, each different line once: any text's own sample."""

    most: int
    kept: dict[int, KeptLine] = field(default_factory=dict)
    limit: int = 1 << 32

    def offer(self, shard: int, number: int, raw: RawLine) -> None:
        source, target = raw
        hashed = zlib.crc32(target, zlib.crc32(source)) if target else zlib.crc32(source)
        if hashed < self.limit and hashed not in self.kept:
            self.kept[hashed] = KeptLine(shard, number, raw)
            if len(self.kept) >= self.most * 5 // 4:
                self._drop()

    def lines(self) -> list[KeptLine]:
        self._drop()
        return [self.kept[hashed] for hashed in sorted(self.kept)]

    def _drop(self) -> None:
        smallest = sorted(self.kept)[: self.most]
        self.kept = {hashed: self.kept[hashed] for hashed in smallest}
        if len(smallest) == self.most:
            self.limit = smallest[-1]


@dataclass(frozen=True, slots=True)
class Scan:
    """Statistics of all lines; the held-out part begins after ``until`` lines of all shards."""

    lines: list[int]
    headers: list[bytes]
    until: int
    sample: list[KeptLine]
    held: list[KeptLine]


def scan(
    shards: Sequence[Shard],
    held_out: Literal["hash", "end"] | None,
    *,
    share: float = HELD_SHARE,
    progress: Callable[[int], None] = lambda count: None,
) -> Scan:
    """Look at all lines once; hold out those with the smallest hashes, the last ones or none."""
    smallest = _Smallest(SAMPLE + HELD)
    last: deque[KeptLine] = deque(maxlen=_HELD_END if held_out == "end" else 0)
    counts, headers = list[int](), list[bytes]()
    for place, shard in enumerate(shards):
        number, header = 0, b""
        for number, raw in enumerate(raw_lines(shard), start=1):
            header = header if number > 1 else raw[0]
            smallest.offer(place, number, raw)
            if held_out == "end":
                last.append(KeptLine(place, number, raw))
            if number % _TOLD_EVERY == 0:
                progress(_TOLD_EVERY)
        progress(number % _TOLD_EVERY)
        counts.append(number)
        headers.append(header)
    total, lines = sum(counts), smallest.lines()
    if held_out == "hash":
        wanted = min(HELD, max(1, round(total * share)))
        return Scan(counts, headers, total, lines[wanted:][:SAMPLE], lines[:wanted])
    held = list(last)[-min(len(last), round(total * share)) :] if held_out and share else []
    first = (held[0].shard, held[0].number) if held else (len(shards), 0)
    learned = [line for line in lines[:SAMPLE] if (line.shard, line.number) < first]
    return Scan(counts, headers, total - len(held), learned, held)


def write_lines(path: Path, lines: Iterable[KeptLine]) -> None:
    """Lines into a file of JSON, in the order of the text."""
    ordered = sorted(lines, key=lambda line: (line.shard, line.number))
    rows = (json.dumps([line.shard, line.number, *map(as_json_text, line.raw)]) for line in ordered)
    fill_file(path, "".join(f"{row}\n" for row in rows).encode())
    sync_file(path)


def read_chunks(path: Path, shards: Sequence[Shard], headers: Sequence[str]) -> Iterator[Chunk]:
    """Read the output of ``write_lines``, shard by shard."""
    with path.open("rb") as file:
        rows = (json.loads(line) for line in file)
        for place, found in groupby(rows, key=itemgetter(0)):
            while group := list(islice(found, CHUNK_LINES)):
                numbers, lines = [row[1] for row in group], [raw_of(row[2]) for row in group]
                targets = [raw_of(row[3]) for row in group if row[3] is not None]
                header = raw_of(headers[place])
                yield Chunk(shards[place], numbers, lines, targets or None, header)
