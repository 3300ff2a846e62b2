"""Why a run answered so: its texts as its model reads them, and the outputs that are explained."""

from collections.abc import Mapping
from functools import singledispatch
from typing import Any, cast

import torch
from torch import Tensor, nn

from regard.devices import device_of, moved
from regard.errors import DataError
from regard.interop.attribution.attribute import ExplainedText, output_of
from regard.interop.pages.explaining import Reading, class_of
from regard.interop.pages.sums import Choice
from regard.models import PairClassifier
from regard.models.heads import NO_ANSWER
from regard.tasks import AnyTask, SequenceTask
from regard.tasks.drawing import CrossAttention
from regard.tasks.labels.classification import Classification
from regard.tasks.labels.tagging import Tagging
from regard.tasks.labels.tags import Tags
from regard.tasks.questions.pair_matching import PairMatching
from regard.tasks.questions.question_answering import QuestionAnswering, SpanAnswer
from regard.tasks.questions.text_pairs import pair_model
from regard.tasks.running_text.language_modelling import LanguageModelling
from regard.tasks.running_text.masked_language_modelling import MaskedLanguageModelling
from regard.text import BOS_ID, EOS_ID, normalize
from regard.viewer import Example
from regard.viewer.options import LookOptions

_MOST_WORDS = 32  # of a sentence whose tags are explained


def explained_translation(
    model: nn.Module, task: SequenceTask, example: Example, why: LookOptions
) -> Example:
    """The example of an output with contributions to each of its tokens."""
    target = task.tokenizer.target
    written = [*target.encode(normalize(example.output)), EOS_ID]
    if len(written) != len(example.output_tokens):  # in other pieces than it is read in
        return example
    source, lengths = task.pad_sources([task.tokenizer.source.encode(example.source)])
    inputs = {
        "source": source,
        "source_lengths": lengths,
        "target": torch.tensor([[BOS_ID, *written[:-1]]]),
    }
    reading = Reading(
        inputs=moved(inputs, device_of(model)),
        name=target.names.__getitem__,
        read_name=task.tokenizer.source.names.__getitem__,
        encode=lambda word: [*target.encode(normalize(word)), EOS_ID],
        text="target",
        next_ids=written,
        written=written,
    )
    return reading.explain(model, example, why)


def explained_answer(
    model: nn.Module,
    task: AnyTask,
    batch: Mapping[str, Any],
    answer: Any,
    drawn: tuple[Example, CrossAttention | None],
    why: LookOptions,
) -> Example:
    """A drawn example with contributions to the answer; as it is where its task has none."""
    example, part = drawn
    reading = _reading(task, batch, answer, example, part)
    return example if reading is None else reading.explain(model, example, why)


@singledispatch
def _reading(
    task: object,
    batch: Mapping[str, Any],
    answer: Any,
    example: Example,
    part: CrossAttention | None,
) -> Reading | None:
    """Inputs and outputs of a model for an example of a task; None where none is explained."""
    return None


def explains(task: AnyTask) -> bool:
    """Whether answers of a task are explained."""
    return _reading.dispatch(type(task)) is not _reading.dispatch(object)


@_reading.register(LanguageModelling)
def _of_language_model(task: LanguageModelling, batch: Mapping[str, Any], *_: object) -> Reading:
    return Reading(
        inputs={"ids": batch["ids"]},
        name=task.tokenizer.names.__getitem__,
        encode=lambda word: [token for token in task.tokenizer.encode(word) if token > EOS_ID],
        text="ids",
        next_ids=batch["labels"][0].tolist(),
        start=1,
        positions=[batch["ids"].shape[1] - 1],
    )


@_reading.register(MaskedLanguageModelling)
def _of_masked_words(
    task: MaskedLanguageModelling, batch: Mapping[str, Any], *_: object
) -> Reading:
    halves = {"segments": batch["segments"]} if task.data.next_sentence else {}
    return Reading(
        inputs={"ids": batch["ids"], **halves},
        name=task.token_name,
        encode=lambda word: task.tokenizer.encode(normalize(word)),
        text="ids",
        positions=batch["chosen"][0].nonzero().flatten().tolist(),
        blanks=True,
    )


