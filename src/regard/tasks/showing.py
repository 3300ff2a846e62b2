"""Plain data of an example and its prediction, for pages."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from jaxtyping import Float

from regard.errors import DataError
from regard.text import Piece
from regard.text.pieces import BEGIN, END


class ShownToken(NamedTuple):
    """A token and where it stands in its text.

    Attributes:
        text: What people are shown.
        start: Its first character.
        end: One past its last; equal to ``start`` for a token that is no text.
    """

    text: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class ShownText:
    """A text and its tokens.

    Attributes:
        text: What was read or said.
        tokens: Its tokens in order, one for each query or key of the attention in it.
    """

    text: str = ""
    tokens: tuple[ShownToken, ...] = ()

    @classmethod
    def of_pieces(
        cls, text: str, pieces: Iterable[Piece], *, begins: bool = False, ends: bool = False
    ) -> "ShownText":
        """A text as a tokenizer cut it, between a begin and an end where it is read so."""
        found = [ShownToken(piece.text, piece.start, piece.end) for piece in pieces]
        last = found[-1].end if found else 0
        before, after = [ShownToken(BEGIN, 0, 0)] * begins, [ShownToken(END, last, last)] * ends
        return cls(text, (*before, *found, *after))

    @classmethod
    def of_spans(cls, text: str, spans: Iterable[tuple[int, int]]) -> "ShownText":
        """A text whose tokens are what stands in these places."""
        return cls(text, tuple(ShownToken(text[start:end], start, end) for start, end in spans))

    @classmethod
    def of_words(cls, words: Sequence[str], space: str = " ") -> "ShownText":
        """Words as a text.

        Example:
            >>> ShownText.of_words(["I", "see"]).tokens[1]
            ShownToken(text='see', start=2, end=5)
        """
        tokens, place = [], 0
        for word in words:
            tokens.append(ShownToken(word, place, place + len(word)))
            place += len(word) + len(space)
        return cls(space.join(words), tuple(tokens))


@dataclass(frozen=True, slots=True)
class TextPart:
    """Tokens that a model reads of a text beside another.

    Attributes:
        name: What the text is called on the page.
        text: It and its tokens.
        first: Where in the model's row the first token that it reads stands.
        read: Which of the tokens it reads; None is all.
    """

    name: str
    text: ShownText
    first: int
    read: range | None = None

    @property
    def places(self) -> slice:
        """The places of the tokens that are read, among the text's tokens."""
        read = range(len(self.text.tokens)) if self.read is None else self.read
        return slice(read.start, read.stop)

    @property
    def in_row(self) -> slice:
        """Their places in the model's row."""
        places = self.places
        return slice(self.first, self.first + places.stop - places.start)


@dataclass(frozen=True, slots=True, kw_only=True)
class Crossing:
    """One text looking at the other, and which calls of attention that is.

    Attributes:
        looks: The text whose tokens are the queries.
        seen: The text whose tokens are the keys.
        is_answered: Whether the text that looks is the one that tags and values are of.
        kind: Of the calls: ``encoder`` where both texts stand in one row, which looks at itself.
        layers: Of the calls; None is all.
        row: Which row of the batch.
    """

    looks: TextPart
    seen: TextPart
    is_answered: bool
    kind: Literal["encoder", "cross"]
    layers: tuple[int, ...] | None = None
    row: int = 0


@dataclass(frozen=True, slots=True)
class ShownImage:
    """A picture whose parts are the tokens of a text.

    Attributes:
        pixels: Rows, columns and channels, 0 to 1: one is grey, three are red, green and blue.
        boxes: For each token its top row, first column, rows and columns; None where it is no part.
    """

    pixels: Float[np.ndarray, "Y X P"]
    boxes: tuple[tuple[int, int, int, int] | None, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """An example and its answer as people are shown them.

    Attributes:
        text: What was read; empty where all that was read is ``output``.
        output: What was said of it, or the text that was predicted token by token.
        crossings: Where two texts are read beside each other, how each looks at the other; then
            nothing else of the attention is shown.
        image: The picture that was read.
        label: What tells this example from others; None where its texts do.
    """

    text: ShownText = ShownText()
    output: ShownText = ShownText()
    crossings: tuple[Crossing, ...] = ()
    image: ShownImage | None = None
    label: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Shade:
    """Attention that the tokens of a text are shaded by, over its heads averaged.

    Attributes:
        kind: Of the call.
        layer: Of the call; None is the last.
        query: Whose weights they are; None is the mean of all.
        measure: What the numbers are, in words.
    """

    kind: Literal["encoder", "cross"]
    layer: int | None
    query: int | None
    measure: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """The answer in words and numbers.

    Attributes:
        labels: What it may be, each with its probability, the likeliest first.
        tags: One for each token of the text, or of the output where there is no text.
        values: A number for each of them.
        measure: What the numbers are, in words.
        shade: The attention that is shown instead of ``values``, where the model has it.
        importances: How much each token mattered, by the name of the measure.
    """

    labels: tuple[tuple[str, float], ...] = ()
    tags: tuple[str, ...] = ()
    values: tuple[float, ...] = ()
    measure: str = ""
    shade: Shade | None = None
    importances: tuple[tuple[str, tuple[float, ...]], ...] = ()


def by_share(shares: Iterable[tuple[str, float]]) -> tuple[tuple[str, float], ...]:
    """Labels and their probabilities, the likeliest first.

    Example:
        >>> by_share([("bad", 0.25), ("good", 0.75)])
        (('good', 0.75), ('bad', 0.25))
    """
    return tuple(sorted(shares, key=lambda each: -each[1]))


def check_shown_length(length: int, longest: int, unit: str) -> None:
    """Raise DataError if a text is too long to be read, and shown, at once."""
    if length > longest:
        raise DataError(
            f"text must be at most {longest} {unit} long to be looked at; got {length}. "
            "Look at one sentence at a time."
        )
