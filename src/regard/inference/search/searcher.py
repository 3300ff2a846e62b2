"""The search of ``[decoding]``: one place where its settings meet the searches."""

import hashlib
from collections.abc import Iterator, Sequence

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from regard.decoding import (
    CoveragePenalty,
    Draw,
    Hypothesis,
    NoRepeatedNgrams,
    Prefix,
    RepetitionPenalty,
    Rule,
    SearchOptions,
    Written,
    beam,
    greedy,
    sample,
    stream,
)
from regard.decoding.step import StateT, Step
from regard.devices import CPU
from regard.errors import SettingError
from regard.tasks import DecodingConfig
from regard.text import BOS_ID, EOS_ID, PAD_ID, UNK_ID, Tokenizer, normalize
from regard.text.normalization import opens_with_word

# Tokens that are never written.
FORBIDDEN = (PAD_ID, UNK_ID, BOS_ID)


class Searcher:
    """A search with its settings over any sequence model's step function."""

    def __init__(
        self,
        decoding: DecodingConfig,
        tokenizer: Tokenizer,
        *,
        device: torch.device = CPU,
        end: int = EOS_ID,
    ) -> None:
        self.decoding, self._tokenizer = decoding, tokenizer
        self.device, self._end = device, end
        self._prefix = _spelled("prefix", decoding.prefix, tokenizer)
        for avoided in decoding.avoid:
            _spelled("avoid", avoided, tokenizer)
        self._avoid = AvoidWords(tokenizer, decoding.avoid) if decoding.avoid else None
        if self._avoid is not None and (word := self._avoid.first_in(decoding.prefix)) is not None:
            raise SettingError(
                f"prefix must hold no word to avoid; got {word!r} in {decoding.prefix!r}. "
                "Take it out of one of the two."
            )

    @property
    def width(self) -> int:
        """Rows that the model goes through for each sentence."""
        decoding = self.decoding
        return {"beam": decoding.beam_size, "greedy": 1, "sample": decoding.n_best}[decoding.method]

    def answers(
        self,
        step: Step[StateT],
        state: StateT,
        *,
        limits: Int[Tensor, " B"],
        seeds: Sequence[str] = (),
        sources: Int[Tensor, " B"] | None = None,
        is_constrained: Sequence[bool] | None = None,
        longest: int | None = None,
    ) -> list[list[Hypothesis]]:
        """The ``n_best`` answers of each sentence, best first; samples in the order drawn."""
        decoding, n_best = self.decoding, self.decoding.n_best
        constrained = [True] * len(limits) if is_constrained is None else is_constrained
        options = self._options(limits, constrained, longest)
        if decoding.method == "sample":
            numbers = [_number(text, decoding.seed) for text in seeds]
            return sample(
                step,
                state,
                num_samples=n_best,
                temperature=decoding.temperature,
                top_k=decoding.top_k,
                top_p=decoding.top_p,
                seeds=torch.tensor(numbers, dtype=torch.long),
                **options,
            )
        if decoding.method == "greedy" or decoding.beam_size == 1:
            return [[best] for best in greedy(step, state, **options)]
        width = decoding.beam_size
        if not decoding.coverage_penalty or sources is None:
            return beam(step, state, beam_size=width, n_best=n_best, **options)
        cover = CoveragePenalty(step, weight=decoding.coverage_penalty)
        start = cover.start(state, sources)
        return beam(cover.step, start, beam_size=width, n_best=n_best, bonus=cover.bonus, **options)

    def tokens(self, step: Step[StateT], state: StateT, *, limit: int, seed: str) -> Iterator[int]:
        """The tokens of one answer as they are chosen, those of ``answers``; no beam can."""
        decoding, draw = self.decoding, None
        if decoding.method == "sample":
            number = torch.tensor([_number(seed, decoding.seed)], dtype=torch.long)
            draw = Draw(
                seeds=number,
                temperature=decoding.temperature,
                top_k=decoding.top_k,
                top_p=decoding.top_p,
            )
        options = self._options(torch.tensor([limit], device=self.device), [True])
        for chosen in stream(step, state, draw=draw, **options):
            if chosen.token != self._end:
                yield chosen.token

    def _options(
        self, limits: Int[Tensor, " B"], constrained: Sequence[bool], longest: int | None = None
    ) -> SearchOptions:
        """Options of every search, with room for the tokens it must write."""
        least = self.decoding.min_length
        needed = [max(len(self._prefix) * one, least) + 1 for one in constrained]
        limits = limits.clamp(min=torch.tensor(needed).to(limits))
        return {
            "batch_size": len(limits),
            "bos_id": BOS_ID,
            "eos_id": self._end,
            "max_lengths": limits if longest is None else limits.clamp(max=longest),
            "length_penalty": self.decoding.length_penalty,
            "min_length": least,
            "forbidden": [token for token in FORBIDDEN if token != self._end],
            "rules": self._rules(constrained),
        }

    def _rules(self, constrained: Sequence[bool]) -> list[Rule]:
        decoding, rules = self.decoding, list[Rule]()
        if decoding.repetition_penalty != 1:
            rules.append(RepetitionPenalty(decoding.repetition_penalty))
        if decoding.no_repeat_ngram is not None:
            rules.append(NoRepeatedNgrams(decoding.no_repeat_ngram))
        if self._avoid is not None:
            rules.append(self._avoid)
        if self._prefix:
            rules.append(Prefix([self._prefix if one else [] for one in constrained]))
        return rules


