"""The likeliest token at each step: the fastest search, and a beam of one."""

from typing import Unpack

import numpy as np
import torch

from regard.decoding.hypothesis import Hypothesis, check_numbers
from regard.decoding.options import BoundOptions, SearchOptions
from regard.decoding.step import RankingStep, StateT, Step
from regard.decoding.writing import IDLE_SHARE, likeliest, write_all
from regard.kernels import why_not


@torch.no_grad()
def greedy(
    step: Step[StateT],
    state: StateT,
    **options: Unpack[SearchOptions],
) -> list[Hypothesis]:
    """The answer made of the likeliest token at each step, for every sentence of a batch.

    Of tokens that are equally likely the one with the lowest id is taken. What a sentence gets does
    not depend on its batch: finished sentences are only dropped, and every row is searched alone.

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
    if not bound.batch_size:
        return []
    if isinstance(step, RankingStep) and not bound.rules and why_not() is None:
        return _ranked(step, state, bound)
    return write_all(step, state, bound, likeliest)


def _ranked(step: RankingStep[StateT], state: StateT, bound: BoundOptions) -> list[Hypothesis]:
    """Greedy search over a step that returns the likeliest token: no tensors between steps."""
    # Only here: what cannot be compiled cannot be imported.
    from regard.kernels.search.ranking import take

    most, penalties = bound.limits.contiguous().numpy(), bound.penalties
    tokens = np.zeros((len(most), int(most.max())), np.int64)
    lengths, totals = np.zeros(len(most), np.int64), np.zeros(len(most))
    finished = np.zeros(len(most), bool)
    answers, is_open = np.arange(len(most)), np.ones(len(most), bool)
    token, left = torch.full((len(most),), bound.bos_id), np.zeros(1, np.int64)
    for place in range(tokens.shape[1]):
        values, best, state = step.best(token, state, 1, bound.allowed.hidden(place + 1))
        chosen = best.numpy()
        written = (tokens, lengths, totals, finished, left)
        take(place, values.numpy(), chosen, bound.eos_id, most, answers, is_open, *written)
        if not left[0]:
            break
        chosen = chosen.ravel()
        if left[0] <= len(answers) * (1 - IDLE_SHARE):
            rows = np.flatnonzero(is_open)
            state = state.select(torch.from_numpy(rows))
            answers, chosen, is_open = answers[rows], chosen[rows], is_open[rows]
        token = torch.from_numpy(chosen)
    check_numbers(torch.from_numpy(totals))
    return [
        Hypothesis(
            tokens=tuple(ids[: length - end]),
            score=total / penalties[length],
            log_prob=total,
            is_finished=end,
        )
        for ids, length, total, end in zip(
            tokens.tolist(), lengths.tolist(), totals.tolist(), finished.tolist(), strict=True
        )
    ]
