"""Validation examples from the training text, where a recipe names none."""

from collections.abc import Sequence
from typing import TypeVar

from regard.errors import DataError

T = TypeVar("T")

# What validation takes from the training text where the recipe names no validation file.
_SHARE, _MOST = 0.02, 1000
_LEAST = 10


def evenly(examples: Sequence[T], *, unit: str) -> Sequence[T]:
    """A few examples spread evenly over the text, to validate on.

    Args:
        examples: All of them.
        unit: What they are called, in the plural.

    Raises:
        DataError: There are fewer than ten.

    Example:
        >>> evenly(range(100), unit="numbers")
        range(0, 100, 50)
    """
    if len(examples) < _LEAST:
        raise DataError(
            f"data.train must hold at least {_LEAST} {unit} where data.valid is not set; "
            f"got {len(examples)}."
        )
    wanted = min(_MOST, max(1, round(len(examples) * _SHARE)))
    return examples[:: len(examples) // wanted][:wanted]


def hold_out(examples: Sequence[T], *, unit: str) -> tuple[list[T], list[T]]:
    """The examples to train on, and a few spread evenly over the text to validate on.

    Args:
        examples: All of them.
        unit: What they are called, in the plural.

    Raises:
        DataError: There are fewer than ten.

    Example:
        >>> rest, valid = hold_out(range(100), unit="numbers")
        >>> len(rest), valid
        (98, [0, 50])
    """
    places = set(evenly(range(len(examples)), unit=unit))
    held = [example for place, example in enumerate(examples) if place in places]
    return [example for place, example in enumerate(examples) if place not in places], held
