"""Texts as models read them: those of runs, and of Hugging Face models."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from regard.devices import device_of, moved
from regard.interop.explaining import Reading
from regard.models.configs.readers import ClassifierConfig
from regard.tasks import SequenceTask
from regard.tasks.labels.classification import Classification
from regard.tasks.running_text.language_modelling import LanguageModelling, Passage
from regard.text import BOS_ID, EOS_ID, normalize
from regard.text.reading.records import record_in
from regard.viewer import Document, Example

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

    from regard.inference import Predictor


def explain_run(
    predictor: "Predictor",
    document: Document,
    texts: Sequence[str],
    *,
    target: str | None = None,
    against: str | None = None,
    methods: Sequence[str] | None = None,
) -> Document:
    """Explain the examples of a run's document, as ``Reading.explain`` does.

    Of a translator, a language model or a classifier; of another task it comes back as it is.

    Args:
        predictor: The run.
        document: What it looked at.
        texts: The texts that it was given.
        target: The next token of a language model, or the class of a classifier.
        against: What it is held against.
        methods: Of ``attribute``.
    """
    model, examples = predictor.model.eval(), list(document.examples)
    for n, example in enumerate(examples):
        reading = reading_of_run(predictor, example, texts[min(n, len(texts) - 1)])
        if reading is not None:
            examples[n] = reading.explain(
                model, example, target=target, against=against, methods=methods
            )
    return replace(document, examples=tuple(examples))


def is_explained(task: object) -> bool:
    """Whether outputs of a task are explained."""
    return isinstance(task, SequenceTask | LanguageModelling | Classification)


def reading_of_run(predictor: "Predictor", example: Example, text: str) -> Reading | None:
    """The text of a run's example as its model reads it; None where it cannot be explained."""
    task, device = predictor.task, device_of(predictor.model)
    if isinstance(task, SequenceTask):
        target = task.tokenizer.target
        written = [*target.encode(normalize(example.output)), EOS_ID]
        if len(written) != len(example.output_tokens):  # in other pieces than it is read in
            return None
        source, lengths = task.pad_sources([task.tokenizer.source.encode(example.source)])
        given = torch.tensor([[BOS_ID, *written[:-1]]])
        return Reading(
            inputs=moved({"source": source, "source_lengths": lengths, "target": given}, device),
            name=target.names.__getitem__,
            encode=lambda word: [*target.encode(normalize(word)), EOS_ID],
            text="target",
            next_ids=written,
            written=written,
        )
    if isinstance(task, LanguageModelling):
        ids = torch.from_numpy(task.stretch(Passage((example.output,), "text")).ids)
        return Reading(
            inputs=moved({"ids": ids[None, :-1]}, device),
            name=task.tokenizer.names.__getitem__,
            encode=lambda word: [token for token in task.tokenizer.encode(word) if token > EOS_ID],
            text="ids",
            next_ids=ids[1:].tolist(),
            start=1,
            places=[len(ids) - 2],
        )
    if isinstance(task, Classification):
        batch = task.collate(task.encode([task.request(record_in(text), "text")]))
        inputs = {name: batch[name] for name in ("ids", "lengths", "parts") if name in batch}
        if task.recipe.settings(ClassifierConfig).pooling == "aspect":
            inputs["aspects"] = batch["aspect"]
        return Reading(
            inputs=moved(inputs, device), name=str, encode=lambda _: [], labels=task.labels
        )
    return None


def reading_of_checkpoint(
    model: "PreTrainedModel",
    tokenizer: "PreTrainedTokenizerBase",
    inputs: Mapping[str, Tensor],
    example: Example,
    written: Sequence[int] | None,
) -> Reading:
    """A text as a Hugging Face model reads it, and what it wrote, if it does."""

    def text_of(number: int) -> str:
        text = str(tokenizer.decode([number], clean_up_tokenization_spaces=False))
        if text and "\ufffd" not in text:
            return text
        piece = tokenizer.convert_ids_to_tokens([number])[0]  # no text by itself
        return f"#{number}" if piece is None else str(piece)

    def encode(word: str) -> list[int]:
        is_output = written is not None
        name = "text_target" if is_output else "text"
        ids = tokenizer(**{name: word}, add_special_tokens=is_output)["input_ids"]
        return [each for each in ids if is_output or each != tokenizer.unk_token_id]

    ids = inputs["input_ids"][0].tolist()
    is_next = written is None and not example.source_tokens
    mask = getattr(tokenizer, "mask_token_id", None)
    masks = [n for n, each in enumerate(ids) if each == mask]
    labels: list[str] = []
    if type(model).__name__.endswith("ForSequenceClassification"):
        labels = [str(name) for _, name in sorted((model.config.id2label or {}).items())]
    return Reading(
        inputs=inputs,
        name=text_of,
        encode=encode,
        text="" if labels else "input_ids" if written is None else "decoder_input_ids",
        next_ids=written if written is not None else ids[1:] if is_next else (),
        ahead=int(is_next),
        places=[len(ids) - 1] if is_next else masks,
        written=written,
        labels=labels,
    )
