"""Checks whose messages name the value, its rule, and the cure."""

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from math import isfinite
from numbers import Integral, Real
from os import PathLike
from pathlib import Path
from typing import TypeVar, get_args

from regard.errors import SettingError, excerpt

T = TypeVar("T")
# The least integer that torch, NumPy and TOML's other readers refuse.
TOO_LARGE = 2**63
# Plurals that no rule of ``singular`` and ``plural`` makes.
_IRREGULAR = {
    "analysis": "analyses",
    "axis": "axes",
    "cache": "caches",
    "child": "children",
    "hypothesis": "hypotheses",
    "index": "indices",
    "matrix": "matrices",
    "movie": "movies",
    "person": "people",
    "quiz": "quizzes",
    "series": "series",
    "synthesis": "syntheses",
    "thesis": "theses",
    "vertex": "vertices",
}


def check_finite(name: str, value: int | float) -> None:
    """Raise if ``value`` is infinite, or no number at all."""
    _check_number(name, value)
    # To look at a size that a compiler leaves open would fix it.
    if isinstance(value, Integral) or hasattr(value, "__sym_float__"):
        return
    if not isfinite(value):
        raise SettingError(f"{name} must be a finite number; got {value}.")


def check_path(name: str, value: object) -> None:
    """Raise if ``value`` is an empty text, which would stand for the current folder."""
    if isinstance(value, str) and not value.strip():
        raise SettingError(f"{name} must be a path; got {value!r}. The current folder is '.'.")


def as_path(name: str, value: object) -> Path:
    """A path that may be given as a text, too."""
    check_path(name, value)
    if not isinstance(value, str | PathLike):
        raise SettingError(f"{name} must be a path; got {excerpt(value)}.")
    return Path(value)


def check_kind(name: str, value: object, kind: type) -> None:
    """Raise unless ``value`` is of a class."""
    if not isinstance(value, kind):
        article = "an" if kind.__name__[0] in "AEIOU" else "a"
        raise SettingError(f"{name} must be {article} {kind.__name__}; got {excerpt(value)}.")


def check_whole(name: str, value: int) -> None:
    """Raise unless ``value`` is a whole number."""
    _check_number(name, value, Integral, "a whole number")


def check_above_zero(name: str, value: int | float) -> None:
    """Raise unless ``value`` is above zero; it may be infinite."""
    _check_number(name, value)
    if not value > 0:
        raise SettingError(f"{name} must be above 0; got {excerpt(value)}.")


def check_positive(name: str, value: int | float) -> None:
    """Raise unless ``value`` is above zero, and finite."""
    check_above_zero(name, value)
    check_finite(name, value)


def check_at_least(name: str, value: int | float, least: int | float, *, cure: str = "") -> None:
    """Raise unless ``value >= least``, and finite."""
    _check_number(name, value)
    if not value >= least:
        raise SettingError(
            _sentence(f"{name} must be at least {least}; got {excerpt(value)}.", cure)
        )
    check_finite(name, value)


def check_count(name: str, value: int, least: int = 1, *, cure: str = "") -> None:
    """Raise unless ``value`` is a whole number, and at least ``least``."""
    check_whole(name, value)
    check_at_least(name, value, least, cure=cure)


def check_at_most(name: str, value: int | float, most: int | float) -> None:
    """Raise unless ``value <= most``."""
    _check_number(name, value)
    if not value <= most:
        raise SettingError(f"{name} must be at most {most}; got {excerpt(value)}.")


def check_fraction(name: str, value: int | float) -> None:
    """Raise unless ``0 <= value < 1``, the range of a dropout or smoothing rate."""
    _check_number(name, value)
    if not 0 <= value < 1:
        raise SettingError(f"{name} must be at least 0 and below 1; got {excerpt(value)}.")


def check_divides(name: str, value: int, whole_name: str, whole: int) -> None:
    """Raise unless ``value`` divides ``whole``."""
    check_count(name, value)
    check_count(whole_name, whole)
    if whole % value:
        raise SettingError(
            f"{whole_name} must be divisible by {name}; got {whole_name}={whole}, {name}={value}."
        )


