"""Answers written token by token: what greedy search, samples and streams share."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from regard.decoding.hypothesis import Hypothesis, check_numbers
from regard.decoding.options import BoundOptions
from regard.decoding.step import StateT, Step

# Rows of finished answers are dropped once they are this share of the batch: copying the state
# of the others costs about as much as a few steps over the rows that are dropped.
IDLE_SHARE = 1 / 6

# (log-probabilities, which answer each row writes, place of the token) -> its log-probability,
# and the token.
Choose = Callable[
    [Float[Tensor, "R V"], Int[Tensor, " R"], int], tuple[Float[Tensor, " R"], Int[Tensor, " R"]]
]


def likeliest(
    log_probs: Float[Tensor, "R V"], answers: Int[Tensor, " R"], place: int
) -> tuple[Float[Tensor, " R"], Int[Tensor, " R"]]:
    """Chooses the likeliest token; of equal ones that with the lowest id.

    Example:
        >>> likeliest(torch.tensor([[-3.0, -1.0, -1.0]]), torch.tensor([0]), 0)[1]
        tensor([1])
    """
    best = log_probs.max(dim=1)
    return best.values, best.indices


@dataclass(frozen=True, slots=True)
class StepChoice:
    """One token more for every answer that is being written.

    Attributes:
        answers: Which answer each row writes.
        token: The token chosen.
        log_prob: Its log-probability.
        is_open: Which rows it counts for: the others were finished before and are not yet dropped.
        ended: Where it is the end.
        goes_on: Where something follows: it is neither the end nor at the longest length.
    """

    answers: Int[Tensor, " R"]
    token: Int[Tensor, " R"]
    log_prob: Float[Tensor, " R"]
    is_open: Bool[Tensor, " R"]
    ended: Bool[Tensor, " R"]
    goes_on: Bool[Tensor, " R"]


def write_all(
    step: Step[StateT], state: StateT, bound: BoundOptions, choose: Choose, *, copies: int = 1
) -> list[Hypothesis]:
    """Write whole answers, so many copies of each sentence's, one after the other."""
    limits = bound.limits.repeat_interleave(copies)
    if copies > 1:
        sentences = torch.arange(bound.batch_size, device=limits.device)
        state = state.select(sentences.repeat_interleave(copies))
    answers = Answers.empty(limits)
    for length, choice in enumerate(written(step, state, bound, choose, copies=copies), 1):
        answers.add(length, choice)
    return answers.collect(bound.penalties)


def written(
    step: Step[StateT], state: StateT, bound: BoundOptions, choose: Choose, *, copies: int = 1
) -> Iterator[StepChoice]:
    """One choice after the other, until every answer is finished or at its limit.

    Each row is written as if it were alone: finished ones are only dropped.

    Args:
        step: The model: last token and state in, log-probabilities and the next state out.
        state: The state before the first token, one row per answer.
        bound: The options of the search.
        choose: Chooses a token.
        copies: Answers of each sentence, one after the other.
    """
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
        left = int(open_rows.sum())
        if not left:
            return
        if rulebook.rules:
            before = torch.cat([before, token[:, None]], dim=1)
        if left <= len(answers) * (1 - IDLE_SHARE):
            rows = open_rows.nonzero().squeeze(1)
            state = state.select(rows)
            answers, token, open_rows = answers[rows], token[rows], open_rows[rows]
            before = before[rows]


@dataclass(frozen=True, slots=True)
class Answers:
    """Tokens chosen so far, one row per answer."""

    tokens: Int[Tensor, "A T"]
    lengths: Int[Tensor, " A"]  # choices made, the end counted
    log_probs: Float[Tensor, " A"]
    finished: Bool[Tensor, " A"]

    @classmethod
    def empty(cls, limits: Int[Tensor, " A"]) -> "Answers":
        """Answers of which nothing is written yet."""
        count, device = len(limits), limits.device
        return cls(
            torch.zeros(count, int(limits.max()), dtype=torch.long, device=device),
            torch.zeros(count, dtype=torch.long, device=device),
            torch.zeros(count, dtype=torch.float64, device=device),
            torch.zeros(count, dtype=torch.bool, device=device),
        )

    def add(self, length: int, choice: StepChoice) -> None:
        """Take one choice into the answers of the rows that are still open."""
        answers, is_open = choice.answers, choice.is_open
        self.tokens[answers, length - 1] = choice.token
        self.lengths[answers] += is_open.long()
        self.log_probs[answers] += choice.log_prob.double().where(is_open, 0.0)
        self.finished[answers] |= is_open & choice.ended

    def collect(self, penalties: list[float]) -> list[Hypothesis]:
        """One hypothesis per answer."""
        check_numbers(self.log_probs)
        return [
            Hypothesis(
                tokens=tuple(tokens[: length - finished]),
                score=log_prob / penalties[length],
                log_prob=log_prob,
                is_finished=finished,
            )
            for tokens, length, log_prob, finished in zip(
                self.tokens.tolist(),
                self.lengths.tolist(),
                self.log_probs.tolist(),
                self.finished.tolist(),
                strict=True,
            )
        ]
