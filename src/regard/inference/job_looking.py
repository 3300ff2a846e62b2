"""What a job's model says of a text and what it looks at meanwhile: plain data for a page."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from numpy.typing import NDArray

from regard.attention import Seen, observe, summarize_seen, weights_seen
from regard.errors import DataError, SettingError
from regard.inference.labeller import Labeller
from regard.inference.looking import picked
from regard.inference.maps import joined
from regard.inference.pair_looking import PAIRS, looks_between
from regard.inference.searching import END
from regard.tasks.classification import EncodedText
from regard.text import BOS_ID, Piece
from regard.text.records import record_in
from regard.viewer import (
    Answer,
    AttentionMap,
    Document,
    Example,
    Image,
    Importance,
    OneAttention,
    Text,
    Token,
    example_of,
)

# The begin of a text, which is a token without text.
BEGIN = "⟨begin⟩"
# The token before a picture's patches, whose state becomes the label.
CLASS = "⟨class⟩"
# Tokens up to which weights are kept as numbers, and up to which each is left out in turn.
_LONGEST_WITH_NUMBERS, _LONGEST_LEFT_OUT = 64, 256
_ROWS = 32


def look_into_job(
    labeller: Labeller,
    texts: str | Sequence[str],
    *,
    layers: Sequence[int] | None = None,
    heads: Sequence[int] | None = None,
    title: str | None = None,
) -> Document:
    """What the model says of texts, and what it looks at: a document to make a page of.

    Args:
        labeller: The model in use.
        texts: One text, or several, as ``Task.request`` takes them.
        layers: Which layers of self-attention are shown, counted from 0; None is all.
        heads: Which of their heads; None is all.
        title: Heading of the page; None is the first text and its answer.

    Raises:
        DataError: There is no text, or one is too long to be read at once.
        SettingError: The task has nothing to look at, or the model no such layer or head.
    """
    given = [texts] if isinstance(texts, str) else list(texts)
    if not given:
        raise DataError("texts must hold text to look at; got none.")
    examples = [
        example
        for number, text in enumerate(given, 1)
        for example in _looks(labeller, text, f"text {number}", layers, heads)
    ]
    return job_document(labeller, examples, title=title)


def job_document(
    labeller: Labeller, examples: Sequence[Example], *, title: str | None = None
) -> Document:
    """Examples as one document, with what the page says of the model."""
    recipe = labeller.task.recipe
    parameters = sum(parameter.numel() for parameter in labeller.model.parameters())
    return Document(
        title=_beginning(examples[0]) if title is None else title,
        task=recipe.task.replace("_", " "),
        model=f"{recipe.model_type}, {parameters:,} parameters",
        examples=tuple(examples),
    )


@dataclass(frozen=True, slots=True)
class _Shown:
    """What a page says of a text, or of a picture, besides the attention."""

    text: Text
    output: Text
    answer: Answer
    importances: tuple[Importance, ...] = ()
    image: Image | None = None
    label: str | None = None


def look_at_text(
    labeller: Labeller,
    text: str,
    where: str = "text",
    *,
    layers: Sequence[int] | None = None,
    heads: Sequence[int] | None = None,
) -> Example:
    """What the model says of one text, and what it looks at.

    Of two texts beside each other it is what the first of them looks at in the second, if anything.

    Raises:
        DataError: The text is empty, or too long to be read at once; ``where`` it stands is said.
        SettingError: The task has nothing to look at, or the model no such layer or head.
    """
    return _looks(labeller, text, where, layers, heads)[0]


@torch.no_grad()
def _looks(
    labeller: Labeller,
    text: str,
    where: str,
    layers: Sequence[int] | None,
    heads: Sequence[int] | None,
) -> list[Example]:
    """What the model looks at in one text; in two, an example for each direction."""
    job = labeller.task
    if job.recipe.task not in _SHOWN:
        raise SettingError(
            f"run must be of {', '.join(sorted(_SHOWN))} to be looked into; got one of "
            f"{job.recipe.task}. See regard evaluate --plot."
        )
    labeller.model.eval()
    example = job.request(record_in(text), where)
    (encoded,) = job.encode([example])
    calls: list[Seen] = []
    with observe(calls.append):
        (answer,) = job.predict(labeller.model, job.collate([encoded]))
    seen = {
        place: each if each.query.dim() == 4 else _with_heads(each)
        for place, each in joined(calls).items()
    }
    shown = _SHOWN[job.recipe.task](labeller, example, encoded, answer, seen)
    if job.recipe.task in PAIRS:
        between = looks_between(labeller, example, encoded, answer, seen, shown.answer)
        if between:
            return [_chosen_maps(each, layers, heads) for each in between]
        seen = {}
    found = _attention(seen, shown, layers, heads)
    return [
        replace(
            found,
            answer=shown.answer,
            importances=shown.importances,
            image=shown.image,
            label=shown.label,
        )
    ]


def _chosen_maps(
    example: Example, layers: Sequence[int] | None, heads: Sequence[int] | None
) -> Example:
    """The example with those of its maps that are asked for."""
    _check_chosen("layers", layers, {each.layer for each in example.maps})
    _check_chosen("heads", heads, {int(each.head) for each in example.maps})
    kept = [
        each
        for each in example.maps
        if (layers is None or each.layer in layers) and (heads is None or each.head in heads)
    ]
    return replace(example, maps=tuple(kept))


def _shown_label(labeller: Labeller, example: Any, encoded: Any, answer: Any, seen: Any) -> _Shown:
    """A text under its label: shaded by the pooling's weights, or by what would change it."""
    job = labeller.task
    pieces = _pieces_of(job, example.text, encoded)
    ordered = sorted(answer.probabilities.items(), key=lambda each: -each[1])
    labels = tuple((label, _rounded(share)) for label, share in ordered)
    importances: tuple[Importance, ...] = ()
    values: tuple[float, ...] = ()
    measure = ""
    if len(pieces.tokens) <= _LONGEST_LEFT_OUT:
        values = _left_out(labeller, encoded, answer)
        measure = f"the more the odds of “{answer.label}” fall without it"
        importances = (Importance(method="leave one out", values=values),)
    if ("cross", 0) in seen:
        values = tuple(_short(weights_seen(seen["cross", 0])[0, :, 0].mean(0).tolist()))
        measure = "the more the query of the pooling looks at it"
    output = Text.of([answer.label], answer.label)
    said = Answer(labels=labels, values=values, measure=measure)
    return _Shown(pieces, output, said, importances)


