"""Words in pieces and parts: of a tokenizer, or characters, their n-grams, pairs of words."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TypeAlias, TypedDict

import torch
from jaxtyping import Int32
from torch import Tensor

from regard.checks import choose
from regard.errors import SettingError
from regard.tasks.settings.data import ClassificationData, TaggingData, WordPartsName
from regard.tasks.settings.recipe import Recipe
from regard.text import (
    BOS_ID,
    EOS_ID,
    PAD_ID,
    UNK_ID,
    Piece,
    Tokenizer,
    TokenizerConfig,
    normalize,
    train_tokenizer,
    words_of_spans,
)
from regard.text.files import read_saved, write_plain
from regard.text.masking import NO_WORD
from regard.text.normalization import has_unspaced
from regard.text.tokenizers.words import SPLITTERS, Vocabulary

# Marks of the begin and the end of a word or a sentence.
BEGIN, END = "\x02", "\x03"
_MOST = 20  # characters of a word that are read: its beginning and its end decide
_LENGTHS = (3, 4, 5)  # of n-grams of characters
_LONGEST = 5  # words of a phrase
_FILE = "words.json"

# Ids of a text's tokens; and of their parts, where words are read from them.
Cut: TypeAlias = tuple[list[int], Int32[Tensor, "N L"] | None]


def characters(words: Sequence[str]) -> list[list[str]]:
    """Characters between marks of begin and end; of long words, the first ten and the last ten."""
    return [[BEGIN, *_ends(word), END] for word in words]


def neighbours(words: Sequence[str]) -> list[list[str]]:
    """Pairs of each word with its neighbours: the bigrams of Chen et al. (2015)."""
    pairs = [f"{left} {right}" for left, right in pairwise([BEGIN, *words, END])]
    return [[before, after] for before, after in pairwise(pairs)]


def ngrams(words: Sequence[str]) -> list[list[str]]:
    """Character 3- to 5-grams of marked words: Bojanowski et al. (2017), section 3.2."""
    marked = [BEGIN + _ends(word) + END for word in words]
    return [
        [word[at : at + length] for length in _LENGTHS for at in range(len(word) - length + 1)]
        for word in marked
    ]


def phrases(words: Sequence[str]) -> list[list[str]]:
    """Runs of one to five words that end at each word; suits text cut into characters."""
    ends = range(1, len(words) + 1)
    return [
        [" ".join(words[start:end]) for start in range(max(0, end - _LONGEST), end)] for end in ends
    ]


WORD_PARTS: dict[str, Callable[[Sequence[str]], list[list[str]]]] = {
    "characters": characters,
    "neighbours": neighbours,
    "ngrams": ngrams,
    "phrases": phrases,
}


def reads_parts(recipe: Recipe) -> bool:
    """Whether the model reads words from their parts too."""
    return getattr(recipe.model, "parts", "none") != "none"


class _Spelling(TypedDict):
    type: str
    words: list[str]
    grams: list[str]
    parts: WordPartsName


@dataclass(frozen=True, slots=True, eq=False)
class Spelled:
    """Ids of a text's words, and of the parts of each, padded with 0."""

    words: list[int]
    parts: Int32[Tensor, "N L"]


class Speller:
    """Cuts texts into words, or characters, that are read from parts of theirs too."""

    def __init__(
        self, kind: str, parts: WordPartsName, words: Vocabulary, grams: Vocabulary
    ) -> None:
        self.kind, self.parts, self.words, self.grams = kind, parts, words, grams
        self._split = choose("kind", kind, SPLITTERS)
        self._parts_of = choose("parts", parts, WORD_PARTS)

    @classmethod
    def learn(
        cls,
        texts: Sequence[str],
        settings: TokenizerConfig,
        parts: WordPartsName,
        *,
        parts_min_count: int = 2,
    ) -> "Speller":
        """The words, and the parts of enough texts; SettingError unless text is cut into words."""
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
        grams = Vocabulary.learn((gram for text in met for gram in text), min_count=parts_min_count)
        return cls(settings.type, parts, words, grams)

    @classmethod
    def load(cls, folder: Path) -> "Speller":
        """The speller that ``save`` wrote."""
        table = read_saved(folder, _FILE, _Spelling)
        words, grams = Vocabulary(table["words"]), Vocabulary(table["grams"])
        return cls(table["type"], table["parts"], words, grams)

    def save(self, folder: Path) -> None:
        """Write the words and their parts."""
        vocabularies = {"words": self.words.units, "grams": self.grams.units}
        write_plain(folder, {"type": self.kind, "parts": self.parts, **vocabularies}, _FILE)

    @property
    def vocab_size(self) -> int:
        """Number of word ids."""
        return len(self.words)

    def pieces(self, text: str) -> list[Piece]:
        """The words of ``normalize(text)`` with their positions in it."""
        pieces, end = [], 0
        for unit in self._split(normalize(text)):
            end += len(unit)
            for word in _cut([unit]):
                (number,) = self.words.ids([word])
                pieces.append(Piece(word, number, end - len(word), end))
        return pieces

    def encode(self, text: str) -> Spelled:
        """The ids of a text's words and of their parts."""
        words = _cut(self._split(normalize(text)))
        rows = [self.grams.ids(parts) for parts in self._parts_of(words)]
        most = max(map(len, rows), default=0)
        filled = [row + [PAD_ID] * (most - len(row)) for row in rows]
        return Spelled(self.words.ids(words), torch.tensor(filled, dtype=torch.int32))


