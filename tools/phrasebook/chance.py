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
        # By the identity of a table: the table (so that it stays), and what is left of its deck.
        self._decks: dict[int, tuple[Sequence[object], list[object]]] = {}

    def pick(self, options: Sequence[T]) -> T:
        """One of the options, each as likely as any other."""
        return options[int(self._random() * len(options))]

    def deal(self, table: Sequence[T]) -> T:
        """One of a table that lives as long as the program, each as often as any other.

        The table is shuffled like a deck of cards and dealt to its end before it is shuffled anew.
        """
        held = self._decks.get(id(table))
        if held is None:
            held = self._decks[id(table)] = (table, [])
        deck: list[T] = held[1]  # type: ignore[assignment]
        if not deck:
            deck += self.shuffle(table)
        return deck.pop()

    def below(self, limit: int) -> int:
        """A number from 0 to below the limit."""
        return int(self._random() * limit)

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
