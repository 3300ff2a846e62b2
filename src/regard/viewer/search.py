"""The search for an output, as plain data: its beams at every step."""

import math
from dataclasses import dataclass
from typing import Literal

from regard.checks import choose
from regard.errors import DataError

Outcome = Literal["kept", "ended", "dropped"]

_OUTCOMES = {"kept": "goes on", "ended": "is a finished answer", "dropped": "goes no further"}


@dataclass(frozen=True, kw_only=True, slots=True)
class Extension:
    """A token that might have come next."""

    text: str  # that it adds, or the sign for the end
    probability: float
    outcome: Outcome = "dropped"

    def __post_init__(self) -> None:
        choose("outcome", self.outcome, _OUTCOMES)
        _check_probability(self.probability)


@dataclass(frozen=True, kw_only=True, slots=True)
class Beginning:
    """One of the beginnings that a search held before it chose the next token."""

    parent: int  # index among the beginnings of the step before; -1 at the first step
    text: str  # that its last token added
    log_prob: float  # of all its tokens
    extensions: tuple[Extension, ...]  # likeliest first

    def __post_init__(self) -> None:
        object.__setattr__(self, "log_prob", _finite("log_prob", self.log_prob))


Step = tuple[Beginning, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class SearchAnswer:
    """An output of the search."""

    text: str
    score: float  # by which outputs are ranked
    log_prob: float  # of its tokens and its end
    is_finished: bool = True  # by the model, not cut at the longest length

    def __post_init__(self) -> None:
        for name in ("score", "log_prob"):
            object.__setattr__(self, name, _finite(name, getattr(self, name)))


@dataclass(frozen=True, kw_only=True, slots=True)
class SearchTree:
    """The search for one output, or the model's likely tokens where the output was given.

    Attributes:
        beam_size: Beginnings kept at each step, at most; None where the output was given.
        steps: For each token of the output, its end included, the beginnings held before it.
        path: For each step, which of its beginnings the output goes through.
        probabilities: Probability of each token of the output, its end included; None where
            it was never asked, because the answer was cut.
        answers: Results of the search, best first.

    Example:
        >>> longer = Extension(text="ja", probability=0.75, outcome="kept")
        >>> first = Beginning(parent=-1, text="", log_prob=0.0, extensions=(longer,))
        >>> search = SearchTree(beam_size=1, steps=((first,),), path=(0,), probabilities=(0.75,))
        >>> search.steps[0][0].extensions[0].text
        'ja'
    """

    beam_size: int | None
    steps: tuple[Step, ...]
    path: tuple[int, ...]
    probabilities: tuple[float | None, ...]
    answers: tuple[SearchAnswer, ...] = ()

    def __post_init__(self) -> None:
        if not len(self.steps) == len(self.path) == len(self.probabilities):
            raise DataError(
                f"path and probabilities must be as many as steps, {len(self.steps)}; got "
                f"{len(self.path)} and {len(self.probabilities)}."
            )
        for probability in self.probabilities:
            if probability is not None:
                _check_probability(probability)
        before = 0
        for number, (step, index) in enumerate(zip(self.steps, self.path, strict=True)):
            parents = {beginning.parent for beginning in step}
            if not parents <= (set(range(before)) if number else {-1}):
                raise DataError(
                    f"parent must be an index among the {before} beginnings of the step before; "
                    f"got {sorted(parents)} at step {number}."
                )
            if not 0 <= index < len(step):
                raise DataError(
                    f"path must be of indices among the {len(step)} beginnings of step {number}; "
                    f"got {index}."
                )
            before = len(step)


def _check_probability(probability: float) -> None:
    if not 0 <= probability <= 1:  # false for NaN
        raise DataError(f"probability must be between 0 and 1; got {probability}.")


def _finite(name: str, value: float) -> float:
    if not math.isfinite(value):
        raise DataError(f"{name} must be finite; got {value}.")
    return float(f"{value:.5g}")
