"""Input files of a bulk job, and the output file of each."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from glob import has_magic
from pathlib import Path

from regard.errors import DataError, SettingError
from regard.text.reading.sources import shards

# What the answers of a shard are called behind its own name, by the form they are written in.
ENDINGS = {"text": ".txt", "jsonl": ".jsonl"}
# And what notes of rows that could not be answered are.
ERRORS = ".errors.jsonl"


@dataclass(frozen=True, kw_only=True, slots=True)
class Shard:
    """A file to answer.

    Attributes:
        name: What its answers are called: a path in the folder of answers.
        source: The file.
        answers: The file of its answers, which is there when it is whole.
        errors: Beside it, what is wrong with rows that could not be answered; absent if none is.
        size: Of the source, in bytes.
        modified: When the source was last written, in nanoseconds.

    Example:
        >>> import tempfile
        >>> home = Path(tempfile.mkdtemp())
        >>> _ = (home / "asked.txt").write_text("0.5", "utf-8")
        >>> (shard,) = find_shards([home / "asked.txt"], home / "answers", ending=".jsonl")
        >>> shard.name, shard.answers.name, shard.errors.name, shard.size, shard.is_answered
        ('asked.txt', 'asked.txt.jsonl', 'asked.txt.errors.jsonl', 3, False)
    """

    name: str
    source: Path
    answers: Path
    errors: Path
    size: int
    modified: int

    @property
    def is_answered(self) -> bool:
        """Whether its answers are there, all of them."""
        return self.answers.exists()


def find_shards(inputs: Sequence[str | Path], folder: Path, *, ending: str) -> list[Shard]:
    """The files that names, folders and patterns stand for, with the places of their answers.

    A shard is called by its path from the folder that is named, or from where a pattern begins: of
    ``data/*/*.tsv``, ``data/de/a.tsv`` is answered in ``de/a.tsv.jsonl``.

    Args:
        inputs: Files, folders of them, or patterns as ``shards/*.parquet``.
        folder: Where the answers go.
        ending: What is put behind a file's name.

    Raises:
        DataError: Nothing is named, or something that is not there.
        SettingError: Two files would have one place for their answers, or the answers would lie
            among the files.

    Example:
        >>> import tempfile
        >>> home = Path(tempfile.mkdtemp())
        >>> for name in ("de/a.tsv", "fr/a.tsv"):
        ...     (home / name).parent.mkdir()
        ...     (home / name).touch()
        >>> found = find_shards([home / "*/*.tsv"], home / "answers", ending=".jsonl")
        >>> [shard.answers.relative_to(home).as_posix() for shard in found]
        ['answers/de/a.tsv.jsonl', 'answers/fr/a.tsv.jsonl']
    """
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
        known = path.stat()
    except OSError as error:
        raise DataError(f"{path} must be a readable file; got: {error.strerror}.") from error
    return Shard(
        name=name,
        source=path,
        answers=folder / f"{name}{ending}",
        errors=folder / f"{name}{ERRORS}",
        size=known.st_size,
        modified=known.st_mtime_ns,
    )
