"""Input files of a bulk job, and the output file of each."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from glob import has_magic
from pathlib import Path

from regard.errors import DataError, SettingError
from regard.text.reading.sources import shards

# Endings of a shard's answers, behind its own name, by their form.
ENDINGS = {"text": ".txt", "jsonl": ".jsonl"}
# And of notes on rows that could not be answered.
ERRORS = ".errors.jsonl"


@dataclass(frozen=True, kw_only=True, slots=True)
class Shard:
    """A file to answer."""

    name: str  # of its answers: a path in their folder
    source: Path
    answers: Path  # there when it is whole
    errors: Path  # problems of rows that could not be answered; absent if none
    size: int  # of the source, in bytes
    modified: int  # when the source was last written, in nanoseconds

    @property
    def is_answered(self) -> bool:
        """Whether its answers are there, all of them."""
        return self.answers.exists()


def find_shards(inputs: Sequence[str | Path], folder: Path, *, ending: str) -> list[Shard]:
    """The files that names, folders and patterns stand for, with the places of their answers."""
    # A shard is called by its path from the folder that is named, or from where a pattern begins:
    # of ``data/*/*.tsv``, ``data/de/a.tsv`` is answered in ``de/a.tsv.jsonl``.
    files: dict[str, Path] = {}
    for source in inputs:
        for file in shards(Path(source)):
            name = _name(Path(source), file)
            path = Path(os.path.abspath(file))  # noqa: PTH100  (links keep their names)
            if files.setdefault(name, path) != path:
                raise SettingError(
                    f"--input must give each file a place of its own; {files[name]} and {path} "
                    f"would both be answered in {name}{ending}. Name both by one pattern, from a "
                    "folder that holds both."
                )
    if not files:
        raise DataError("--input must name files to answer; got nothing.")
    home = Path(os.path.realpath(folder))
    if inside := [path for path in files.values() if home in Path(os.path.realpath(path)).parents]:
        raise SettingError(
            f"--output must be a folder without files to answer; {folder} holds {inside[0].name}. "
            "Choose another: a pattern would find the answers too."
        )
    return [_shard(name, path, folder, ending) for name, path in sorted(files.items())]


def _name(source: Path, file: Path) -> str:
    """Name of the output for a file of a name, folder or pattern."""
    if file == source:
        return file.name
    parts = source.parts
    fixed = next((index for index, part in enumerate(parts) if has_magic(part)), len(parts))
    return file.relative_to(Path(*parts[:fixed])).as_posix()


def _shard(name: str, path: Path, folder: Path, ending: str) -> Shard:
    try:
        status = path.stat()
    except OSError as error:
        raise DataError(f"{path} must be a readable file; got: {error.strerror}.") from error
    return Shard(
        name=name,
        source=path,
        answers=folder / f"{name}{ending}",
        errors=folder / f"{name}{ERRORS}",
        size=status.st_size,
        modified=status.st_mtime_ns,
    )
