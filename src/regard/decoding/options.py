"""Options that every search takes, documented and checked in one place."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Required, TypedDict

import torch
from jaxtyping import Int
from torch import Tensor

from regard.bounds import bounded
from regard.decoding.hypothesis import divisors
from regard.decoding.rules import Rule, Rulebook
from regard.decoding.step import Allowed, Limits, RankingStep, bind_limits
from regard.errors import SettingError, ShapeError, excerpt


class SearchOptions(TypedDict, total=False):
    """Options of every search, given by keyword.

    Attributes:
        batch_size: Sentences in the batch, B.
        bos_id: The token every answer starts after.
        eos_id: The token that ends an answer.
        max_lengths: Most tokens of an answer, its end counted; one number, or one per sentence.
        length_penalty: Alpha of ((5 + length) / 6) ** alpha, which the log-probability is divided
            by to give the score. By default 0.6.
        min_length: Fewest tokens of an answer, its end not counted.
        forbidden: Tokens never to choose, such as padding.
        rules: Further rules, applied in this order; see ``rules.py``. The log-probability of an
            answer is that which they leave.
        device: Where the model runs. None is where ``max_lengths`` is, or the default device.

    Raises:
        SettingError: A length is out of range, the end is forbidden, or rules contradict.
        ShapeError: There is not one ``max_lengths`` per sentence.
        RunError: The model gave NaN.

    Example:
        >>> from regard.decoding import greedy
        >>> class Nothing:
        ...     def select(self, rows):
        ...         return self
        >>> always = torch.tensor([0.1, 0.2, 0.7]).log()
        >>> options: SearchOptions = {"batch_size": 1, "bos_id": 1, "eos_id": 0, "max_lengths": 4}
        >>> def step(token, state):
        ...     return always.expand(len(token), 3), state
        >>> greedy(step, Nothing(), **options)[0].tokens
        (2, 2, 2, 2)
        >>> greedy(step, Nothing(), forbidden=[2], **options)[0].tokens
        (1, 1, 1, 1)
    """

    batch_size: Required[int]
    bos_id: Required[int]
    eos_id: Required[int]
    max_lengths: Required[Limits]
    length_penalty: float
    min_length: int
    forbidden: Iterable[int]
    rules: Iterable[Rule]
    device: torch.device | None


@dataclass(frozen=True, kw_only=True)
class BoundOptions:
    """Options of a search of a batch, checked; see ``SearchOptions``."""

    batch_size: int
    bos_id: int
    eos_id: int
    max_lengths: Limits
    length_penalty: float = 0.6
    min_length: int = 0
    forbidden: Iterable[int] = ()
    rules: Iterable[Rule] = ()
    device: torch.device | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "batch_size", bounded("batch_size", self.batch_size))
        object.__setattr__(self, "length_penalty", bounded("length_penalty", self.length_penalty))
        object.__setattr__(self, "rules", tuple(self.rules))
        for rule in self.rules:
            if not callable(rule):
                raise SettingError(f"rules must be functions, see Rule; got {excerpt(rule)}.")
        self.allowed  # noqa: B018  (checked now, whatever is searched)

    @cached_property
    def limits(self) -> Int[Tensor, " B"]:
        """The longest answer of each sentence."""
        return bind_limits(self.max_lengths, self.batch_size, self.device)

    @cached_property
    def allowed(self) -> Allowed:
        """The tokens of each length."""
        device = self.limits.device
        return Allowed(self.bos_id, self.eos_id, self.min_length, self.forbidden, device)

    @property
    def penalties(self) -> list[float]:
        """The divisor of each length."""
        return divisors(self.length_penalty, int(self.limits.max()))

    def check(self, step: object, state: object) -> None:
        """Raise where the step or the state says how many tokens or rows there are, and errs."""
        if isinstance(step, RankingStep):
            self.allowed.check(step.vocab_size)
        rows = getattr(state, "num_rows", None)
        if rows is not None and rows != self.batch_size:
            raise ShapeError(
                f"batch_size must be the rows of the state, {rows}; got {self.batch_size}."
            )

    def select(self, rows: Int[Tensor, " K"]) -> "BoundOptions":
        """The options of these sentences."""
        return replace(self, batch_size=len(rows), max_lengths=self.limits[rows])

    def rulebook(self, *, copies: int = 1) -> Rulebook:
        """All that the search keeps to, for so many answers of each sentence at once."""
        return Rulebook(self.allowed, self.rules, self.limits, self.eos_id, copies=copies)
