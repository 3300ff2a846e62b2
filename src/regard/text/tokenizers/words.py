"""Lists of words or characters with an id each: a tokenizer, and a vocabulary of cut text."""

import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from pathlib import Path
from typing import Literal, TypedDict

from regard.checks import as_path, choose
from regard.config import JsonValue
from regard.errors import SettingError
from regard.text.files import TABLE_FILE, parse_saved, write_plain
from regard.text.normalization import normalize, opens_with_word, split_words
from regard.text.tokenizers.pieces import (
    PAD_ID,
    RESERVED,
    UNK_ID,
    UNKNOWN_TEXT,
    Piece,
    Span,
    Tokenizer,
    checked_ids,
    display_text,
    join,
)

SPLITTERS: dict[str, Callable[[str], list[str]]] = {"characters": list, "words": split_words}


class ListTokenizer(Tokenizer):
    """Pieces from a list, with the space before them; unknown words are spelled in characters."""

    def __init__(self, pieces: Sequence[str], *, kind: Literal["words", "characters"]):
        """Number the pieces, in the order of their ids."""
        self.kind = kind
        self._split = choose("tokenizer.type", kind, SPLITTERS)
        self._surfaces = ["", UNKNOWN_TEXT, "", "", *pieces]
        self._ids = {piece: i for i, piece in enumerate(pieces, start=len(RESERVED))}

    @property
    def vocab_size(self) -> int:
        return len(self._surfaces)

    @property
    def names(self) -> list[str]:
        return [*RESERVED, *self._surfaces[len(RESERVED) :]]

    def encode_all(self, texts: Sequence[str], *, seed: int | None = None) -> list[list[int]]:
        """The ids of many texts; there is one way to split each, whatever the seed."""
        id_of = self._ids.get
        return [[id_of(part, UNK_ID) for part in self._cut(text)] for text in texts]

    def decode_with_spans(self, ids: Sequence[int]) -> tuple[str, list[Span]]:
        return join(checked_ids(ids, self.vocab_size), self._surfaces)

    def pieces(self, text: str) -> list[Piece]:
        """The pieces of ``normalize(text)``; an unknown one shows the character it stands for."""
        surfaces = self._cut(text)
        texts = [""] * len(RESERVED) + surfaces
        _, spans = join(range(len(RESERVED), len(texts)), texts)
        return [
            Piece(display_text(surface), self._ids.get(surface, UNK_ID), *span)
            for surface, span in zip(surfaces, spans, strict=True)
        ]

    def save(self, folder: str | Path) -> None:
        write_plain(
            as_path("folder", folder),
            {"type": self.kind, "pieces": self._surfaces[len(RESERVED) :]},
        )

    def _cut(self, text: str) -> list[str]:
        """Words; of one that is unknown the space and the word, if that is known, or characters."""
        words = self._split(_marked(normalize(text), self.kind))
        if all(map(self._ids.__contains__, words)):
            return words
        parts: list[str] = []
        for word in words:
            if word in self._ids:
                parts.append(word)
            elif word.startswith(" ") and word[1:] in self._ids:
                parts += (" ", word[1:])
            else:
                parts += word
        return parts


def train_list(
    lines: Iterable[str],
    *,
    kind: Literal["words", "characters"],
    vocab_size: int | None,
    may_shrink: bool = False,
    min_count: int = 1,
) -> ListTokenizer:
    """Number the most frequent words, or the characters, of some lines; None takes all."""
    split = choose("tokenizer.type", kind, SPLITTERS)
    texts = [_marked(normalize(line), kind) for line in lines]
    characters = _frequent(Counter(chain.from_iterable(texts)), min_count)
    words = _frequent(Counter(chain.from_iterable(map(split, texts))), min_count)
    if not characters:
        raise SettingError("The text to train a tokenizer on must not be empty; got no words.")
    # A space is always there, to stand before a word known only at the start of a sentence.
    pieces = list(dict.fromkeys([" ", *characters, *words]))
    largest = len(pieces) + len(RESERVED)
    if vocab_size is not None and vocab_size > largest and not may_shrink:
        raise SettingError(
            f"vocab_size must be at most {largest}; got {vocab_size}. The corpus allows no larger "
            f"vocabulary: set vocab_size = {largest} or less, or train on more text."
        )
    size = None if vocab_size is None else max(vocab_size - len(RESERVED), 1)
    return ListTokenizer(pieces[:size], kind=kind)


class _Pieces(TypedDict):
    """Contents of ``tokenizer.json``."""

    type: Literal["words", "characters"]
    pieces: list[str]


def load_list(folder: Path, table: dict[str, JsonValue]) -> ListTokenizer:
    """Load the file of ``save``."""
    saved = parse_saved(table, _Pieces, folder / TABLE_FILE)
    return ListTokenizer(saved["pieces"], kind=saved["type"])


def _marked(text: str, kind: str) -> str:
    return f" {text}" if kind == "words" and opens_with_word(text) else text


def _frequent(counts: Counter[str], min_count: int) -> list[str]:
    """The frequent ones, most frequent first; equals in the order of their characters."""
    frequent = [(count, piece) for piece, count in counts.items() if count >= min_count]
    return [piece for _, piece in sorted(frequent, key=lambda item: (-item[0], item[1]))]


# Ids of padding and of unknown entries.
_SPECIAL = 2
assert (PAD_ID, UNK_ID) == (0, 1)


class Vocabulary:
    """Ids of units: 0 pads, 1 is unknown; with buckets, unknown ones share ids by spelling."""

    def __init__(self, units: Sequence[str], *, buckets: int = 0) -> None:
        self.units, self.buckets = list(units), buckets
        self._ids = {unit: i for i, unit in enumerate(units, _SPECIAL)}

    @classmethod
    def learn(cls, units: Iterable[str], *, min_count: int = 1) -> "Vocabulary":
        """The units that occur at least ``min_count`` times, the most frequent first."""
        return cls(_frequent(Counter(units), min_count))

    def __len__(self) -> int:
        return len(self.units) + _SPECIAL + self.buckets

    def ids(self, units: Iterable[str]) -> list[int]:
        """The ids of units."""
        return [self._ids.get(unit) or self._unknown(unit) for unit in units]

    def _unknown(self, unit: str) -> int:
        """The bucket of a word by checksum: ``hash`` would differ in every process."""
        if not self.buckets:
            return UNK_ID
        return len(self.units) + _SPECIAL + zlib.crc32(unit.encode(errors="replace")) % self.buckets
