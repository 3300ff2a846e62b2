"""Checks that say what is wrong, where, and how to mend it."""

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from math import isfinite
from typing import TypeVar, get_args

from regard.errors import SettingError, excerpt

T = TypeVar("T")


def check_finite(name: str, value: int | float) -> None:
    """Raise if ``value`` is infinite, or no number at all."""
    if not isfinite(value):
        raise SettingError(f"{name} must be a finite number; got {value}.")


def check_positive(name: str, value: int | float, *, cure: str = "") -> None:
    """Raise unless ``value`` is above zero."""
    if not value > 0:
        raise SettingError(_sentence(f"{name} must be above 0; got {value}.", cure))


def check_at_least(name: str, value: int | float, least: int | float, *, cure: str = "") -> None:
    """Raise unless ``value >= least``."""
    if not value >= least:
        raise SettingError(_sentence(f"{name} must be at least {least}; got {value}.", cure))


def check_at_most(name: str, value: int | float, most: int | float) -> None:
    """Raise unless ``value <= most``."""
    if not value <= most:
        raise SettingError(f"{name} must be at most {most}; got {value}.")


def check_fraction(name: str, value: int | float, *, cure: str = "") -> None:
    """Raise unless ``0 <= value < 1``, the range of a dropout or smoothing rate."""
    if not 0 <= value < 1:
        raise SettingError(_sentence(f"{name} must be at least 0 and below 1; got {value}.", cure))


def check_divides(name: str, value: int, whole_name: str, whole: int) -> None:
    """Raise unless ``value`` divides ``whole``."""
    check_positive(name, value)
    check_positive(whole_name, whole)
    if whole % value:
        raise SettingError(
            f"{whole_name} must be divisible by {name}; got {whole_name}={whole}, {name}={value}."
        )


def _sentence(message: str, cure: str) -> str:
    return f"{message} {cure}".rstrip()


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


def counted(count: float, unit: str) -> str:
    """A number and its unit, given in the plural: ``2 lines``, ``1 line``, ``0.5 minutes``."""
    number = f"{count:,}" if isinstance(count, int) else f"{count:g}"
    return f"{number} {unit.removesuffix('s') if count == 1 else unit}"


def nearest(value: str, names: Iterable[str]) -> str | None:
    """The most similar of ``names``, in whatever case, or None if nothing is close."""
    folded = {name.casefold(): name for name in names}
    matches = get_close_matches(value.casefold(), list(folded), n=1, cutoff=0.6)
    return folded[matches[0]] if matches else None
