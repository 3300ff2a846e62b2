"""The likeliest token at each step: the fastest search, and a beam of one."""

from collections.abc import Iterable
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from regard.decoding.hypothesis import Hypothesis, LengthPenalty, check_numbers, divisors
from regard.decoding.step import Allowed, Limits, StateT, Step, bind_limits

# Rows of finished sentences are dropped once they are this share of the batch: copying the state
# of the others costs about as much as a few steps over the rows that are dropped.
_IDLE_SHARE = 1 / 6


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
        device: Where the model runs. None is where ``max_lengths`` is, or the default device.

    Returns:
        One answer per sentence, in their order.

    Raises:
        SettingError: A length is out of range, or the end is forbidden.
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
        [Hypothesis(tokens=(2, 3), score=0.0, log_prob=0.0, finished=True)]
    """
    limits = bind_limits(max_lengths, batch_size, device)
    if not batch_size:
        return []
    longest = int(limits.max())
    allowed = Allowed(eos_id, min_length, forbidden, limits.device)
    answers = _Answers.empty(batch_size, longest, limits.device)
    sentences = torch.arange(batch_size, device=limits.device)  # which one each row works on
    open_rows = torch.ones_like(sentences, dtype=torch.bool)
    token = torch.full_like(sentences, bos_id)
    for length in range(1, longest + 1):
        log_probs, state = step(token, state)
        best, token = allowed.keep(log_probs, length).max(dim=1)
        open_rows = open_rows & (best != -torch.inf)
        ended = token == eos_id
        answers.add(sentences, length, token, best, open_rows, ended)
        open_rows = open_rows & ~ended & (limits[sentences] > length)
        left = int(open_rows.sum())
        if not left:
            break
        if left <= len(sentences) * (1 - _IDLE_SHARE):
            rows = open_rows.nonzero().squeeze(1)
            state = state.select(rows)
            sentences, token, open_rows = sentences[rows], token[rows], open_rows[rows]
    return answers.collect(divisors(length_penalty, longest))


@dataclass(frozen=True, slots=True)
class _Answers:
    """What has been chosen so far, one row per sentence of the whole batch."""

    tokens: Int[Tensor, "B T"]
    lengths: Int[Tensor, " B"]  # choices made, the end counted
    log_probs: Float[Tensor, " B"]
    finished: Bool[Tensor, " B"]

    @classmethod
    def empty(cls, batch_size: int, longest: int, device: torch.device) -> "_Answers":
        return cls(
            torch.zeros(batch_size, longest, dtype=torch.long, device=device),
            torch.zeros(batch_size, dtype=torch.long, device=device),
            torch.zeros(batch_size, dtype=torch.float64, device=device),
            torch.zeros(batch_size, dtype=torch.bool, device=device),
        )

    def add(
        self,
        sentences: Int[Tensor, " R"],
        length: int,
        token: Int[Tensor, " R"],
        log_prob: Float[Tensor, " R"],
        is_open: Bool[Tensor, " R"],
        ended: Bool[Tensor, " R"],
    ) -> None:
        """Take one choice into the answers of the rows that are still open."""
        self.tokens[sentences, length - 1] = token
        self.lengths[sentences] += is_open.long()
        self.log_probs[sentences] += log_prob.double().where(is_open, 0.0)
        self.finished[sentences] |= is_open & ended

    def collect(self, penalties: list[float]) -> list[Hypothesis]:
        """One hypothesis per sentence."""
        check_numbers(self.log_probs)
        return [
            Hypothesis(
                tokens=tuple(tokens[: length - finished]),
                score=log_prob / penalties[length],
                log_prob=log_prob,
                finished=finished,
            )
            for tokens, length, log_prob, finished in zip(
                self.tokens.tolist(),
                self.lengths.tolist(),
                self.log_probs.tolist(),
                self.finished.tolist(),
                strict=True,
            )
        ]
