"""From the attention of a model to the examples of a page."""

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import cast

from jaxtyping import Float
from torch import Tensor, nn

from regard.attention.inspect.alignment import Link, Span
from regard.errors import SettingError
from regard.inference.look import (
    MOST_WITHOUT_SUMMARIES,
    AttentionMap,
    Calls,
    Look,
    attention_maps,
    attention_summaries,
    weights_of_row,
)
from regard.tasks import Recipe
from regard.tasks.drawing import NOTHING, CrossAttention, Drawing, TextPart, spans_text, words_text
from regard.text import Piece
from regard.text.phrasebook import Phrase
from regard.text.tokenizers.pieces import BEGIN, END
from regard.viewer import (
    Document,
    Example,
    GoldLinks,
    HeadMap,
    OneAttention,
    Prediction,
    SearchTree,
    Text,
    Token,
    example_of,
    in_one_line,
)
from regard.viewer.example import View
from regard.viewer.layer_summary import AXES, Kind, Side


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
                choices = _listed(sorted(there))
                raise SettingError(f"{name} must be of {choices}; got {_listed(unknown)}.")

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
    """A look as the viewer's plain data."""
    # Its pieces, and its end where the model reads one.
    widths = [
        attention_map.weights.shape[-1]
        for attention_map in look.maps
        if attention_map.kind != "decoder"
    ]
    widths += [summary.summary.shape[-1] for summary in look.summaries if summary.kind != "decoder"]
    width = widths[0] if widths else len(look.source_pieces)
    source = Text(text=look.source, tokens=_tokens(look.source_pieces, look.source)[:width])
    output = Text(text=look.output, tokens=_tokens(look.output_pieces, look.output))
    is_gold = phrase is not None and (phrase.source, phrase.target) == (look.source, look.output)
    gold = gold_links(source.tokens, output.tokens, phrase) if phrase and is_gold else None
    plain = _example(look.maps, look.summaries, source, output, chosen, gold=gold)
    return replace(plain, score=score, search=search)


def task_examples(
    calls: Calls, drawing: Drawing, chosen: ChosenHeads = _ALL
) -> list[tuple[Example, CrossAttention | None]]:
    """Examples of a task's drawing: one, or one with it for each text that attends to another."""
    calls = {key: call for key, call in calls.items() if key[0] in AXES}
    answer, examples = _answer(drawing, calls), list[tuple[Example, CrossAttention | None]]()
    source, output = drawing.text or NOTHING, drawing.output
    for attention in drawing.cross_attentions:
        if (pair := _cross_example(calls, attention, answer, chosen)) is not None:
            examples.append((pair, attention))
    if examples:
        both = _pair_example(calls, drawing, answer, chosen) if drawing.is_pair else None
        return examples if both is None else [*examples, (both, None)]
    if drawing.cross_attentions:
        calls = {}
    is_long = max(len(source.tokens), len(output.tokens)) > MOST_WITHOUT_SUMMARIES
    summed = {key: call for key, call in calls.items() if is_long and key[0] != "cross"}
    names = {"encoder": _names(source.tokens), "decoder": [BEGIN, *_names(output.tokens[:-1])]}
    plain = _example(
        attention_maps(calls), attention_summaries(summed, names), source, output, chosen, gold=None
    )
    plain = replace(
        plain,
        answer=answer,
        importances=tuple(replace(i, values=_short(i.values)) for i in drawing.importances),
        image=drawing.image,
        label=drawing.label,
    )
    of_text = (
        crossing for crossing in drawing.cross_attentions if crossing.keys.text is drawing.text
    )
    return [(plain, next(of_text, None))]


def plain_view(text: str, answer: str, drawing: Drawing, calls: Calls) -> tuple[Calls, Drawing]:
    """The view of a task that draws no text of its own, and the calls between its tokens."""
    words = [word.span() for word in re.finditer(r"\S+", text)]
    drawing = replace(drawing, text=spans_text(text, words), output=words_text([answer]))
    sizes = {"source": len(words), "output": 1}
    fitting = {
        (kind, layer): call
        for (kind, layer), call in calls.items()
        if kind in AXES
        and [call.query.shape[-2], call.key.shape[-2]] == [sizes[side] for side in AXES[kind]]
    }
    return fitting, drawing


