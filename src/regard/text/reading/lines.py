"""Lines of text files, plain or compressed; what is wrong with one is named as ``file:line``.

The rows of a table, Parquet or Arrow, are lines of JSON here, and so are the members of a list of
JSON and the labelled lines of fastText.
"""

import gzip
import itertools
import shlex
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import lru_cache, partial
from io import BytesIO
from pathlib import Path
from typing import BinaryIO, TypeVar

import zstandard

from regard.errors import DataError
from regard.progress import is_displayed, progress
from regard.text.reading.encodings import as_utf8, guess_encoding, in_given_encoding, peeked
from regard.text.reading.forms import (
    FASTTEXT,
    LONGEST,
    NAMED,
    SAME_AS,
    TABLES,
    class_lines,
    form_of,
    has_classes,
    labelled_lines,
    object_lines,
    read_rows,
    too_long,
)

LinesT = TypeVar("LinesT")
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_CHUNK = 1 << 20
# Lines between two advances of the progress.
_LINES_BETWEEN = 4096
# Messages kept of each reason why lines are left out.
_EXAMPLES = 3
# Characters shown of a line in an encoding that was guessed.
_SHOWN = 20
_UNPACKERS = {".gz": "gzip -dc", ".zst": "zstd -dc"}
PACKED = tuple(_UNPACKERS)
# Why lines are left out that hold nothing and stand between others.
BLANK = "blank lines"
# The problem of a row of CSV.
OPEN_QUOTE = "a quote opens in this row and does not close in it"
# Bytes of a file by which its form is known.
_HEAD = 1 << 16
# How files begin that are no text, and what to do about them.
_NO_TEXT = {
    b"PK\x03\x04": "a workbook or an archive. Save a workbook as CSV UTF-8, unpack an archive",
    b"\xd0\xcf\x11\xe0": "a workbook of Excel's. Save it as CSV UTF-8",
    b"\x1f\x8b": "a file that gzip packed. Let its name end in .gz",
    b"%PDF-": "a PDF. Save its text",
    **dict.fromkeys((b"\xff\xd8\xff", b"\x89PNG"), "a picture. Write its pixels into .jsonl"),
}
# What lines that come by a pipe are called, in place of a file.
_STDIN = Path("stdin")


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a file.

    Attributes:
        text: The line without its end; what is not UTF-8 in it reads as U+FFFD.
        where: ``file:line``, counted from 1.
        problem: Why it cannot be read: what is not UTF-8 in it, or ``OPEN_QUOTE``; None if it can.
        guess: Of such a line, the encoding that its file may be in, and how the line reads in it.

    Example:
        >>> line = next(decode_lines(["café".encode("latin-1")], "menu.txt"))
        >>> line.text, line.where, line.problem
        ('caf�', 'menu.txt:1', 'byte 0xE9 at place 4')
        >>> readable(line)
        Traceback (most recent call last):
        regard.errors.DataError: menu.txt:1: not UTF-8 (byte 0xE9 at place 4). Say what it is in,
        --encoding NAME, or convert it, which reads 'café' in WINDOWS-1252: iconv -f WINDOWS-1252 -t
        UTF-8 menu.txt > utf8-menu.txt
    """

    text: str
    where: str
    problem: str | None = None
    guess: tuple[str, str] | None = None


def readable(line: Line) -> str:
    """The text of a line, or DataError."""
    if line.problem == OPEN_QUOTE:
        cure = "Close it, write it twice, or take it out."
        raise DataError(f"{line.where}: {line.problem}. {cure}", "quotes")
    if line.problem is not None:
        path = Path(line.where.rpartition(":")[0])
        encoding, beginning = line.guess or ("ITS-ENCODING", "")
        reads = f", which reads {beginning!r} in {encoding}" if beginning else ""
        raise DataError(
            f"{line.where}: not UTF-8 ({line.problem}). Say what it is in, --encoding NAME, or "
            f"convert it{reads}: {_conversion(path, encoding)}",
            "not UTF-8",
        )
    return line.text


def _conversion(path: Path, encoding: str) -> str:
    """The command that writes a file anew in UTF-8, into the folder one is in."""
    if path.suffix in _UNPACKERS:
        plain = path.with_suffix("")
        unpack = f"{_UNPACKERS[path.suffix]} {shlex.quote(str(path))} | "
    else:
        plain, unpack = path, ""
    argument = "" if unpack or path == _STDIN else f" {shlex.quote(str(path))}"
    convert = f"{unpack}iconv -f {encoding} -t UTF-8{argument}"
    if path == _STDIN:
        return f"{convert} | regard …"
    return f"{convert} > {shlex.quote(f'utf8-{plain.name}')}"


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

    def add_cut(self, what: str, where: str, *, size: int, longest: int) -> None:
        """Count a text of ``size`` tokens if it is cut to the ``longest`` that are read."""
        if size > longest:
            self.add(f"{what} cut", f"{where}: cut to {longest} of {size} tokens.")

    def merge(self, others: "BadLines") -> None:
        """Count those of ``others`` too."""
        for reason, count in others.counts.items():
            self.counts[reason] += count
            examples = self.examples.setdefault(reason, [])
            examples += others.examples[reason][: _EXAMPLES - len(examples)]

    def without(self, reason: str) -> "BadLines":
        """Those for other reasons."""
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


def read_lines(path: Path) -> Iterator[Line]:
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
    with open_text(path) as file:
        yield from decode_lines(file, str(path))


def decode_lines(
    lines: Iterable[bytes], name: str, *, numbers: Iterable[int] | None = None
) -> Iterator[Line]:
    r"""``lines``, as binary files give them, decoded; ``name`` is the file's, for messages.

    Args:
        lines: Of a file.
        name: Of the file.
        numbers: Their numbers in it; None counts from 1.

    Example:
        >>> for line in decode_lines([b"\xef\xbb\xbfa\r\n", b"caf\xe9\n"], "x.txt"):
        ...     print(line.where, line.text, line.problem)
        x.txt:1 a None
        x.txt:2 caf� byte 0xE9 at place 4
    """
    for number, raw in zip(itertools.count(1) if numbers is None else numbers, lines, strict=False):
        line = raw.removesuffix(b"\n").removesuffix(b"\r")
        if number == 1:
            line = line.removeprefix(_BYTE_ORDER_MARK)
        try:
            yield Line(line.decode("utf-8"), f"{name}:{number}")
        except UnicodeDecodeError as error:
            if (text := in_given_encoding(line)) is not None:
                yield Line(text, f"{name}:{number}")
                continue
            problem = f"byte 0x{line[error.start]:02X} at place {error.start + 1}"
            encoding = guess_encoding(line)
            guess = encoding and (encoding, line.decode(encoding, "replace")[:_SHOWN])
            text = line.decode("utf-8", "replace")
            yield Line(text, f"{name}:{number}", problem, guess or None)


@contextmanager
def open_text(path: Path) -> Iterator[Iterable[bytes]]:
    r"""The raw lines of ``path``, decompressed if it ends in ``.gz`` or ``.zst``.

    They are in UTF-8, whatever the file is in: see ``as_utf8``. The rows of a ``.parquet`` or
    ``.arrow`` table, the objects of JSON, the texts of fastText and those in a folder of folders,
    one for each label, are lines of JSON.

    Raises:
        DataError: The file is missing, unreadable, damaged or no text.
        SettingError: It is a table, and pyarrow is not installed.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "lines.txt.gz"
        >>> _ = path.write_bytes(gzip.compress(b"one\ntwo\n"))
        >>> with open_text(path) as lines:
        ...     list(lines)
        [b'one\n', b'two\n']
    """
    with _refusing(path), _unpacked(path) as (raw, file):
        lines = raw if path.suffix in TABLES else _in_form(_as_text(raw, path), path)
        yield _with_progress(lines, file, path) if is_displayed() else lines


@contextmanager
def _refusing(path: Path) -> Iterator[None]:
    """Let what a file refuses be a DataError that names it."""
    try:
        yield
    except FileNotFoundError:
        raise missing(path) from None
    except (EOFError, zlib.error, gzip.BadGzipFile, zstandard.ZstdError) as error:
        raise DataError(
            f"{path} must be a whole compressed file; got: {str(error).rstrip('.')}. "
            f"It is damaged or cut short."
        ) from error
    except OSError as error:
        raise DataError(f"{path} must be a readable file; got: {error.strerror}.") from error


@contextmanager
def _unpacked(path: Path) -> Iterator[tuple[Iterable[bytes], BinaryIO]]:
    """The lines of a file as it is, compression put aside, and the file."""
    if path.is_dir() and has_classes(path):
        yield class_lines(path), BytesIO()
        return
    with path.open("rb") as file:
        if path.suffix in TABLES:
            yield read_rows(path), file
        elif path.suffix == ".gz":
            yield _bounded(gzip.GzipFile(fileobj=file), path), file
        elif path.suffix == ".zst":
            yield _split(_decompressed(file), path), file
        else:
            yield _bounded(file, path), file


def _bounded(file: BinaryIO | gzip.GzipFile, path: Path) -> Iterator[bytes]:
    """The lines of a file."""
    for line in iter(partial(file.readline, LONGEST), b""):
        if len(line) == LONGEST and line[-1:] != b"\n":
            raise too_long(str(path))
        yield line


def _in_form(lines: Iterator[bytes], path: Path) -> Iterator[bytes]:
    """The lines of a file, objects and labelled texts as lines of JSON."""
    head, lines = peeked(lines, _HEAD)
    form = form_of(_texts(head), _named_ending(path))
    if form == ".jsonl":
        return object_lines(lines, str(path))
    return labelled_lines(lines) if form == FASTTEXT else lines


def _as_text(lines: Iterable[bytes], path: Path) -> Iterator[bytes]:
    """The lines of a file in UTF-8."""
    head, lines = peeked(lines, 1)
    for mark, kind in _NO_TEXT.items():
        if head and head[0].startswith(mark):
            raise DataError(f"{path} must be text; got {kind}.")
    return as_utf8(lines, str(path))


def _texts(lines: Iterable[bytes]) -> list[str]:
    return [line.removeprefix(_BYTE_ORDER_MARK).decode("utf-8", "replace") for line in lines]


def _with_progress(lines: Iterable[bytes], file: BinaryIO, path: Path) -> Iterator[bytes]:
    """Iterate over lines with a progress bar over the file's bytes."""
    size, done = max(1, path.stat().st_size), 0
    with progress(f"reading {path.name}", 1.0) as advance:
        for number, line in enumerate(lines):
            if number % _LINES_BETWEEN == 0:
                position = file.tell()
                advance((position - done) / size)
                done = position
            yield line


