"""Tables of Arrow's making, Parquet files and Arrow's own, read as lines of JSON.

So whoever reads JSONL reads them too: a row is an object, its columns are the keys.
"""

import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Protocol, cast

from regard.config import JsonValue
from regard.errors import DataError, SettingError

# Files of tables; those of Arrow are streams, as Hugging Face's ``datasets`` saves, or Feather.
PARQUET, ARROW = ".parquet", (".arrow", ".feather")
TABLES = (PARQUET, *ARROW)
# Rows in memory at once.
_ROWS = 4096


class _Rows(Protocol):
    """A part of a table, as pyarrow has it."""

    def to_pylist(self) -> list[dict[str, JsonValue]]:
        """Its rows."""


def read_rows(path: Path) -> Iterator[bytes]:
    r"""The rows of a table as lines of JSON, one after the other; numbers and texts as they are.

    What JSON knows nothing of, such as a date, is its text.

    Args:
        path: A ``.parquet`` file, or one of Arrow's: ``.arrow``, ``.feather``.

    Raises:
        DataError: The file is missing, or damaged.
        SettingError: pyarrow is not installed.

    Example:
        >>> import tempfile, pyarrow, pyarrow.parquet
        >>> path = Path(tempfile.mkdtemp()) / "pairs.parquet"
        >>> table = pyarrow.table({"source": ["我爱中国。"], "target": ["I love China."]})
        >>> pyarrow.parquet.write_table(table, path)
        >>> [line.decode() for line in read_rows(path)]
        ['{"source": "我爱中国。", "target": "I love China."}\n']
    """
    try:
        import pyarrow
    except ImportError as error:
        raise SettingError(
            f"pyarrow must be installed to read {path}; it is not. "
            "Install it: pip install 'regard[parquet]'."
        ) from error
    encode = partial(json.dumps, ensure_ascii=False, default=str)
    try:
        for part in _parquet(path) if path.suffix == PARQUET else _arrow(path):
            for row in part.to_pylist():
                yield f"{encode(row)}\n".encode()
    except (pyarrow.ArrowException, OSError) as error:
        reason = " ".join(str(error).split()).rstrip(".")[:200]
        raise DataError(
            f"{path} must be a whole {path.suffix} file; got: {reason}. It is damaged or cut short."
        ) from error


def _parquet(path: Path) -> Iterator[_Rows]:
    from pyarrow import parquet

    with parquet.ParquetFile(path) as file:
        yield from cast(Iterator[_Rows], file.iter_batches(_ROWS))


def _arrow(path: Path) -> Iterator[_Rows]:
    from pyarrow import OSFile, ipc

    with OSFile(str(path)) as file:
        is_feather = file.read(6) == b"ARROW1"
        file.seek(0)
        if is_feather:
            reader = ipc.open_file(file)
            yield from (reader.get_batch(place) for place in range(reader.num_record_batches))
        else:
            yield from cast(Iterator[_Rows], ipc.open_stream(file))