def _shown_tags(labeller: Labeller, example: Any, encoded: Any, answer: Any, seen: Any) -> _Shown:
    """Words under their tags."""
    job: Any = labeller.task
    if encoded.pieces:
        _check_length(sum(encoded.sizes), job.recipe.data.max_length, "pieces")
        return _shown_pieces(job, encoded, answer)
    _check_length(len(example.words), job.recipe.data.max_length, "words")
    space = "" if all(len(word) == 1 for word in example.words) else " "
    text = _spaced(example.words, space)
    return _Shown(text, _spaced(answer.tags, " "), Answer(tags=answer.tags))


def _shown_pieces(job: Any, encoded: Any, answer: Any) -> _Shown:
    """Pieces of words, each word's first under its tag."""
    pieces, tags = [], []
    for ids, tag in zip(encoded.pieces, answer.tags, strict=True):
        pieces += [job.tokenizer.decode([one]).strip() or "␣" for one in ids]
        tags += [tag, *[""] * (len(ids) - 1)]
    begins = job.recipe.tokenizer.begins
    text = _spaced([*[BEGIN] * begins, *pieces, END], " ")
    said = Answer(tags=(*[""] * begins, *tags, ""))
    return _Shown(text, _spaced(answer.tags, " "), said)


def _shown_surprise(
    labeller: Labeller, example: Any, encoded: Any, answer: Any, seen: Any
) -> _Shown:
    """A text shaded by how unexpected each token was."""
    job: Any = labeller.task
    _check_length(len(encoded.ids) - 1, job.recipe.data.context, "tokens")
    batch = job.collate([encoded])
    logits = labeller.model.project(labeller.model(batch.ids)).float()[0]  # type: ignore[operator]
    labels = batch.labels[0]
    costs = -logits.log_softmax(-1).gather(1, labels[:, None])[:, 0]
    text = example.lines[0]
    output = _text(text, job.tokenizer.pieces(text))
    said = Answer(values=tuple(_short(costs.tolist())), measure="the less expected it was, in nats")
    return _Shown(Text(text="", tokens=()), output, said)


def _shown_span(labeller: Labeller, example: Any, encoded: Any, answer: Any, seen: Any) -> _Shown:
    """A text with the answer to the question marked in it."""
    tokens = tuple(
        Token(text=encoded.context[start:end], start=start, end=end) for start, end in encoded.spans
    )
    tags = tuple("answer" if answer.start <= token.start < answer.end else "" for token in tokens)
    found = answer.answer or "no answer"
    said = Answer(labels=((found, _rounded(answer.probability)),), tags=tags)
    return _Shown(Text(text=encoded.context, tokens=tokens), Text.of([found], found), said)


