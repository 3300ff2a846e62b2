"""Picking from a literal table by name, with the nearest name offered when it is not there."""

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import TypeVar, get_args

from regard.errors import SettingError, excerpt

T = TypeVar("T")


def choose(name: str, value: object, table: Mapping[str, T]) -> T:
    """The entry of ``table`` called ``value``.

    Args:
        name: What is being chosen, as the user wrote it (``model.type``).
        value: The name asked for.
        table: Everything there is to choose from.

    Raises:
        SettingError: No such entry; the message lists all and offers the nearest.

    Example:
        >>> choose("score", "dott", {"dot": 1, "additive": 2})
        Traceback (most recent call last):
        regard.errors.SettingError: score must be one of additive, dot; got 'dott'. Did you mean 'dot'?
    """  # noqa: E501
    if not isinstance(value, str) or value not in table:
        known = ", ".join(sorted(table))
        hint = nearest(value, table) if isinstance(value, str) else None
        cure = f" Did you mean {hint!r}?" if hint else ""
        raise SettingError(f"{name} must be one of {known}; got {excerpt(value)}.{cure}")
    return table[value]


def check_choice(name: str, value: object, choices: object) -> None:
    """Raise unless ``value`` is one of ``choices``, a ``Literal`` as the annotation has it.

    Raises:
        SettingError: It is none; the message lists all and offers the nearest.

    Example:
        >>> from typing import Literal
        >>> check_choice("norm", "Pre", Literal["post", "pre"])
        Traceback (most recent call last):
        regard.errors.SettingError: norm must be one of post, pre; got 'Pre'. Did you mean 'pre'?
    """
    choose(name, value, dict.fromkeys(get_args(choices)))


def nearest(value: str, names: Iterable[str]) -> str | None:
    """The most similar of ``names``, in whatever case, or None if nothing is close.

    Example:
        >>> nearest("BPE", ["bpe", "unigram"])
        'bpe'
    """
    folded = {name.casefold(): name for name in names}
    found = get_close_matches(value.casefold(), list(folded), n=1, cutoff=0.6)
    return folded[found[0]] if found else None
