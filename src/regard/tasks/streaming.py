"""Text that is larger than memory, encoded a part at a time."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Generic, Literal, TypeVar, overload

import numpy as np
from jaxtyping import Int64

from regard.tasks.settings.recipe import Recipe
from regard.tasks.task import AnyTask
from regard.text import BadLines, Line, Sequences, decode_lines
from regard.text.corpus import MappedArrays
from regard.text.reading.forms import text_suffix

ExampleT = TypeVar("ExampleT")
EncodedT = TypeVar("EncodedT")

# A file of a text; and that of its targets, where these are in one of their own.
Shard = tuple[Path, Path | None]


@dataclass(frozen=True, slots=True)
class Chunk:
    """Consecutive lines of a shard, unchanged."""

    shard: Shard
    numbers: Sequence[int]
    lines: list[bytes]
    targets: list[bytes] | None
    header: bytes

    @property
    def ending(self) -> str:
        """The ending of the file's name without compression; rows of CSV are here as in TSV."""
        ending = text_suffix(self.shard[0])
        return ".tsv" if ending == ".csv" else ending

    def decoded(self) -> list[Line]:
        """The lines, which know their positions."""
        return list(decode_lines(self.lines, str(self.shard[0]), numbers=self.numbers))

    def decoded_targets(self) -> list[Line] | None:
        """The decoded lines of the targets."""
        if self.targets is None:
            return None
        return list(decode_lines(self.targets, str(self.shard[1]), numbers=self.numbers))

    def decoded_header(self) -> Line:
        """The first line of the shard."""
        return next(decode_lines([self.header], str(self.shard[0])))


class Samples(Sequence[EncodedT]):
    """Encoded samples, each of them made when it is asked for."""

    @abstractmethod
    def sample(self, index: int) -> EncodedT:
        """The sample at an index."""

    @overload
    def __getitem__(self, index: int) -> EncodedT: ...

    @overload
    def __getitem__(self, index: slice) -> list[EncodedT]: ...

    def __getitem__(self, index: int | slice) -> EncodedT | list[EncodedT]:
        if isinstance(index, slice):
            return [self[position] for position in range(*index.indices(len(self)))]
        if not 0 <= index < len(self):
            raise IndexError(f"sample {index} of {len(self)}")
        return self.sample(index)


class Stored(Samples[EncodedT]):
    """Encoded samples on disk."""

    def __init__(self, arrays: MappedArrays) -> None:
        self.arrays = arrays

    @abstractmethod
    def lengths_at(self, indices: Int64[np.ndarray, " _"]) -> Int64[np.ndarray, "2 _"]:
        """Cost of samples in ``training.batch_tokens``, on each side."""


class StreamedTask(ABC, Generic[ExampleT, EncodedT]):
    """A task whose training text may be larger than memory."""

    # Validated on where no file is named: lines by their hash, or the end of the text.
    held_out: ClassVar[Literal["hash", "end"]]
    # The arrays that the text becomes; and those of them that hold numbers from 0 in each chunk,
    # which are to go on from chunk to chunk; below 0 are none.
    stored_as: ClassVar[tuple[str, ...]]
    numbered: ClassVar[tuple[str, ...]]

    @classmethod
    @abstractmethod
    def shards(cls, recipe: Recipe, split: str) -> list[Shard]:
        """The files of a split."""

    @classmethod
    @abstractmethod
    def of_chunk(
        cls, recipe: Recipe, chunk: Chunk, *, bad_lines: BadLines | None = None
    ) -> list[ExampleT]:
        """The examples in some lines, which may be none."""

    @classmethod
    @abstractmethod
    def drop_overlap(cls, examples: Sequence[ExampleT], held: Sequence[ExampleT]) -> list[ExampleT]:
        """Examples that have nothing in common with those held out."""

    @abstractmethod
    def to_store(
        self, examples: Sequence[ExampleT], *, too_long: BadLines
    ) -> Mapping[str, Sequences]:
        """Ids of the training examples, by the names of ``stored_as``."""

    @abstractmethod
    def stored(self, arrays: MappedArrays) -> Stored[EncodedT]:
        """The training examples over the stored arrays of all chunks."""


def streamed(task: type[AnyTask]) -> type[StreamedTask[object, object]] | None:
    """The task, if its training text may be larger than memory; else None."""
    return task if issubclass(task, StreamedTask) else None
