"""Dataclasses from JSON objects: an annotation says what a member must be, a complaint names it."""

import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass
from functools import cache, partial
from types import NoneType, UnionType
from typing import Annotated, Literal, TypeVar

from regard.errors import DataError, RegardError
from regard.viewer.packing import PackedArray

T = TypeVar("T")
Reader = Callable[[object], object]

_NAMES: dict[type, str] = {str: "text", int: "a whole number", list: "a list", dict: "an object"}


def read_as(what: type[T], value: object) -> T:
    """The object that a JSON value is of.

    Members without a default must be there; null is as good as absent; members that the class does
    not know are skipped.

    Args:
        what: A dataclass of numbers, text, tuples, mappings and others such.
        value: What ``json.loads`` gave.

    Raises:
        DataError: A member is missing, of another type, or contradicts the others.
    """
    try:
        found = _object(what, value)
    except _MisreadError as error:
        raise DataError(f"{error.where or 'document'}{error.rule}") from None
    assert isinstance(found, what)
    return found


class _MisreadError(Exception):
    """A value that is not as it must be, and where it stands."""

    def __init__(self, rule: str) -> None:
        self.where, self.rule = "", rule

    def within(self, name: str) -> "_MisreadError":
        """Place the error in a part of ``name``."""
        parts = "." if self.where and not self.where.startswith("[") else ""
        self.where = f"{name}{parts}{self.where}"
        return self


@cache
def _reader(hint: object) -> Reader:
    """Reader of values of this type."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if isinstance(hint, type) and is_dataclass(hint):
        return partial(_object, hint)
    if origin is Annotated:  # a tuple, and how it is told
        kinds, told = typing.get_args(arguments[0]), str(arguments[1])
        if kinds[-1] is Ellipsis:
            return partial(_list, _reader(kinds[0]), name=told)
        return partial(_fixed, [_reader(each) for each in kinds], told)
    if origin in (typing.Union, UnionType):
        return _union(arguments)
    if origin is Literal:  # which it is, the class that has it checks
        return partial(_typed, str)
    if origin in (tuple, Sequence):
        is_numbers = arguments[0] in (float, float | None)
        return partial(_numbers if is_numbers else _list, _reader(arguments[0]))
    if origin is Mapping:
        return partial(_mapping, _reader(arguments[1]))
    for kind, read in _SIMPLE.items():
        if hint is kind:
            return read
    raise AssertionError(f"{hint} is nothing that JSON has")


def _object(what: type, value: object) -> object:
    members = _typed(dict, value)
    given: dict[str, object] = {}
    for name, (read, has_default, may_be_none) in _members(what).items():
        member = members.get(name)
        if member is None and (has_default or may_be_none):
            given |= {} if has_default else {name: None}
            continue
        if name not in members:
            has = ", ".join(members) or "nothing"
            raise _MisreadError(f" must have a member {name!r}; got {has}.")
        try:
            given[name] = read(member)
        except _MisreadError as error:
            raise error.within(name) from None
    try:
        found = what(**given)
        if isinstance(found, PackedArray):
            found.checked()
    except RegardError as error:
        raise _MisreadError(f": {error}") from None
    return found


@cache
def _members(what: type) -> dict[str, tuple[Reader, bool, bool]]:
    """The reader of each field, whether it has a default, and whether it may be None."""
    hints = typing.get_type_hints(what, include_extras=True)
    return {
        field.name: (
            _reader(hints[field.name]),
            field.default is not MISSING or field.default_factory is not MISSING,
            NoneType in typing.get_args(hints[field.name]),
        )
        for field in fields(what)
    }


def _union(arguments: tuple[object, ...]) -> Reader:
    """Reader of values of one type, one of a few words, or None."""
    kinds = [each for each in arguments if each is not NoneType and not _words(each)]
    read = _reader(kinds[0]) if kinds else partial(_typed, str)
    free: list[object] = [None] if NoneType in arguments else []
    if kinds:
        free += [word for each in arguments for word in _words(each)]
    return lambda value: value if value in free else read(value)


def _words(hint: object) -> tuple[object, ...]:
    return typing.get_args(hint) if typing.get_origin(hint) is Literal else ()


def _list(read: Reader, value: object, *, name: str = "") -> tuple[object, ...]:
    """The values read; a complaint tells the place of the one it is about."""
    found = []
    for place, one in enumerate(_typed(list, value)):
        try:
            found.append(read(one))
        except _MisreadError as error:
            raise error.within(f"{name}[{place}]") from None
    return tuple(found)


def _numbers(read: Reader, value: object) -> tuple[object, ...]:
    """The numbers read, which are many; a complaint is about all of them."""
    return tuple(map(read, _typed(list, value)))


def _fixed(readers: Sequence[Reader], rule: str, value: object) -> tuple[object, ...]:
    values = _typed(list, value)
    if len(values) != len(readers):
        raise _MisreadError(f" must be {rule}; got {values}.")
    return tuple(read(one) for read, one in zip(readers, values, strict=True))


def _mapping(read: Reader, value: object) -> dict[str, object]:
    found = {}
    for name, one in _typed(dict, value).items():
        try:
            found[name] = read(one)
        except _MisreadError as error:
            raise error.within(name) from None
    return found


def _float(value: object) -> float:
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise _MisreadError(f" must be a number; got {repr(value)[:40]}.")
    return float(value)


def _flag(value: object) -> bool:
    if not isinstance(value, bool):
        raise _MisreadError(f" must be true or false; got {repr(value)[:40]}.")
    return value


def _typed(kind: type[T], value: object) -> T:
    """The value, which must be of this kind; true and false are no numbers."""
    if not isinstance(value, kind) or isinstance(value, bool):
        raise _MisreadError(f" must be {_NAMES[kind]}; got {repr(value)[:40]}.")
    return value


_SIMPLE: dict[type, Reader] = {
    str: partial(_typed, str),
    int: partial(_typed, int),
    float: _float,
    bool: _flag,
}
