"""Flat arrays of ids in files that are mapped into memory, so that only what is read is there."""

import mmap
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
from jaxtyping import Int

from regard.errors import DataError
from regard.text.corpus import Sequences

# What follows the name of an array: its ids, and where each part of it ends, with a 0 before the
# first.
IDS, ENDS = ".ids", ".ends"
# Of ids; of ends, and of what is numbered through all of a text.
NARROW: "np.dtype[np.signedinteger]" = np.dtype("<i4")
WIDE: "np.dtype[np.signedinteger]" = np.dtype("<i8")
# Reads after which what was read is given back to the system.
_READS = 4096


class MappedArrays(Mapping[str, Sequences]):
    """Flat arrays by name, each with its ends, from the files of a folder.

    What was read counts as the process's memory until it is given back, which ``reading`` does now
    and then; it is still there in the system's own cache of files as long as nobody needs the room.

    Args:
        folder: Where the files are.
        names: The arrays that are wanted.
        wide: Those of them that hold numbers beyond int32.

    Raises:
        DataError: A file is missing or empty.
    """

    def __init__(self, folder: Path, names: Sequence[str], wide: Sequence[str] = ()) -> None:
        self._maps: list[mmap.mmap] = []
        self._reads = 0
        self._arrays = {
            name: Sequences(
                self._mapped(folder / f"{name}{IDS}", WIDE if name in wide else NARROW),
                self._mapped(folder / f"{name}{ENDS}", WIDE),
            )
            for name in names
        }

    def __getitem__(self, name: str) -> Sequences:
        return self._arrays[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._arrays)

    def __len__(self) -> int:
        return len(self._arrays)

    def reading(self, count: int = 1) -> None:
        """Say that so many parts are about to be read."""
        self._reads += count
        if self._reads >= _READS:
            self._reads = 0
            self.release()

    def release(self) -> None:
        """Give back the memory of what was read."""
        if hasattr(mmap, "MADV_DONTNEED"):
            for each in self._maps:
                each.madvise(mmap.MADV_DONTNEED)

    def _mapped(self, path: Path, kind: "np.dtype[np.signedinteger]") -> Int[np.ndarray, " _"]:
        try:
            with path.open("rb") as file:
                mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except (OSError, ValueError) as error:
            raise DataError(
                f"{path} must be as it was encoded; got: {error}. Delete its folder, and it is "
                "made again."
            ) from error
        self._maps.append(mapped)
        return np.frombuffer(mapped, kind)