def _check_number(name: str, value: object, kind: type = Real, kind_name: str = "a number") -> None:
    """Raise unless ``value`` is a number, and no truth value."""
    if type(value) is int and abs(value) >= TOO_LARGE:
        raise SettingError(f"{name} must be a number below 2 ** 63; got {excerpt(value)}.")
    if type(value) is int or (type(value) is float and kind is Real):
        return  # at once, as it is felt in small calls to ask for the other kinds
    # A size that a compiler leaves open is a number.
    if isinstance(value, bool) or not (isinstance(value, kind) or hasattr(value, "__sym_float__")):
        raise SettingError(f"{name} must be {kind_name}; got {excerpt(value)}.")


def check_flag(name: str, value: object) -> None:
    """Raise unless ``value`` is true or false, and not merely taken for one."""
    if not isinstance(value, bool):
        raise SettingError(f"{name} must be True or False; got {excerpt(value)}.")


def _sentence(message: str, cure: str) -> str:
    return f"{message} {cure}".rstrip()


def choose(name: str, value: object, table: Mapping[str, T], cure: str = "") -> T:
    """The entry of a table by its name; SettingError lists all names and offers the nearest.

    Where none is near, the error ends with ``cure``.
    """
    if not isinstance(value, str) or value not in table:
        names = ", ".join(sorted(table))
        hint = nearest(value, table) if isinstance(value, str) else None
        cure = f"Did you mean {hint!r}?" if hint else cure
        raise SettingError(f"{name} must be one of {names}; got {excerpt(value)}. {cure}".rstrip())
    return table[value]


def check_choice(name: str, value: object, choices: object) -> None:
    """Raise unless ``value`` is one of ``choices``, a ``Literal`` as the annotation has it."""
    choose(name, value, dict.fromkeys(get_args(choices)))


def counted(count: float, unit: str) -> str:
    """A number and its unit, given in the plural: ``2 lines``, ``1 line``, ``0.5 minutes``."""
    number = f"{count:,}" if isinstance(count, int) else f"{count:g}"
    return f"{number} {singular(unit) if count == 1 else unit}"


def singular(nouns: str) -> str:
    """The singular of an English plural; of several words, the last is one.

    Example:
        >>> [singular(nouns) for nouns in ("masked tokens", "classes", "queries", "phrases")]
        ['masked token', 'class', 'query', 'phrase']
    """
    before, space, noun = nouns.rpartition(" ")
    for one, many in _IRREGULAR.items():
        if noun.lower() == many:
            return f"{before}{space}{one}"
    if noun.endswith("ies") and len(noun) > 4:
        noun = f"{noun[:-3]}y"
    elif noun.endswith(("sses", "xes", "zzes", "ches", "shes")):
        noun = noun[:-2]
    elif not noun.endswith("ss"):
        noun = noun.removesuffix("s")
    return f"{before}{space}{noun}"


def plural(noun: str) -> str:
    """The plural of an English noun; of several words, the last is one.

    Example:
        >>> [plural(noun) for noun in ("masked token", "class", "query", "phrase", "reply")]
        ['masked tokens', 'classes', 'queries', 'phrases', 'replies']
    """
    before, space, noun = noun.rpartition(" ")
    if noun.lower() in _IRREGULAR:
        noun = _IRREGULAR[noun.lower()]
    elif noun.endswith("y") and noun[-2:-1] not in "aeiou":
        noun = f"{noun[:-1]}ies"
    else:
        noun += "es" if noun.endswith(("s", "x", "z", "ch", "sh")) else "s"
    return f"{before}{space}{noun}"


def nearest(value: str, names: Iterable[str]) -> str | None:
    """The most similar of ``names``, in whatever case, or None if nothing is close."""
    folded = {name.casefold(): name for name in names}
    matches = get_close_matches(value.casefold(), list(folded), n=1, cutoff=0.6)
    return folded[matches[0]] if matches else None
