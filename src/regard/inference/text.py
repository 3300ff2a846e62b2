"""A language model in use: prompts in, continuations out."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar, Unpack, cast

import torch

from regard.config import JsonValue
from regard.inference.one_pass import OnePass
from regard.inference.preparation import batch_tokens
from regard.inference.requests import record_of
from regard.inference.search.windows import WindowedSearch
from regard.inference.use import Answering, Reply, Request, useless
from regard.interop.pages.explaining import named_shares
from regard.models import LanguageModel
from regard.tasks import DecodingConfig, Recipe
from regard.tasks.running_text.language_modelling import LanguageModelling, Prompt
from regard.text import EOS_ID, UNK_ID, Line
from regard.text.tokenizers.pieces import END, unknown_pieces
from regard.viewer import Example

MOST_WRITTEN = 24  # tokens of a continuation, as of a page with the model in it
MOST_LIKELY = 5  # next tokens
_FOR_SEQUENCES = "it is for runs that write a text for a text"


class Text(OnePass):
    """A language model, which continues prompts; a text is scored by its −log p in one pass."""

    task: LanguageModelling
    at_once: ClassVar[int | None] = 32
    useless: ClassVar[Mapping[str, str]] = dict.fromkeys(
        ("coverage_penalty", "max_ratio"), _FOR_SEQUENCES
    )

    def parse(self, record: str | Mapping[str, JsonValue], where: str) -> Request:
        return self._prompt(self.task.prompt(record, where))

    def parse_value(self, value: object, where: str) -> Request:
        return self.parse(record_of(value, where), where)

    def parse_line(self, line: Line, ending: str) -> Request:
        return self._prompt(self.task.prompt_in(line, ending))

    def answer_parts(self, parts: Sequence[Prompt], **options: Unpack[Answering]) -> list[Any]:
        search = self._windowed(options.get("decoding"))
        return search(parts, progress=options.get("progress"))

    def streams(self, decoding: DecodingConfig | None) -> bool:
        return decoding is not None and decoding.method != "beam" and decoding.n_best == 1

    def stream(self, request: Request, decoding: DecodingConfig | None = None) -> Iterator[str]:
        return self._windowed(decoding).stream(request.example)

    @classmethod
    def search(cls, recipe: Recipe, settings: Mapping[str, JsonValue]) -> DecodingConfig | None:
        changed = super().search(recipe, settings)
        if changed is not None and "min_length" in settings and not changed.one_line:
            raise useless("min_length", recipe, "without one_line it writes all of max_tokens")
        return changed

    def warm_up(self) -> None:
        self.answer([self.parse(".", "")], decoding=self.search(self.recipe, {"max_tokens": 1}))

    @torch.no_grad()
    def reply(self, text: str, example: Example) -> Reply:
        """The greedy continuation of a text, and the likeliest next tokens."""
        request = self.parse(text, "text")
        greedy = self.search(self.recipe, {"method": "greedy", "max_tokens": MOST_WRITTEN})
        (written,) = self.answer_parts(request.parts, decoding=greedy)
        model, tokenizer = cast(LanguageModel, self.model.eval()), self.task.tokenizer
        ids = [EOS_ID, *request.example.ids][-self.task.data.context :]
        states = model(torch.tensor([ids], device=self.device))
        shares = model.project(states[0, -1]).float().softmax(-1)
        top = shares.topk(min(MOST_LIKELY, len(shares)))
        tokens = top.indices.tolist()
        names = [END if token == EOS_ID else tokenizer.decode([token]) for token in tokens]
        return Reply(
            text=written.best.text,
            next_tokens=named_shares(top.values, names),
            unknown=tuple(request.unknown),
        )

    def _prompt(self, prompt: Prompt) -> Request:
        lacking = [prompt] if UNK_ID in prompt.ids else []
        return Request(prompt, [prompt], unknown_pieces(self.task.tokenizer, lacking))

    def _windowed(self, decoding: DecodingConfig | None) -> WindowedSearch:
        decoding = decoding or self.recipe.settings(DecodingConfig)
        model = cast(LanguageModel, self.model)
        most = batch_tokens(model, decoding.batch_tokens)
        return WindowedSearch(model, self.preparation.of(model), self.task, decoding, most)
