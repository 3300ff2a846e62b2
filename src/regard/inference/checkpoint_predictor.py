"""A Hugging Face model in use: its reply to a text, as a run has one, and what it looked at."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from regard.config import JsonValue
from regard.devices import device_of, find_device
from regard.devices.kinds import AUTO
from regard.inference.predictor import Predictor
from regard.inference.requests import unknown_in
from regard.interop.checkpoints.folder import load_folder
from regard.interop.pages.looking import longest_input, look, read
from regard.tasks.running_text.language_modelling import LanguageModelling
from regard.tasks.sequences.translations import Continuations
from regard.text import EOS_ID, normalize
from regard.text.reading.records import record_in
from regard.text.tokenizers.pieces import END
from regard.viewer import Document, Example, Prediction
from regard.viewer.example import Share

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

# Tasks by the endings of the names of models; any other is looked at and says nothing.
_TASKS = {
    "ForCausalLM": "language_modelling",
    "LMHeadModel": "language_modelling",
    "ForMaskedLM": "masked_language_modelling",
    "ForSequenceClassification": "classification",
}

MOST_WRITTEN = 24  # tokens of a continuation, as of a page with the model in it
MOST_LIKELY = 5  # next tokens


@dataclass(frozen=True, slots=True)
class Reply:
    """Answer of a model to a text; labels and tokens with their probabilities, likeliest first."""

    text: str = ""  # the output, the continuation or the label; empty of a model that says nothing
    labels: tuple[Share, ...] = ()
    next_tokens: tuple[Share, ...] = ()  # of a masked word, those in its place
    unknown: tuple[str, ...] = ()  # of the text what is not in a run's vocabulary

    def to_dict(self) -> dict[str, JsonValue]:
        """Plain data, ready for JSON."""
        return asdict(self)


def reply_of(predictor: Predictor, text: str, example: Example) -> Reply:
    """Answer of a run to the text of an example; a language model continues it greedily."""
    task = predictor.task
    if isinstance(task, LanguageModelling):
        (written,) = predictor.predict([text], method="greedy", max_tokens=MOST_WRITTEN)
        assert isinstance(written, Continuations)
        reply = Reply(text=written.best.text, next_tokens=_next_tokens(predictor, task, text))
        return replace(reply, unknown=tuple(unknown_in(task, text)))
    request = task.request(record_in(text), "text")
    unknown = tuple(unknown_in(task, request))
    if predictor.is_seq2seq:
        return Reply(text=example.output, unknown=unknown)
    if example.answer is not None and example.answer.labels:
        labels = example.answer.labels
        return Reply(text=labels[0][0], labels=labels, unknown=unknown)
    (answer,) = predictor.answers([request])
    return Reply(text=answer.text(), unknown=unknown)


@torch.no_grad()
def _next_tokens(predictor: Predictor, task: LanguageModelling, text: str) -> tuple[Share, ...]:
    tokenizer, model = task.tokenizer, predictor.model.eval()
    ids = [EOS_ID, *tokenizer.encode(normalize(text))][-task.data.context :]
    states = model(torch.tensor([ids], device=device_of(model)))
    project: nn.Module = model.project  # type: ignore[assignment]
    shares = project(states[0, -1]).float().softmax(-1)
    values, tokens = shares.topk(min(MOST_LIKELY, len(shares)))
    names = [END if token == EOS_ID else tokenizer.decode([token]) for token in tokens.tolist()]
    return tuple(zip(names, (float(f"{value:.4g}") for value in values.tolist()), strict=True))


class CheckpointPredictor:
    """A Hugging Face model in use, as ``Predictor`` is a run in use."""

    def __init__(self, model: "PreTrainedModel", tokenizer: "PreTrainedTokenizerBase") -> None:
        self.model, self.tokenizer = model, tokenizer
        nn.Module.eval(model)
        self.longest = longest_input(model, tokenizer)
        self.is_seq2seq = bool(getattr(model.config, "is_encoder_decoder", False))
        tasks = (task for ending, task in _TASKS.items() if type(model).__name__.endswith(ending))
        self.task = "generation" if self.is_seq2seq else next(tasks, "attention")

    @classmethod
    def load(cls, folder: str | Path, *, device: str = AUTO) -> "CheckpointPredictor":
        """The model of a folder with its head."""
        torch_device = find_device(device)
        model, tokenizer = load_folder(folder)
        nn.Module.to(model, torch_device)  # of whose own ``to`` mypy knows nothing
        return cls(model, tokenizer)

    def look_at(self, text: str, target: str | None = None, *, explain: bool = False) -> Document:
        """Attention of the model over one text, with its labels if it is a classifier."""
        options: dict[str, Any] = {"target": target, "max_new_tokens": MOST_WRITTEN}
        document = look(self.model, self.tokenizer, text, explain=explain, **options).document
        if self.task != "attention":
            document = replace(document, task=self.task.replace("_", " "))
        if self.task != "classification" or not (labels := self._labels(text)):
            return document
        (example,) = document.examples
        answer = replace(example.answer or Prediction(), labels=labels)
        example = replace(example, answer=answer)
        return replace(document, title=f"{document.title} → {labels[0][0]}", examples=(example,))

    def reply_of(self, text: str, example: Example) -> Reply:
        """Answer of the model to the text of an example."""
        if self.task == "language_modelling":
            return self._continued(text)
        if self.task == "masked_language_modelling":
            return Reply(next_tokens=self._filled(text))
        if example.answer is not None and example.answer.labels:
            return Reply(text=example.answer.labels[0][0], labels=example.answer.labels)
        return Reply(text=example.output if self.is_seq2seq else "")

    def _labels(self, text: str) -> tuple[Share, ...]:
        """Labels with their probabilities, the likeliest first; none of a model of numbers."""
        logits = self._logits(self._ids(text))
        if len(logits) < 2:
            return ()
        is_multiple = self.model.config.problem_type == "multi_label_classification"
        shares, order = (logits.sigmoid() if is_multiple else logits.softmax(-1)).sort(
            descending=True
        )
        names = {str(number): name for number, name in (self.model.config.id2label or {}).items()}
        return _named(shares, [names.get(str(each), str(each)) for each in order.tolist()])

    @torch.no_grad()
    def _continued(self, text: str) -> Reply:
        """The likeliest next tokens, and the greedy continuation."""
        ids = self._ids(text)
        next_tokens = self._likeliest(self._logits(ids)[-1])
        room = MOST_WRITTEN if self.longest is None else self.longest - ids.shape[1]
        if room < 1:
            return Reply(next_tokens=next_tokens)
        padding = self.tokenizer.pad_token_id
        made: Tensor = self.model.generate(  # type: ignore[operator]
            input_ids=ids.to(self.model.device),
            attention_mask=torch.ones_like(ids).to(self.model.device),
            max_new_tokens=min(room, MOST_WRITTEN),
            do_sample=False,
            num_beams=1,
            pad_token_id=0 if padding is None else padding,
        )
        # Tokens alone may be decoded without the space before them.
        before, whole = (
            self._decoded(each[0].tolist(), skip_special_tokens=True) for each in (ids, made)
        )
        return Reply(text=whole.removeprefix(before), next_tokens=next_tokens)

    def _filled(self, text: str) -> tuple[Share, ...]:
        """The likeliest tokens at the first mask; none where there is no mask."""
        ids = self._ids(text)
        masks = (ids[0] == self.tokenizer.mask_token_id).nonzero().flatten().tolist()
        return self._likeliest(self._logits(ids)[masks[0]]) if masks else ()

    def _ids(self, text: str) -> Int[Tensor, "1 N"]:
        return read(self.model, self.tokenizer, text)[0]

    @torch.no_grad()
    def _logits(self, ids: Int[Tensor, "1 N"]) -> Float[Tensor, "..."]:
        """Logits of each token, (N, V), or of each label, (V,)."""
        logits: Tensor = self.model(input_ids=ids.to(self.model.device)).logits[0]
        return logits.float().cpu()

    def _likeliest(self, logits: Float[Tensor, " V"]) -> tuple[Share, ...]:
        shares = logits.softmax(-1)
        top = shares.topk(min(MOST_LIKELY, len(shares)))
        return _named(top.values, [self._decoded([token]) for token in top.indices.tolist()])

    def _decoded(self, ids: list[int], **options: bool) -> str:
        return str(self.tokenizer.decode(ids, clean_up_tokenization_spaces=False, **options))


def _named(shares: Float[Tensor, " K"], names: Sequence[str]) -> tuple[Share, ...]:
    numbers = (float(f"{share:.4g}") for share in shares.tolist())
    return tuple(zip(names, numbers, strict=True))
