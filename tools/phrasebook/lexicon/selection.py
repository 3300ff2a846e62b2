"""Entries of a table by their Chinese names."""

from collections.abc import Iterable
from typing import Protocol, TypeVar, runtime_checkable


@runtime_checkable
class _Entry(Protocol):
    @property
    def zh(self) -> str: ...


EntryT = TypeVar("EntryT", bound=_Entry)


def select(table: Iterable[EntryT], names: str) -> tuple[EntryT, ...]:
    """The entries with these Chinese names, in the order of the table.

    Args:
        table: Entries with a Chinese name.
        names: Their names, with spaces between.

    Raises:
        KeyError: No entry has one of the names.

    Example:
        >>> from tools.phrasebook.lexicon.people import PRONOUNS
        >>> [pronoun.zh for pronoun in select(PRONOUNS, "她 我")]
        ['我', '她']
    """
    wanted = set(names.split())
    found = tuple(entry for entry in table if entry.zh in wanted)
    missing = wanted - {entry.zh for entry in found}
    if missing:
        raise KeyError(f"no entry is called {', '.join(sorted(missing))}")
    return found
