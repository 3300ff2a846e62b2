"""From a model in use and a text to the document of what it looked at, whatever its task."""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Protocol, cast

import numpy as np
import torch
from jaxtyping import Float
from torch import nn

from regard.attention import AttentionCall, observe
from regard.devices import device_of, moved
from regard.errors import DataError
from regard.inference.examples import Calls, ChosenHeads, example, plain_view, task_examples
from regard.inference.explanation import explained_answer, explained_translation
from regard.inference.look import (
    attention_to_source,
    calls_for_output,
    joined,
    weights_of_row,
)
from regard.inference.preparation import Preparation
from regard.inference.search.tree import followed, searched
from regard.interop.pages.explaining import Why
from regard.interop.pages.neurons import fitting
from regard.models import Seq2Seq
from regard.tasks import AnyTask, OnePassTask, SequenceTask
from regard.text import normalize
from regard.text.phrasebook import Phrase
from regard.text.reading.records import record_in
from regard.viewer import Document, Example, in_one_line
from regard.viewer.example import Head, Layer, View
from regard.viewer.parts import RowSource

_KEPT = 2  # examples whose queries and keys stay in memory


class InUse(Protocol):
    """A model in use, such as a ``Predictor``."""

    model: nn.Module
    task: AnyTask
    preparation: Preparation


def look_into(
    predictor: InUse,
    texts: str | Sequence[str],
    *,
    target: str | None = None,
    layers: Sequence[int] | None = None,
    heads: Sequence[int] | None = None,
    beam_size: int | None = None,
    title: str | None = None,
    why: Why | None = None,
) -> Document:
    """Predictions of texts with their attention: a document; parts of a long text one by one."""
    sources = [texts] if isinstance(texts, str) else list(texts)
    if target is not None and len(sources) > 1:
        raise DataError(f"target must be of one text; got {len(sources)} texts.")
    chosen = ChosenHeads(layers, heads)
    examples: list[Example] = []
    for number, text in enumerate(sources, 1):
        if not isinstance(predictor.task, SequenceTask):
            examples += _answered(predictor, text, f"text {number}", chosen, why)
            continue
        for part in looked_parts(predictor, text, target):
            one = _written(predictor, part, target, chosen, beam_size=beam_size, why=why)
            examples.append(one)
    if not examples:
        raise DataError("texts must hold text to look at; got none.")
    fitted = examples if why is None else fitting(examples, why.neurons)
    return document(predictor, fitted, title=title)


def look_at(
    predictor: InUse,
    text: str,
    target: str | None = None,
    *,
    phrase: Phrase | None = None,
    beam_size: int | None = None,
    why: Why | None = None,
) -> Example:
    """Attention of the model over one text, ready for a page; with explanations, if wanted."""
    chosen = ChosenHeads()  # all
    if not isinstance(predictor.task, SequenceTask):
        example = _answered(predictor, text, "text", chosen, why)[0]
    else:
        options: dict[str, Any] = {"phrase": phrase, "beam_size": beam_size, "why": why}
        example = _written(predictor, text, target, chosen, **options)
    return example if why is None else fitting([example], why.neurons)[0]


def document(
    predictor: InUse,
    examples: Sequence[Example],
    *,
    title: str | None = None,
) -> Document:
    """Examples as one document, with what the page says of the model."""
    recipe = predictor.task.recipe
    parameters = sum(parameter.numel() for parameter in predictor.model.parameters())
    return Document(
        title=_title(examples[0]) if title is None else title,
        task=recipe.task.replace("_", " "),
        model=f"{recipe.model_type}, {parameters:,} parameters",
        examples=tuple(examples),
        source_language=getattr(recipe.data, "source_language", None),
        output_language=getattr(recipe.data, "target_language", None),
        opening=_opening(predictor, examples[0]) if examples else None,
    )


def looked_parts(predictor: InUse, text: str, target: str | None) -> list[str]:
    """The parts of a text that are looked into one by one: each is translated at once."""
    text = normalize(text)
    return [text] if target is not None or not text else _translator(predictor)[1].parts(text)