def _spelled(name: str, words: str, tokenizer: Tokenizer) -> list[int]:
    """The tokens of words that answers are to hold."""
    tokens = tokenizer.encode(words)
    if UNK_ID in tokens:
        raise SettingError(
            f"{name} must be words that the vocabulary can spell; got {normalize(words)!r}. "
            "Its characters were not in the training text."
        )
    return tokens


def _number(text: str, seed: int) -> int:
    """A seed of its own for each text, whatever stands before it."""
    digest = hashlib.sha256(f"{seed}\0{text}".encode()).digest()
    return int.from_bytes(digest[:8], "little") >> 2


class AvoidWords:
    """Hides every token that would complete one of some words, in whatever tokens it is written."""

    def __init__(self, tokenizer: Tokenizer, words: Sequence[str]) -> None:
        self._tokenizer = tokenizer
        # The text is read: were one way of writing a word in tokens hidden, a model would find
        # another. A word of a script with spaces counts where it stands by itself.
        # One space at the front of a text is not written: a token before shows what a token adds.
        surfaces = [
            tokenizer.decode([UNK_ID, i])[len(tokenizer.decode([UNK_ID])) :]
            for i in range(tokenizer.vocab_size)
        ]
        self._words = [_Word(normalize(word), surfaces) for word in words]

    def __call__(self, log_probs: Float[Tensor, "R V"], written: Written) -> Float[Tensor, "R V"]:
        """The log-probabilities to choose by."""
        hidden = torch.zeros_like(log_probs, dtype=torch.bool)
        for row, tokens in enumerate(written.tokens.tolist()):
            text = self._tokenizer.decode(tokens)
            for word in self._words:
                hidden[row] |= word.completed_after(text).to(log_probs.device)
        return log_probs.masked_fill(hidden, -torch.inf)

    def first_in(self, text: str) -> str | None:
        """A word that ``text`` holds all the same; None if there is none."""
        text = normalize(text)
        return next((word.word for word in self._words if word.is_in(text)), None)


class _Word:
    """Tokens that complete a forbidden word, by the part of it before them."""

    def __init__(self, word: str, surfaces: Sequence[str]) -> None:
        self.word = word
        self.opens_word = opens_with_word(word)  # such words have an end and a beginning
        self._inside = torch.tensor([self.is_in(surface, 1) for surface in surfaces])
        self._completing = [
            torch.tensor([self._begins_with(surface, word[length:]) for surface in surfaces])
            for length in range(len(word))
        ]

    def completed_after(self, text: str) -> Bool[Tensor, " V"]:
        """The tokens after which ``text`` holds the word."""
        completing = self._inside
        for length, completes in enumerate(self._completing):
            index = len(text) - length
            if index >= 0 and text.endswith(self.word[:length]) and self._may_begin(text[:index]):
                completing = completing | completes
        return completing

    def is_in(self, text: str, first: int = 0) -> bool:
        """Whether ``text`` holds the word, from character ``first`` on."""
        return any(
            self._begins_with(text[index:], self.word) and self._may_begin(text[:index])
            for index in range(first, len(text))
        )

    def _begins_with(self, surface: str, remainder: str) -> bool:
        after = surface[len(remainder) : len(remainder) + 1]
        return surface.startswith(remainder) and not (self.opens_word and after.isalnum())

    def _may_begin(self, before: str) -> bool:
        return not (self.opens_word and before[-1:].isalnum())
