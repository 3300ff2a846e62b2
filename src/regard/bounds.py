"""Bounds of the numbers of a search: one table for recipes, commands, Python and the server."""

from collections.abc import Sequence
from typing import Annotated, TypeVar

from regard.errors import SettingError, excerpt
from regard.fields import Count, Natural, at_least, at_most, checked

NumberT = TypeVar("NumberT", int, float)


def _above_zero_to_one(name: str, value: float) -> None:
    if not 0 < value <= 1:
        raise SettingError(
            f"{name} must be above 0 and at most 1; got {value}. Use 1 to draw from all."
        )


# Each output that is kept beside others takes memory and time of its own.
_FEW = at_most(1000)
# The longest that is ever written: as many numbers are made for each output at once.
_LONG = at_most(10**6)

BatchSize = Annotated[int, at_least(0), at_most(10**6)]
BeamSize = Annotated[int, at_least(1, cure="Use 1 for greedy search."), _FEW]
NumOutputs = Annotated[int, at_least(1), _FEW]
MaxLength = Annotated[int, at_least(1), _LONG]
MinLength = Annotated[int, at_least(0), _LONG]
# Penalties of the longest outputs fit into a float64.
LengthPenalty = Annotated[float, at_least(0), at_most(10)]
CoverageWeight = Annotated[float, at_least(0), at_most(100)]
# Log-probabilities over the least are float32 that can be told apart.
Temperature = Annotated[float, at_least(1e-6, cure="Search greedily for zero."), at_most(1000)]
TopP = Annotated[float, _above_zero_to_one]
# With less, a token that is written once would be certain from then on.
RepetitionWeight = Annotated[float, at_least(0.01, cure="Use 1 to switch it off."), at_most(100)]

BOUNDS: dict[str, object] = {
    "batch_size": BatchSize,
    "beam_size": BeamSize,
    "length_penalty": LengthPenalty,
    "max_lengths": MaxLength,
    "min_length": MinLength,
    "n_best": NumOutputs,
    "num_samples": NumOutputs,
    "penalty": RepetitionWeight,
    "size": Count,
    "temperature": Temperature,
    "top_k": Count,
    "top_p": TopP,
    "weight": CoverageWeight,
}


def bounded(name: str, value: NumberT) -> NumberT:
    """The number, of the type and in the range that its name has in ``BOUNDS``."""
    number: NumberT = checked(name, value, BOUNDS[name])  # type: ignore[assignment]
    return number


def whole_number(name: str, value: object) -> int:
    """A whole number that fits into 64 bits."""
    number = checked(name, value, int)
    assert isinstance(number, int)
    return number


def token_id(name: str, value: object) -> int:
    """An id, which is 0 or more; a search learns how many there are at its first step."""
    number = checked(name, value, Natural)
    assert isinstance(number, int)
    return number


def check_in_vocabulary(name: str, ids: Sequence[int], vocab_size: int) -> None:
    """Raise SettingError unless a vocabulary of this size has each id."""
    if unknown := [token for token in ids if token >= vocab_size]:
        raise SettingError(
            f"{name} must be from 0 to {vocab_size - 1}; got {excerpt(unknown[0])}. "
            "Was it numbered by another vocabulary?"
        )
