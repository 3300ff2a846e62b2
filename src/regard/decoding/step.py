"""The step function that every search drives: last token and state in, log-probabilities out."""

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Protocol, TypeVar, runtime_checkable

import torch
from jaxtyping import Float, Int
from torch import Tensor

from regard.bounds import bounded, check_in_vocabulary, token_id, whole_number
from regard.errors import SettingError, ShapeError
from regard.layers.inputs import whole

if TYPE_CHECKING:  # kernels cannot be compiled everywhere
    from regard.kernels.search import Written

T = TypeVar("T")


@runtime_checkable
class State(Protocol):
    """State of a decoder between two tokens: a tree of batch-first tensors.

    Example:
        >>> from dataclasses import dataclass
        >>> @dataclass
        ... class Sum:
        ...     total: torch.Tensor  # (B,)
        ...     def select(self, rows):
        ...         return Sum(self.total[rows])
        >>> state = Sum(torch.tensor([4, 5]))
        >>> isinstance(state, State), state.select(torch.tensor([1, 1, 0])).total.tolist()
        (True, [5, 5, 4])
    """

    def select(self: T, rows: Int[Tensor, " K"]) -> T:
        """The state of these rows of the batch, in this order.

        A row may be named twice, or not at all. Nothing of the old state is changed.
        """
        ...


StateT = TypeVar("StateT", bound=State)

# (last token, state) -> (log-probabilities of the next token, state after it).
Step = Callable[[Int[Tensor, " B"], StateT], tuple[Float[Tensor, "B V"], StateT]]


@runtime_checkable
class RankingStep(Protocol[StateT]):
    """A step that knows the likeliest tokens without a log-probability for every token.

    Attributes:
        vocab_size: Number of token ids, V.
    """

    vocab_size: int

    def __call__(
        self, token: Int[Tensor, " B"], state: StateT
    ) -> tuple[Float[Tensor, "B V"], StateT]:
        """Log-probabilities of all tokens, and the state after ``token``."""
        ...

    def best(
        self, token: Int[Tensor, " B"], state: StateT, count: int, hidden: Sequence[int]
    ) -> tuple[Float[Tensor, "B J"], Int[Tensor, "B J"], StateT]:
        """Return the ``count`` likeliest tokens' log-probabilities and ids, and the state.

        At most V. Of equal ones the lowest ids come first; −inf stands where there are no more.
        ``hidden`` tokens are none of them, though probabilities are normalised over them too.
        """
        ...


@runtime_checkable
class WritingStep(RankingStep[StateT], Protocol[StateT]):
    """A step that may write several of the likeliest tokens by itself."""

    def write(
        self,
        token: Int[Tensor, " B"],
        state: StateT,
        position: int,
        stop: int,
        hidden: Sequence[int],
        least: int,
        written: "Written",
    ) -> tuple[Int[Tensor, " B"], StateT] | None:
        """Write tokens from ``position`` on, and return the last of them and the state after them.

        It ends before ``stop``, or where at most ``least`` rows are open; ``written.counts`` has
        how many are, and how many tokens each row was given. None, with nothing written, where the
        search does better to take one step after the other.
        """
        ...


@runtime_checkable
class DivisibleStep(Protocol[StateT]):
    """A step that threads may drive side by side, each for sentences of its own."""

    def divide(
        self, state: StateT, parts: Sequence[Int[Tensor, " K"]], width: int
    ) -> list[StateT] | None:
        """The state of each part of the sentences; None where one search of all costs less.

        A search has ``width`` rows for each sentence.
        """
        ...


# Tokens of all answers of a batch at their longest, for which there is room from the beginning.
_MOST_TOKENS = 2**30

Limits = int | Int[Tensor, " B"]


def bind_limits(
    max_lengths: Limits, batch_size: int, device: torch.device | None
) -> Int[Tensor, " B"]:
    """The longest answer allowed to each sentence, one number a row."""
    limits = bind("max_lengths", max_lengths, batch_size, device)
    if batch_size:
        for limit in limits.aminmax():
            longest = bounded("max_lengths", int(limit))
        if batch_size * longest > _MOST_TOKENS:
            raise SettingError(
                f"max_lengths must be at most {_MOST_TOKENS} tokens for a batch; got {longest} for "
                f"each of {batch_size} sentences. Search fewer at once."
            )
    return limits


def bind(
    name: str, numbers: int | Int[Tensor, " B"], batch_size: int, device: torch.device | None
) -> Int[Tensor, " B"]:
    """One number for each sentence of a batch."""
    numbers = whole(name, numbers) if isinstance(numbers, Tensor) else whole_number(name, numbers)
    bound = torch.as_tensor(numbers, dtype=torch.long, device=device)
    if bound.ndim == 0:
        bound = bound.expand(batch_size)
    if bound.shape != (batch_size,):
        raise ShapeError(
            f"{name} must be one number, or one per sentence: ({batch_size},); "
            f"got {tuple(bound.shape)}."
        )
    return bound


class Allowed:
    """The tokens a search may choose at each length."""

    def __init__(
        self,
        bos_id: int,
        eos_id: int,
        min_length: int,
        forbidden: Iterable[int],
        device: torch.device,
    ) -> None:
        bos_id, eos_id = token_id("bos_id", bos_id), token_id("eos_id", eos_id)
        always = sorted({token_id("forbidden", token) for token in forbidden})
        if eos_id in always:
            raise SettingError(
                f"forbidden must not hold eos_id; got eos_id={eos_id}, forbidden={always}. "
                "An answer could never end."
            )
        self._begin, self._end = bos_id, eos_id
        self._min_length = bounded("min_length", min_length)
        self._always, self._early = always, [*always, eos_id]
        self._device = device

    def check(self, vocab_size: int) -> None:
        """Raise SettingError unless each of the tokens is one of so many."""
        for name, ids in (
            ("bos_id", [self._begin]),
            ("eos_id", [self._end]),
            ("forbidden", self._always),
        ):
            check_in_vocabulary(name, ids, vocab_size)

    def hidden(self, length: int) -> list[int]:
        """The tokens that may not be the ``length``-th."""
        return self._early if length <= self._min_length else self._always

    def alike_until(self, length: int) -> int | None:
        """The last length at which the same tokens are hidden as at this one; None for all."""
        return self._min_length if length <= self._min_length else None

    def keep(self, log_probs: Float[Tensor, "B V"], length: int) -> Float[Tensor, "B V"]:
        """The log-probabilities of the ``length``-th token, −inf where it may not be chosen."""
        hidden = self.hidden(length)
        if not hidden:
            return log_probs
        tokens = torch.tensor(hidden, dtype=torch.long, device=self._device)
        return log_probs.index_fill(1, tokens, -torch.inf)
