"""Members of JSON objects, checked as they are taken; a complaint names the member."""

from collections.abc import Callable, Mapping
from types import UnionType
from typing import Any, TypeVar

from regard.errors import DataError, RegardError

T = TypeVar("T")
Number = int | float

_NAMES: dict[type | UnionType, str] = {
    str: "text",
    int: "a whole number",
    Number: "a number",
    list: "a list",
    dict: "an object",
}


def each(
    members: Mapping[str, Any], name: str, read: Callable[[object, str], T], where: str = ""
) -> tuple[T, ...]:
    """The list ``members[name]``, every entry read by ``read(entry, place)``."""
    values = take(members, name, list, where)
    return tuple(read(value, f"{_path(where, name)}[{i}]") for i, value in enumerate(values))


def optional(members: Mapping[str, Any], name: str, kind: type | UnionType, where: str = "") -> Any:
    """``members[name]``, or None where it is absent or null."""
    return None if members.get(name) is None else take(members, name, kind, where)


def flag(members: Mapping[str, Any], name: str, absent: bool, where: str = "") -> bool:
    """``members[name]``, true or false, or ``absent`` where it is not there."""
    value = members.get(name, absent)
    if not isinstance(value, bool):
        raise DataError(f"{_path(where, name)} must be true or false; got {repr(value)[:40]}.")
    return value


def take(members: Mapping[str, Any], name: str, kind: type | UnionType, where: str = "") -> Any:
    """``members[name]``, which must be there and of this kind."""
    if name not in members:
        has = ", ".join(members) or "nothing"
        raise DataError(f"{where or 'document'} must have a member {name!r}; got {has}.")
    return typed(members[name], kind, _path(where, name))


def typed(value: object, kind: type | UnionType, where: str) -> Any:
    """``value``, which must be of this kind; true and false are no numbers."""
    if not isinstance(value, kind) or isinstance(value, bool):
        raise DataError(f"{where} must be {_NAMES[kind]}; got {repr(value)[:40]}.")
    return value


def built(where: str, make: Callable[..., T], **members: Any) -> T:
    """Make it, and put the place before whatever its own checks say."""
    try:
        return make(**members)
    except RegardError as error:
        raise DataError(f"{where}: {error}") from None


def _path(where: str, name: str) -> str:
    return f"{where}.{name}" if where else name
