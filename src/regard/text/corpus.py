"""Encoded sentence pairs in memory, as flat arrays of ids."""

import mmap
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence, Sized
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path

import numpy as np
from jaxtyping import Int, Int64

from regard.checks import check_count, check_kind
from regard.errors import DataError
from regard.progress import track
from regard.text.reading.lines import BadLines
from regard.text.reading.pairs import Pair
from regard.text.tokenizers.tokenizer import PairTokenizer

_CHUNK = 2048


@dataclass(frozen=True, slots=True, eq=False)
class Sequences:
    """Sentences of ids, one after the other in one array.

    Attributes:
        ids: All ids.
        offsets: Where each sentence starts, and where the last one ends.
    """

    ids: Int[np.ndarray, " ids"]
    offsets: Int64[np.ndarray, " ends"]

    @staticmethod
    def of(sentences: Iterable[Sequence[int]]) -> "Sequences":
        """Lay ``sentences`` end to end."""
        growing = _Growing()
        for sentence in sentences:
            growing.add(sentence)
        return growing.finished()

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, index: int) -> Int[np.ndarray, " length"]:
        if not 0 <= index < len(self):
            raise IndexError(f"sentence {index} of {len(self)}")
        return self.ids[self.offsets[index] : self.offsets[index + 1]]

    @property
    def lengths(self) -> Int64[np.ndarray, " sentences"]:
        """The number of ids of each sentence."""
        return np.diff(self.offsets)

    def lengths_at(self, indices: Int64[np.ndarray, " _"]) -> Int64[np.ndarray, " _"]:
        """The number of ids of some sentences, without a look at the others."""
        lengths: Int64[np.ndarray, " _"] = self.offsets[indices + 1] - self.offsets[indices]
        return lengths


@dataclass(frozen=True, slots=True, eq=False)
class Corpus:
    """Sentence pairs, encoded; without begin and end.

    Attributes:
        source: The sources.
        target: The targets, in the same order.
        texts: The pairs as text, kept only where ``resample`` will need them.
    """

    source: Sequences
    target: Sequences
    texts: tuple[Sequence[str], Sequence[str]] | None = None

    def __len__(self) -> int:
        return len(self.source)


def encode_corpus(
    pairs: Iterable[Pair],
    tokenizer: PairTokenizer,
    *,
    max_length: int | None = None,
    too_long: BadLines | None = None,
) -> Corpus:
    """The pairs as ids, without those that are too long, of which none need remain.

    Args:
        pairs: Pairs to encode, in the order the corpus will have.
        tokenizer: Encodes each side.
        max_length: The most ids a side may have, begin and end not counted. None allows any number.
        too_long: Where pairs left out are counted.

    Example:
        >>> from regard.text import TokenizerConfig, train_pair_tokenizer
        >>> pairs = [Pair("我爱中国", "I love China", ("I love China",), "a.tsv:1")]
        >>> tokenizer = train_pair_tokenizer(
        ...     ["我爱中国"], ["I love China"], TokenizerConfig(type="words", shared=False)
        ... )
        >>> corpus = encode_corpus(pairs, tokenizer)
        >>> corpus.source.lengths.tolist(), corpus.target.lengths.tolist()
        ([4], [3])
    """
    check_kind("tokenizer", tokenizer, PairTokenizer)
    check_count("max_length", 1 if max_length is None else max_length)
    too_long = BadLines() if too_long is None else too_long
    sources, targets = _Growing(), _Growing()
    texts: tuple[list[str], list[str]] = ([], [])
    watched = track("encoding", pairs, len(pairs)) if isinstance(pairs, Sized) else iter(pairs)
    while chunk := list(islice(watched, _CHUNK)):
        for pair in chunk:
            check_kind("each of pairs", pair, Pair)
        source_ids = tokenizer.source.encode_all([pair.source for pair in chunk])
        target_ids = tokenizer.target.encode_all([pair.target for pair in chunk])
        for pair, source, target in zip(chunk, source_ids, target_ids, strict=True):
            sides = (("source", len(source)), ("target", len(target)))
            longer = [side for side in sides if max_length is not None and side[1] > max_length]
            if not longer:
                sources.add(source)
                targets.add(target)
                texts[0].append(pair.source)
                texts[1].append(pair.target)
                continue
            side, length = longer[0]
            too_long.add(
                f"{side} too long",
                f"{pair.where}: the {side} must be at most {max_length} tokens long; got {length}. "
                "Raise max_length, or split the sentence.",
            )
    stored_texts = texts if tokenizer.is_sampling else None
    return Corpus(sources.finished(), targets.finished(), stored_texts)


def resample(corpus: Corpus, tokenizer: PairTokenizer, *, seed: int, epoch: int) -> Corpus:
    """Tokenize the pairs anew, for one epoch of training.

    The same seed and epoch give the same ids, and pairs keep their order. A tokenizer that does
    not sample gives ``corpus`` back.
    """
    check_kind("corpus", corpus, Corpus)
    check_kind("tokenizer", tokenizer, PairTokenizer)
    if corpus.texts is None or not tokenizer.is_sampling:
        return corpus
    seeds = np.random.SeedSequence([seed, epoch]).generate_state(2)
    source, target = (
        Sequences.of(side.encode_all(texts, seed=int(side_seed)))
        for side, texts, side_seed in zip(
            (tokenizer.source, tokenizer.target), corpus.texts, seeds, strict=True
        )
    )
    return replace(corpus, source=source, target=target)


class _Growing:
    """Sequences to which sentences are being added."""

    def __init__(self) -> None:
        self._ids, self._offsets = array("i"), array("q", [0])

    def add(self, ids: Sequence[int]) -> None:
        self._ids.extend(ids)
        self._offsets.append(len(self._ids))

    def finished(self) -> Sequences:
        return Sequences(
            np.array(self._ids, dtype=np.int32), np.array(self._offsets, dtype=np.int64)
        )


# Endings of the files of an array: its ids, and where each part of it ends, after a first 0.
IDS, ENDS = ".ids", ".ends"
# Types of ids; of ends, and of numbers that run through all of a text.
NARROW: "np.dtype[np.signedinteger]" = np.dtype("<i4")
WIDE: "np.dtype[np.signedinteger]" = np.dtype("<i8")
# Reads after which their pages are given back to the system.
_READS = 4096


class MappedArrays(Mapping[str, Sequences]):
    """Flat arrays by name, each with its ends, mapped from files; ``wide`` ones are of int64."""

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
        """Give back the memory of pages that were read."""
        if hasattr(mmap, "MADV_DONTNEED"):
            for mapped in self._maps:
                mapped.madvise(mmap.MADV_DONTNEED)

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
