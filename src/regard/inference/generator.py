"""A language model in use: prompts in, what it writes after them out."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

import torch

from regard.config import JsonValue
from regard.devices import device_of, moved
from regard.devices.kinds import AUTO
from regard.errors import RunError, SettingError
from regard.inference.predictor import Predictor
from regard.inference.preparation import Preparation, batch_tokens
from regard.inference.searcher import Searcher
from regard.layers.choices import Precision
from regard.models import LanguageModel
from regard.tasks import DecodingConfig, Recipe
from regard.tasks.language_modelling import LanguageModelling
from regard.tasks.language_modelling.settings import TextData
from regard.text import EOS_ID, PAD_ID, Tokenizer, batched, normalize
from regard.text.padding import lengths_of, padded


@dataclass(frozen=True, slots=True)
class Continuations:
    """Continuation of one text by a language model.

    Attributes:
        prompt: The text.
        found: One continuation, or as many as were asked for.
    """

    prompt: str
    found: tuple[str, ...]

    def text(self) -> str:
        """The text and its first continuation."""
        return f"{self.prompt}{self.found[0]}"

    def to_dict(self) -> dict[str, JsonValue]:
        """Plain data, ready for JSON."""
        return {"prompt": self.prompt, "continuations": list(self.found)}


@dataclass(slots=True)
class _Text:
    """A prompt, and what is written after it.

    Attributes:
        prompt: The text.
        seed: Which of the prompt's texts it is.
        read: The tokens that the model has before it.
        left: How many more are to be written.
        written: Those that are.
        window: How often the model has read anew.
    """

    prompt: str
    seed: str
    read: list[int]
    left: int
    written: list[int] = field(default_factory=list)
    window: int = 0

    @property
    def seed_of_window(self) -> str:
        """A text that seeds the samples of this window."""
        return f"{self.prompt}\0{self.seed}\0{self.window}"

    def add(self, token: int) -> None:
        """Take one token more."""
        self.read.append(token)
        self.written.append(token)


class Generator:
    """A language model that goes on with texts.

    It reads no more tokens at once than a window of training holds, unless it is recurrent: where
    that is full, it goes on from the second half of what it has read.

    Args:
        model: Trained; put into evaluation mode at each use.
        tokenizer: Its own.
        recipe: Whose ``[decoding]`` holds where nothing else is asked for.
        preparation: Makes the model ready for use; None is one of its own.
    """

    def __init__(
        self,
        model: LanguageModel,
        tokenizer: Tokenizer,
        recipe: Recipe,
        *,
        preparation: Preparation | None = None,
    ) -> None:
        self.model = model
        self.tokenizer, self.recipe = tokenizer, recipe
        self._preparation = Preparation() if preparation is None else preparation
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
        return cls(model, task.tokenizer, task.recipe, preparation=predictor.preparation)

    def continuations(self, prompt: str, decoding: DecodingConfig | None = None) -> list[str]:
        """Continue a prompt, ``n_best`` times; a line's end is a line break.

        Args:
            prompt: Part of a line, its beginning known; an empty one begins a line.
            decoding: How to search; None is as the recipe says.

        Raises:
            SettingError: A beam is to give several answers.
        """
        return self.continuations_of([prompt], decoding)[0]

    def continuations_of(
        self,
        prompts: Sequence[str],
        decoding: DecodingConfig | None = None,
        *,
        progress: Callable[[], None] | None = None,
    ) -> list[list[str]]:
        """Continue several prompts in one batch.

        Each gets what ``continuations`` gives it.

        Args:
            prompts: See there, as ``decoding``.
            decoding: See there.
            progress: Called whenever some have been written on with, as far as the model reads.

        Raises:
            SettingError: A beam is to give several answers.
        """
        decoding = decoding or self.decoding
        copies = 1
        if decoding.method == "sample":
            copies, decoding = decoding.n_best, decoding.changed(n_best=1)
        elif decoding.n_best > 1:
            raise SettingError(
                "n_best must be 1 for a language model unless samples are drawn; "
                f'got {decoding.n_best}. Set method = "sample".'
            )
        texts = [
            self._begun(prompt, f"{copy}", decoding) for prompt in prompts for copy in range(copies)
        ]
        self._write(texts, decoding, progress)
        found = [self._text(each.prompt, each.written) for each in texts]
        return [found[first : first + copies] for first in range(0, len(found), copies)]

    def stream(self, prompt: str, decoding: DecodingConfig | None = None) -> Iterator[str]:
        """The only continuation of a prompt, piece by piece as it is written.

        Raises:
            SettingError: The method is beam, or several answers are asked for.
        """
        decoding = decoding or self.decoding
        if decoding.method == "beam" or decoding.n_best > 1:
            raise SettingError(
                "method must be greedy or sample, and n_best 1, to write an answer as it comes; "
                f"got method={decoding.method}, n_best={decoding.n_best}."
            )
        return self._streamed(prompt, decoding)

    def _streamed(self, prompt: str, decoding: DecodingConfig) -> Iterator[str]:
        shown, begun = "", self._begun(prompt, "0", decoding)
        for _ in self._tokens(begun, decoding):
            text = self._text(prompt, begun.written)
            # A character spelled in several tokens is shown when it is whole.
            if not text.endswith("\ufffd"):
                yield text[len(shown) :]
                shown = text

    def _begun(self, prompt: str, seed: str, decoding: DecodingConfig) -> _Text:
        read = [EOS_ID, *self.tokenizer.encode(normalize(prompt))]
        return _Text(prompt, seed, read, decoding.max_tokens)

    def _room(self, text: _Text) -> int:
        """How much may be written after what the model reads, which is cut where it is too much."""
        if self._context is None:
            return text.left
        if len(text.read) >= self._context:
            text.read = text.read[-(self._context // 2) :]
        return min(text.left, self._context - len(text.read))

    def _searcher(self, decoding: DecodingConfig, room: int, window: int) -> Searcher:
        """The search in one window."""
        # What has no end is as long as there is room.
        least = decoding.min_length if decoding.one_line else room
        part = decoding.changed(min_length=min(least, room))
        return Searcher(part.changed(prefix="", require=()) if window else part, self.tokenizer)

    def _end(self, decoding: DecodingConfig) -> int:
        """The token that ends a text."""
        return EOS_ID if decoding.one_line else PAD_ID

    def _tokens(self, text: _Text, decoding: DecodingConfig) -> Iterator[int]:
        """The tokens of a text as they are chosen, window after window."""
        model, device = self._preparation.of(self.model), device_of(self.model)
        while text.left:
            room = self._room(text)
            search = self._searcher(decoding, room, text.window)
            with torch.no_grad():
                given = torch.tensor([text.read]), torch.tensor([len(text.read)])
                state = model.start(*moved(given, device))
            seed, end = text.seed_of_window, self._end(decoding)
            chosen = search.tokens(
                model.steps, state, limit=room, seed=seed, end=end, device=device
            )
            before = len(text.written)
            for token in islice(chosen, room):
                text.add(token)
                yield token
            if len(text.written) - before < room:
                return
            text.left, text.window = text.left - room, text.window + 1

    @torch.no_grad()
    def _write(
        self,
        texts: Sequence[_Text],
        decoding: DecodingConfig,
        progress: Callable[[], None] | None,
    ) -> None:
        """Write texts to their ends, those together that are in the same window with the same room.

        A search has one length for all that it writes.
        """
        model = self._preparation.of(self.model)
        most = batch_tokens(self.model, decoding.batch_tokens)
        left = [text for text in texts if text.left]
        while left:
            alike: dict[tuple[int, int], list[_Text]] = {}
            for text in left:
                alike.setdefault((self._room(text), text.window), []).append(text)
            for (room, window), group in alike.items():
                search = self._searcher(decoding, room, window)
                sizes = [(len(text.read) + room) * search.width for text in group]
                for places in batched(sizes, most):
                    self._write_window(model, search, [group[place] for place in places], room)
                    if progress is not None:
                        progress()
            left = [text for text in left if text.left]

    def _write_window(
        self, model: LanguageModel, search: Searcher, texts: Sequence[_Text], room: int
    ) -> None:
        read, device = [text.read for text in texts], device_of(self.model)
        given = padded(read), lengths_of(read)
        answers = search.answers(
            model.steps,
            model.start(*moved(given, device)),
            limits=torch.full((len(texts),), room, device=device),
            seeds=[text.seed_of_window for text in texts],
            end=self._end(search.decoding),
        )
        for text, (best, *_) in zip(texts, answers, strict=True):
            tokens = best.hypothesis.tokens[:room]
            for token in tokens:
                text.add(token)
            text.left = text.left - room if len(tokens) == room else 0
            text.window += 1

    def _text(self, prompt: str, tokens: Sequence[int]) -> str:
        """Text after the prompt, in lines."""
        before = self.tokenizer.encode(normalize(prompt))
        lines = [list(before)]
        for token in tokens:
            if token == EOS_ID:
                lines.append([])
            else:
                lines[-1].append(token)
        first, *rest = (self.tokenizer.decode(line) for line in lines)
        return "\n".join((first[len(self.tokenizer.decode(before)) :], *rest))
