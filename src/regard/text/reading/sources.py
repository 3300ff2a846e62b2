"""Sources of data as files: a file, folder or pattern that a recipe names, or data in memory."""

import glob
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeAlias, cast

from regard.config import JsonValue
from regard.errors import DataError
from regard.text.reading.folders import has_classes
from regard.text.reading.forms import BRAT, text_suffix
from regard.text.reading.opening import PACKED, missing

# Names of the parts of a data set in other tools.
_SPLITS = {"train": ("train",), "valid": ("valid", "validation", "dev"), "test": ("test",)}
# Files that Hugging Face's ``datasets`` writes beside the data.
_DATASET, _DATASETS = "state.json", "dataset_dict.json"
_NUMBERED = re.compile(r"(.*)-(\d+)-of-(\d+)(\..*)?")


def shards(path: Path, split: str = "train") -> list[Path]:
    """The files that a path of a recipe stands for, in reading order: of a folder, of a pattern."""
    if path.is_dir():
        if (path / _DATASETS).is_file():
            path = _split_of(path, split)
        if (path / _DATASET).is_file():
            return _dataset_files(path)
        if has_classes(path):
            return [path]
        files = _files(file for file in path.iterdir() if file.name[0] not in "._")
        files = [file for file in files if file.suffix == BRAT] or files  # beside their texts
        if not files:
            raise DataError(f"{path} must hold files of text; got an empty folder.")
        return _complete(_of_one_kind(path, sorted(files)), path)
    if path.exists() or not glob.has_magic(str(path)):
        if not (path.suffix or path.exists()):
            raise missing(path)  # no ending: a folder; a file is missed by its reader
        return [path]
    matches = sorted(Path(name) for name in glob.glob(str(path), recursive=True))  # noqa: PTH207
    if not (files := _files(matches)):
        raise DataError(f"{path} must fit some file; it fits none. Is the folder right?")
    # A pattern for all numbers of files that are numbered, as far as one can see.
    is_open = not re.search(r"[\[?]|\d\*|\*\d", path.name)
    return _complete(files, path) if is_open else files


def _files(paths: Iterable[Path]) -> list[Path]:
    """The files among these paths; a link to nothing is a DataError."""
    files = []
    for path in paths:
        if path.is_symlink() and not path.exists():
            raise DataError(
                f"{path} must exist; it is a link to {path.readlink()}, where nothing is. "
                "Take it away, or put the file there."
            )
        files += [path] if path.is_file() else []
    return files


def _of_one_kind(folder: Path, files: list[Path]) -> list[Path]:
    if len({text_suffix(file) for file in files}) > 1:
        # As a pattern has them: ``.tsv.gz``, where ``.gz`` would say too little.
        endings = sorted(
            {"".join(file.suffixes[-2 if file.suffix in PACKED else -1 :]) for file in files}
        )
        names = ", ".join(ending or "none" for ending in endings)
        raise DataError(
            f"{folder} must hold files of one kind; got the endings {names}. Say which to read: "
            f"{folder / ('*' + endings[-1])}."
        )
    return files


def _complete(files: list[Path], named: Path) -> list[Path]:
    """The files, none of which may be missing among those numbered ``-00000-of-00003``."""
    numbered = [match for file in files if (match := _NUMBERED.fullmatch(file.name))]
    wholes = {(match[1], match[3], match[4] or "") for match in numbered}
    there = {match[0] for match in numbered}
    for stem, count, ending in sorted(wholes):
        numbers = range(int(count) + 1)
        every = [f"{stem}-{number:0{len(count)}}-of-{count}{ending}" for number in numbers]
        # Counted from 0, or from 1.
        names = every[1:] if every[-1] in there else every[:-1]
        if missing := [name for name in names if name not in there]:
            raise DataError(
                f"{named} must hold all {int(count)} files that are numbered; "
                f"{_join_names(missing)} {'is' if len(missing) == 1 else 'are'} missing."
            )
    return files


def _split_of(folder: Path, split: str) -> Path:
    """The part of a saved data set of several."""
    splits: list[str] = _saved(folder / _DATASETS).get("splits", [])  # type: ignore[assignment]
    for name in _SPLITS.get(split, (split,)):
        if name in splits:
            return folder / name
    raise DataError(
        f"{folder} must hold a split for data.{split}; it holds {', '.join(splits) or 'none'}. "
        f"Name one of them: {folder / (splits[0] if splits else split)}."
    )


def _dataset_files(folder: Path) -> list[Path]:
    """The data of a data set, as it says itself."""
    state = _saved(folder / _DATASET)
    if state.get("_indices_data_files") or state.get("_indices_files"):
        raise DataError(
            f"{folder} must be saved with its rows in order; it says which rows of a larger table "
            "it has. Save it again after flatten_indices()."
        )
    entries: Sequence[dict[str, str]] = state.get("_data_files", [])  # type: ignore[assignment]
    files = [folder / entry["filename"] for entry in entries]
    missing = [file.name for file in files if not file.is_file()]
    if missing or not files:
        raise DataError(
            f"{folder} must hold the files that its {_DATASET} names; "
            f"{_join_names(missing) or 'it names none'}{' missing' if missing else ''}."
        )
    return files


