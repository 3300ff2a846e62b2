"""A search over a language model's steps: prompts in, continuations out."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice

import torch

from regard.decoding import Hypothesis
from regard.devices import device_of, moved
from regard.errors import SettingError
from regard.inference.search.searcher import Searcher
from regard.models import LanguageModel
from regard.tasks import DecodingConfig
from regard.tasks.running_text.language_modelling import LanguageModelling, Prompt
from regard.tasks.sequences.translations import Continuations
from regard.text import EOS_ID, PAD_ID, batched
from regard.text.batches import lengths_of, padded

# Prompts that are continued side by side.
_AT_ONCE = 32


@dataclass(slots=True)
class _Text:
    """A prompt and its continuation so far."""

    prompt: Prompt
    seed: int
    read: list[int]
    left: int
    written: list[int] = field(default_factory=list)
    log_prob: float = 0.0
    window: int = 0

    @property
    def seed_of_window(self) -> str:
        """A text that seeds the samples of this window."""
        return f"{self.prompt}\0{self.seed}\0{self.window}"

    def add(self, token: int) -> None:
        """Take one token more."""
        self.read.append(token)
        self.written.append(token)


class WindowedSearch:
    """Continues prompts by a language model; a full window goes on from its second half."""

    def __init__(
        self,
        model: LanguageModel,
        ready: LanguageModel,
        task: LanguageModelling,
        decoding: DecodingConfig,
        batch_tokens: int,
    ) -> None:
        if decoding.n_best > 1 and decoding.method != "sample":
            raise SettingError(
                "n_best must be 1 for a language model unless samples are drawn; "
                f'got {decoding.n_best}. Set method = "sample".'
            )
        decoding.check_min_length("max_tokens", decoding.max_tokens)
        self._model, self._task, self._batch_tokens = ready, task, batch_tokens
        self._tokenizer = task.tokenizer
        self._device, self._samples = device_of(model), decoding.n_best
        self._decoding = replace(decoding, n_best=1)
        self._context: int | None = None if model.is_recurrent else task.data.context

    def __call__(
        self, prompts: Sequence[str], *, progress: Callable[[int], None] | None = None
    ) -> list[Continuations]:
        """The continuations of each prompt, ``n_best`` of them; each is the same as alone."""
        continuations: list[Continuations] = []
        for first in range(0, len(prompts), _AT_ONCE):
            some = prompts[first : first + _AT_ONCE]
            encoded = map(self._task.encode_prompt, some)
            texts = [[self._start(one, seed) for seed in range(self._samples)] for one in encoded]
            self._write([text for samples in texts for text in samples], progress)
            continuations += [
                Continuations(prompt, tuple(map(self._hypothesis, samples)))
                for prompt, samples in zip(some, texts, strict=True)
            ]
            if progress is not None:
                progress(len(some))
        return continuations

    def stream(self, prompt: str) -> Iterator[str]:
        """The continuation of a prompt, piece by piece as it is written."""
        decoding = self._decoding
        if decoding.method == "beam" or self._samples > 1:
            raise SettingError(
                "method must be greedy or sample, and n_best 1, to write an answer as it comes; "
                f"got method={decoding.method}, n_best={self._samples}."
            )
        return self._streamed(self._start(self._task.encode_prompt(prompt), 0))

    def _streamed(self, text: _Text) -> Iterator[str]:
        so_far = ""
        for _ in self._tokens(text):
            written = self._text(text)
            # A character spelled in several tokens comes when it is whole.
            if not written.endswith("\ufffd"):
                yield written[len(so_far) :]
                so_far = written

    def _start(self, prompt: Prompt, seed: int) -> _Text:
        return _Text(prompt, seed, [EOS_ID, *prompt.ids], self._decoding.max_tokens)

    def _room(self, text: _Text) -> int:
        """The room for new tokens behind the ids that are read; too many ids are cut."""
        if self._context is None:
            return text.left
        if len(text.read) >= self._context:
            text.read = text.read[-(self._context // 2) :]
        return min(text.left, self._context - len(text.read))

    def _searcher(self, room: int, window: int) -> Searcher:
        """The search in one window."""
        decoding = self._decoding
        # Without an end, a text is as long as there is room.
        least = decoding.min_length if decoding.one_line else room
        part = decoding.changed(min_length=min(least, room))
        return Searcher(
            part.changed(prefix="") if window else part,
            self._tokenizer,
            device=self._device,
            end=EOS_ID if decoding.one_line else PAD_ID,
        )

    def _tokens(self, text: _Text) -> Iterator[int]:
        """The tokens of a text as they are chosen, window after window."""
        while text.left:
            room = self._room(text)
            search = self._searcher(room, text.window)
            prompt = torch.tensor([text.read]), torch.tensor([len(text.read)])
            with torch.no_grad():
                state = self._model.start(*moved(prompt, self._device))
            chosen = search.tokens(self._model.steps, state, limit=room, seed=text.seed_of_window)
            before = len(text.written)
            for token in islice(chosen, room):
                text.add(token)
                yield token
            if len(text.written) - before < room:
                return
            text.left, text.window = text.left - room, text.window + 1

    @torch.no_grad()
    def _write(self, texts: Sequence[_Text], progress: Callable[[int], None] | None) -> None:
        """Write texts to their ends; those in the same window with the same room together."""
        unfinished = [text for text in texts if text.left]
        while unfinished:
            alike: dict[tuple[int, int], list[_Text]] = {}
            for text in unfinished:
                alike.setdefault((self._room(text), text.window), []).append(text)
            for (room, window), group in alike.items():
                search = self._searcher(room, window)
                sizes = [(len(text.read) + room) * search.width for text in group]
                for indices in batched(sizes, self._batch_tokens):
                    self._write_window(search, [group[index] for index in indices], room)
                    if progress is not None:
                        progress(0)
            unfinished = [text for text in unfinished if text.left]

    def _write_window(self, search: Searcher, texts: Sequence[_Text], room: int) -> None:
        read = [text.read for text in texts]
        hypotheses = search.answers(
            self._model.steps,
            self._model.start(*moved((padded(read), lengths_of(read)), self._device)),
            limits=torch.full((len(texts),), room, device=self._device),
            seeds=[text.seed_of_window for text in texts],
        )
        for text, (best, *_) in zip(texts, hypotheses, strict=True):
            tokens = best.tokens[:room]
            for token in tokens:
                text.add(token)
            text.left = text.left - room if len(tokens) == room else 0
            text.log_prob, text.window = text.log_prob + best.log_prob, text.window + 1

    def _hypothesis(self, text: _Text) -> Hypothesis:
        return Hypothesis(
            tokens=tuple(text.written),
            score=text.log_prob,
            log_prob=text.log_prob,
            is_finished=len(text.written) < self._decoding.max_tokens,
            text=self._text(text),
        )

    def _text(self, text: _Text) -> str:
        """Text after the prompt, in lines."""
        before = list(text.prompt.ids)
        lines = [before.copy()]
        for token in text.written:
            if token == EOS_ID:
                lines.append([])
            else:
                lines[-1].append(token)
        first, *later = (self._tokenizer.decode(line) for line in lines)
        return "\n".join((first[len(self._tokenizer.decode(before)) :], *later))
