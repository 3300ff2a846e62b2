"""Interface of tokenizers, their pieces and reserved ids, and how ids become text again."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from operator import index
from pathlib import Path
from typing import Protocol, runtime_checkable

from regard.errors import TokenError, excerpt

PAD_ID = 0
UNK_ID = 1
BOS_ID = 2
EOS_ID = 3
RESERVED = ("<pad>", "<unk>", "<s>", "</s>")
# Display texts of the tokens without text.
BEGIN, END = "⟨begin⟩", "⟨end⟩"

# Display text of an unknown piece: the sign for "two questions", which hardly any text holds.
UNKNOWN_TEXT = "⁇"

Span = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Piece:
    """One piece of an encoded text.

    Attributes:
        text: Display text: the piece without the space before it, a space alone as ␣. One
            may stand at the very front without a position, before a word spelled in characters.
        id: Its number in the vocabulary.
        start: Position of its first character in the normalised text.
        end: One past its last character. The bytes of one character all share its position.

    Example:
        >>> from regard.text import TokenizerConfig, train_tokenizer
        >>> tokenizer = train_tokenizer(["I love China."], TokenizerConfig(type="words"))
        >>> piece = tokenizer.pieces("I love China.")[1]
        >>> piece, "I love China."[piece.start : piece.end]
        (Piece(text='love', id=18, start=2, end=6), 'love')
    """

    text: str
    id: int
    start: int
    end: int


@runtime_checkable
class Tokenizer(Protocol):
    """Text to ids and back: ``decode(encode(text)) == normalize(text)`` for known characters.

    Ids 0 to 3 are ``pad_id``, ``unk_id``, ``bos_id`` and ``eos_id`` of every tokenizer.

    Example:
        >>> from regard.text import TokenizerConfig, train_tokenizer
        >>> tokenizer = train_tokenizer(["我爱中国。"], TokenizerConfig(type="characters"))
        >>> isinstance(tokenizer, Tokenizer), tokenizer.vocab_size, tokenizer.names
        (True, 10, ['<pad>', '<unk>', '<s>', '</s>', ' ', '。', '中', '国', '我', '爱'])
        >>> tokenizer.encode("爱我"), tokenizer.decode(tokenizer.encode("爱我"))
        ([9, 8], '爱我')
    """

    @property
    def vocab_size(self) -> int:
        """The number of ids, reserved ones included."""

    @property
    def pad_id(self) -> int:
        """The id of padding."""
        return PAD_ID

    @property
    def unk_id(self) -> int:
        """The id of pieces that are not in the vocabulary."""
        return UNK_ID

    @property
    def bos_id(self) -> int:
        """The id of the beginning of a sentence."""
        return BOS_ID

    @property
    def eos_id(self) -> int:
        """The id of the end of a sentence."""
        return EOS_ID

    @property
    def is_sampling(self) -> bool:
        """Whether a seed changes the ids of ``encode_all``."""
        return False

    @property
    def names(self) -> list[str]:
        """Names of the ids in a foreign vocabulary: the four reserved ones, then the pieces."""

    def encode(self, text: str) -> list[int]:
        """The ids of ``normalize(text)``, without begin and end."""
        return self.encode_all([text])[0]

    def encode_all(self, texts: Sequence[str], *, seed: int | None = None) -> list[list[int]]:
        """The ids of many texts; a seed draws other segmentations, for training only."""

    def decode(self, ids: Sequence[int]) -> str:
        """The text of ``ids``; reserved ids read as nothing, an unknown one as ⁇."""
        return self.decode_with_spans(ids)[0]

    def decode_with_spans(self, ids: Sequence[int]) -> tuple[str, list[Span]]:
        """The text of ``ids`` and the span of each id in it, in characters."""

    def pieces(self, text: str) -> list[Piece]:
        """The pieces of ``normalize(text)`` with their spans in it."""

    def save(self, folder: str | Path) -> None:
        """Write plain files into ``folder``, for ``load_tokenizer``."""


def unknown_pieces(tokenizer: Tokenizer, texts: Iterable[str]) -> list[str]:
    """The characters or words of texts that a tokenizer has no ids for."""
    pieces = [piece for text in texts for piece in tokenizer.pieces(text)]
    return [piece.text for piece in pieces if piece.id == UNK_ID]


def checked_ids(ids: Sequence[int], vocab_size: int) -> list[int]:
    """The ids as whole numbers; TokenError unless a vocabulary of this size has each."""
    try:
        indices = [index(token_id) for token_id in ids]
    except TypeError:
        raise TokenError(f"ids must be a list of whole numbers; got {excerpt(ids)}.") from None
    if indices and not 0 <= min(indices) <= max(indices) < vocab_size:
        wrong = next(token_id for token_id in indices if not 0 <= token_id < vocab_size)
        raise TokenError(f"ids must be from 0 to {vocab_size - 1}; got {wrong}.")
    return indices


def join(
    ids: Sequence[int], surfaces: Sequence[str], byte_values: Mapping[int, int] | None = None
) -> tuple[str, list[Span]]:
    """The text of ids, some of single bytes, without a first space; and their spans."""
    texts: list[str] = []
    spans: list[Span] = []
    length, at_start = 0, True
    for surface, count in _surfaces(ids, surfaces, byte_values or {}):
        text = surface[1:] if at_start and surface.startswith(" ") else surface
        at_start = at_start and not surface
        start = length + (len(text) > 1 and text.startswith(" "))
        length += len(text)
        texts.append(text)
        spans.extend([(start, length)] * count)
    return "".join(texts), spans


def _surfaces(
    ids: Sequence[int], surfaces: Sequence[str], byte_values: Mapping[int, int]
) -> Iterator[tuple[str, int]]:
    """The text of each piece, or of each character spelled in bytes, and how many ids it took."""
    position = 0
    while position < len(ids):
        if ids[position] not in byte_values:
            yield surfaces[ids[position]], 1
            position += 1
            continue
        spelled = takewhile(byte_values.__contains__, ids[position : position + 4])
        char, count = _first_character(bytes(byte_values[i] for i in spelled))
        yield " " if char.isspace() else char, count
        position += count


def _first_character(spelled: bytes) -> tuple[str, int]:
    for count in range(1, len(spelled) + 1):
        try:
            return spelled[:count].decode("utf-8"), count
        except UnicodeDecodeError:
            continue
    return "\ufffd", 1


def display_text(surface: str) -> str:
    """A piece as people should see it."""
    return surface.strip(" ") or "␣"