def learn_tokenizer(recipe: Recipe, texts: Sequence[str]) -> Tokenizer | Speller:
    """A tokenizer of these texts, or a speller where words are read from their parts."""
    settings = recipe.settings(TokenizerConfig)
    if reads_parts(recipe):
        data = recipe.settings(ClassificationData)
        return Speller.learn(texts, settings, data.parts, parts_min_count=data.parts_min_count)
    return train_tokenizer(texts, settings)


def check_whole(recipe: Recipe) -> None:
    """Raise SettingError if something is set that is done to whole words alone."""
    data = recipe.settings(TaggingData)
    settings = {
        "model.parts": reads_parts(recipe),
        "data.drop_words": data.drop_words > 0,
        "data.drop_parts": data.drop_parts > 0,
    }
    if names := [name for name, is_set in settings.items() if is_set]:
        raise SettingError(
            f"{names[0]} must be left out where words are cut into pieces, by [tokenizer] or as "
            "training.pretrained does; it is set."
        )


def cut_texts(tokenizer: Tokenizer | Speller, texts: Sequence[str]) -> list[Cut]:
    """The ids of each text's tokens, and where words are read from them, of their parts."""
    if not isinstance(tokenizer, Speller):
        return [(ids, None) for ids in tokenizer.encode_all(texts)]
    every = map(tokenizer.encode, texts)
    return [(spelled.words, spelled.parts) for spelled in every]


def joined_words(words: Sequence[str]) -> str:
    """The words as running text, without spaces beside an unspaced script or single characters."""
    if all(len(word) == 1 for word in words):
        return "".join(words)
    text = words[0]
    for word in words[1:]:
        text += word if has_unspaced(text[-1] + word[0]) else f" {word}"
    return text


def pieces_of(words: Sequence[str], tokenizer: Tokenizer) -> list[list[int]]:
    """Ids of each word's pieces; words are cut singly where a piece would be of two."""
    text = joined_words(words)
    if normalize(text) == text:
        spans, start = [], 0
        for word in words:
            start = text.index(word, start)
            spans.append((start, start := start + len(word)))
        pieces = _pieces_in(text, spans, tokenizer)
        if all(pieces):
            return pieces
    return [tokenizer.encode(word) or [UNK_ID] for word in words]


def framed(words: Sequence[Sequence[int]], *, begins: bool) -> tuple[list[int], list[int]]:
    """Ids of the pieces, framed, and each word's first position: Devlin et al. (2019), 5.3."""
    ids, firsts = [BOS_ID] * begins, []
    for pieces in words:
        firsts.append(len(ids))
        ids += pieces
    return [*ids, EOS_ID], firsts


def stretches(sizes: Sequence[int], longest: int) -> Iterator[slice]:
    """Words in a row, as many at a time as are at most so long together; one at least."""
    first, total = 0, 0
    for index, size in enumerate(sizes):
        if index > first and total + size > longest:
            yield slice(first, index)
            first, total = index, 0
        total += size
    if sizes:
        yield slice(first, len(sizes))


def _pieces_in(
    text: str, spans: Sequence[tuple[int, int]], tokenizer: Tokenizer
) -> list[list[int]]:
    """The pieces that begin in each span, a space before it among them; none if two share one."""
    pieces = tokenizer.pieces(text)
    owners = words_of_spans([(piece.start, piece.end) for piece in pieces], spans)
    ids: list[list[int]] = [[] for _ in spans]
    waiting: list[int] = []
    for piece, owner in zip(pieces, owners, strict=True):
        waiting.append(piece.id)
        if owner == NO_WORD:
            continue
        if piece.end > spans[owner][1]:
            return [[]]
        ids[owner] += waiting
        waiting = []
    return ids


def _ends(word: str) -> str:
    half = _MOST // 2
    return word if len(word) <= _MOST else word[:half] + word[-half:]


def _cut(units: Sequence[str]) -> list[str]:
    """Words without the space before them; a space that stands alone is none."""
    return [word for unit in units if (word := unit.strip())]
