"""How well a model's attention agrees with links that people, or a grammar, set."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass

from regard.attention.inspect.alignment import (
    Link,
    diagonal_links,
    links_from_weights,
    words_from_tokens,
)
from regard.config import JsonValue
from regard.errors import DataError
from regard.inference.look import cross_maps
from regard.inference.predictor import Predictor
from regard.metrics import alignment_error_rate
from regard.text.phrasebook import Phrase


@dataclass(frozen=True, kw_only=True, slots=True)
class AlignmentErrors:
    """Alignment error rates of Och & Ney (2003), from 0 (best) to 1."""

    pairs: int
    linked: float
    overall: float
    diagonal_linked: float
    diagonal_overall: float

    def to_dict(self) -> dict[str, JsonValue]:
        """The figures as plain data."""
        return asdict(self)

    def __str__(self) -> str:
        return (
            f"alignment error {self.linked:.3f} over output words that have a link "
            f"(diagonal: {self.diagonal_linked:.3f}), "
            f"{self.overall:.3f} over all (diagonal: {self.diagonal_overall:.3f})"
        )


def alignment_errors(
    predictor: Predictor, pairs: Sequence[Phrase], *, layer: int | None = None
) -> AlignmentErrors:
    """How far attention is from gold links, by one teacher-forced pass over each pair."""
    if not pairs:
        raise DataError("pairs must hold sentences with gold links; got none.")
    links = word_links(predictor, pairs, layer=layer)
    diagonal = [diagonal_links(len(p.source_words), len(p.target_words)) for p in pairs]
    sure, possible = [pair.sure for pair in pairs], [pair.possible for pair in pairs]
    return AlignmentErrors(
        pairs=len(pairs),
        linked=alignment_error_rate(links, sure, possible, linked_only=True),
        overall=alignment_error_rate(links, sure, possible),
        diagonal_linked=alignment_error_rate(diagonal, sure, possible, linked_only=True),
        diagonal_overall=alignment_error_rate(diagonal, sure, possible),
    )


def word_links(
    predictor: Predictor, pairs: Sequence[Phrase], *, layer: int | None = None
) -> list[list[Link]]:
    """For each pair, the links (source word, target word) that the attention makes."""
    sources = [predictor.tokenizer.source.pieces(pair.source) for pair in pairs]
    targets = [predictor.tokenizer.target.pieces(pair.target) for pair in pairs]
    links: list[list[Link]] = [[] for _ in pairs]
    source_ids = [[piece.id for piece in pieces] for pieces in sources]
    target_ids = [[piece.id for piece in pieces] for pieces in targets]
    for index, rows in cross_maps(
        predictor.model,
        predictor.sequence_task,
        source_ids,
        target_ids,
        layers=None if layer is None else [layer],
        batch_tokens=predictor.decoding.batch_tokens,
    ):
        pair = pairs[index]
        # The end of the source competes as if it were one more word.
        end = (len(pair.source), len(pair.source) + 1)
        columns = [*((piece.start, piece.end) for piece in sources[index]), end]
        words = words_from_tokens(
            rows[:-1],
            columns[: rows.shape[1]],
            [(piece.start, piece.end) for piece in targets[index]],
            [*pair.source_words, end],
            pair.target_words,
        )
        last = len(pair.source_words)
        links[index] = [link for link in links_from_weights(words) if link[0] < last]
    return links
