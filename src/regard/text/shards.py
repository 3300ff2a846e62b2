"""The files that a name in a recipe stands for: one, those of a folder, or those of a pattern."""

import glob
import json
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from regard.errors import DataError
from regard.text.class_folders import has_classes
from regard.text.lines import PACKED, missing, text_suffix

# What other tools call the parts of a data set.
_SPLITS = {
    "train": ("train",),
    "valid": ("valid", "validation", "dev"),
    "test": ("test",),
}
# What Hugging Face's ``datasets`` writes beside the data.
_DATASET, _DATASETS = "state.json", "dataset_dict.json"
_NUMBERED = re.compile(r"(.*)-(\d+)-of-(\d+)(\..*)?")


def shards(path: Path, split: str = "train") -> list[Path]:
    """The files that a path stands for, in the order in which they are read.

    A folder stands for the files in it, by name, but for those that begin with a dot or ``_``; one
    that Hugging Face's ``datasets`` saved to disk, for its data, or the data of the split. A name
    with ``*``, ``?`` or ``[…]`` stands for the files that fit (``**``: in folders too). A folder of
    folders of texts, one for each label (``pos/``, ``neg/``), is read as a file.

    Args:
        path: As a recipe has it.
        split: ``train``, ``valid`` or ``test``.

    Raises:
        DataError: There is no such file; a folder has files of several kinds; or one of files that
            are numbered ``-00000-of-00003`` is missing.

    Example:
        >>> import tempfile
        >>> home = Path(tempfile.mkdtemp())
        >>> for name in ("b.tsv", "a.tsv", "_SUCCESS"):
        ...     _ = (home / name).write_text("", encoding="utf-8")
        >>> [found.name for found in shards(home)], [found.name for found in shards(home / "b*")]
        (['a.tsv', 'b.tsv'], ['b.tsv'])
    """
    if path.is_dir():
        if (path / _DATASETS).is_file():
            path = _split_of(path, split)
        if (path / _DATASET).is_file():
            return _dataset_files(path)
        if has_classes(path):
            return [path]
        found = _files(file for file in path.iterdir() if file.name[0] not in "._")
        if not found:
            raise DataError(f"{path} must hold files of text; got an empty folder.")
        return _complete(_of_one_kind(path, sorted(found)), path)
    if path.exists() or not glob.has_magic(str(path)):
        if not (path.suffix or path.exists()):
            raise missing(path)  # what has no ending is a folder; a file is missed by its reader
        return [path]
    matches = sorted(Path(name) for name in glob.glob(str(path), recursive=True))  # noqa: PTH207
    if not (files := _files(matches)):
        raise DataError(f"{path} must fit some file; it fits none. Is the folder right?")
    return _complete(files, path) if _is_open(path.name) else files


def _files(paths: Iterable[Path]) -> list[Path]:
    """The files among these paths.

    Raises:
        DataError: One is a link to nothing.
    """
    found = []
    for path in paths:
        if path.is_symlink() and not path.exists():
            raise DataError(
                f"{path} must exist; it is a link to {path.readlink()}, where nothing is. "
                "Take it away, or put the file there."
            )
        found += [path] if path.is_file() else []
    return found


def _is_open(pattern: str) -> bool:
    """Whether a pattern is for all numbers of files that are numbered, as far as one can see."""
    return "[" not in pattern and "?" not in pattern and not re.search(r"\d\*|\*\d", pattern)


def _of_one_kind(folder: Path, files: list[Path]) -> list[Path]:
    if len({text_suffix(file) for file in files}) > 1:
        endings = sorted({_ending(file) for file in files})
        said = ", ".join(ending or "none" for ending in endings)
        raise DataError(
            f"{folder} must hold files of one kind; got the endings {said}. Say which to read: "
            f"{folder / ('*' + endings[-1])}."
        )
    return files


def _ending(file: Path) -> str:
    """The ending as a pattern has it: ``.tsv.gz``, where ``.gz`` would say too little."""
    return "".join(file.suffixes[-2:]) if file.suffix in PACKED else file.suffix


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
                f"{_listed(missing)} {'is' if len(missing) == 1 else 'are'} missing."
            )
    return files


def _split_of(folder: Path, split: str) -> Path:
    """The part of a saved data set of several."""
    known: list[str] = _saved(folder / _DATASETS).get("splits", [])  # type: ignore[assignment]
    for name in _SPLITS.get(split, (split,)):
        if name in known:
            return folder / name
    raise DataError(
        f"{folder} must hold a split for data.{split}; it holds {', '.join(known) or 'none'}. Name "
        f"one of them: {folder / (known[0] if known else split)}."
    )


def _dataset_files(folder: Path) -> list[Path]:
    """The data of a data set, as it says itself."""
    state = _saved(folder / _DATASET)
    if state.get("_indices_data_files") or state.get("_indices_files"):
        raise DataError(
            f"{folder} must be saved with its rows in order; it says which rows of a larger table "
            "it has. Save it again after flatten_indices()."
        )
    listed: Sequence[dict[str, str]] = state.get("_data_files", [])  # type: ignore[assignment]
    files = [folder / each["filename"] for each in listed]
    missing = [file.name for file in files if not file.is_file()]
    if missing or not files:
        raise DataError(
            f"{folder} must hold the files that its {_DATASET} names; "
            f"{_listed(missing) or 'it names none'}{' missing' if missing else ''}."
        )
    return files


def _saved(path: Path) -> dict[str, object]:
    try:
        return dict(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError) as error:
        raise DataError(f"{path} must be as datasets saved it; got: {error}.") from None


def _listed(names: Iterable[str]) -> str:
    first, *rest = [*names][:4] or [""]
    return ", ".join([first, *rest[:2], *(["…"] if len(rest) > 2 else [])])
