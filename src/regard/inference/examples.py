"""From what a model looked at to the examples of a page."""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import cast

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from regard.attention import AttentionCall, Summary
from regard.attention.inspect.alignment import Link, Span
from regard.errors import SettingError
from regard.inference.look import (
    MOST_WITHOUT_SUMMARIES,
    AttentionMap,
    Look,
    attention_maps,
    attention_summaries,
    weights_of_row,
)
from regard.tasks.showing import Crossing, Said, Shade, Shown, ShownText, TextPart
from regard.text import Piece
from regard.text.phrasebook import Phrase
from regard.text.pieces import END
from regard.viewer import (
    Example,
    GoldLinks,
    HeadMap,
    Image,
    Importance,
    OneAttention,
    Prediction,
    SearchTree,
    Text,
    Token,
    example_of,
)
from regard.viewer.layer_summary import AXES, Kind

# What a model called ``attend`` with, by kind and layer.
Calls = Mapping[tuple[str, int], AttentionCall]


@dataclass(frozen=True, slots=True)
class ChosenHeads:
    """Selection of layers and heads; None is all."""

    layers: Sequence[int] | None = None
    heads: Sequence[int] | None = None

    def check(self, layers: Collection[int], heads: Collection[int]) -> None:
        """Raise SettingError if the model has none of these layers or heads."""
        for name, wanted, there in (("layers", self.layers, layers), ("heads", self.heads, heads)):
            unknown = sorted(set(wanted or ()) - set(there))
            if unknown or (wanted is not None and not wanted):
                known = _listed(sorted(there))
                raise SettingError(f"{name} must be of {known}; got {_listed(unknown)}.")

    def has_layer(self, layer: int) -> bool:
        """Whether the layer is shown."""
        return self.layers is None or layer in self.layers

    def heads_of(self, count: int) -> list[int]:
        """Indices of the selected heads."""
        return [head for head in range(count) if self.heads is None or head in self.heads]


_ALL = ChosenHeads()


