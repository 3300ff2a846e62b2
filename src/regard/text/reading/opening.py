"""Files opened as lines in UTF-8: plain, gzip, zstd, Arrow's tables as an object of JSON a row."""

import gzip
import json
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from typing import BinaryIO, Protocol, cast

import zstandard

from regard.config import JsonValue
from regard.errors import DataError, SettingError
from regard.text.reading.encodings import LONGEST, TooLongError, split_lines, text_lines

# Endings of compressed files.
PACKED = (".gz", ".zst")
_CHUNK = 1 << 20


@dataclass(frozen=True, slots=True, eq=False)
class OpenFile:
    """The lines of an open file, the first of which show its form; None where they are JSON."""

    lines: Iterator[bytes]
    head: list[bytes] | None
    position: Callable[[], int]  # in bytes of the file as it is on disk


@contextmanager
def opened(path: Path, classes: Iterator[bytes] | None = None) -> Iterator[OpenFile]:
    """A file, decompressed and recoded, or a folder of ``classes``; else a DataError."""
    try:
        if classes is not None:
            yield OpenFile(classes, None, lambda: 0)
            return
        with path.open("rb") as file:
            if path.suffix in TABLES:
                yield OpenFile(read_rows(path), None, file.tell)
            else:
                raw = _unpacked(file, path)
                head, lines = text_lines(raw, str(path))
                yield OpenFile(lines, head, file.tell)
    except FileNotFoundError:
        raise missing(path) from None
    except (EOFError, zlib.error, gzip.BadGzipFile, zstandard.ZstdError) as error:
        raise DataError(
            f"{path} must be a whole compressed file; got: {str(error).rstrip('.')}. "
            f"It is damaged or cut short."
        ) from error
    except OSError as error:
        raise DataError(f"{path} must be a readable file; got: {error.strerror}.") from error
    except TooLongError:
        raise DataError(
            f"{path} must have lines of less than {LONGEST >> 20:,} MiB; got a longer one, or JSON "
            "of that size that is not an object a line, which is JSONL. Convert JSON: "
            f"jq -c '.[]' {path} > {str(path).removesuffix('.json')}.jsonl"
        ) from None


def _unpacked(file: BinaryIO, path: Path) -> Iterator[bytes]:
    """The lines of a file, compression put aside."""
    if path.suffix == ".zst":
        yield from split_lines(_decompressed(file))
        return
    plain = gzip.GzipFile(fileobj=file) if path.suffix == ".gz" else file
    for line in iter(partial(plain.readline, LONGEST), b""):
        if len(line) == LONGEST and line[-1:] != b"\n":
            raise TooLongError
        yield line


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


def missing(path: Path) -> DataError:
    """Error for a missing file or folder of text; names a near one."""
    return DataError(f"{path} must exist; it does not.{_similar(path)}")


def _similar(path: Path) -> str:
    if not path.parent.is_dir():
        return f" There is no folder {path.parent}."
    names = [sibling.name for sibling in path.parent.iterdir()]
    near = [f"{path.name}{end}" for end in PACKED if f"{path.name}{end}" in names]
    near = near or get_close_matches(path.name, names, n=1, cutoff=0.6)
    return f" Did you mean {path.parent / near[0]}?" if near else ""


# Files of tables; those of Arrow are streams, as Hugging Face's ``datasets`` saves, or Feather.
PARQUET, ARROW = ".parquet", (".arrow", ".feather")
TABLES = (PARQUET, *ARROW)
# Rows in memory at once.
_ROWS = 4096


class _Rows(Protocol):
    """A part of a table, as pyarrow has it."""

    def to_pylist(self) -> list[dict[str, JsonValue]]:
        """The rows as records."""


def read_rows(path: Path) -> Iterator[bytes]:
    """Rows of a Parquet or Arrow table as lines of JSON; a date is its text."""
    try:
        import pyarrow
    except ImportError as error:
        raise SettingError(
            f"pyarrow must be installed to read {path}; it is not. "
            "Install it: pip install 'regard[parquet]'."
        ) from error
    encode = partial(json.dumps, ensure_ascii=False, default=str)
    try:
        for part in _arrow(path):
            for row in part.to_pylist():
                yield f"{encode(row)}\n".encode()
    except (pyarrow.ArrowException, OSError) as error:
        reason = " ".join(str(error).split()).rstrip(".")[:200]
        raise DataError(
            f"{path} must be a whole {path.suffix} file; got: {reason}. It is damaged or cut short."
        ) from error


def _arrow(path: Path) -> Iterator[_Rows]:
    from pyarrow import OSFile, ipc, parquet

    if path.suffix == PARQUET:
        with parquet.ParquetFile(path) as table:
            yield from cast(Iterator[_Rows], table.iter_batches(_ROWS))
        return
    with OSFile(str(path)) as file:
        is_feather = file.read(6) == b"ARROW1"
        file.seek(0)
        if is_feather:
            reader = ipc.open_file(file)
            yield from (reader.get_batch(index) for index in range(reader.num_record_batches))
        else:
            yield from cast(Iterator[_Rows], ipc.open_stream(file))