def rows_of(predictor: InUse, document: Document) -> RowSource:
    """Source of exact attention rows for the examples of ``look_into``."""

    @lru_cache(maxsize=_KEPT)
    def observed(number: int) -> dict[tuple[str, int], AttentionCall]:
        example, (model, task) = document.examples[number], _translator(predictor)
        source = task.tokenizer.source.encode(normalize(example.source))
        output = task.tokenizer.target.encode(normalize(example.output))
        if len(output) + 1 != len(example.output_tokens):
            return {}
        return calls_for_output(model, task, source, output)

    def rows(
        number: int, kind: str, layer: Layer, head: Head, queries: Sequence[int]
    ) -> Float[np.ndarray, "N M"] | None:
        chosen = [
            call
            for (name, at), call in observed(number).items()
            if name == kind and layer in ("mean", at)
        ]
        if not chosen:
            return None
        parts = []
        for call in chosen:
            weights = weights_of_row(call, queries=queries)
            parts.append(weights.mean(0) if head == "mean" else weights[head])
        return torch.stack(parts).mean(0).detach().float().cpu().numpy()

    return rows


def _written(
    predictor: InUse,
    source: str,
    target: str | None,
    chosen: ChosenHeads,
    *,
    phrase: Phrase | None = None,
    beam_size: int | None = None,
    why: Why | None = None,
) -> Example:
    """Attention of the model while it writes the output of one source."""
    model, task = _translator(predictor)
    ready, score = predictor.preparation.of(model), None
    if target is not None:
        if not normalize(target):
            raise DataError("target must hold text to look at; got an empty line.")
        look = attention_to_source(model, task, source, normalize(target))
        search = None
        if not look.summaries:  # of a long text a search is nothing to read
            ids = [piece.id for piece in look.output_pieces]
            search = followed(ready, task, look.source, ids)
    elif len(parts := looked_parts(predictor, source, None)) > 1:
        raise DataError(
            f"source must be at most {task.data.max_length} tokens long to be translated at once; "
            f"got a text of {len(parts)} such parts. Look into each, or give the target."
        )
    else:
        best, search = searched(ready, task, source, beam_size=beam_size)
        look, score = attention_to_source(model, task, source, best.tokens), best.score
    made = example(look, score=score, phrase=phrase, search=search, chosen=chosen)
    return made if why is None else explained_translation(model.eval(), task, made, why)


def _translator(predictor: InUse) -> tuple[Seq2Seq, SequenceTask]:
    """The model and the task of a run that writes a text for a text."""
    return cast(Seq2Seq, predictor.model), cast(SequenceTask, predictor.task)


@torch.no_grad()
def _answered(
    predictor: InUse, text: str, where: str, chosen: ChosenHeads, why: Why | None
) -> list[Example]:
    """Attention of the model while it predicts one text, as its task draws it."""
    task, model = predictor.task, predictor.model.eval()
    assert isinstance(task, OnePassTask)
    request = task.request(record_in(text), where)
    (encoded,) = task.encode([request])
    batch, made = moved(task.collate([encoded]), device_of(model)), list[AttentionCall]()
    with observe(made.append):
        (answer,) = task.predict(model, batch)
    calls: Calls = joined(made)
    drawing = task.draw(model, request, encoded, answer)
    if drawing.text is None:
        calls, drawing = plain_view(text, answer.text(), drawing, calls)
    drawn = task_examples(calls, drawing, chosen)
    if why is None:
        return [each for each, _ in drawn]
    return [explained_answer(model, task, batch, answer, each, why) for each in drawn]


def _opening(predictor: InUse, example: Example) -> View | None:
    """Copy distribution, where the model copies."""
    layer = getattr(predictor.model, "copying_layer", None)
    there = [one.layer for one in example.maps if one.kind == "cross"]
    there += [one.layer for one in example.summaries if one.kind == "cross"]
    return View(kind="cross", layer=layer) if layer is not None and layer in there else None


def _title(example: Example) -> str:
    """The text, and what was said of it; the beginning of a long one."""
    if example.answer is None:
        return f"{example.source} → {example.output}"
    named = example.label if example.image is not None else None
    text = in_one_line(named or example.source or example.output)
    labels = example.answer.labels
    return f"{text} → {labels[0][0]}" if labels else text
