"""The search for a translation, kept step by step for people to follow."""

import math
from collections.abc import Callable, Sequence
from functools import cache
from itertools import pairwise
from typing import Generic

import torch
from torch import Tensor

from regard.decoding import Hypothesis, recording
from regard.decoding.recording import Recorded, Recorder
from regard.decoding.step import StateT
from regard.devices import device_of, moved
from regard.errors import DataError
from regard.inference.searcher import Searcher
from regard.inference.sequence_search import SequenceSearch
from regard.models import Seq2Seq
from regard.tasks import DecodingConfig, SequenceTask
from regard.text import BOS_ID, EOS_ID, PAD_ID, UNK_ID, normalize
from regard.text.tokenizers.pieces import END
from regard.viewer.search import Beginning, Extension, Outcome, SearchAnswer, SearchTree

_FORBIDDEN = (PAD_ID, UNK_ID, BOS_ID)
_FEWEST = 5  # extensions shown of each beginning

_Ids = tuple[int, ...]
_Decode = Callable[[_Ids], str]


def searched(
    model: Seq2Seq, task: SequenceTask, source: str, *, beam_size: int | None = None
) -> tuple[Hypothesis, SearchTree]:
    """The best translation, and the search that found it, with as many answers as its beam is wide.

    Args:
        model: Ready for use.
        task: Its task.
        source: The text to translate, no longer than training allowed.
        beam_size: Hypotheses kept at each step; None takes the recipe's. 1 is greedy.

    Raises:
        DataError: The source is empty, or longer than training allowed.
    """
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
    recorded = _RecordedModel(model, top=max(_FEWEST, width + 1)).eval()
    search = SequenceSearch(
        recorded,
        task,
        Searcher(decoding, tokenizer.target),
        device=device_of(model),
        batch_tokens=decoding.batch_tokens,
    )
    (found,) = search(task.encoded_parts(source))
    decode = cache(tokenizer.target.decode)
    tree = _search(recorded.recorder.steps, found.best, decode, beam_size=width, answers=found)
    return found.best, tree


@torch.no_grad()
def followed(model: Seq2Seq, task: SequenceTask, source: str, output: Sequence[int]) -> SearchTree:
    """Probabilities of the model at every step of a given translation.

    Args:
        model: Ready for use.
        task: Its task.
        source: The source text.
        output: The translation's token ids, without begin and end.
    """
    recorded, device = _RecordedModel(model, top=_FEWEST).eval(), device_of(model)
    ids = task.tokenizer.source.encode(source)
    state = recorded.start(*moved(task.pad_sources([ids]), device))
    total = 0.0
    for last, token in pairwise((BOS_ID, *output, EOS_ID)):
        log_probs, state = recorded.step(torch.tensor([last], device=device), state)
        total += float(log_probs[0, token])
    given = Hypothesis(tokens=tuple(output), score=total, log_prob=total, is_finished=True)
    decode = cache(task.tokenizer.target.decode)
    return _search(recorded.recorder.steps, given, decode, beam_size=None)


class _RecordedModel(Seq2Seq[Recorded[StateT]], Generic[StateT]):
    """A model that a predictor can search with, whose steps are recorded."""

    def __init__(self, model: Seq2Seq[StateT], *, top: int) -> None:
        super().__init__()
        self.max_length = model.max_length
        self.recorder: Recorder[StateT] = Recorder(model.step, top=top, forbidden=_FORBIDDEN)
        self._model = model

    def forward(
        self,
        source: Tensor,
        source_lengths: Tensor,
        target: Tensor,
        target_lengths: Tensor | None = None,
    ) -> tuple[Tensor, Tensor | None]:
        found: tuple[Tensor, Tensor | None] = self._model(
            source, source_lengths, target, target_lengths
        )
        return found

    def project(self, states: Tensor) -> Tensor:
        return self._model.project(states)

    def start(self, source: Tensor, source_lengths: Tensor) -> Recorded[StateT]:
        return self.recorder.start(self._model.start(source, source_lengths))

    def step(self, token: Tensor, state: Recorded[StateT]) -> tuple[Tensor, Recorded[StateT]]:
        return self.recorder.step(token, state)


def _search(
    recorded: Sequence[tuple[recording.RecordedPrefix, ...]],
    best: Hypothesis,
    decode: _Decode,
    *,
    beam_size: int | None,
    answers: Sequence[Hypothesis] = (),
) -> SearchTree:
    """The viewer's data, up to the step at which the best answer was complete."""
    output = best.tokens
    ended = {answer.tokens for answer in (best, *answers) if answer.is_finished}
    # A search goes on while another answer may be better: what goes on is looked up beyond the end.
    places = [{one.tokens: place for place, one in enumerate(step)} for step in recorded]
    steps: list[tuple[Beginning, ...]] = []
    for number, step in enumerate(recorded[: len(output) + 1]):
        before = places[number - 1] if number else {}
        after = places[number + 1] if number + 1 < len(places) else {}
        steps.append(
            tuple(
                Beginning(
                    parent=before[one.tokens[:-1]] if number else -1,
                    text=_text(decode, one.tokens[:-1], one.tokens[-1]) if number else "",
                    log_prob=one.log_prob,
                    extensions=tuple(_extension(decode, one, o, after, ended) for o in one.options),
                )
                for one in step
            )
        )
    path = [places[number][output[:number]] for number in range(len(steps))]
    if len(steps) == len(output):  # it was cut: nobody asked what follows its last token
        last = _text(decode, output[:-1], output[-1])
        whole = Beginning(parent=path[-1], text=last, log_prob=best.log_prob, extensions=())
        steps.append((whole,))
        path.append(0)
    totals = [
        recorded[number][path[number]].log_prob for number in range(len(recorded))[: len(path)]
    ]
    chances = [_probability(after - before) for before, after in pairwise([*totals, best.log_prob])]
    asked = len(output) + best.is_finished
    return SearchTree(
        beam_size=beam_size,
        steps=tuple(steps),
        path=tuple(path),
        probabilities=(*chances[:asked], *[None] * (len(path) - asked)),
        answers=tuple(
            SearchAnswer(text=a.text, score=a.score, log_prob=a.log_prob, is_finished=a.is_finished)
            for a in answers
        ),
    )


def _extension(
    decode: _Decode,
    beginning: recording.RecordedPrefix,
    option: recording.Option,
    after: dict[_Ids, int],
    ended: set[_Ids],
) -> Extension:
    is_end = option.token == EOS_ID
    goes_on = beginning.tokens in ended if is_end else (*beginning.tokens, option.token) in after
    outcome: Outcome = ("ended" if is_end else "kept") if goes_on else "dropped"
    return Extension(
        text=_text(decode, beginning.tokens, option.token),
        probability=_probability(option.log_prob),
        outcome=outcome,
    )


def _text(decode: _Decode, before: _Ids, token: int) -> str:
    """Text that a token adds; its own text where it changes earlier text."""
    if token == EOS_ID:
        return END
    text, longer = decode(before), decode((*before, token))
    return longer[len(text) :] if longer.startswith(text) else decode((token,))


def _probability(log_prob: float) -> float:
    return float(f"{min(1.0, math.exp(log_prob)):.4g}")
