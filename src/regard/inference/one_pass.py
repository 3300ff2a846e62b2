"""A run whose answers are computed in one pass, in use: labels, tags, spans, choices, numbers."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Unpack

import torch

from regard.attention import AttentionCall, observe
from regard.config import JsonValue
from regard.devices import moved
from regard.inference.examples import ChosenHeads, plain_view, task_examples
from regard.inference.explanation import explained_answer, explains
from regard.inference.look import Calls, joined
from regard.inference.preparation import answer_in_one_pass
from regard.inference.requests import typed_record
from regard.inference.use import Answering, Reply, Request, RunInUse
from regard.tasks import DecodingConfig, OnePassTask
from regard.text import Line
from regard.text.phrasebook import Phrase
from regard.viewer import Example
from regard.viewer.options import LookOptions


class OnePass(RunInUse[OnePassTask[Any, Any]]):
    """A run whose answers are computed in one pass."""

    @property
    def explains(self) -> bool:
        return explains(self.task)

    def unused(self, *, explain: bool) -> set[str]:
        return super().unused(explain=explain and self.explains)

    def parse(self, record: str | Mapping[str, JsonValue], where: str) -> Request:
        return self._request(self.task.request(record, where))

    def parse_value(self, value: object, where: str) -> Request:
        return self.read(value, where)

    def read(self, value: object, where: str) -> Request:
        """The example of a value as programs have them; of pictures, the path of a file too."""
        opened = getattr(self.task, "open", None)
        if isinstance(value, Path) and opened is not None:
            return self._request(self.task.request(opened(value), where))
        return self._request(self.task.request(typed_record(value, where), where))

    def parse_line(self, line: Line, ending: str) -> Request | None:
        return self.parse_scored(line, ending)

    def parse_scored(self, line: Line, ending: str) -> Request | None:
        example = self.task.parse_line(line, ending)
        return None if example is None else self._request(example)

    def answer_parts(self, parts: Sequence[Any], **options: Unpack[Answering]) -> list[Any]:
        return self._predicted(parts, progress=options.get("progress"))[0]

    def answer_examples(self, examples: Sequence[Any], **options: Unpack[Answering]) -> list[Any]:
        return self._predicted(self.task.encode(examples), progress=options.get("progress"))[0]

    def answers_and_loss(
        self, examples: Sequence[Any], encoded: Sequence[object] | None = None
    ) -> tuple[list[Any], float]:
        """The answer to each example, and the mean loss over all that is predicted."""
        samples = self.task.encode(examples) if encoded is None else encoded
        return self._predicted(samples, with_loss=True)

    def score(
        self, requests: Sequence[Request], *, decoding: DecodingConfig | None = None
    ) -> list[Any]:
        return self._predicted([part for request in requests for part in request.parts])[0]

    @torch.no_grad()
    def examples(
        self, text: object, where: str, options: LookOptions, gold: Phrase | None, *, explain: bool
    ) -> list[Example]:
        task, model, request = self.task, self.model.eval(), self.read(text, where)
        (encoded,) = request.parts
        batch, made = moved(task.collate([encoded]), self.device), list[AttentionCall]()
        with observe(made.append):
            (answer,) = task.predict(model, batch)
        calls: Calls = joined(made)
        drawing = task.draw(model, request.example, encoded, answer)
        if drawing.text is None:
            calls, drawing = plain_view(str(text), answer.text(), drawing, calls)
        drawn = task_examples(calls, drawing, ChosenHeads(options.layers, options.heads))
        if not explain:
            return [example for example, _ in drawn]
        return [explained_answer(model, task, batch, answer, pair, options) for pair in drawn]

    def reply(self, text: str, example: Example) -> Reply:
        request = self.read(text, "text")
        labels = () if example.answer is None else example.answer.labels
        answer = labels[0][0] if labels else self.answer([request])[0].text()
        return Reply(text=answer, labels=labels, unknown=tuple(request.unknown))

    def _predicted(self, parts: Sequence[Any], **options: Any) -> tuple[list[Any], float]:
        ready = self.preparation.of(self.model)
        return answer_in_one_pass(self.task, self.model, ready, parts, **options)

    def _request(self, example: Any) -> Request:
        parts = self.task.encode([example])
        return Request(example, parts, self.task.unknown(example, parts))