def document(
    model: nn.Module, recipe: Recipe, examples: Sequence[Example], *, title: str | None = None
) -> Document:
    """Examples as one document, with the description of the model."""
    parameters = sum(parameter.numel() for parameter in model.parameters())
    return Document(
        title=_title(examples[0]) if title is None else title,
        task=recipe.task.replace("_", " "),
        model=f"{recipe.model_type}, {parameters:,} parameters",
        examples=tuple(examples),
        source_language=getattr(recipe.data, "source_language", None),
        output_language=getattr(recipe.data, "target_language", None),
        opening=_opening(model, examples[0]) if examples else None,
    )


def _opening(model: nn.Module, example: Example) -> View | None:
    """Copy distribution, where the model copies."""
    layer = getattr(model, "copying_layer", None)
    there = [one.layer for one in example.maps if one.kind == "cross"]
    there += [one.layer for one in example.summaries if one.kind == "cross"]
    return View(kind="cross", layer=layer) if layer is not None and layer in there else None


def _title(example: Example) -> str:
    """The text, and the answer to it; the beginning of a long one."""
    if example.answer is None:
        return f"{example.source} → {example.output}"
    named = example.label if example.image is not None else None
    first, *_ = (example.source or example.output).splitlines() or [""]
    text = in_one_line(named or first)
    labels = example.answer.labels
    return f"{text} → {labels[0][0]}" if labels else text


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
    """For each word, the tokens that share characters with it."""
    return [
        [index for index, (start, end) in enumerate(tokens) if start < last and end > first]
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
    """Texts with their attention: packed where there is a summary of it, else as numbers."""
    counts = {(one.kind, one.layer): len(one.weights) for one in maps}
    counts |= {(one.kind, one.layer): one.summary.shape[0] for one in summaries}
    chosen.check({layer for _, layer in counts}, range(max(counts.values(), default=0)))
    summed = {(one.kind, one.layer) for one in summaries}
    numbers: list[HeadMap] = []
    rows: dict[tuple[str, int], Float[Tensor, "H N M"]] = {}
    for one in maps:
        heads = chosen.heads_of(len(one.weights)) if chosen.has_layer(one.layer) else []
        if (one.kind, one.layer) not in summed:
            numbers += _head_maps(one.kind, one.layer, one.weights, heads)
        elif heads:
            rows[one.kind, one.layer] = one.weights[heads]
    packed = [
        one.of_heads(heads)
        for one in summaries
        if chosen.has_layer(one.layer) and (heads := chosen.heads_of(one.summary.shape[0]))
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


def _cross_example(
    calls: Calls, attention: CrossAttention, answer: Prediction | None, chosen: ChosenHeads
) -> Example | None:
    """Attention of one text over the other: it is the output, the other the source."""
    queries, keys = attention.queries, attention.keys
    weights: list[tuple[str, int, Float[Tensor, "H N M"]]] = []
    for (kind, layer), call in calls.items():
        is_of_it = attention.layers is None or layer in attention.layers
        if kind != attention.kind or not is_of_it or call.query.shape[-2] == 1:  # a pooling has one
            continue
        row = weights_of_row(call, attention.row)
        weights.append(("cross", layer, _between(row, queries, keys)))
        if kind == "encoder" and len(keys.text.tokens) <= MOST_WITHOUT_SUMMARIES:
            weights.append(("encoder", layer, _between(row, keys, keys)))
    if not weights:
        return None
    chosen.check({layer for _, layer, _ in weights}, range(max(len(one[2]) for one in weights)))
    side: Side = "output" if attention.is_answered else "source"
    return Example(
        source=keys.text.text,
        output=queries.text.text,
        source_tokens=keys.text.tokens,
        output_tokens=queries.text.tokens,
        maps=tuple(
            head_map
            for kind, layer, rows in weights
            if chosen.has_layer(layer)
            for head_map in _head_maps(kind, layer, rows, chosen.heads_of(len(rows)))
        ),
        started=False,
        label=f"{queries.name} looks at {keys.name}",
        answer=None if answer is None else replace(answer, side=side),
    )


def _pair_example(
    calls: Calls, drawing: Drawing, answer: Prediction | None, chosen: ChosenHeads
) -> Example | None:
    """Attention within the row in which both texts stand; None where they stand apart."""
    attention = drawing.cross_attentions[0]
    first, second = sorted((attention.queries, attention.keys), key=lambda part: part.first)
    length = second.in_row.stop + 1  # an end follows
    if attention.kind != "encoder" or length > MOST_WITHOUT_SUMMARIES:
        return None
    shift = len(first.text.text) + 1
    tokens = [Token(text=BEGIN, start=0, end=0)]
    for part, start in ((first, 0), (second, shift)):
        read = part.text.tokens[part.tokens]
        tokens += [replace(t, start=t.start + start, end=t.end + start) for t in read]
        tokens.append(Token(text=END, start=tokens[-1].end, end=tokens[-1].end))
    weights = {
        layer: weights_of_row(call, attention.row)[:, :length, :length]
        for (kind, layer), call in calls.items()
        if kind == "encoder" and chosen.has_layer(layer) and call.query.shape[-2] >= length
    }
    if not weights:
        return None
    return Example(
        source=f"{first.text.text}\n{second.text.text}",
        output="",
        source_tokens=tuple(tokens),
        output_tokens=(),
        maps=tuple(
            head_map
            for layer, rows in weights.items()
            for head_map in _head_maps("encoder", layer, rows, chosen.heads_of(len(rows)))
        ),
        label="both texts",
        segments=tuple(int(at >= second.first) for at in range(length)),
        answer=answer and Prediction(labels=answer.labels),
    )


def _between(
    weights: Float[Tensor, "H R C"], queries: TextPart, keys: TextPart
) -> Float[Tensor, "H N M"]:
    """The part of a row's weights that is between the tokens of two texts."""
    part = weights.new_zeros(len(weights), len(queries.text.tokens), len(keys.text.tokens))
    part[:, queries.tokens, keys.tokens] = weights[:, queries.in_row, keys.in_row]
    return part


def _answer(drawing: Drawing, calls: Calls) -> Prediction | None:
    """The prediction with rounded numbers; its values are the attention that shades it, if any."""
    if drawing.prediction is None and drawing.shade is None:
        return None
    answer = drawing.prediction or Prediction()
    values, measure = answer.values, answer.measure
    if (shade := drawing.shade) is not None:
        layers = [layer for kind, layer in calls if kind == shade.kind]
        layer = max(layers, default=0) if shade.layer is None else shade.layer
        if (call := calls.get((shade.kind, layer))) is not None:
            mean = weights_of_row(call).mean(0)
            values = tuple((mean.mean(0) if shade.query is None else mean[shade.query]).tolist())
            measure = shade.measure
    labels = tuple((label, float(f"{share:.6g}")) for label, share in answer.labels)
    return replace(answer, labels=labels, values=_short(values), measure=measure)


def _short(values: Iterable[float]) -> tuple[float, ...]:
    return tuple(float(f"{value:.4g}") for value in values)


def _names(tokens: Iterable[Token]) -> list[str]:
    return [token.text for token in tokens]


def _tokens(pieces: Sequence[Piece], text: str) -> tuple[Token, ...]:
    tokens = [Token(text=piece.text, start=piece.start, end=piece.end) for piece in pieces]
    return (*tokens, Token(text=END, start=len(text), end=len(text)))


def _listed(numbers: Iterable[int]) -> str:
    return ", ".join(map(str, numbers)) or "none"