def example(
    look: Look,
    *,
    score: float | None = None,
    phrase: Phrase | None = None,
    search: SearchTree | None = None,
    chosen: ChosenHeads = _ALL,
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
    source = Text(
        text=look.source,
        tokens=_tokens(look.source_pieces, look.source)[: _source_width(look)],
    )
    output = Text(text=look.output, tokens=_tokens(look.output_pieces, look.output))
    is_gold = phrase is not None and (phrase.source, phrase.target) == (look.source, look.output)
    gold = gold_links(source.tokens, output.tokens, phrase) if phrase and is_gold else None
    found = _example(look.maps, look.summaries, source, output, chosen, gold=gold)
    return replace(found, score=score, search=search)


def task_examples(
    calls: Calls, shown: Shown, said: Said, chosen: ChosenHeads = _ALL
) -> list[Example]:
    """An example and its answer as a task shows them; of two texts, each that looks at the other.

    Args:
        calls: What the model called ``attend`` with.
        shown: The texts.
        said: The answer.
        chosen: Which layers and heads are shown.

    Raises:
        SettingError: The model has no such layer or head.
    """
    calls = {place: call for place, call in calls.items() if place[0] in AXES}
    answer = _answer(said, calls)
    if shown.crossings:
        found = [_crossing_example(calls, each, answer, chosen) for each in shown.crossings]
        if kept := [each for each in found if each is not None]:
            return kept
        calls = {}
    source, output = _text(shown.text), _text(shown.output)
    is_long = max(len(source.tokens), len(output.tokens)) > MOST_WITHOUT_SUMMARIES
    summed = {place: call for place, call in calls.items() if is_long and place[0] != "cross"}
    plain = _example(
        attention_maps(calls), attention_summaries(summed), source, output, chosen, gold=None
    )
    image = shown.image
    return [
        replace(
            plain,
            answer=None if said == Said() else answer,
            importances=tuple(
                Importance(method=name, values=_short(values)) for name, values in said.importances
            ),
            image=None if image is None else Image(pixels=_pixels(image.pixels), boxes=image.boxes),
            label=shown.label,
        )
    ]


def plain_view(text: str, answer: str, calls: Calls) -> tuple[Calls, Shown]:
    """The view of a task that says nothing of its own, and the calls that are between its tokens.

    Args:
        text: What was asked.
        answer: What was said.
        calls: What the model called ``attend`` with.
    """
    words = [found.span() for found in re.finditer(r"\S+", text)]
    shown = Shown(text=ShownText.of_spans(text, words), output=ShownText.of_words([answer]))
    sizes = {"source": len(words), "output": 1}
    fitting = {
        (kind, layer): call
        for (kind, layer), call in calls.items()
        if kind in AXES
        and [call.query.shape[-2], call.key.shape[-2]] == [sizes[side] for side in AXES[kind]]
    }
    return fitting, shown


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


def _example(
    maps: Sequence[AttentionMap],
    summaries: Sequence[OneAttention],
    source: Text,
    output: Text,
    chosen: ChosenHeads,
    *,
    gold: GoldLinks | None,
) -> Example:
    """Texts with what was looked at: packed where there is a summary of it, else as numbers."""
    counts = {(one.kind, one.layer): len(one.weights) for one in maps}
    counts |= {(one.kind, one.layer): one.summary.shape[0] for one in summaries}
    chosen.check({layer for _, layer in counts}, range(max(counts.values(), default=0)))
    summed = {(one.kind, one.layer): one.summary for one in summaries}
    numbers: list[HeadMap] = []
    rows: dict[tuple[str, int], Float[Tensor, "H N M"]] = {}
    for one in maps:
        heads = chosen.heads_of(len(one.weights)) if chosen.has_layer(one.layer) else []
        if (one.kind, one.layer) not in summed:
            numbers += _head_maps(one.kind, one.layer, one.weights, heads)
        elif heads:
            rows[one.kind, one.layer] = one.weights[heads]
    packed = [
        OneAttention(kind, layer, tuple(heads), _of_heads(summary, heads))
        for (kind, layer), summary in summed.items()
        if chosen.has_layer(layer) and (heads := chosen.heads_of(summary.shape[0]))
    ]
    layers = (
        example_of(packed, source, output=output, started=True, rows=rows, gold=gold).summaries
        if packed
        else ()
    )
    return Example(
        source=source.text,
        output=output.text,
        source_tokens=source.tokens,
        output_tokens=output.tokens,
        maps=tuple(numbers),
        summaries=layers,
        gold=gold,
    )


def _head_maps(
    kind: str, layer: int, weights: Float[Tensor, "H N M"], heads: Iterable[int]
) -> list[HeadMap]:
    return [
        HeadMap(kind=cast(Kind, kind), layer=layer, head=head, rows=weights[head].float().tolist())
        for head in heads
    ]


def _of_heads(summary: Summary, heads: Sequence[int]) -> Summary:
    """The summary of some of its heads, which are its one leading axis."""
    index = torch.tensor(heads)
    tensors = {name: one[index] for name, one in summary.tensors().items()}
    return replace(summary, **tensors)  # type: ignore[arg-type]


def _crossing_example(
    calls: Calls, crossing: Crossing, answer: Prediction, chosen: ChosenHeads
) -> Example | None:
    """Attention of one text over the other: it is the output, the other the source.

    Marks of begin and end are left out, so rows may sum to less than one. None of a model that
    does not attend.
    """
    looks, seen = crossing.looks, crossing.seen
    weights: list[tuple[str, int, Float[Tensor, "H N M"]]] = []
    for (kind, layer), call in calls.items():
        is_of_it = crossing.layers is None or layer in crossing.layers
        if kind != crossing.kind or not is_of_it or call.query.shape[-2] == 1:  # a pooling has one
            continue
        row = weights_of_row(call, crossing.row)
        weights.append(("cross", layer, _between(row, looks, seen)))
        if kind == "encoder" and len(seen.text.tokens) <= MOST_WITHOUT_SUMMARIES:
            weights.append(("encoder", layer, _between(row, seen, seen)))
    if not weights:
        return None
    chosen.check({layer for _, layer, _ in weights}, range(max(len(one[2]) for one in weights)))
    return Example(
        source=seen.text.text,
        output=looks.text.text,
        source_tokens=_text(seen.text).tokens,
        output_tokens=_text(looks.text).tokens,
        maps=tuple(
            each
            for kind, layer, found in weights
            if chosen.has_layer(layer)
            for each in _head_maps(kind, layer, found, chosen.heads_of(len(found)))
        ),
        started=False,
        label=f"{looks.name} looks at {seen.name}",
        answer=replace(answer, side="output" if crossing.is_answered else "source"),
    )


def _between(
    weights: Float[Tensor, "H R C"], looks: TextPart, seen: TextPart
) -> Float[Tensor, "H N M"]:
    """The part of a row's weights that is between the tokens of two texts."""
    found = weights.new_zeros(len(weights), len(looks.text.tokens), len(seen.text.tokens))
    found[:, looks.places, seen.places] = weights[:, looks.in_row, seen.in_row]
    return found


def _answer(said: Said, calls: Calls) -> Prediction:
    values, measure = said.values, said.measure
    if said.shade is not None and (call := _shading(said.shade, calls)) is not None:
        mean, query = weights_of_row(call).mean(0), said.shade.query
        values = tuple((mean.mean(0) if query is None else mean[query]).tolist())
        measure = said.shade.measure
    return Prediction(
        labels=tuple((label, float(f"{share:.6g}")) for label, share in said.labels),
        tags=said.tags,
        values=_short(values),
        measure=measure,
    )


def _shading(shade: Shade, calls: Calls) -> AttentionCall | None:
    """The call whose weights shade a text; None where the model makes none such."""
    layers = [layer for kind, layer in calls if kind == shade.kind]
    layer = max(layers, default=0) if shade.layer is None else shade.layer
    return calls.get((shade.kind, layer))


def _text(shown: ShownText) -> Text:
    return Text(text=shown.text, tokens=tuple(Token(**each._asdict()) for each in shown.tokens))


def _pixels(pixels: Float[np.ndarray, "Y X P"]) -> tuple[tuple[tuple[float, ...], ...], ...]:
    return tuple(tuple(_short(pixel) for pixel in row) for row in pixels.tolist())


def _short(values: Iterable[float]) -> tuple[float, ...]:
    return tuple(float(f"{value:.4g}") for value in values)


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
