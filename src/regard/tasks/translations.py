"""Translations, and the attention of each of their tokens."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from jaxtyping import Float
from torch import Tensor

from regard.attention.inspect.alignment import Link, links_from_weights
from regard.config import JsonValue
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


@dataclass(frozen=True, slots=True)
class Translation:
    """One output.

    Attributes:
        source: The text it translates, normalised.
        text: The translation.
        score: Log-probability over the length penalty; higher is better.
        log_prob: Log-probability of its tokens and its end.
        tokens: Its token ids, without begin and end.
        is_finished: Whether the model ended it, or it was cut at the longest length allowed.
        parts: Pieces the source was cut into because it was longer than the model has seen; 1 if
            it was not.
        alignment: What its tokens looked at, if that was asked for; None of an empty text, of one
            in parts, and of all but the best.

    Example:
        >>> one = Translation("我爱中国", "I love China", -0.5, -1.25, (5, 6, 7), is_finished=True)
        >>> Translations((one,)).to_dict()
        {'source': '我爱中国', 'translation': 'I love China', 'score': -0.5, 'log_prob': -1.25}
    """

    source: str
    text: str
    score: float
    log_prob: float
    tokens: tuple[int, ...]
    is_finished: bool
    parts: int = 1
    alignment: Alignment | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Translations:
    """Translations of one text.

    Attributes:
        found: Translations of it, best first; one empty translation of an empty text.
    """

    found: tuple[Translation, ...]

    @classmethod
    def of_nothing(cls, source: str) -> "Translations":
        """The one of a text in which there is nothing to read."""
        return cls((Translation(source, "", 0.0, 0.0, (), True),))

    @property
    def best(self) -> Translation:
        """The first translation."""
        return self.found[0]

    @property
    def alignment(self) -> Alignment | None:
        """Attention of the best translation's tokens; None where it is not known."""
        return self.best.alignment

    def text(self) -> str:
        """The best translation; with its alignment, the links behind a tab: ``0-0 1-1``."""
        if self.alignment is None:
            return self.best.text
        links = " ".join(f"{source}-{output}" for source, output in self.alignment.links())
        return f"{self.best.text}\t{links}"

    def to_dict(self) -> dict[str, JsonValue]:
        """Plain data, ready for JSON."""
        members: dict[str, JsonValue] = {"source": self.best.source, **_members(self.best)}
        if self.best.parts > 1:
            members["parts"] = self.best.parts
        if len(self.found) > 1:
            members["n_best"] = [_members(each) for each in self.found]
        if (found := self.alignment) is not None:
            members["source_tokens"] = [piece.text for piece in found.source_pieces]
            members["output_tokens"] = [piece.text for piece in found.output_pieces]
            # One column more than tokens is the source's end.
            rows = found.weights.tolist()
            members["attention"] = [[round(weight, 4) for weight in row] for row in rows]
            members["links"] = [list(link) for link in found.links()]
            if found.is_copying:
                members["copied_from"] = found.copied_from()
        return members


def _members(translation: Translation) -> dict[str, JsonValue]:
    """A translation, its figures, and a note if it was cut."""
    members: dict[str, JsonValue] = {
        "translation": translation.text,
        "score": round(translation.score, 6),
        "log_prob": round(translation.log_prob, 6),
    }
    if not translation.is_finished:
        members["is_finished"] = False
    return members


def pieces_of(text: str, spans: Sequence[tuple[int, int]], ids: Sequence[int]) -> list[Piece]:
    """The tokens of an output with their places in its text; one without any is shown as ␣."""
    return [
        Piece(text[start:end] or "␣", token, start, end)
        for token, (start, end) in zip(ids, spans, strict=True)
    ]
