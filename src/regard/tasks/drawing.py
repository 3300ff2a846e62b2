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
    """Tokens of a text that a model reads together with another.

    Attributes:
        name: Of the text, on the page.
        text: The text and its tokens.
        first: Position in the model's row of the first token that is read.
        read: Indices of the tokens that are read; None is all.
    """

    name: str
    text: Text
    first: int
    read: range | None = None

    @property
    def tokens(self) -> slice:
        """Indices of the tokens that are read."""
        read = range(len(self.text.tokens)) if self.read is None else self.read
        return slice(read.start, read.stop)

    @property
    def in_row(self) -> slice:
        """Their positions in the model's row."""
        return slice(self.first, self.first + self.tokens.stop - self.tokens.start)


@dataclass(frozen=True, slots=True, kw_only=True)
class CrossAttention:
    """Attention of one text over another, and the calls that compute it.

    Attributes:
        queries: The text whose tokens are the queries.
        keys: The text whose tokens are the keys.
        is_answered: Whether tags and values of the prediction are of the queries' text.
        kind: Of the calls: ``encoder`` where both texts stand in one row.
        layers: Of the calls; None is all.
        row: Index in the batch.
    """

    queries: TextPart
    keys: TextPart
    is_answered: bool
    kind: Literal["encoder", "cross"]
    layers: tuple[int, ...] | None = None
    row: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Shade:
    """Attention that shades the tokens of a text, averaged over heads.

    Attributes:
        kind: Of the call.
        layer: Of the call; None is the last.
        query: Index of the query; None is the mean over all.
        measure: Meaning of the weights, in words.
    """

    kind: Literal["encoder", "cross"]
    layer: int | None
    query: int | None
    measure: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawing:
    """An example and its prediction for a page.

    Attributes:
        text: The text read; None is the words of the request, and ``Answer.text`` as output.
        output: The text predicted.
        cross_attentions: Of two texts read together; then no other attention is shown.
        prediction: Labels, tags and values; tags and values are one for each token of ``text``, or
            of ``output`` where ``text`` is empty.
        shade: Attention shown as values in place of those of ``prediction``, if the model has it.
        importances: Importance of each token by other measures.
        image: The image whose patches are the tokens of ``text``.
        label: Name of the example; None where its texts identify it.
    """

    text: Text | None = None
    output: Text = NOTHING
    cross_attentions: tuple[CrossAttention, ...] = ()
    prediction: Prediction | None = None
    shade: Shade | None = None
    importances: tuple[Importance, ...] = ()
    image: Image | None = None
    label: str | None = None


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
    return tuple(sorted(labels, key=lambda each: -each[1]))


def check_drawn_length(length: int, longest: int, unit: str) -> None:
    """Raise DataError if a text is too long to be read, and drawn, at once."""
    if length > longest:
        raise DataError(
            f"text must be at most {longest} {unit} long to be looked at; got {length}. "
            "Look at one sentence at a time."
        )
