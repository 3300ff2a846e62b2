"""From what a model looked at to what people are shown: pages, drawings, links."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from regard.attention.alignment import Link, Span
from regard.errors import DataError, SettingError
from regard.inference.predictor import Look, Predictor
from regard.inference.searching import END, followed, searched
from regard.text import Piece, normalize
from regard.text.phrasebook import Phrase
from regard.viewer import AttentionMap, Document, Example, GoldLinks, Search, Token, draw_text


def look_at(
    predictor: Predictor,
    source: str,
    target: str | None = None,
    *,
    phrase: Phrase | None = None,
    beam_size: int | None = None,
) -> Example:
    """What the model looks at when it translates ``source``, ready for a page.

    Args:
        predictor: The model in use.
        source: The text it reads.
        target: The output to explain; None explains the model's own translation.
        phrase: Whose gold links are added, where the output is the phrase's target.
        beam_size: Of the search for the translation; None takes the recipe's.

    Raises:
        DataError: The source is empty or longer than training allowed, or the target is empty.
    """
    if target is not None:
        if not normalize(target):
            raise DataError("target must hold text to look at; got an empty line.")
        look = predictor.look(source, normalize(target))
        search = followed(predictor, look.source, [piece.id for piece in look.output_pieces])
        return example(look, phrase=phrase, search=search)
    found, search = searched(predictor, source, beam_size=beam_size)
    look = predictor.look(source, found.tokens)
    return example(look, score=found.score, phrase=phrase, search=search)


def example(
    look: Look,
    *,
    score: float | None = None,
    phrase: Phrase | None = None,
    search: Search | None = None,
) -> Example:
    """A look as the viewer's plain data.

    Args:
        look: What was looked at.
        score: The search's score of the output.
        phrase: Its gold links are added if source and output are this phrase's.
        search: How the output was found.
    """
    source_tokens = _tokens(look.source_pieces, look.source)[: _source_width(look)]
    output_tokens = _tokens(look.output_pieces, look.output)
    is_gold = phrase is not None and (phrase.source, phrase.target) == (look.source, look.output)
    return Example(
        source=look.source,
        output=look.output,
        source_tokens=source_tokens,
        output_tokens=output_tokens,
        maps=tuple(
            AttentionMap(kind=found.kind, layer=found.layer, head=head, rows=rows)  # type: ignore[arg-type]
            for found in look.maps
            for head, rows in enumerate(found.weights.float().tolist())
        ),
        score=score,
        gold=gold_links(source_tokens, output_tokens, phrase) if phrase and is_gold else None,
        search=search,
    )


def document(
    predictor: Predictor, examples: Iterable[Example], *, title: str, model: str | None = None
) -> Document:
    """Examples as one document, with what the page says of the model."""
    recipe = predictor.recipe
    parameters = sum(parameter.numel() for parameter in predictor.model.parameters())
    return Document(
        title=title,
        task=recipe.task,
        model=model or f"{recipe.model_type}, {parameters:,} parameters",
        examples=tuple(examples),
        source_language=recipe.data.source_language,
        output_language=recipe.data.target_language,
    )


def gold_links(
    source_tokens: Sequence[Token], output_tokens: Sequence[Token], phrase: Phrase
) -> GoldLinks:
    """The gold links of a phrase between tokens: a token has those of the words it is part of."""
    sources = covered([(t.start, t.end) for t in source_tokens], phrase.source_words)
    outputs = covered([(t.start, t.end) for t in output_tokens], phrase.target_words)

    def tokens(links: Iterable[Link]) -> tuple[Link, ...]:
        return tuple(
            sorted((s, t) for left, right in links for s in sources[left] for t in outputs[right])
        )

    return GoldLinks(sure=tokens(phrase.sure), possible=tokens(phrase.possible - phrase.sure))


def covered(tokens: Sequence[Span], words: Sequence[Span]) -> list[list[int]]:
    """For each word, the tokens that share characters with it.

    Example:
        >>> covered([(0, 1), (1, 2), (2, 3), (3, 3)], [(0, 1), (1, 3)])
        [[0], [1, 2]]
    """
    return [
        [place for place, (start, end) in enumerate(tokens) if start < last and end > first]
        for first, last in words
    ]


@dataclass(frozen=True, slots=True)
class Drawing:
    """An attention map for a terminal.

    Attributes:
        text: The drawing, without the column and the row of the sentence's end.
        left_on_end: What each output token left on the end of the source; None where the model
            reads none.
        names: The output tokens.
    """

    text: str
    left_on_end: tuple[float, ...] | None
    names: tuple[str, ...]

    def __str__(self) -> str:
        if not self.left_on_end:
            return self.text
        mean = sum(self.left_on_end) / len(self.left_on_end)
        most, name = max(zip(self.left_on_end, self.names, strict=True))
        return (
            f"{self.text}\n(left on the end of the source: {mean:.2f} on average, "
            f"at most {most:.2f}, by {name})"
        )


def draw(shown: Example, *, layer: int | None = None, width: int = 80) -> Drawing:
    """The attention from output to source as text, over heads averaged.

    Args:
        shown: What was looked at.
        layer: Which layer; None averages over all.
        width: Columns of the terminal.

    Raises:
        SettingError: The model has no such layer.
    """
    found = [m.rows for m in shown.maps if m.kind == "cross" and layer in (None, m.layer)]
    if not found:
        raise SettingError("layer must be one with attention to the source; the model has none.")
    rows = [
        [sum(weights) / len(found) for weights in zip(*row, strict=True)]
        for row in zip(*found, strict=True)
    ][:-1]
    names = [token.text for token in shown.output_tokens[:-1]]
    heads = [token.text for token in shown.source_tokens]
    has_end = END in heads[-1:]
    if has_end:
        heads.pop()
    return Drawing(
        text=draw_text([row[: len(heads)] for row in rows], heads, names, width=width),
        left_on_end=tuple(row[-1] for row in rows) if has_end else None,
        names=tuple(names),
    )


def strongest_links(look: Look) -> list[Link]:
    """The source token that each output token looks at most; none where that is the end."""
    rows = look.cross()[: len(look.output_pieces)]
    if not len(rows):
        return []
    best = rows.argmax(-1).tolist()
    return [(s, t) for t, s in enumerate(best) if s < len(look.source_pieces)]


def _source_width(look: Look) -> int:
    """Columns of the source: its pieces, and its end where the model reads one."""
    widths = [found.weights.shape[-1] for found in look.maps if found.kind != "decoder"]
    return widths[0] if widths else len(look.source_pieces)


def _tokens(pieces: Sequence[Piece], text: str) -> tuple[Token, ...]:
    shown = [Token(text=piece.text, start=piece.start, end=piece.end) for piece in pieces]
    return (*shown, Token(text=END, start=len(text), end=len(text)))
