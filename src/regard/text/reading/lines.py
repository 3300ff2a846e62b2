"""Lines of text files; a wrong one is named as ``file:line``."""

import itertools
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from regard.checks import as_path
from regard.errors import DataError
from regard.text.reading.encodings import MARK, guess_encoding, in_set_encoding
from regard.text.reading.forms import lines_of

LinesT = TypeVar("LinesT")
# Messages kept of each reason why lines are left out.
_EXAMPLES = 3
# Characters shown of a line in an encoding that was guessed.
_SHOWN = 20
# Why lines are left out that hold nothing and stand between others.
BLANK = "blank lines"
# The problem of a row of CSV.
OPEN_QUOTE = "a quote opens in this row and does not close in it"


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a file.

    Attributes:
        text: The line without its end; bytes that are not UTF-8 read as U+FFFD.
        where: ``file:line``, counted from 1.
        problem: Why it cannot be read: bytes that are not UTF-8, or ``OPEN_QUOTE``; None if it can.

    Example:
        >>> line = next(decode_lines(["café".encode("latin-1")], "menu.txt"))
        >>> line.text, line.where, line.problem
        ('caf�', 'menu.txt:1', "byte 0xE9 at position 4; WINDOWS-1252 would read 'café'")
        >>> readable(line)
        Traceback (most recent call last):
        regard.errors.DataError: menu.txt:1: not UTF-8 (byte 0xE9 at position 4; WINDOWS-1252 would
        read 'café'). Say what it is in, --encoding NAME, or convert it.
    """

    text: str
    where: str
    problem: str | None = None


def readable(line: Line) -> str:
    """The text of a line, or DataError."""
    if line.problem == OPEN_QUOTE:
        cure = "Close it, write it twice, or take it out."
        raise DataError(f"{line.where}: {line.problem}. {cure}", "quotes")
    if line.problem is not None:
        cure = "Say what it is in, --encoding NAME, or convert it."
        raise DataError(f"{line.where}: not UTF-8 ({line.problem}). {cure}", "not UTF-8")
    return line.text


@dataclass(slots=True)
class BadLines:
    """Lines that reading with ``on_bad_line="skip"`` skipped.

    Attributes:
        counts: Lines left out, by reason.
        examples: The first messages of each reason.
    """

    counts: Counter[str] = field(default_factory=Counter)
    examples: dict[str, list[str]] = field(default_factory=dict)

    def add(self, reason: str, message: str) -> None:
        """Count one more line; its message is kept if it is among the first three."""
        self.counts[reason] += 1
        examples = self.examples.setdefault(reason, [])
        if len(examples) < _EXAMPLES:
            examples.append(message)

    def add_cut(self, unit: str, where: str, *, size: int, longest: int) -> None:
        """Count a text of ``size`` tokens if it is cut to the ``longest`` that are read."""
        if size > longest:
            self.add(f"{unit} cut", f"{where}: cut to {longest} of {size} tokens.")

    def merge(self, added: "BadLines") -> None:
        """Count those of ``added`` too."""
        for reason, count in added.counts.items():
            self.counts[reason] += count
            examples = self.examples.setdefault(reason, [])
            examples += added.examples[reason][: _EXAMPLES - len(examples)]

    def without(self, reason: str) -> "BadLines":
        """The lines left out for other reasons."""
        counts = Counter({name: n for name, n in self.counts.items() if name != reason})
        return BadLines(counts, self.examples)

    @property
    def total(self) -> int:
        """Lines left out, for whatever reason."""
        return self.counts.total()

    def __str__(self) -> str:
        """Each reason with its count and first example."""
        return "; ".join(
            f"{reason}, {count:,} (first {self.examples[reason][0]})"
            for reason, count in self.counts.items()
        )


def filled(items: Iterable[LinesT], bad_lines: BadLines | None = None) -> Iterator[LinesT]:
    """Leave out blank lines, or pairs of them; those between others are counted."""
    blank: list[str] = []
    for item in items:
        members = item if isinstance(item, tuple) else (item,)
        lines = [line for line in members if isinstance(line, Line)]
        if lines and not any(line.text.strip() for line in lines):
            blank.append(lines[0].where)
            continue
        if bad_lines is not None:
            for where in blank:
                bad_lines.add(BLANK, where)
        blank.clear()
        yield item


def read_lines(path: str | Path) -> Iterator[Line]:
    r"""The lines of ``path``, decompressed if it ends in ``.gz`` or ``.zst``.

    Lines end with LF or CR LF, and with nothing else that Unicode calls a line's end. A byte-order
    mark at the start of the file is dropped. The rows of a table are lines of JSON.

    Raises:
        DataError: The file is missing, unreadable or damaged.
        SettingError: It is a table, and pyarrow is not installed.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "lines.txt"
        >>> _ = path.write_text("我\n爱\n", encoding="utf-8")
        >>> [(line.text, line.where.rpartition(":")[2]) for line in read_lines(path)]
        [('我', '1'), ('爱', '2')]
    """
    path = as_path("path", path)
    return decode_lines(lines_of(path), str(path))


def decode_lines(
    lines: Iterable[bytes], name: str, *, numbers: Iterable[int] | None = None
) -> Iterator[Line]:
    """``lines`` of a file of this name, decoded; ``numbers`` are theirs, None counts from 1."""
    for number, raw in zip(itertools.count(1) if numbers is None else numbers, lines, strict=False):
        line = raw.removesuffix(b"\n").removesuffix(b"\r")
        if number == 1:
            line = line.removeprefix(MARK)
        try:
            yield Line(line.decode("utf-8"), f"{name}:{number}")
        except UnicodeDecodeError as error:
            if (text := in_set_encoding(line)) is not None:
                yield Line(text, f"{name}:{number}")
                continue
            problem = f"byte 0x{line[error.start]:02X} at position {error.start + 1}"
            if encoding := guess_encoding(line):
                text = line.decode(encoding, "replace")[:_SHOWN]
                problem += f"; {encoding} would read {text!r}"
            yield Line(line.decode("utf-8", "replace"), f"{name}:{number}", problem)