def _shown_pair(labeller: Labeller, example: Any, encoded: Any, answer: Any, seen: Any) -> _Shown:
    """Two texts, one under the other, and how they stand to each other."""
    ordered = sorted(answer.probabilities.items(), key=lambda each: -each[1])
    said = Answer(labels=tuple((label, _rounded(share)) for label, share in ordered))
    return _Shown(
        _spaced((example.first, example.second), "\n"), Text.of([answer.label], answer.label), said
    )


def _shown_choice(labeller: Labeller, example: Any, encoded: Any, answer: Any, seen: Any) -> _Shown:
    """A question and its text, and how likely each choice is."""
    pairs = zip(example.choices, answer.probabilities, strict=True)
    ordered = sorted(pairs, key=lambda each: -each[1])
    said = Answer(labels=tuple((choice, _rounded(share)) for choice, share in ordered))
    text = _spaced((example.text, example.context), "\n")
    return _Shown(text, Text.of([answer.answer], answer.answer), said)


def _shown_picture(
    labeller: Labeller, example: Any, encoded: Any, answer: Any, seen: Any
) -> _Shown:
    """A picture under its label, its patches shaded by how much the class token looks at them."""
    job: Any = labeller.task
    config = job.recipe.model
    patch, has_first = config.patch, config.pooling == "first"
    rows, columns = (side // patch for side in example.pixels.shape[:2])
    places = [(row, column) for row in range(rows) for column in range(columns)]
    names = [CLASS] * has_first + [f"{row + 1},{column + 1}" for row, column in places]
    boxes = [None] * has_first + [(patch * y, patch * x, patch, patch) for y, x in places]
    last = weights_seen(seen[max(seen)])[0].mean(0)
    values = last[0] if has_first else last.mean(0)
    measure = f"the more {'the class token looks' if has_first else 'they all look'} at it"
    ordered = sorted(answer.probabilities.items(), key=lambda each: -each[1])
    labels = tuple((label, _rounded(share)) for label, share in ordered)
    said = Answer(
        labels=labels,
        values=tuple(_short(values.tolist())),
        measure=f"{measure} in the last layer, its heads' mean",
    )
    image = Image(pixels=_between_0_and_1(example.pixels, job.darkest), boxes=tuple(boxes))
    return _Shown(
        _spaced(names, " "),
        Text.of([answer.label], answer.label),
        said,
        image=image,
        label=example.where,
    )


# How a text and its answer are shown, by task.
_SHOWN: dict[str, Callable[[Labeller, Any, Any, Any, Any], _Shown]] = {
    "classification": _shown_label,
    "image_classification": _shown_picture,
    "language_modelling": _shown_surprise,
    "multiple_choice": _shown_choice,
    "pair_matching": _shown_pair,
    "question_answering": _shown_span,
    "tagging": _shown_tags,
}
# Tasks whose runs can be looked into.
LOOKED_INTO = frozenset(_SHOWN)


def _between_0_and_1(
    pixels: NDArray[Any], darkest: float
) -> tuple[tuple[tuple[float, ...], ...], ...]:
    """Pixels as grey, or as red, green and blue; of other channels, their mean."""
    low, high = min(darkest, pixels.min()), pixels.max()
    shares = (pixels - low) / max(high - low, 1e-9)
    if shares.shape[-1] != 3:
        shares = shares.mean(-1, keepdims=True)
    return tuple(tuple(tuple(_short(pixel)) for pixel in row) for row in shares.tolist())


def _left_out(labeller: Labeller, encoded: EncodedText, answer: Any) -> tuple[float, ...]:
    """How much the odds of the label fall without each token, as a logarithm."""
    job, whole = labeller.task, _log_odds(answer.probabilities[answer.label])
    found: list[float] = []
    for first in range(0, len(encoded.ids), _ROWS):
        places = range(first, min(first + _ROWS, len(encoded.ids)))
        less = [_without(encoded, place) for place in places]
        for each in job.predict(labeller.model, job.collate(less)):
            found.append(whole - _log_odds(each.probabilities[answer.label]))
    return tuple(_short(found))


def _log_odds(share: float) -> float:
    kept = min(max(share, 1e-7), 1 - 1e-7)
    return math.log(kept / (1 - kept))


def _without(encoded: EncodedText, place: int) -> EncodedText:
    if len(encoded.ids) == 1:
        return encoded
    less: dict[str, Any] = {"ids": [*encoded.ids[:place], *encoded.ids[place + 1 :]]}
    if (parts := getattr(encoded, "parts", None)) is not None:
        less["parts"] = torch.cat([parts[:place], parts[place + 1 :]])
    return replace(encoded, **less)


def _attention(
    seen: dict[tuple[str, int], Seen],
    shown: _Shown,
    layers: Sequence[int] | None,
    heads: Sequence[int] | None,
) -> Example:
    """The example with what was looked at: numbers of short texts, else bytes."""
    counts = {place: each.query.shape[1] for place, each in seen.items()}
    _check_chosen("layers", layers, {layer for _, layer in counts})
    _check_chosen("heads", heads, set(range(max(counts.values(), default=0))))
    chosen = {
        place: [head for head in range(count) if heads is None or head in heads]
        for place, count in counts.items()
        if layers is None or place[1] in layers
    }
    plain = Example(
        source=shown.text.text,
        output=shown.output.text,
        source_tokens=shown.text.tokens,
        output_tokens=shown.output.tokens,
    )
    longest = max(len(shown.text.tokens), len(shown.output.tokens))
    maps, packed, rows = [], [], {}
    for place, kept in chosen.items():
        found = weights_seen(seen[place])[0]
        if place[0] == "cross" or longest <= _LONGEST_WITH_NUMBERS:
            maps += [_map(place, head, found[head].tolist()) for head in kept]
        elif kept:
            summary = picked(summarize_seen(seen[place])[0], kept)
            packed.append(OneAttention(*place, tuple(kept), summary))
            rows[place] = found[kept]
    if packed:
        sides = (shown.text, None) if shown.text.tokens else (None, shown.output)
        kept_bytes = example_of(packed, sides[0], output=sides[1], started=True, rows=rows)
        plain = replace(plain, summaries=kept_bytes.summaries)
    return replace(plain, maps=tuple(maps))


def _map(place: tuple[str, int], head: int, rows: list[list[float]]) -> AttentionMap:
    kind, layer = place
    return AttentionMap(kind=kind, layer=layer, head=head, rows=rows)  # type: ignore[arg-type]


def _with_heads(seen: Seen) -> Seen:
    """The same with an axis of heads, of which there is one."""
    return replace(seen, query=seen.query[:, None], key=seen.key[:, None])


def _pieces_of(job: Any, text: str, encoded: EncodedText) -> Text:
    """A text and the tokens of it that are read, begin and end among them where they are."""
    begin = encoded.ids[:1] == [BOS_ID]
    if encoded.parts is not None:
        pieces = job.tokenizer.pieces(text)[: len(encoded.ids)]
        return Text(text=text, tokens=_text(text, pieces).tokens[:-1])
    found = _text(text, job.tokenizer.pieces(text)[: len(encoded.ids) - 1 - begin])
    first = (Token(text=BEGIN, start=0, end=0),) if begin else ()
    return replace(found, tokens=(*first, *found.tokens))


def _text(text: str, pieces: Sequence[Piece]) -> Text:
    """A text and its tokens, the end the last of them."""
    tokens = [Token(text=piece.text, start=piece.start, end=piece.end) for piece in pieces]
    place = tokens[-1].end if tokens else 0
    return Text(text=text, tokens=(*tokens, Token(text=END, start=place, end=place)))


def _spaced(words: Sequence[str], space: str) -> Text:
    """Words as a text."""
    tokens, place = [], 0
    for word in words:
        tokens.append(Token(text=word, start=place, end=place + len(word)))
        place += len(word) + len(space)
    return Text(text=space.join(words), tokens=tuple(tokens))


def _rounded(share: float) -> float:
    return float(f"{share:.6g}")


def _short(values: Sequence[float]) -> list[float]:
    return [float(f"{value:.4g}") for value in values]


def _check_length(length: int, longest: int, unit: str) -> None:
    if length > longest:
        raise DataError(
            f"text must be at most {longest} {unit} long to be looked at; got {length}. "
            "Look at one sentence at a time."
        )


def _check_chosen(name: str, wanted: Sequence[int] | None, there: set[int]) -> None:
    unknown = sorted(set(wanted or ()) - there)
    if unknown:
        known = ", ".join(map(str, sorted(there))) or "none"
        raise SettingError(f"{name} must be of {known}; got {', '.join(map(str, unknown))}.")


def _beginning(example: Example, longest: int = 60) -> str:
    named = example.label if example.image is not None else None
    text = " ".join((named or example.source or example.output).split())
    text = text if len(text) <= longest else f"{text[: longest - 1]}…"
    labels = example.answer.labels if example.answer else ()
    return f"{text} → {labels[0][0]}" if labels else text
