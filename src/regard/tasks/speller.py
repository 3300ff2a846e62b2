"""Texts as ids of their words, and of what each word is read from besides itself."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias, TypedDict

import torch
from jaxtyping import Int32
from torch import Tensor

from regard.choices import choose
from regard.errors import SettingError
from regard.tasks.word_parts import WORD_PARTS, WordPartsName
from regard.text import PAD_ID, Piece, Tokenizer, TokenizerConfig, normalize
from regard.text.files import read_kept, write_plain
from regard.text.tokenizers.words import SPLITTERS, Vocabulary

_FILE = "words.json"

# How many texts a part must occur in to have an id: that of one says only which text it is.
_LEAST = 2

# Ids of a text's tokens; and of their parts, where words are read from them.
Cut: TypeAlias = tuple[list[int], Int32[Tensor, "N L"] | None]


class _Spelling(TypedDict):
    """Contents of a speller's file."""

    type: str
    words: list[str]
    grams: list[str]
    parts: WordPartsName


@dataclass(frozen=True, slots=True, eq=False)
class Spelled:
    """A text as ids.

    Attributes:
        words: Of its words.
        parts: Of the parts of each, padded with 0.
    """

    words: list[int]
    parts: Int32[Tensor, "N L"]


class Speller:
    """Cuts texts into words, or characters, that are read from parts of theirs too.

    A word that training did not have is unknown, but not its parts.

    Args:
        kind: How a text is cut: a name in ``SPLITTERS``.
        parts: What a word's parts are: a name in ``WORD_PARTS``.
        words: The words of training.
        grams: The parts of training.

    Example:
        >>> settings = TokenizerConfig(type="words")
        >>> speller = Speller.learn(["a bad film", "a bad book"], settings, "ngrams")
        >>> spelled = speller.encode("bad books")
        >>> spelled.words, spelled.parts.shape
        ([3, 1], torch.Size([2, 12]))
    """

    def __init__(
        self, kind: str, parts: WordPartsName, words: Vocabulary, grams: Vocabulary
    ) -> None:
        self.kind, self.parts, self.words, self.grams = kind, parts, words, grams
        self._split = choose("kind", kind, SPLITTERS)
        self._parts_of = choose("parts", parts, WORD_PARTS)

    @classmethod
    def learn(
        cls, texts: Iterable[str], settings: TokenizerConfig, parts: WordPartsName
    ) -> "Speller":
        """The words that occur often enough in ``texts``, and the parts of two texts or more.

        Raises:
            SettingError: The settings do not cut text into words, or read a begin, which has no
                parts.
        """
        if settings.type not in SPLITTERS:
            raise SettingError(
                f"tokenizer.type must be {' or '.join(SPLITTERS)} where model.parts is set; "
                f"got {settings.type!r}."
            )
        if settings.begins:
            raise SettingError(
                "tokenizer.begin must be left out where model.parts is set; got true. "
                "A begin has no parts."
            )
        split = SPLITTERS[settings.type]
        parts_of = choose("parts", parts, WORD_PARTS)
        cut = [_cut(split(normalize(text))) for text in texts]
        words = Vocabulary.learn(
            (word for text in cut for word in text), min_count=settings.min_count
        )
        met = ({gram for word in parts_of(text) for gram in word} for text in cut)
        grams = Vocabulary.learn((gram for text in met for gram in text), min_count=_LEAST)
        return cls(settings.type, parts, words, grams)

    @classmethod
    def load(cls, folder: Path) -> "Speller":
        """The one that ``save`` wrote."""
        table = read_kept(folder, _FILE, _Spelling)
        words, grams = Vocabulary(table["words"]), Vocabulary(table["grams"])
        return cls(table["type"], table["parts"], words, grams)

    def save(self, folder: Path) -> None:
        """Write the words and their parts."""
        vocabularies = {"words": self.words.units, "grams": self.grams.units}
        write_plain(folder, {"type": self.kind, "parts": self.parts, **vocabularies}, _FILE)

    @property
    def vocab_size(self) -> int:
        """How many ids of words there are."""
        return len(self.words)

    def pieces(self, text: str) -> list[Piece]:
        """The words of ``normalize(text)`` with their places in it."""
        found, end = [], 0
        for unit in self._split(normalize(text)):
            end += len(unit)
            for word in _cut([unit]):
                (number,) = self.words.ids([word])
                found.append(Piece(word, number, end - len(word), end))
        return found

    def encode(self, text: str) -> Spelled:
        """The ids of a text's words and of their parts."""
        words = _cut(self._split(normalize(text)))
        rows = [self.grams.ids(parts) for parts in self._parts_of(words)]
        most = max(map(len, rows), default=0)
        padded = [row + [PAD_ID] * (most - len(row)) for row in rows]
        return Spelled(self.words.ids(words), torch.tensor(padded, dtype=torch.int32))


def cut_texts(tokenizer: Tokenizer | Speller, texts: Sequence[str]) -> list[Cut]:
    """The ids of each text's tokens, and where words are read from them, of their parts."""
    if not isinstance(tokenizer, Speller):
        return [(ids, None) for ids in tokenizer.encode_all(texts)]
    every = map(tokenizer.encode, texts)
    return [(spelled.words, spelled.parts) for spelled in every]


def _cut(units: Sequence[str]) -> list[str]:
    """Words without the space before them; a space that stands alone is none."""
    return [word for unit in units if (word := unit.strip())]
