"""Picking from a literal table by name, with the nearest name offered when it is not there."""

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import TypeVar, get_args

from regard.errors import SettingError, excerpt

T = TypeVar("T")


def choose(name: str, value: object, table: Mapping[str, T], cure: str = "") -> T:
    """The entry of a table by its name; SettingError lists all names and offers the nearest.

    Where none is near, the error ends with ``cure``.
    """
    if not isinstance(value, str) or value not in table:
        known = ", ".join(sorted(table))
        hint = nearest(value, table) if isinstance(value, str) else None
        cure = f"Did you mean {hint!r}?" if hint else cure
        raise SettingError(f"{name} must be one of {known}; got {excerpt(value)}. {cure}".rstrip())
    return table[value]


def check_choice(name: str, value: object, choices: object) -> None:
    """Raise unless ``value`` is one of ``choices``, a ``Literal`` as the annotation has it."""
    choose(name, value, dict.fromkeys(get_args(choices)))


def nearest(value: str, names: Iterable[str]) -> str | None:
    """The most similar of ``names``, in whatever case, or None if nothing is close."""
    folded = {name.casefold(): name for name in names}
    matches = get_close_matches(value.casefold(), list(folded), n=1, cutoff=0.6)
    return folded[matches[0]] if matches else None
