"""Drawings: an example and its prediction in the viewer's types, with their attention."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from regard.errors import DataError
from regard.text import Piece
from regard.text.tokenizers.pieces import BEGIN, END
from regard.viewer import Image, Importance, Prediction, Text, Token

NOTHING = Text(text="", tokens=())


@dataclass(frozen=True, slots=True)
class TextPart:
    """Tokens of a text, with its name on the page, that a model reads together with another."""

    name: str
    text: Text
    first: int  # position in the model's row of the first token that is read
    read: range | None = None  # the tokens that are read; None is all

    @property
    def tokens(self) -> slice:
        """Indices of the tokens that are read."""
        read = range(len(self.text.tokens)) if self.read is None else self.read
        return slice(read.start, read.stop)

    @property
    def in_row(self) -> slice:
        """Positions of these tokens in the model's row."""
        return slice(self.first, self.first + self.tokens.stop - self.tokens.start)


@dataclass(frozen=True, slots=True, kw_only=True)
class CrossAttention:
    """Attention of one text's tokens over another's, and the calls that compute it."""

    queries: TextPart
    keys: TextPart
    is_answered: bool  # whether tags and values of the prediction are of the queries' text
    kind: Literal["encoder", "cross"]  # encoder where both texts stand in one row
    layers: tuple[int, ...] | None = None  # None is all
    row: int = 0  # of the batch


@dataclass(frozen=True, slots=True, kw_only=True)
class Shade:
    """Attention that shades the tokens of a text, averaged over heads, and its meaning."""

    kind: Literal["encoder", "cross"]
    layer: int | None  # None is the last
    query: int | None  # None is the mean over all
    measure: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawing:
    """An example and its prediction for a page; without a text, the request and ``Answer.text``."""

    text: Text | None = None
    output: Text = NOTHING
    cross_attentions: tuple[CrossAttention, ...] = ()  # if any, no other attention is shown
    is_pair: bool = False  # the whole row is shown too, where both texts stand in one
    prediction: Prediction | None = None
    shade: Shade | None = None  # in place of the prediction's values, if the model has it
    importances: tuple[Importance, ...] = ()
    image: Image | None = None  # its patches are the tokens of ``text``
    label: str | None = None  # None where the texts identify the example


def pieces_text(
    text: str, pieces: Iterable[Piece], *, begins: bool = False, ends: bool = False
) -> Text:
    """A text in a tokenizer's pieces, framed by the tokens that a model reads around it."""
    tokens = [Token(text=piece.text, start=piece.start, end=piece.end) for piece in pieces]
    last = tokens[-1].end if tokens else 0
    before = [Token(text=BEGIN, start=0, end=0)] * begins
    after = [Token(text=END, start=last, end=last)] * ends
    return Text(text=text, tokens=(*before, *tokens, *after))


def spans_text(text: str, spans: Iterable[tuple[int, int]]) -> Text:
    """A text whose tokens are these spans of it."""
    tokens = (Token(text=text[start:end], start=start, end=end) for start, end in spans)
    return Text(text=text, tokens=tuple(tokens))


def words_text(words: Sequence[str], space: str = " ") -> Text:
    """A text of these words, each a token."""
    tokens, start = [], 0
    for word in words:
        tokens.append(Token(text=word, start=start, end=start + len(word)))
        start += len(word) + len(space)
    return Text(text=space.join(words), tokens=tuple(tokens))


def likeliest_first(labels: Iterable[tuple[str, float]]) -> tuple[tuple[str, float], ...]:
    """Labels with their probabilities in descending order."""
    return tuple(sorted(labels, key=lambda pair: -pair[1]))


def check_drawn_length(length: int, longest: int, unit: str) -> None:
    """Raise DataError if a text is too long to be read, and drawn, at once."""
    if length > longest:
        raise DataError(
            f"text must be at most {longest} {unit} long to be looked at; got {length}. "
            "Look at one sentence at a time."
        )
