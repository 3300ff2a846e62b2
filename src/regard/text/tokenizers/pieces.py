"""Pieces of text: their reserved ids, how ids become text again, and where each piece stands."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile

PAD_ID = 0
UNK_ID = 1
BOS_ID = 2
EOS_ID = 3
RESERVED = ("<pad>", "<unk>", "<s>", "</s>")
# What people are shown of the tokens without text.
BEGIN, END = "⟨begin⟩", "⟨end⟩"

# What an unknown piece reads as: the sign for "two questions", which hardly any text holds.
UNKNOWN_TEXT = "⁇"

Span = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Piece:
    """One piece of an encoded text.

    Attributes:
        text: What to show people: the piece without the space before it, a space alone as ␣. One
            such may stand at the very front without a place, before a word spelled in characters.
        id: Its number in the vocabulary.
        start: Place of its first character in the normalised text.
        end: One past its last character. The bytes of one character all share its place.

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


def surfaces_with_reserved(surfaces: Sequence[str]) -> list[str]:
    """Surface form of every id: the reserved ids first, then ``surfaces``."""
    return ["", UNKNOWN_TEXT, "", "", *surfaces]


def join(
    ids: Sequence[int], surfaces: Sequence[str], byte_values: Mapping[int, int] | None = None
) -> tuple[str, list[Span]]:
    """The text of ids and the span of each in it; ``byte_values`` holds the ids of single bytes.

    One space at the very front is dropped: it marks a first word. A span leaves out the space
    before a piece. Bytes that are no UTF-8 read as U+FFFD, those that break a line as a space.
    """
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
    place = 0
    while place < len(ids):
        if ids[place] not in byte_values:
            yield surfaces[ids[place]], 1
            place += 1
            continue
        spelled = takewhile(byte_values.__contains__, ids[place : place + 4])
        char, count = _first_character(bytes(byte_values[i] for i in spelled))
        yield " " if char.isspace() else char, count
        place += count


def _first_character(spelled: bytes) -> tuple[str, int]:
    for count in range(1, len(spelled) + 1):
        try:
            return spelled[:count].decode("utf-8"), count
        except UnicodeDecodeError:
            continue
    return "\ufffd", 1


def shown(surface: str) -> str:
    """A piece as people should see it."""
    return surface.strip(" ") or "␣"
