"""Answers in words: what stands beside the picture of what a model looked at."""

from dataclasses import asdict, dataclass

import torch
from torch import nn

from regard.config import JsonValue
from regard.devices import device_of
from regard.inference.predictor import Predictor
from regard.tasks.running_text.language_modelling import LanguageModelling
from regard.tasks.sequences.translations import Continuations
from regard.text import EOS_ID, normalize
from regard.text.reading.records import record_in
from regard.text.tokenizers.pieces import END
from regard.viewer import Example
from regard.viewer.example import Share

MOST_WRITTEN = 24  # tokens of a continuation, as of a page with the model in it
MOST_LIKELY = 5  # next tokens


@dataclass(frozen=True, slots=True)
class Reply:
    """Answer of a model to a text; labels and tokens with their probabilities, likeliest first."""

    text: str = ""  # the output, the continuation or the label; empty of a model that says nothing
    labels: tuple[Share, ...] = ()
    next_tokens: tuple[Share, ...] = ()  # of a masked word, those in its place

    def to_dict(self) -> dict[str, JsonValue]:
        """Plain data, ready for JSON."""
        return asdict(self)


def reply_of(predictor: Predictor, text: str, example: Example) -> Reply:
    """Answer of a run to the text of an example; a language model continues it greedily."""
    if isinstance(predictor.task, LanguageModelling):
        (written,) = predictor.predict([text], method="greedy", max_tokens=MOST_WRITTEN)
        assert isinstance(written, Continuations)
        likeliest = _next_tokens(predictor, predictor.task, text)
        return Reply(text=written.best.text, next_tokens=likeliest)
    if predictor.is_seq2seq:
        return Reply(text=example.output)
    if example.answer is not None and example.answer.labels:
        return Reply(text=example.answer.labels[0][0], labels=example.answer.labels)
    request = predictor.task.request(record_in(text), "text")
    (answer,) = predictor.answers([request])
    return Reply(text=answer.text())


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
