"""A language model in use: prompts in, what it writes after them out."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

import torch

from regard.decoding.step import State, Step
from regard.devices import device_of, moved
from regard.devices.kinds import AUTO
from regard.errors import RunError, SettingError
from regard.inference.predictor import Predictor
from regard.inference.searcher import Searcher
from regard.layers.choices import Precision
from regard.models import LanguageModel
from regard.models.prepared import prepared
from regard.tasks import DecodingConfig, Recipe
from regard.tasks.language_modelling import LanguageModelling
from regard.tasks.language_modelling.settings import TextData
from regard.text import EOS_ID, PAD_ID, Tokenizer, normalize

# (search, the model's steps, its state, most tokens, a text that seeds them, the token that ends)
# -> tokens.
_Write = Callable[[Searcher, Step[State], State, int, str, int], Iterable[int]]
# Tokens to write from which a model is prepared for it.
_WORTH_PREPARING = 64


class Generator:
    """A language model that goes on with texts.

    It reads no more tokens at once than a window of training holds, unless it is recurrent: where
    that is full, it goes on from the second half of what it has read.

    Args:
        model: Trained; put into evaluation mode at each use.
        tokenizer: Its own.
        recipe: Whose ``[decoding]`` holds where nothing else is asked for.
    """

    def __init__(self, model: LanguageModel, tokenizer: Tokenizer, recipe: Recipe) -> None:
        self.model = model
        self.tokenizer, self.recipe = tokenizer, recipe
        self._context: int | None = (
            None if model.is_recurrent else recipe.settings(TextData).context
        )

    @property
    def decoding(self) -> DecodingConfig:
        """How texts are gone on with, where nothing else is asked."""
        return self.recipe.settings(DecodingConfig)

    @classmethod
    def load(
        cls,
        path: str | Path,
        *,
        precision: Precision = "auto",
        device: str = AUTO,
        setting: str = "device",
    ) -> "Generator":
        """The model in a run folder, in a precision and on a device of ``Predictor.load``.

        Raises:
            RunError: There is none, it is damaged, or it is no language model.
        """
        loaded = Predictor.load(path, precision=precision, device=device, setting=setting)
        return cls.of(loaded, str(path))

    @classmethod
    def of(cls, predictor: Predictor, name: str = "run") -> "Generator":
        """The language model of a run that is in use.

        Args:
            predictor: What uses it.
            name: What the run is called in messages.

        Raises:
            RunError: It is no language model.
        """
        task, model = predictor.task, predictor.model
        if not isinstance(task, LanguageModelling):
            raise RunError(
                f"{name} must be a run of a language model; it is one of {predictor.recipe.task}."
            )
        assert isinstance(model, LanguageModel)
        return cls(model, task.tokenizer, task.recipe)

    def continuations(self, prompt: str, decoding: DecodingConfig | None = None) -> list[str]:
        """What may follow a prompt, ``n_best`` texts of it; a line's end is a line break.

        Args:
            prompt: Part of a line, its beginning known; an empty one begins a line.
            decoding: How to search; None is as the recipe says.

        Raises:
            SettingError: A beam is to give several answers.
        """
        decoding = decoding or self.decoding
        copies = 1
        if decoding.method == "sample" and decoding.minimum_bayes_risk is None:
            copies, decoding = decoding.n_best, decoding.changed(n_best=1)
        elif decoding.n_best > 1:
            raise SettingError(
                "n_best must be 1 for a language model unless samples are drawn; "
                f'got {decoding.n_best}. Set method = "sample".'
            )
        return [
            self._text(prompt, list(self._tokens(prompt, decoding, f"{copy}", self._found)))
            for copy in range(copies)
        ]

    def stream(self, prompt: str, decoding: DecodingConfig | None = None) -> Iterator[str]:
        """The only continuation of a prompt, piece by piece as it is written.

        Raises:
            SettingError: The method is beam, or several answers are asked for.
        """
        decoding = decoding or self.decoding
        if decoding.method == "beam" or decoding.n_best > 1 or decoding.minimum_bayes_risk:
            raise SettingError(
                "method must be greedy or sample, and n_best 1, to write an answer as it comes; "
                f"got method={decoding.method}, n_best={decoding.n_best}."
            )
        return self._streamed(prompt, decoding)

    def _streamed(self, prompt: str, decoding: DecodingConfig) -> Iterator[str]:
        shown, tokens = "", list[int]()
        for token in self._tokens(prompt, decoding, "0", self._chosen):
            tokens.append(token)
            text = self._text(prompt, tokens)
            # A character spelled in several tokens is shown when it is whole.
            if not text.endswith("\ufffd"):
                yield text[len(shown) :]
                shown = text

    def _found(
        self, search: Searcher, steps: Step[State], state: State, limit: int, seed: str, end: int
    ) -> Iterable[int]:
        limits = torch.tensor([limit], device=device_of(self.model))
        answers = search.answers(steps, state, limits=limits, seeds=[seed], end=end)
        return answers[0][0].hypothesis.tokens

    def _chosen(
        self, search: Searcher, steps: Step[State], state: State, limit: int, seed: str, end: int
    ) -> Iterable[int]:
        device = device_of(self.model)
        return search.tokens(steps, state, limit=limit, seed=seed, end=end, device=device)

    def _tokens(
        self, prompt: str, decoding: DecodingConfig, seed: str, write: _Write
    ) -> Iterator[int]:
        """The tokens after a prompt, window after window."""
        self.model.eval()
        is_worth_it = decoding.max_tokens >= _WORTH_PREPARING
        model = prepared(self.model) if is_worth_it else self.model
        read = [EOS_ID, *self.tokenizer.encode(normalize(prompt))]
        end = EOS_ID if decoding.one_line else PAD_ID
        left, window = decoding.max_tokens, 0
        while left:
            room = left
            if self._context is not None:
                if len(read) >= self._context:
                    read = read[-(self._context // 2) :]
                room = min(left, self._context - len(read))
            # What has no end is as long as there is room.
            least = decoding.min_length if decoding.one_line else room
            part = decoding.changed(min_length=min(least, room))
            if window:
                part = part.changed(prefix="", require=())
            with torch.no_grad():
                given = torch.tensor([read]), torch.tensor([len(read)])
                state = model.start(*moved(given, device_of(self.model)))
            search = Searcher(part, self.tokenizer)
            before = len(read)
            for token in write(
                search, model.steps, state, room, f"{prompt}\0{seed}\0{window}", end
            ):
                read.append(token)
                yield token
                if len(read) - before == room:
                    break
            if len(read) - before < room:
                return
            left, window = left - room, window + 1

    def _text(self, prompt: str, tokens: Sequence[int]) -> str:
        """What follows the prompt, in lines."""
        before = self.tokenizer.encode(normalize(prompt))
        lines = [list(before)]
        for token in tokens:
            if token == EOS_ID:
                lines.append([])
            else:
                lines[-1].append(token)
        first, *rest = (self.tokenizer.decode(line) for line in lines)
        return "\n".join((first[len(self.tokenizer.decode(before)) :], *rest))
