"""Attention of an output's tokens over its source: links, and what was copied from where."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from jaxtyping import Float
from torch import Tensor

from regard.attention.inspect.alignment import Link, links_from_weights
from regard.text import PairTokenizer, Piece


@dataclass(frozen=True, slots=True)
class Alignment:
    """Attention of each output token over its source.

    Attributes:
        source: The source text.
        tokens: The output's token ids, without begin and end.
        weights: One row per output token, over heads and layers averaged; where the model reads
            the end of the source, that is the last column.
        source_length: Tokens of the source, without its end.
        tokenizer: What made them tokens.
        is_copying: Whether tokens of the output may be copied from the source, by these weights.
    """

    source: str
    tokens: tuple[int, ...]
    weights: Float[Tensor, "T S"]
    source_length: int
    tokenizer: PairTokenizer = field(repr=False)
    is_copying: bool = False

    @property
    def source_pieces(self) -> list[Piece]:
        """The source's tokens with their places in it."""
        return self.tokenizer.source.pieces(self.source)

    @property
    def output_pieces(self) -> list[Piece]:
        """The output's tokens with their places in it."""
        return pieces_of(*self.tokenizer.target.decode_with_spans(self.tokens), self.tokens)

    def copied_from(self) -> list[int | None]:
        """The source token that each output token may be a copy of: the same, looked at most.

        None for one that the source does not hold, which the model has said by itself.
        """
        places: dict[int, list[int]] = {}
        for place, piece in enumerate(self.source_pieces):
            places.setdefault(piece.id, []).append(place)
        return [
            max(places[token], key=row.__getitem__) if token in places else None
            for token, row in zip(self.tokens, self.weights.tolist(), strict=True)
        ]

    def copies(self) -> list[tuple[str, int | None]]:
        """The output in stretches, each with where it was copied from in one piece.

        That is the place of its first character in the source; None of what the source does not
        hold.
        """
        source, output, places = self.source_pieces, self.output_pieces, self.copied_from()
        text, _ = self.tokenizer.target.decode_with_spans(self.tokens)
        found: list[tuple[str, int | None]] = []
        first = 0
        for number, place in enumerate(places):
            after = places[number + 1] if number + 1 < len(places) else -1
            if after != (None if place is None else place + 1):
                stretch = text[output[first].start : output[number].end]
                begun = places[first]
                found.append((stretch, None if begun is None else source[begun].start))
                first = number + 1
        return found

    def links(self) -> list[Link]:
        """The source token that each output token looks at most; none where that is the end."""
        return [link for link in links_from_weights(self.weights) if link[0] < self.source_length]


def pieces_of(text: str, spans: Sequence[tuple[int, int]], ids: Sequence[int]) -> list[Piece]:
    """The tokens of an output with their places in its text; one without any is shown as ␣."""
    return [
        Piece(text[start:end] or "␣", token, start, end)
        for token, (start, end) in zip(ids, spans, strict=True)
    ]
