"""Texts for texts as a model takes them and gives them: encoded, in batches, and searched for."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import overload

import numpy as np
from jaxtyping import Int32, Int64

from regard.tasks.streaming import Stored
from regard.text import Batch, Corpus
from regard.text.corpus import MappedArrays


@dataclass(frozen=True, slots=True, eq=False)
class EncodedSequences:
    """A source as the model reads it at once, and its target, as ids without begin and end.

    Attributes:
        source: Ids of the source.
        target: Ids of the target; none where it is asked for.
        text: The source itself, where its answer is asked for.
        is_first: Whether it is the beginning of a text: a prefix and required words are for those.
    """

    source: Sequence[int] | Int32[np.ndarray, " S"]
    target: Sequence[int] | Int32[np.ndarray, " T"] = ()
    text: str = ""
    is_first: bool = True


@dataclass(frozen=True, slots=True, eq=False)
class SequenceBatch:
    """Padded sources and targets.

    Attributes:
        padded: What the model reads and says.
        encoded: What it was made of, a row each.
    """

    padded: Batch
    encoded: Sequence[EncodedSequences]


class StoredPairs(Stored[EncodedSequences]):
    """Pairs of a corpus that is on disk.

    Args:
        arrays: ``source`` and ``target``.
        source_end: Whether the model reads an end token after the source.
    """

    def __init__(self, arrays: MappedArrays, *, source_end: bool) -> None:
        super().__init__(arrays)
        self._source, self._target = arrays["source"], arrays["target"]
        self._source_end = source_end

    def __len__(self) -> int:
        return len(self._source)

    def sample(self, index: int) -> EncodedSequences:
        return EncodedSequences(self._source[index], self._target[index])

    def lengths_at(self, indices: Int64[np.ndarray, " n"]) -> Int64[np.ndarray, "2 n"]:
        source, target = self._source.lengths_at(indices), self._target.lengths_at(indices)
        return np.stack([source + int(self._source_end), target + 1])


class EncodedCorpus(Sequence[EncodedSequences]):
    """A corpus as a sequence of its pairs.

    Args:
        corpus: The pairs in flat arrays.
    """

    def __init__(self, corpus: Corpus) -> None:
        self.corpus = corpus

    def __len__(self) -> int:
        return len(self.corpus)

    @overload
    def __getitem__(self, index: int) -> EncodedSequences: ...

    @overload
    def __getitem__(self, index: slice) -> list[EncodedSequences]: ...

    def __getitem__(self, index: int | slice) -> EncodedSequences | list[EncodedSequences]:
        if isinstance(index, slice):
            return [self[position] for position in range(*index.indices(len(self)))]
        return EncodedSequences(self.corpus.source[index], self.corpus.target[index])
