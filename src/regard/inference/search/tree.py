"""The search for a translation, recorded step by step for people to follow."""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import Generic

import torch
from jaxtyping import Float, Int
from torch import Tensor

from regard.checks import check_count
from regard.decoding import Hypothesis
from regard.decoding.step import StateT, Step
from regard.devices import device_of, moved
from regard.errors import DataError, SettingError
from regard.inference.search.searcher import FORBIDDEN, Searcher
from regard.inference.search.sequences import search
from regard.models import Seq2Seq
from regard.tasks import DecodingConfig, SequenceTask
from regard.text import BOS_ID, EOS_ID, normalize
from regard.text.tokenizers.pieces import END
from regard.viewer.search import Beginning, Extension, Outcome, SearchAnswer, SearchTree

_FEWEST = 5  # extensions shown of each prefix

_Ids = tuple[int, ...]
_Decode = Callable[[_Ids], str]


def searched(
    model: Seq2Seq, task: SequenceTask, source: str, *, beam_size: int | None = None
) -> tuple[Hypothesis, SearchTree]:
    """The best translation of a model ready for use, and its search with a beam's answers."""
    source, tokenizer, longest = normalize(source), task.tokenizer, task.data.max_length
    size = len(tokenizer.source.encode(source))
    if not size:
        raise DataError("source must hold text to look at; got an empty line.")
    if size > longest:
        raise DataError(
            f"source must be at most {longest} tokens long to be looked at; got {size}. "
            "Look at one sentence at a time."
        )
    decoding = task.recipe.settings(DecodingConfig)
    width = decoding.beam_size if beam_size is None else beam_size
    decoding = decoding.changed(method="beam", beam_size=width, n_best=width)
    recorder = _recorder(model.eval(), max(_FEWEST, width + 1))
    (answers,) = search(
        model,
        task,
        Searcher(decoding, tokenizer.target, device=device_of(model)),
        task.encoded_parts(source),
        batch_tokens=decoding.batch_tokens,
        record=lambda state: (recorder.step, recorder.start(state)),
    )
    steps, decode = recorder.steps, cache(tokenizer.target.decode)
    return answers.best, _tree(steps, answers.best, decode, beam_size=width, answers=answers)


@torch.no_grad()
def followed(model: Seq2Seq, task: SequenceTask, source: str, output: Sequence[int]) -> SearchTree:
    """Probabilities of a model ready for use at every step of a given translation."""
    recorder, device = _recorder(model.eval(), _FEWEST), device_of(model)
    ids = task.tokenizer.source.encode(source)
    state = recorder.start(model.start(*moved(task.pad_sources([ids]), device)))
    total = 0.0
    for last, token in pairwise((BOS_ID, *output, EOS_ID)):
        log_probs, state = recorder.step(torch.tensor([last], device=device), state)
        total += float(log_probs[0, token])
    hypothesis = Hypothesis(tokens=tuple(output), score=total, log_prob=total, is_finished=True)
    decode = cache(task.tokenizer.target.decode)
    return _tree(recorder.steps, hypothesis, decode, beam_size=None)


@dataclass(frozen=True, slots=True)
class RecordedPrefix:
    """A prefix of a search before its next token is chosen."""

    tokens: _Ids
    log_prob: float
    options: tuple[tuple[int, float], ...]  # the likeliest next tokens and their log-probabilities


@dataclass(frozen=True, slots=True)
class _Recorded(Generic[StateT]):
    """The model's state, and the prefix of each of its rows."""

    state: StateT
    tokens: Int[Tensor, "R T"]
    totals: Float[Tensor, " R"]
    log_probs: Float[Tensor, "R V"] | None  # of the token that comes next; None before the first

    def select(self, rows: Int[Tensor, " K"]) -> "_Recorded[StateT]":
        """The state of these rows, in this order."""
        here = rows.to(self.tokens.device)  # texts are made on the CPU
        return _Recorded(
            self.state.select(rows),
            self.tokens[here],
            self.totals[here],
            None if self.log_probs is None else self.log_probs[rows],
        )