@_reading.register(Classification)
def _of_class(task: Classification, batch: Mapping[str, Any], *_: object) -> Reading:
    name = getattr(task.tokenizer, "names", None)  # of words: a speller has none
    named = {} if name is None else {"name": name.__getitem__}
    return Reading(inputs=task.inputs(batch), labels=task.labels, **named)


@_reading.register(Tagging)
def _of_tags(task: Tagging, batch: Mapping[str, Any], answer: Tags, *_: object) -> Reading:
    """Scores of the words' tags, those that the answer has."""
    names = ("ids", "lengths", "parts", "positions")
    positions = batch["positions"][0].tolist() if "positions" in batch else range(len(answer.tags))

    def choices(text: ExplainedText, why: LookOptions) -> list[Choice]:
        wanted = class_of(task.tags, "target", why.target)
        against = class_of(task.tags, "--not", why.against)
        made = []
        for word, tag in list(enumerate(answer.tags))[:_MOST_WORDS]:
            target = task.tags.index(tag) if wanted is None else wanted
            if target != against:
                number, _ = output_of(text.answer, text.model, target, against, word)
                name = task.tags[target]
                made.append(Choice(number, name, why.against or "", word, positions[word]))
        return made

    return Reading(inputs={name: batch[name] for name in names if name in batch}, choices=choices)


@_reading.register(PairMatching)
def _of_pair(
    task: PairMatching,
    batch: Mapping[str, Any],
    _: object,
    example: Example,
    part: CrossAttention | None,
) -> Reading | None:
    """Logits of the labels, by the tokens of the text that the example's other attends to."""
    if part is None and not example.segments:
        return None
    model, reading = pair_model(task.recipe), batch["reading"]
    inputs, explained = {"ids": batch["ids"], "lengths": batch["lengths"], **reading}, "ids"
    if issubclass(model, PairClassifier):
        names = ("first", "first_lengths", "second", "second_lengths")
        read = (reading["other"], reading["other_lengths"], batch["ids"], batch["lengths"])
        inputs = dict(zip(names, read, strict=True))
        explained = "first" if part is None else part.keys.name
    elif model.reads_apart and part is not None and part.keys.name == "first":
        explained = "other"
    if task.overlap is not None:
        inputs["overlap"] = batch["overlap"]
    attends = not model.reads_apart  # from one position to all of both texts
    return Reading(
        inputs=inputs, labels=task.labels, explained=explained, part=part, attends=attends
    )


@_reading.register(QuestionAnswering)
def _of_span(
    task: QuestionAnswering,
    batch: Mapping[str, Any],
    answer: SpanAnswer,
    _: object,
    part: CrossAttention | None,
) -> Reading | None:
    """The logits of the answer's start and end together, in the window where it was found."""
    if part is None:
        return None
    row = slice(part.row, part.row + 1)
    text = part.queries if part.is_answered else part.keys
    inside = [
        n for n, token in enumerate(text.text.tokens) if answer.start <= token.start < answer.end
    ]
    first, last = NO_ANSWER, NO_ANSWER
    if inside:
        first, last = (text.first + n - text.tokens.start for n in (inside[0], inside[-1]))
    inputs = {name: batch[name][row] for name in ("ids", "lengths")}
    inputs |= {name: tensor[row] for name, tensor in batch["reading"].items()}
    is_second = pair_model(task.recipe).reads_apart and part.keys is not text

    def logits(found: object) -> Tensor:
        start, end = cast("tuple[Tensor, Tensor]", found)
        return start[:, first] + end[:, last]

    def choices(_: ExplainedText, why: LookOptions) -> list[Choice]:
        if (why.target, why.against) != (None, None):
            raise DataError(
                "--target and --not must be left out for an answer, which is explained by its "
                f"start and end; got {why.target or why.against!r}."
            )
        return [Choice(logits, answer.text() or "no answer", position=first)]

    explained = "other" if is_second else "ids"
    return Reading(inputs=inputs, choices=choices, explained=explained, part=part)
