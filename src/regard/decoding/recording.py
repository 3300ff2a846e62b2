"""Records the candidates of a search of one sentence at every step, for display.

The search is not changed: it is driven with a recorder's step in place of the model's. The state
carries, beside the model's own, which tokens each row has; so ``select`` tells what goes on.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Generic

import torch
from jaxtyping import Float, Int
from torch import Tensor

from regard.checks import check_at_least
from regard.decoding.step import StateT, Step
from regard.errors import SettingError


@dataclass(frozen=True, slots=True)
class Option:
    """A token that might come next.

    Attributes:
        token: Its id.
        log_prob: Its log-probability after this beginning.
    """

    token: int
    log_prob: float


@dataclass(frozen=True, slots=True)
class RecordedPrefix:
    """A prefix of a search before its next token is chosen.

    Attributes:
        tokens: The tokens chosen so far.
        log_prob: The sum of their log-probabilities.
        options: The likeliest next tokens, likeliest first.
    """

    tokens: tuple[int, ...]
    log_prob: float
    options: tuple[Option, ...]


@dataclass(frozen=True, slots=True)
class Recorded(Generic[StateT]):
    """The model's state, and what leads to each of its rows."""

    state: StateT
    tokens: Int[Tensor, "R T"]
    totals: Float[Tensor, " R"]
    log_probs: Float[Tensor, "R V"] | None  # of the token that comes next; None before the first

    def select(self, rows: Int[Tensor, " K"]) -> "Recorded[StateT]":
        """The state of these rows, in this order."""
        here = rows.to(self.tokens.device)  # what people read is on the CPU
        return Recorded(
            self.state.select(rows),
            self.tokens[here],
            self.totals[here],
            None if self.log_probs is None else self.log_probs[rows],
        )


class Recorder(Generic[StateT]):
    """A model's step that notes what may follow each beginning of one sentence.

    Drive a search of a single sentence with ``step`` and ``start(state)``; ``steps`` then holds,
    for each choice that was made, the beginnings it was made among, in the search's order.

    Args:
        step: The model's step.
        top: Tokens noted after each beginning.
        forbidden: Tokens that are no options, such as padding.

    Raises:
        SettingError: ``top`` is below 1, or the search is of several sentences.

    Example:
        A model without a state that likes 1, and then to end (0):

        >>> class Nothing:
        ...     def select(self, rows):
        ...         return self
        >>> table = torch.tensor([[1.0, 0, 0], [0.7, 0.2, 0.1], [0.4, 0.5, 0.1]]).log()
        >>> recorder = Recorder(lambda token, state: (table[token], state), top=2)
        >>> from regard.decoding import beam
        >>> answers = beam(recorder.step, recorder.start(Nothing()), batch_size=1, bos_id=2,
        ...     eos_id=0, max_lengths=3, beam_size=1, length_penalty=0.0)
        >>> [[beginning.tokens for beginning in step] for step in recorder.steps]
        [[()], [(1,)]]
        >>> [option.token for option in recorder.steps[1][0].options]
        [0, 1]
    """

    def __init__(self, step: Step[StateT], *, top: int = 5, forbidden: Iterable[int] = ()) -> None:
        check_at_least("top", top, 1)
        self._step = step
        self._top = top
        self._forbidden = torch.tensor(sorted(set(forbidden)), dtype=torch.long)
        self.steps: list[tuple[RecordedPrefix, ...]] = []

    def start(self, state: StateT) -> Recorded[StateT]:
        """The state to begin with."""
        self.steps = []
        nothing = torch.zeros(1, 0, dtype=torch.long)
        return Recorded(state, nothing, torch.zeros(1, dtype=torch.float64), None)

    def step(
        self, token: Int[Tensor, " R"], recorded: Recorded[StateT]
    ) -> tuple[Float[Tensor, "R V"], Recorded[StateT]]:
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
        self._note(tokens, totals, log_probs)
        return log_probs, Recorded(state, tokens, totals, log_probs)

    def _note(
        self,
        tokens: Int[Tensor, "R T"],
        totals: Float[Tensor, " R"],
        log_probs: Float[Tensor, "R V"],
    ) -> None:
        allowed = log_probs.cpu().index_fill(1, self._forbidden, -torch.inf)
        values, ids = allowed.topk(min(self._top, allowed.shape[1]), dim=1)
        self.steps.append(
            tuple(
                RecordedPrefix(
                    tuple(before),
                    total,
                    tuple(
                        Option(token, log_prob)
                        for token, log_prob in zip(following, likely, strict=True)
                        if log_prob != -torch.inf
                    ),
                )
                for before, total, following, likely in zip(
                    tokens.tolist(), totals.tolist(), ids.tolist(), values.tolist(), strict=True
                )
                if total != -torch.inf  # a place of the beam without a beginning
            )
        )