class Recorder(Generic[StateT]):
    """A model's step that records the likely next tokens of each prefix of a sentence's search."""

    def __init__(self, step: Step[StateT], *, top: int = 5, forbidden: Iterable[int] = ()) -> None:
        check_count("top", top)
        self._step, self._top = step, top
        self._forbidden = torch.tensor(sorted(set(forbidden)), dtype=torch.long)
        self.steps: list[tuple[RecordedPrefix, ...]] = []

    def start(self, state: StateT) -> _Recorded[StateT]:
        """The state to begin with."""
        self.steps = []
        nothing = torch.zeros(1, 0, dtype=torch.long)
        return _Recorded(state, nothing, torch.zeros(1, dtype=torch.float64), None)

    def step(
        self, token: Int[Tensor, " R"], recorded: _Recorded[StateT]
    ) -> tuple[Float[Tensor, "R V"], _Recorded[StateT]]:
        """The model's step."""
        tokens, totals = recorded.tokens, recorded.totals
        if len(token) != len(totals):
            raise SettingError(
                f"a recorded search must be of one sentence; got {len(token)} rows for it."
            )
        if recorded.log_probs is not None:  # the first token given is the begin, which is not ours
            chosen = recorded.log_probs.gather(1, token[:, None])
            tokens = torch.cat([tokens, token[:, None].cpu()], dim=1)
            totals = totals + chosen[:, 0].double().cpu()
        log_probs, state = self._step(token, recorded.state)
        allowed = log_probs.cpu().index_fill(1, self._forbidden, -torch.inf)
        values, ids = allowed.topk(min(self._top, allowed.shape[1]), dim=1)
        rows = (tokens.tolist(), totals.tolist(), ids.tolist(), values.tolist())
        self.steps.append(
            tuple(
                RecordedPrefix(
                    tuple(before),
                    total,
                    tuple(
                        (option, log_prob)
                        for option, log_prob in zip(options, likely, strict=True)
                        if log_prob != -torch.inf
                    ),
                )
                for before, total, options, likely in zip(*rows, strict=True)
                if total != -torch.inf  # a slot of the beam without a prefix
            )
        )
        return log_probs, _Recorded(state, tokens, totals, log_probs)


def _recorder(model: Seq2Seq[StateT], top: int) -> Recorder[StateT]:
    return Recorder(model.step, top=top, forbidden=FORBIDDEN)


def _tree(
    recorded: Sequence[tuple[RecordedPrefix, ...]],
    best: Hypothesis,
    decode: _Decode,
    *,
    beam_size: int | None,
    answers: Sequence[Hypothesis] = (),
) -> SearchTree:
    """The viewer's data, up to the step at which the best answer was complete."""
    output = best.tokens
    ended = {answer.tokens for answer in (best, *answers) if answer.is_finished}
    # A search goes on while another answer may be better: its continuations are beyond the end.
    indices = [{one.tokens: index for index, one in enumerate(step)} for step in recorded]
    steps: list[tuple[Beginning, ...]] = []
    for number, step in enumerate(recorded[: len(output) + 1]):
        before = indices[number - 1] if number else {}
        after = indices[number + 1] if number + 1 < len(indices) else {}
        steps.append(
            tuple(
                Beginning(
                    parent=before[one.tokens[:-1]] if number else -1,
                    text=_text(decode, one.tokens[:-1], one.tokens[-1]) if number else "",
                    log_prob=one.log_prob,
                    extensions=tuple(
                        _extension(decode, one, *option, after, ended) for option in one.options
                    ),
                )
                for one in step
            )
        )
    path = [indices[number][output[:number]] for number in range(len(steps))]
    if len(steps) == len(output):  # it was cut: there are no scores after its last token
        last = _text(decode, output[:-1], output[-1])
        whole = Beginning(parent=path[-1], text=last, log_prob=best.log_prob, extensions=())
        steps.append((whole,))
        path.append(0)
    totals = [
        recorded[number][path[number]].log_prob for number in range(len(recorded))[: len(path)]
    ]
    chances = [_probability(after - before) for before, after in pairwise([*totals, best.log_prob])]
    count = len(output) + best.is_finished
    return SearchTree(
        beam_size=beam_size,
        steps=tuple(steps),
        path=tuple(path),
        probabilities=(*chances[:count], *[None] * (len(path) - count)),
        answers=tuple(
            SearchAnswer(text=a.text, score=a.score, log_prob=a.log_prob, is_finished=a.is_finished)
            for a in answers
        ),
    )


def _extension(
    decode: _Decode,
    prefix: RecordedPrefix,
    token: int,
    log_prob: float,
    after: dict[_Ids, int],
    ended: set[_Ids],
) -> Extension:
    is_end = token == EOS_ID
    goes_on = prefix.tokens in ended if is_end else (*prefix.tokens, token) in after
    outcome: Outcome = ("ended" if is_end else "kept") if goes_on else "dropped"
    text, probability = _text(decode, prefix.tokens, token), _probability(log_prob)
    return Extension(text=text, probability=probability, outcome=outcome)


def _text(decode: _Decode, before: _Ids, token: int) -> str:
    """Text that a token adds; its own text where it changes earlier text."""
    if token == EOS_ID:
        return END
    text, longer = decode(before), decode((*before, token))
    return longer[len(text) :] if longer.startswith(text) else decode((token,))


def _probability(log_prob: float) -> float:
    return float(f"{min(1.0, math.exp(log_prob)):.4g}")