def text_suffix(path: Path) -> str:
    """The ending of a file's form: by its name without compression, or by its first lines."""
    if path.suffix in TABLES:
        return ".jsonl"
    if path.is_dir() and has_classes(path):
        return ".jsonl"
    ending = _named_ending(path)
    if (ending in NAMED and ending != ".tsv") or not path.is_file():
        return ".jsonl" if ending == ".json" else ending
    status = path.stat()
    form = _form_of_file(path, ending, status.st_size, status.st_mtime_ns)
    return ".jsonl" if form == FASTTEXT else form


def _named_ending(path: Path) -> str:
    plain = path.with_suffix("") if path.suffix in PACKED else path
    return SAME_AS.get(plain.suffix.lower(), plain.suffix.lower())


@lru_cache
def _form_of_file(path: Path, ending: str, size: int, changed: int) -> str:
    with _refusing(path), _unpacked(path) as (lines, _):
        return form_of(_texts(peeked(_as_text(lines, path), _HEAD)[0]), ending)


def _decompressed(file: BinaryIO) -> Iterator[bytes]:
    """The bytes of all frames of a zstd file; an unfinished last frame is an error."""
    decompressor = zstandard.ZstdDecompressor()
    frame = decompressor.decompressobj()
    is_open = False
    while chunk := file.read(_CHUNK):
        while chunk:
            is_open = True
            yield frame.decompress(chunk)
            chunk = frame.unused_data if frame.eof else b""
            if frame.eof:
                frame = decompressor.decompressobj()
                is_open = False
    if is_open:
        raise EOFError("the last frame is not finished")


def _split(chunks: Iterable[bytes], path: Path) -> Iterator[bytes]:
    """Split pieces of a file into lines with their LF."""
    rest = b""
    for chunk in chunks:
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            yield line + b"\n"
        if len(rest) >= LONGEST:
            raise too_long(str(path))
    if rest:
        yield rest


def missing(path: Path) -> DataError:
    """Error for a missing file or folder of text; names a near one."""
    return DataError(f"{path} must exist; it does not.{_similar(path)}")


def _similar(path: Path) -> str:
    if not path.parent.is_dir():
        return f" There is no folder {path.parent}."
    names = [other.name for other in path.parent.iterdir()]
    near = [f"{path.name}{end}" for end in PACKED if f"{path.name}{end}" in names]
    near = near or get_close_matches(path.name, names, n=1, cutoff=0.6)
    return f" Did you mean {path.parent / near[0]}?" if near else ""
