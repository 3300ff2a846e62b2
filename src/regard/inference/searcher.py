"""The search of ``[decoding]``: one place where its settings meet the searches."""

import hashlib
from collections.abc import Iterator, Sequence

import torch
from jaxtyping import Int
from torch import Tensor

from regard.decoding import (
    CoveragePenalty,
    Draw,
    Hypothesis,
    NoRepeatedNgrams,
    Prefix,
    Ranking,
    RepetitionPenalty,
    Required,
    Rule,
    SearchOptions,
    beam,
    greedy,
    sample,
    stream,
)
from regard.decoding.step import StateT, Step
from regard.errors import SettingError
from regard.inference.avoiding import AvoidWords
from regard.tasks import DecodingConfig
from regard.text import BOS_ID, EOS_ID, PAD_ID, UNK_ID, Tokenizer, normalize

# What is never written.
FORBIDDEN = (PAD_ID, UNK_ID, BOS_ID)


class Searcher:
    """A search with its settings over any sequence model's step function."""

    def __init__(self, decoding: DecodingConfig, tokenizer: Tokenizer) -> None:
        self.decoding, self._tokenizer = decoding, tokenizer
        self._prefix = _spelled("prefix", decoding.prefix, tokenizer)
        self._required = [_spelled("require", word, tokenizer) for word in decoding.require]
        self._avoid = AvoidWords(tokenizer, decoding.avoid) if decoding.avoid else None
        for name, words in (("prefix", (decoding.prefix,)), ("require", decoding.require)):
            for text in words:
                if self._avoid is not None and (word := self._avoid.first_in(text)) is not None:
                    raise SettingError(
                        f"{name} must hold no word to avoid; got {word!r} in {text!r}. "
                        "Take it out of one of the two."
                    )

    @property
    def width(self) -> int:
        """Rows that the model goes through for each sentence."""
        decoding = self.decoding
        return {"beam": decoding.beam_size, "greedy": 1, "sample": decoding.n_best}[decoding.method]

    @property
    def has_copies(self) -> bool:
        """Whether several rows of one sentence may hold the same tokens."""
        return self.decoding.method == "sample" and self.decoding.n_best > 1

    def answers(
        self,
        step: Step[StateT],
        state: StateT,
        *,
        limits: Int[Tensor, " B"],
        seeds: Sequence[str] = (),
        sources: Int[Tensor, " B"] | None = None,
        is_asked: Sequence[bool] | None = None,
        longest: int | None = None,
        end: int = EOS_ID,
    ) -> list[list[Hypothesis]]:
        """The ``n_best`` answers of each sentence, best first; samples in the order drawn."""
        decoding, count = self.decoding, len(limits)
        asked = [True] * count if is_asked is None else list(is_asked)
        given = len(self._prefix) + sum(map(len, self._required))
        needed = [max(given * one, decoding.min_length) + 1 for one in asked]
        limits = limits.clamp(min=torch.tensor(needed).to(limits))
        if longest is not None:
            limits = limits.clamp(max=longest)
        options: SearchOptions = {
            "batch_size": count,
            "bos_id": BOS_ID,
            "eos_id": end,
            "max_lengths": limits,
            "length_penalty": decoding.length_penalty,
            "min_length": decoding.min_length,
            "forbidden": [token for token in FORBIDDEN if token != end],
            "rules": self._rules(asked),
        }
        wanted = decoding.n_best
        if decoding.method == "sample":
            numbers = [_number(text, decoding.seed) for text in seeds]
            return sample(
                step,
                state,
                num_samples=wanted,
                temperature=decoding.temperature,
                top_k=decoding.top_k,
                top_p=decoding.top_p,
                seeds=torch.tensor(numbers, dtype=torch.long),
                **options,
            )
        if decoding.method == "greedy" or self._is_greedy:
            return [[best] for best in greedy(step, state, **options)]
        ranking, width = self._ranking(asked), decoding.beam_size
        if not decoding.coverage_penalty or sources is None:
            found = beam(step, state, beam_size=width, n_best=wanted, ranking=ranking, **options)
        else:
            cover = CoveragePenalty(step, weight=decoding.coverage_penalty)
            found = beam(
                cover.step,
                cover.start(state, sources),
                beam_size=width,
                n_best=wanted,
                ranking=ranking,
                bonus=cover.bonus,
                **options,
            )
        return found

    def tokens(
        self,
        step: Step[StateT],
        state: StateT,
        *,
        limit: int,
        seed: str,
        end: int = EOS_ID,
        device: torch.device | None = None,
    ) -> Iterator[int]:
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
        given = max(len(self._prefix), decoding.min_length) + 1
        for chosen in stream(
            step,
            state,
            batch_size=1,
            bos_id=BOS_ID,
            eos_id=end,
            max_lengths=max(limit, given),
            draw=draw,
            min_length=decoding.min_length,
            forbidden=[token for token in FORBIDDEN if token != end],
            rules=self._rules([True]),
            device=device,
        ):
            if chosen.token != end:
                yield chosen.token

    @property
    def _is_greedy(self) -> bool:
        """A beam of one; its answer needs no bonus to be the best."""
        return self.decoding.beam_size == 1 and not self._required

    def _rules(self, asked: Sequence[bool]) -> list[Rule]:
        decoding, rules = self.decoding, list[Rule]()
        if decoding.repetition_penalty != 1:
            rules.append(RepetitionPenalty(decoding.repetition_penalty))
        if decoding.no_repeat_ngram is not None:
            rules.append(NoRepeatedNgrams(decoding.no_repeat_ngram))
        if self._avoid is not None:
            rules.append(self._avoid)
        if self._prefix:
            rules.append(Prefix([self._prefix if one else [] for one in asked]))
        return rules

    def _ranking(self, asked: Sequence[bool]) -> Ranking | None:
        if self._required:
            return Required([self._required if one else [] for one in asked])
        return None


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
