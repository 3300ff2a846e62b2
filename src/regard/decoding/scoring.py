"""How likely a model holds answers that are given, token by token."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from regard.decoding.hypothesis import check_numbers, divisors
from regard.decoding.rules import Rule, Rulebook, check_tokens
from regard.decoding.step import Allowed, StateT, Step
from regard.errors import SettingError


@dataclass(frozen=True, slots=True)
class Scored:
    """A given answer, and how likely the model holds it.

    Attributes:
        tokens: Its token ids, without the begin and the end.
        log_probs: The log-probability of each, and last that of the end if it counts.
        log_prob: Their sum.
        score: That over the length penalty.

    Example:
        Of a half and a tenth, which are not followed by the end:

        >>> class Nothing:
        ...     def select(self, rows):
        ...         return self
        >>> table = torch.tensor([[1.0, 0, 0], [0.4, 0.1, 0.5], [0.25, 0.5, 0.25]]).log()
        >>> (cut,) = score_answers(lambda token, state: (table[token], state), Nothing(), [[1, 1]],
        ...     bos_id=2, eos_id=0, ends=False, length_penalty=0.0)
        >>> cut.tokens, [round(log_prob, 3) for log_prob in cut.log_probs]
        ((1, 1), [-0.693, -2.303])
        >>> round(cut.log_prob, 3), round(cut.score, 3)
        (-2.996, -2.996)
    """

    tokens: tuple[int, ...]
    log_probs: tuple[float, ...]
    log_prob: float
    score: float


@torch.no_grad()
def score_answers(
    step: Step[StateT],
    state: StateT,
    answers: Sequence[Sequence[int]],
    *,
    bos_id: int,
    eos_id: int,
    ends: bool = True,
    length_penalty: int | float = 0.6,
    rules: Iterable[Rule] = (),
    device: torch.device | None = None,
) -> list[Scored]:
    """The log-probabilities of given answers: what a search would have said, had it found them.

    Token by token through the same step as a search, so that a cache, a prompt or a recorder works
    as it does there. The numbers are those of teacher forcing.

    Args:
        step: The model: last token and state in, log-probabilities and the next state out.
        state: The state before the first token, one row per answer.
        answers: Token ids of one answer a row, without begin and end; may be empty.
        bos_id: The token every answer starts after.
        eos_id: The token that ends an answer.
        ends: Whether the end counts; False for answers that were cut.
        length_penalty: Alpha of what the log-probability is divided by to give the score; see
            `SearchOptions`.
        rules: What a search would have kept to, in this order; see ``rules.py``.
        device: Where the model runs. None is the default device.

    Raises:
        SettingError: An answer holds the end, or a token that is not in the vocabulary.
        RunError: The model gave NaN.

    Example:
        >>> class Nothing:
        ...     def select(self, rows):
        ...         return self
        >>> table = torch.tensor([[1.0, 0, 0], [0.4, 0.1, 0.5], [0.25, 0.5, 0.25]]).log()
        >>> one, = score_answers(lambda token, state: (table[token], state), Nothing(), [[1]],
        ...     bos_id=2, eos_id=0, length_penalty=0.0)
        >>> [round(log_prob, 3) for log_prob in one.log_probs], round(one.score, 3)
        ([-0.693, -0.916], -1.609)
    """
    ended = [(*answer, eos_id) if ends else tuple(answer) for answer in answers]
    longest = max(map(len, ended), default=0)
    for row, answer in enumerate(answers):
        if eos_id in answer:
            raise SettingError(
                f"answers must not hold eos_id; got {eos_id} in answer {row}. It is added to each."
            )
    if not longest:
        return [Scored((), (), 0.0, 0.0) for _ in answers]
    padded = [[*tokens, *[eos_id] * (longest - len(tokens))] for tokens in ended]
    tokens = torch.tensor(padded, device=device)
    limits = tokens.new_tensor([max(1, len(each)) for each in ended])
    rows = torch.arange(len(ended), device=tokens.device)
    rulebook = Rulebook(Allowed(eos_id, 0, (), tokens.device), rules, limits, eos_id)
    last, columns = torch.full_like(rows, bos_id), list[Tensor]()
    for position in range(longest):
        log_probs, state = step(last, state)
        if not position:
            check_tokens("answers", (token for each in ended for token in each), log_probs.shape[1])
        last = tokens[:, position]
        allowed = rulebook.keep(log_probs, position + 1, tokens[:, :position], rows)
        columns.append(allowed.gather(1, last[:, None])[:, 0])
    return _scored(ended, torch.stack(columns, dim=1), length_penalty, ends=ends)


def _scored(
    ended: Sequence[tuple[int, ...]],
    log_probs: Float[Tensor, "B T"],
    length_penalty: int | float,
    *,
    ends: bool,
) -> list[Scored]:
    check_numbers(log_probs)
    penalties = divisors(length_penalty, log_probs.shape[1])
    answers = []
    for tokens, row in zip(ended, log_probs.double().tolist(), strict=True):
        known = tuple(row[: len(tokens)])
        total = sum(known, 0.0)
        answers.append(
            Scored(tokens[: len(tokens) - ends], known, total, total / penalties[len(tokens)])
        )
    return answers