def _saved(path: Path) -> dict[str, object]:
    try:
        return dict(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError) as error:
        raise DataError(f"{path} must be as datasets saved it; got: {error}.") from None


def _join_names(names: Iterable[str]) -> str:
    first, *following = [*names][:4] or [""]
    return ", ".join([first, *following[:2], *(["…"] if len(following) > 2 else [])])


Row: TypeAlias = Mapping[str, JsonValue] | Sequence[JsonValue]


def is_files(data: object) -> bool:
    """Whether data names one file or several."""
    if isinstance(data, str | Path):
        return True
    is_list = isinstance(data, list | tuple) and len(data) > 0
    return is_list and all(isinstance(name, str | Path) for name in cast(Sequence[object], data))


@contextmanager
def as_files(data: object) -> Iterator[list[Path]]:
    """The files that data names, or a temporary one with its rows."""
    if is_files(data):
        names = [data] if isinstance(data, str | Path) else cast(Sequence[str | Path], data)
        yield [Path(name) for name in names]
        return
    with TemporaryDirectory() as folder:
        ending, content = write_rows(rows_of(data))
        path = Path(folder) / f"data{ending}"
        path.write_text(content, encoding="utf-8", errors="replace")
        yield [path]


def rows_of(data: object) -> list[Row]:
    """Convert data in memory to records or rows of plain values: rows, columns, arrays, frames."""
    rows: list[Any]
    if isinstance(data, Mapping):
        columns = [plain(column) for column in data.values()]
        rows = [dict(zip(map(str, data), row, strict=True)) for row in _joined(columns)]
    elif (
        isinstance(data, tuple)
        and len(data) == 2
        and all(isinstance(part, list) or hasattr(part, "shape") for part in data)
    ):
        inputs, targets = map(plain, data)
        rows = [
            [*(values if isinstance(values, list) else [values]), target]
            for values, target in _joined([inputs, targets])
        ]
    else:
        rows = [_row(row, number) for number, row in enumerate(items_of(data), 1)]
    if not rows:
        raise DataError("data must hold records; got none.")
    return rows


def write_rows(rows: Sequence[Row]) -> tuple[str, str]:
    """The ending and content of a file of rows: JSONL of records, TSV of texts without names."""
    records = [row for row in rows if isinstance(row, Mapping)]
    if not records:
        sizes = {len(row) for row in rows}
        if len(sizes) > 1 or 0 in sizes:
            raise DataError(
                f"data must have filled rows of one length; got {min(sizes)} and {max(sizes)}."
            )
        if any(isinstance(cell, str) for row in rows for cell in row):
            texts = [["" if cell is None else str(cell) for cell in row] for row in rows]
            lines = ["\t".join(" ".join(cell.split()) for cell in row) for row in texts]
            return ".tsv", "".join(f"{line}\n" for line in lines)
        names = [*(f"x{number}" for number in range(1, max(sizes))), "y"]
        records = [dict(zip(names, row, strict=True)) for row in rows]
    if len(records) != len(rows):
        raise DataError("data must be all records with names, or all rows without; got both.")
    lines = [json.dumps(record, ensure_ascii=False) for record in records]
    return ".jsonl", "".join(f"{line}\n" for line in lines)


def _joined(columns: Sequence[object]) -> list[tuple[JsonValue, ...]]:
    lists = [column if isinstance(column, list) else [] for column in columns]
    sizes = {len(column) for column in lists}
    if len(sizes) > 1:
        raise DataError(f"data must have columns of one length; got {min(sizes)} and {max(sizes)}.")
    return list(zip(*lists, strict=True))


def items_of(data: object) -> list[object]:
    """The rows of a frame, a table, an array, or of whatever gives them one by one."""
    if isinstance(data, bytes | bytearray | memoryview):  # whose items are numbers
        raise DataError(
            f"data must be text, not {type(data).__name__}. Decode it: data.decode('utf-8')."
        )
    for method in ("to_dicts", "to_pylist"):  # polars, Arrow
        if hasattr(data, method):
            return list(getattr(data, method)())
    if hasattr(data, "to_dict") and hasattr(data, "columns"):  # pandas
        return list(data.to_dict("records"))
    if hasattr(data, "tolist"):
        data = data.tolist()
    try:
        return list(data)  # type: ignore[call-overload, no-any-return]
    except TypeError:
        raise DataError(
            f"data must be files, records or rows; got {type(data).__name__}."
        ) from None


def _row(row: object, number: int) -> Row:
    value = plain(row)
    if not isinstance(value, dict | list):
        raise DataError(
            f"data must be files, or records and rows; row {number} is {type(row).__name__} "
            f"{str(row)[:60]!r}."
        )
    return cast(Row, value)


def plain(value: object) -> object:
    """A value as JSON can hold it: arrays as lists, NaN as None."""
    if isinstance(value, Mapping):
        return {str(name): plain(item) for name, item in value.items()}
    if hasattr(value, "tolist"):  # arrays, tensors, series, and their numbers
        value = value.tolist()
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, float) and value != value:
        return None
    if value is None or isinstance(value, str | int | float):
        return value
    return str(value)
