"""The likeliest token at each step: the fastest search, and a beam of one."""

from collections.abc import Iterable, Sequence

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from regard.decoding.hypothesis import Hypothesis, LengthPenalty, check_numbers, divisors
from regard.decoding.rules import Rule, Rulebook
from regard.decoding.step import Allowed, Limits, RankingStep, StateT, Step, bind_limits
from regard.decoding.writing import IDLE_SHARE, Answers, likeliest, written
from regard.kernels import why_not


@torch.no_grad()
def greedy(
    step: Step[StateT],
    state: StateT,
    *,
    batch_size: int,
    bos_id: int,
    eos_id: int,
    max_lengths: Limits,
    length_penalty: int | float | LengthPenalty = 0.6,
    min_length: int = 0,
    forbidden: Iterable[int] = (),
    rules: Iterable[Rule] = (),
    device: torch.device | None = None,
) -> list[Hypothesis]:
    """The answer made of the likeliest token at each step, for every sentence of a batch.

    Of tokens that are equally likely the one with the lowest id is taken. What a sentence gets does
    not depend on its batch: finished sentences are only dropped, and every row is searched alone.

    A sentence for which no token at all is possible (every log-probability is −inf) ends there,
    unfinished.

    Args:
        step: The model: last token and state in, log-probabilities and the next state out.
        state: The state before the first token, one row per sentence.
        batch_size: Sentences in the batch, B.
        bos_id: The token every answer starts after.
        eos_id: The token that ends an answer.
        max_lengths: Most tokens of an answer, its end counted; one number, or one per sentence.
        length_penalty: What the log-probability is divided by to give the score; a number is the
            alpha of `Gnmt`. It does not change the answer.
        min_length: Fewest tokens of an answer, its end not counted.
        forbidden: Tokens never to choose, such as padding.
        rules: What else is kept to, in this order; see ``rules.py``. The log-probability of an
            answer is that which they leave.
        device: Where the model runs. None is where ``max_lengths`` is, or the default device.

    Returns:
        One answer per sentence, in their order.

    Raises:
        SettingError: A length is out of range, the end is forbidden, or rules contradict.
        ShapeError: There is not one ``max_lengths`` per sentence.
        RunError: The model gave NaN.

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
    limits = bind_limits(max_lengths, batch_size, device)
    if not batch_size:
        return []
    allowed = Allowed(eos_id, min_length, forbidden, limits.device)
    rules = tuple(rules)
    if isinstance(step, RankingStep) and not rules and why_not() is None:
        penalties = divisors(length_penalty, int(limits.max()))
        return _ranked(step, state, bos_id, eos_id, limits, allowed, penalties)
    answers = Answers.empty(limits)
    choices = written(
        step,
        state,
        bos_id=bos_id,
        eos_id=eos_id,
        limits=limits,
        rulebook=Rulebook(allowed, rules, limits, eos_id),
        choose=likeliest,
    )
    for length, choice in enumerate(choices, 1):
        answers.add(length, choice)
    return answers.collect(divisors(length_penalty, int(limits.max())))


def _ranked(
    step: RankingStep[StateT],
    state: StateT,
    bos_id: int,
    eos_id: int,
    limits: Int[Tensor, " B"],
    allowed: Allowed,
    penalties: Sequence[float],
) -> list[Hypothesis]:
    """Greedy search over a step that returns the likeliest token: no tensors between steps."""
    # Only here: what cannot be compiled cannot be imported.
    from regard.kernels.search.ranking import take

    most = limits.contiguous().numpy()
    tokens = np.zeros((len(most), int(most.max())), np.int64)
    lengths, totals = np.zeros(len(most), np.int64), np.zeros(len(most))
    finished = np.zeros(len(most), bool)
    answers, is_open = np.arange(len(most)), np.ones(len(most), bool)
    token, left = torch.full((len(most),), bos_id), np.zeros(1, np.int64)
    for place in range(tokens.shape[1]):
        values, best, state = step.best(token, state, 1, allowed.hidden(place + 1))
        chosen = best.numpy()
        written = (tokens, lengths, totals, finished, left)
        take(place, values.numpy(), chosen, eos_id, most, answers, is_open, *written)
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
