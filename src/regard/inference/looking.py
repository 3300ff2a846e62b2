"""From what a model looked at to what people are shown: pages, drawings, links."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from regard.attention import Summary
from regard.attention.inspect.alignment import Link, Span
from regard.errors import DataError, SettingError
from regard.inference.look import Look
from regard.inference.predictor import Predictor
from regard.inference.searching import END, followed, searched
from regard.text import Piece, normalize
from regard.text.phrasebook import Phrase
from regard.viewer import (
    AttentionMap,
    Document,
    Example,
    GoldLinks,
    OneAttention,
    Search,
    Text,
    Token,
    draw_text,
    example_of,
)


def look_into(
    predictor: Predictor,
    texts: str | Sequence[str],
    *,
    target: str | None = None,
    layers: Sequence[int] | None = None,
    heads: Sequence[int] | None = None,
    beam_size: int | None = None,
    title: str | None = None,
) -> Document:
    """What the model looks at when it translates texts: a document to show, or to make a page of.

    A text longer than training allowed is cut where ``Predictor.translate`` cuts it, and every
    part is an example of its own; with a target it is looked at as a whole.

    Args:
        predictor: The model in use.
        texts: One text, or several.
        target: The output to explain, of one text; None explains the model's own.
        layers: Which layers are shown, counted from 0; None is all.
        heads: Which heads; None is all.
        beam_size: Of the search for translations; None takes the recipe's.
        title: Heading of the page; None is the first text and its translation.

    Raises:
        DataError: There is no text, or a target for several.
        SettingError: The model has no such layer or head.
    """
    given = [texts] if isinstance(texts, str) else list(texts)
    if target is not None and len(given) > 1:
        raise DataError(f"target must be of one text; got {len(given)} texts.")
    parts = [part for text in given for part in looked_parts(predictor, text, target)]
    if not parts:
        raise DataError("texts must hold text to look at; got none.")
    examples = [
        look_at(predictor, part, target, layers=layers, heads=heads, beam_size=beam_size)
        for part in parts
    ]
    return document(predictor, examples, title=title)


def look_at(
    predictor: Predictor,
    source: str,
    target: str | None = None,
    *,
    phrase: Phrase | None = None,
    beam_size: int | None = None,
    layers: Sequence[int] | None = None,
    heads: Sequence[int] | None = None,
) -> Example:
    """What the model looks at when it translates ``source``, ready for a page.

    Args:
        predictor: The model in use.
        source: The text it reads.
        target: The output to explain; None explains the model's own translation.
        phrase: Whose gold links are added, where the output is the phrase's target.
        beam_size: Of the search for the translation; None takes the recipe's.
        layers: Which layers are shown, counted from 0; None is all.
        heads: Which heads; None is all.

    Raises:
        DataError: The source is empty, or longer than training allowed and without a target, or
            the target is empty.
        SettingError: The model has no such layer or head.
    """
    chosen = _Chosen(layers, heads)
    if target is not None:
        if not normalize(target):
            raise DataError("target must hold text to look at; got an empty line.")
        look = predictor.look(source, normalize(target))
        search = None
        if not look.summaries:  # of a long text a search is nothing to read
            search = followed(predictor, look.source, [piece.id for piece in look.output_pieces])
        return example(look, phrase=phrase, search=search, chosen=chosen)
    if len(parts := looked_parts(predictor, source, None)) > 1:
        raise DataError(
            f"source must be at most {predictor.recipe.data.max_length} tokens long to be "
            f"translated at once; got a text of {len(parts)} such parts. Look into each, or give "
            "the target."
        )
    found, search = searched(predictor, source, beam_size=beam_size)
    look = predictor.look(source, found.tokens)
    return example(look, score=found.score, phrase=phrase, search=search, chosen=chosen)


@dataclass(frozen=True, slots=True)
class _Chosen:
    """Which layers and heads are shown; None is all."""

    layers: Sequence[int] | None = None
    heads: Sequence[int] | None = None

    def check(self, look: Look) -> None:
        """Raise SettingError if the model has none of these layers or heads."""
        counts = {(one.kind, one.layer): one.weights.shape[0] for one in look.maps} or {
            (one.kind, one.layer): one.summary.shape[0] for one in look.summaries
        }
        for name, wanted, there in (
            ("layers", self.layers, {layer for _, layer in counts}),
            ("heads", self.heads, set(range(max(counts.values(), default=0)))),
        ):
            unknown = sorted(set(wanted or ()) - there)
            if unknown or (wanted is not None and not wanted):
                raise SettingError(
                    f"{name} must be of {_listed(sorted(there))}; got {_listed(unknown)}."
                )

    def has_layer(self, layer: int) -> bool:
        return self.layers is None or layer in self.layers

    def heads_of(self, count: int) -> list[int]:
        return [head for head in range(count) if self.heads is None or head in self.heads]


_ALL = _Chosen()


def example(
    look: Look,
    *,
    score: float | None = None,
    phrase: Phrase | None = None,
    search: Search | None = None,
    chosen: _Chosen = _ALL,
) -> Example:
    """A look as the viewer's plain data.

    Args:
        look: What was looked at.
        score: The search's score of the output.
        phrase: Its gold links are added if source and output are this phrase's.
        search: How the output was found.
        chosen: Which layers and heads are shown.

    Raises:
        SettingError: The model has no such layer or head.
    """
    chosen.check(look)
    source_tokens = _tokens(look.source_pieces, look.source)[: _source_width(look)]
    output_tokens = _tokens(look.output_pieces, look.output)
    is_gold = phrase is not None and (phrase.source, phrase.target) == (look.source, look.output)
    gold = gold_links(source_tokens, output_tokens, phrase) if phrase and is_gold else None
    if look.summaries:
        return _long_example(
            look,
            Text(text=look.source, tokens=source_tokens),
            Text(text=look.output, tokens=output_tokens),
            chosen,
            score=score,
            gold=gold,
            search=search,
        )
    return Example(
        source=look.source,
        output=look.output,
        source_tokens=source_tokens,
        output_tokens=output_tokens,
        maps=tuple(
            AttentionMap(
                kind=found.kind,  # type: ignore[arg-type]
                layer=found.layer,
                head=head,
                rows=found.weights[head].float().tolist(),
            )
            for found in look.maps
            if chosen.has_layer(found.layer)
            for head in chosen.heads_of(len(found.weights))
        ),
        score=score,
        gold=gold,
        search=search,
    )


def _long_example(look: Look, source: Text, output: Text, chosen: _Chosen, **known: Any) -> Example:
    """The same in packed bytes, of a text that numbers would make too large a page of."""
    seen, rows = [], {}
    for found in look.summaries:
        heads = chosen.heads_of(found.summary.shape[0])
        if chosen.has_layer(found.layer) and heads:
            summary = picked(found.summary, heads)
            seen.append(OneAttention(found.kind, found.layer, tuple(heads), summary))
    for mapped in look.maps:
        if chosen.has_layer(mapped.layer):
            heads = chosen.heads_of(len(mapped.weights))
            rows[mapped.kind, mapped.layer] = mapped.weights[heads]
    return example_of(seen, source, output=output, started=True, rows=rows, **known)


def picked(summary: Summary, heads: Sequence[int]) -> Summary:
    """The summary of some of its heads, which are its one leading axis."""
    index = torch.tensor(heads)
    tensors: dict[str, Any] = {name: one[index] for name, one in summary.tensors().items()}
    return replace(summary, **tensors)


def document(
    predictor: Predictor,
    examples: Sequence[Example],
    *,
    title: str | None = None,
    model: str | None = None,
) -> Document:
    """Examples as one document, with what the page says of the model.

    Args:
        predictor: The model in use.
        examples: What it looked at, one or more.
        title: Heading of the page; None is the first text and its translation.
        model: What the page calls the model; None is its kind and size.
    """
    recipe = predictor.recipe
    if title is None:
        title = f"{examples[0].source} → {examples[0].output}"
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


def looked_parts(predictor: Predictor, text: str, target: str | None) -> list[str]:
    """The parts of a text that are looked into one by one: each is translated at once."""
    text = normalize(text)
    return [text] if target is not None or not text else predictor.parts(text)


def _source_width(look: Look) -> int:
    """Columns of the source: its pieces, and its end where the model reads one."""
    widths = [found.weights.shape[-1] for found in look.maps if found.kind != "decoder"] + [
        found.summary.shape[-1] for found in look.summaries if found.kind != "decoder"
    ]
    return widths[0] if widths else len(look.source_pieces)


def _tokens(pieces: Sequence[Piece], text: str) -> tuple[Token, ...]:
    shown = [Token(text=piece.text, start=piece.start, end=piece.end) for piece in pieces]
    return (*shown, Token(text=END, start=len(text), end=len(text)))


def _listed(numbers: Iterable[int]) -> str:
    return ", ".join(map(str, numbers)) or "none"
