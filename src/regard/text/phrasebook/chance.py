"""Chance that falls the same way on every machine and Python version."""

import random
from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")


class Chance:
    """Picks by ``random.Random.random`` alone, the one method whose sequence Python guarantees.

    Example:
        >>> Chance(1).pick("abc") == Chance(1).pick("abc")
        True
    """

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed).random

    def pick(self, options: Sequence[T]) -> T:
        """One of the options, each as likely as any other."""
        return options[int(self._random() * len(options))]

    def two(self, options: Sequence[T]) -> tuple[T, T]:
        """Two different options, in either order."""
        first = int(self._random() * len(options))
        second = int(self._random() * (len(options) - 1))
        return options[first], options[second + (second >= first)]

    def odds(self, share: float) -> bool:
        """True this share of the time."""
        return self._random() < share

    def shuffle(self, options: Sequence[T]) -> list[T]:
        """The options in an order of chance (Fisher and Yates)."""
        mixed = list(options)
        for last in range(len(mixed) - 1, 0, -1):
            other = int(self._random() * (last + 1))
            mixed[last], mixed[other] = mixed[other], mixed[last]
        return mixed
