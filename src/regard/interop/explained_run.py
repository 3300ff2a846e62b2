"""What a run's page says besides attention: why, by layer, and how unexpected."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from regard.devices import device_of
from regard.errors import DataError, SettingError
from regard.interop.attribute import ExplainedText
from regard.interop.explaining import (
    Layout,
    Target,
    are_explained,
    first_difference,
    importances,
)
from regard.interop.faithfulness import logits_of
from regard.interop.lens import Readout, block_outputs, rounded
from regard.models.configs.heads import ClassifierConfig
from regard.tasks import SequenceTask
from regard.tasks.classification import Classification
from regard.tasks.language_modelling import LanguageModelling, Passage
from regard.text import BOS_ID, EOS_ID, Tokenizer, normalize
from regard.text.reading.records import record_in
from regard.viewer import Document, Example

if TYPE_CHECKING:
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
    """Add attributions, predictions by layer and the loss of each token to a run's document.

    Args:
        predictor: A translator, a language model or a classifier; of other tasks the document
            comes back as it is.
        document: What it looked at.
        texts: The texts that it was given, one for each example unless it translates.
        target: The next token of a language model, or the class of a classifier, that is explained.
        against: What it is held against; of a translator another output.
        methods: As ``importances`` takes them.

    Raises:
        SettingError: An attribution is asked for that the model cannot have.
        DataError: There is no such token or class.
    """
    task, model = predictor.task, predictor.model.eval()
    examples = list(document.examples)
    for number, example in enumerate(examples):
        reading: _Reading | None = None
        if isinstance(task, SequenceTask):
            reading = _translation(task, example, against)
        elif isinstance(task, LanguageModelling):
            reading = _passage(task, example, target, against)
        elif isinstance(task, Classification) and len(texts) == len(examples):
            reading = _labelled(task, texts[number], target, against)
        if reading is not None:
            is_asked = methods is not None or target is not None or against is not None
            examples[number] = reading.explain(model, example, methods, is_asked=is_asked)
    return replace(document, examples=tuple(examples))


def is_explained(task: object) -> bool:
    """Whether outputs of a task are explained."""
    return isinstance(task, SequenceTask | LanguageModelling | Classification)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Reading:
    """Inputs of a model for the text of an example, and what is to be explained of its outputs."""

    inputs: Mapping[str, Tensor]
    layout: Layout
    targets: Sequence[Target]
    names: Sequence[str]  # of tokens or classes
    text: str = ""  # the input whose next tokens are predicted; empty of a classifier
    next_ids: Sequence[int] = ()

    def explain(
        self, model: nn.Module, example: Example, methods: Sequence[str] | None, *, is_asked: bool
    ) -> Example:
        device = device_of(model)
        inputs = {name: each.to(device) for name, each in self.inputs.items()}
        text = ExplainedText(model, inputs)
        if self.text:
            log_probs = logits_of(model, text.answer)[0].float().log_softmax(dim=-1)
            picked = log_probs[range(len(self.next_ids)), list(self.next_ids)]
            surprise = rounded((-picked).tolist())
            with suppress(SettingError), block_outputs(model) as outputs:  # without attention
                readout = Readout(
                    *(model, inputs, self.text), body=model, outputs=outputs, seen=text.seen
                )
                lens = readout.lens(self.names.__getitem__, ahead=0)
                example = replace(example, lens=lens)
            example = replace(example, surprise=surprise)
        if not are_explained(methods, self.layout.tokens, is_asked=is_asked):
            return example
        found = importances(
            *(text, self.targets, self.layout), methods=methods, name=self.names.__getitem__
        )
        return replace(example, importances=found or example.importances)


def _translation(task: SequenceTask, example: Example, against: str | None) -> _Reading | None:
    """A teacher-forced pass, each of whose output tokens is explained."""
    tokenizer = task.tokenizer
    source = tokenizer.source.encode(normalize(example.source))
    output = [*tokenizer.target.encode(normalize(example.output)), EOS_ID]
    if len(output) != len(example.output_tokens):  # written in other pieces than its text is read
        return None
    ids, lengths = task.pad_sources([source])
    targets = [Target(n, token, None, n) for n, token in enumerate(output)]
    if against is not None:
        other = [*tokenizer.target.encode(normalize(against)), EOS_ID]
        n = first_difference(output, other)
        targets = [Target(n, output[n], other[n], n)]
    return _Reading(
        inputs={
            "source": ids,
            "source_lengths": lengths,
            "target": torch.tensor([[BOS_ID, *output[:-1]]]),
        },
        layout=Layout(len(example.source_tokens)),
        targets=targets,
        names=tokenizer.target.names,
        text="target",
        next_ids=output,
    )


def _passage(
    task: LanguageModelling, example: Example, target: str | None, against: str | None
) -> _Reading:
    """A text whose next token is explained."""
    ids = torch.from_numpy(task.stretch(Passage((example.output,), "text")).ids)[None]
    numbers = [_token(task.tokenizer, word) for word in (target, against)]
    last = ids.shape[1] - 2
    return _Reading(
        inputs={"ids": ids[:, :-1]},
        layout=Layout(len(example.output_tokens), start=1),
        targets=[Target(last, *numbers)],
        names=task.tokenizer.names,
        text="ids",
        next_ids=ids[0, 1:].tolist(),
    )


def _labelled(task: Classification, text: str, target: str | None, against: str | None) -> _Reading:
    """A text whose label is explained."""
    (encoded,) = task.encode([task.request(record_in(text), "text")])
    batch = task.collate([encoded])
    inputs = {name: batch[name] for name in ("ids", "lengths", "parts") if name in batch}
    if task.recipe.settings(ClassifierConfig).pooling == "aspect":
        inputs["aspects"] = batch["aspect"]
    numbers = [_class(task.labels, word) for word in (target, against)]
    return _Reading(
        inputs=inputs,
        layout=Layout(batch["ids"].shape[1]),
        targets=[Target(None, *numbers)],
        names=task.labels,
    )


def _token(tokenizer: Tokenizer, word: str | None) -> int | None:
    """The first token of a word."""
    if word is None:
        return None
    ids = [token for token in tokenizer.encode(word) if token > EOS_ID]
    if not ids:
        raise DataError(f"target must have tokens that the model knows; got {word!r}.")
    return ids[0]


def _class(labels: Sequence[str], word: str | None) -> int | None:
    if word is not None and word not in labels:
        raise DataError(f"target must be one of {', '.join(labels)}; got {word!r}.")
    return None if word is None else labels.index(word)
