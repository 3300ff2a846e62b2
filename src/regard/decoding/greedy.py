"""Answers written token by token, by the likeliest token at each step or as a sample draws."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias, Unpack

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from regard.decoding.hypothesis import Hypothesis, check_numbers
from regard.decoding.options import BoundOptions, SearchOptions
from regard.decoding.step import RankingStep, StateT, Step, WritingStep
from regard.decoding.threads import by_threads
from regard.kernels import why_not

# Rows of finished answers are dropped once they are this share of the batch: copying the state
# of the others costs about as much as a few steps over the rows that are dropped.
IDLE_SHARE = 1 / 6

# (log-probabilities, which answer each row writes, position of the token) -> its log-probability,
# and the token.
Choose = Callable[
    [Float[Tensor, "R V"], Int[Tensor, " R"], int], tuple[Float[Tensor, " R"], Int[Tensor, " R"]]
]
_Numbers: TypeAlias = Tensor | np.ndarray[Any, Any]


@torch.no_grad()
def greedy(step: Step[StateT], state: StateT, **options: Unpack[SearchOptions]) -> list[Hypothesis]:
    """The answer made of the likeliest token at each step, for every sentence of a batch.

    Of tokens that are equally likely the one with the lowest id is taken. The answer does not
    depend on the batch: finished sentences are only dropped, and every row is searched alone.

    A sentence for which no token at all is possible (every log-probability is −inf) ends there,
    unfinished.

    Args:
        step: The model: last token and state in, log-probabilities and the next state out.
        state: The state before the first token, one row per sentence.
        options: See `SearchOptions`. The length penalty does not change the answer.

    Returns:
        One answer per sentence, in their order.

    Example:
        A model without a state that counts upwards, and ends (0) after three:

        >>> class Nothing:
        ...     def select(self, rows):
        ...         return self
        >>> next_token = torch.tensor([1, 2, 3, 0])
        >>> def count(token, state):
        ...     return torch.eye(4)[next_token[token]].log(), state
        >>> greedy(count, Nothing(), batch_size=1, bos_id=1, eos_id=0, max_lengths=9)
        [Hypothesis(tokens=(2, 3), score=0.0, log_prob=0.0, is_finished=True, text='')]
    """
    bound = BoundOptions(**options)
    bound.check(step, state)
    if not bound.batch_size:
        return []
    if isinstance(step, RankingStep) and not bound.rules and why_not() is None:
        return by_threads(partial(_ranked, step), step, state, bound, 1)
    return write_all(step, state, bound, likeliest)


def _ranked(step: RankingStep[StateT], state: StateT, bound: BoundOptions) -> list[Hypothesis]:
    """Greedy search over a step that returns the likeliest token: no tensors between steps."""
    # Imported here, since kernels cannot be compiled everywhere.
    from regard.kernels.search import Written, take

    most, allowed, position = bound.limits.contiguous().numpy(), bound.allowed, 0
    written = Written(
        bound.eos_id,
        limits=most,
        answers=np.arange(len(most)),
        is_open=np.ones(len(most), bool),
        tokens=np.zeros((len(most), int(most.max())), np.int64),
        lengths=np.zeros(len(most), np.int64),
        totals=np.zeros(len(most)),
        finished=np.zeros(len(most), bool),
        counts=np.array([len(most), 0]),
    )
    token, longest = torch.full((len(most),), bound.bos_id), written.tokens.shape[1]
    while position < longest:
        hidden, least = allowed.hidden(position + 1), int(len(token) * (1 - IDLE_SHARE))
        stop = min(longest, allowed.alike_until(position + 1) or longest)
        several = None
        if isinstance(step, WritingStep):
            several = step.write(token, state, position, stop, hidden, least, written)
        if several is None:
            values, best, state = step.best(token, state, 1, hidden)
            take(position, values.numpy(), best.numpy(), written)
            token, position = best[:, 0], position + 1
        else:
            token, state = several
            position += int(written.counts[1])
        if not written.counts[0]:
            break
        if written.counts[0] <= least:
            rows = np.flatnonzero(written.is_open)
            answers, is_open = written.answers[rows], written.is_open[rows]
            written = written._replace(answers=answers, is_open=is_open)
            remaining = torch.from_numpy(rows)
            state, token = state.select(remaining), token[remaining]
    check_numbers(torch.from_numpy(written.totals))
    return _hypotheses(
        written.tokens, written.lengths, written.totals, written.finished, bound.penalties
    )


def _hypotheses(
    tokens: _Numbers,
    lengths: _Numbers,
    totals: _Numbers,
    finished: _Numbers,
    penalties: list[float],
) -> list[Hypothesis]:
    """One hypothesis an answer; ``lengths`` count the choices made, the end among them."""
    return [
        Hypothesis(
            tokens=tuple(ids[: length - is_finished]),
            score=total / penalties[length],
            log_prob=total,
            is_finished=is_finished,
        )
        for ids, length, total, is_finished in zip(
            tokens.tolist(), lengths.tolist(), totals.tolist(), finished.tolist(), strict=True
        )
    ]


def likeliest(
    log_probs: Float[Tensor, "R V"], answers: Int[Tensor, " R"], position: int
) -> tuple[Float[Tensor, " R"], Int[Tensor, " R"]]:
    """Chooses the likeliest token; of equal ones that with the lowest id."""
    best = log_probs.max(dim=1)
    return best.values, best.indices


@dataclass(frozen=True, slots=True)
class StepChoice:
    """One token more for every answer that is being written."""

    answers: Int[Tensor, " R"]  # which answer each row writes
    token: Int[Tensor, " R"]
    log_prob: Float[Tensor, " R"]
    is_open: Bool[Tensor, " R"]  # False of rows that were finished before and are not yet dropped
    ended: Bool[Tensor, " R"]
    goes_on: Bool[Tensor, " R"]  # neither ended nor at its limit


def write_all(
    step: Step[StateT], state: StateT, bound: BoundOptions, choose: Choose, *, copies: int = 1
) -> list[Hypothesis]:
    """Write whole answers, so many copies of each sentence's, one after the other."""
    limits = bound.limits.repeat_interleave(copies)
    if copies > 1:
        sentences = torch.arange(bound.batch_size, device=limits.device)
        state = state.select(sentences.repeat_interleave(copies))
    tokens = limits.new_zeros(len(limits), int(limits.max()))
    lengths = torch.zeros_like(limits)  # choices made, the end counted
    totals = torch.zeros_like(limits, dtype=torch.float64)
    finished = torch.zeros_like(limits, dtype=torch.bool)
    for position, choice in enumerate(written(step, state, bound, choose, copies=copies)):
        answers, is_open = choice.answers, choice.is_open
        tokens[answers, position] = choice.token
        lengths[answers] += is_open.long()
        totals[answers] += choice.log_prob.double().where(is_open, 0.0)
        finished[answers] |= is_open & choice.ended
    check_numbers(totals)
    return _hypotheses(tokens, lengths, totals, finished, bound.penalties)


def written(
    step: Step[StateT], state: StateT, bound: BoundOptions, choose: Choose, *, copies: int = 1
) -> Iterator[StepChoice]:
    """Yield one choice after the other, until every answer is finished or at its limit."""
    # Each row is written as if it were alone: finished ones are only dropped.
    limits, rulebook = bound.limits.repeat_interleave(copies), bound.rulebook(copies=copies)
    answers = torch.arange(len(limits), device=limits.device)
    open_rows = torch.ones_like(answers, dtype=torch.bool)
    token = torch.full_like(answers, bound.bos_id)
    before = token.new_zeros(len(limits), 0)  # kept only if there are rules to read it
    for length in range(1, int(limits.max()) + 1):
        log_probs, state = step(token, state)
        log_probs = rulebook.keep(log_probs, length, before, answers)
        best, token = choose(log_probs, answers, length - 1)
        is_open = open_rows & (best != -torch.inf)
        ended = token == bound.eos_id
        open_rows = is_open & ~ended & (limits[answers] > length)
        yield StepChoice(answers, token, best, is_open, ended, open_rows)
        num_open = int(open_rows.sum())
        if not num_open:
            return
        if rulebook.rules:
            before = torch.cat([before, token[:, None]], dim=1)
        if num_open <= len(answers) * (1 - IDLE_SHARE):
            rows = open_rows.nonzero().squeeze(1)
            state = state.select(rows)
            answers, token, open_rows = answers[rows], token[rows], open_rows[rows]
            before = before[rows]
