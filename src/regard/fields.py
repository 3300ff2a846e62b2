"""The fields of a config, checked against their annotations wherever a config is made.

A choice is a ``Literal``; beside a number's type stands its range, as in ``Count``. So a field is
checked by being annotated, and nobody has to think of it.
"""

import dataclasses
import inspect
import re
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from numbers import Integral, Real
from typing import Annotated

from regard.checks import (
    TOO_LARGE,
    check_at_least,
    check_at_most,
    check_finite,
    check_fraction,
    check_positive,
    choose,
)
from regard.errors import SettingError, excerpt

TableT = typing.TypeVar("TableT", bound=Mapping[str, object])
F = typing.TypeVar("F", bound=Callable[..., object])


def at_least(least: int | float, *, cure: str = "") -> Callable[[str, int | float], None]:
    """The range from ``least`` on, to stand beside a number's type."""
    return partial(check_at_least, least=least, cure=cure)


def at_most(most: int | float) -> Callable[[str, int | float], None]:
    """The range up to ``most``, to stand beside a number's type."""
    return partial(check_at_most, most=most)


def nearest_within(value: float, hint: object) -> float:
    """The number that is nearest to a value in the range of an annotation.

    Example:
        >>> nearest_within(0, Count), nearest_within(2.5, Annotated[float, at_most(2)])
        (1, 2)
        >>> nearest_within(3, int | None)
        3
    """
    for rule in typing.get_args(hint)[1:] if typing.get_origin(hint) is Annotated else ():
        limits = rule.keywords if isinstance(rule, partial) else {}
        value = max(value, limits.get("least", value))
        value = min(value, limits.get("most", value))
    return value


def several(least: int) -> Callable[[str, Sequence[object]], None]:
    """That a list holds so many, to stand beside its type."""

    def check(name: str, values: Sequence[object]) -> None:
        if len(values) < least:
            raise SettingError(f"{name} must hold at least {least}; got {len(values)}.")

    return check


# A size, at least one; a number, perhaps zero; a rate; a quantity; a weight.
Count = Annotated[int, at_least(1)]
Natural = Annotated[int, at_least(0)]
Share = Annotated[float, check_fraction]
Positive = Annotated[float, check_positive]
Weight = Annotated[float, at_least(0), check_finite]

# The end of a text to the system, and bytes of a file's name that are not UTF-8.
_ODD = re.compile("[\0\ud800-\udfff]")
_TYPE_NAMES = {int: "a whole number", float: "a number", str: "text", bool: "true or false"}


def check_fields(config: object) -> None:
    """Raise unless each field is of its type and in its range; numbers are converted."""
    for name, hint in hints_of(type(config)).items():
        object.__setattr__(config, name, checked(name, getattr(config, name), hint))


def hints_of(config: type[object]) -> dict[str, object]:
    """Annotations of a dataclass's fields, ranges included."""
    assert dataclasses.is_dataclass(config)
    hints = typing.get_type_hints(config, include_extras=True)
    return {field.name: hints[field.name] for field in dataclasses.fields(config)}


# A field in the "Attributes:" of a docstring: its name, and its meaning up to the next one.
_ATTRIBUTE = re.compile(r"^    (\w+): (.*?)(?=^    \w+: |\Z)", re.MULTILINE | re.DOTALL)


def meanings_of(config: type[object]) -> dict[str, str]:
    """Meanings of a dataclass's fields, as its docstring has them."""
    meanings: dict[str, str] = {}
    for kind in reversed(config.__mro__):  # shared fields are explained once
        _, _, members = inspect.cleandoc(kind.__doc__ or "").partition("Attributes:\n")
        attributes, _, _ = members.partition("\n\n")
        meanings |= {name: " ".join(text.split()) for name, text in _ATTRIBUTE.findall(attributes)}
    return meanings


def checked(name: str, value: object, hint: object) -> object:
    """Convert a value to the type of an annotation; SettingError if it does not fit."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (Annotated, typing.NotRequired):
        value = checked(name, value, arguments[0])
        for rule in arguments[1:]:
            rule(name, value)
        return value
    if origin in (typing.Union, types.UnionType):
        return _one_of(name, value, arguments)
    if origin is typing.Literal:
        choose(name, value, dict.fromkeys(arguments))
        return value
    if origin in (list, tuple):
        return _list_of(name, value, origin, arguments)
    if origin is dict:
        if not isinstance(value, dict):
            raise SettingError(f"{name} must be a table; got {excerpt(value)}.")
        return {key: checked(f"{name}.{key}", v, arguments[1]) for key, v in value.items()}
    assert isinstance(hint, type)
    if typing.is_typeddict(hint):
        return checked_table(name, value, hint)
    return _of_type(name, value, hint)


def checked_table(where: str, value: object, kind: type[TableT]) -> TableT:
    """Check a table of a file against a ``TypedDict``; further keys are left as they are."""
    if not isinstance(value, dict):
        raise SettingError(f"{where} must hold a table; got {excerpt(value)}.")
    hints = typing.get_type_hints(kind, include_extras=True)
    missing = sorted(vars(kind)["__required_keys__"] - value.keys())
    if missing:
        raise SettingError(f"{where} must hold {missing[0]}; it does not.")
    # Lists of words may have thousands: they are checked at once.
    words = {
        name for name, hint in hints.items() if hint == list[str] and _is_words(value.get(name))
    }
    values = {
        name: checked(f"{name} of {where}", value[name], hint)
        for name, hint in hints.items()
        if name in value and name not in words
    }
    return typing.cast(TableT, {**value, **values})


def _list_of(
    name: str,
    value: object,
    origin: type[list[object]] | type[tuple[object, ...]],
    arguments: tuple[object, ...],
) -> object:
    """A list or tuple whose members are as the first argument has them."""
    if not isinstance(value, list | tuple):
        raise SettingError(f"{name} must be a list; got {excerpt(value)}.")
    if origin is tuple and arguments[-1] is not Ellipsis and len(value) != len(arguments):
        raise SettingError(f"{name} must be a list of {len(arguments)}; got {excerpt(value)}.")
    return origin(checked(f"{name}[{i}]", v, arguments[0]) for i, v in enumerate(value))


def _one_of(name: str, value: object, members: tuple[object, ...]) -> object:
    """Convert to the first member that takes the value; else raise the choices' or first error."""
    if value is None and type(None) in members:
        return None
    errors = []
    if isinstance(value, str):
        members = tuple(sorted(members, key=_is_no_choice))
    for member in members:
        try:
            if member is not type(None):
                return checked(name, value, member)
        except SettingError as error:
            errors.append(error.with_traceback(None))  # whose frames hold this list
    raise errors[0]


def _is_no_choice(kind: object) -> bool:
    origin: object = typing.get_origin(kind)
    return origin is not typing.Literal


def _of_type(name: str, value: object, kind: type[object]) -> object:
    """The value, of the type itself where it is a number of another make."""
    is_flag = isinstance(value, bool)
    if isinstance(value, Integral) and abs(int(value)) >= TOO_LARGE:
        raise SettingError(f"{name} must be a number below 2 ** 63; got {excerpt(value)}.")
    if kind is int and isinstance(value, Integral) and not is_flag:
        return int(value)
    if kind is float and isinstance(value, Real) and not is_flag:
        return float(value)
    if not isinstance(value, kind) or (is_flag and kind is not bool):
        raise SettingError(f"{name} must be {_TYPE_NAMES.get(kind, kind)}; got {excerpt(value)}.")
    if kind is str and isinstance(value, str) and _ODD.search(value):
        raise SettingError(f"{name} must be text in UTF-8, without NUL; got {excerpt(value)}.")
    return value


def _is_words(value: object) -> bool:
    return isinstance(value, list) and all(type(word) is str for word in value)


def described(options: type, *, defaults: Mapping[str, object]) -> Callable[[F], F]:
    """Decorate a function of ``**options``: its signature and help name each, with its default."""

    def decorate(function: F) -> F:
        declared, kind = inspect.signature(function), inspect.Parameter.KEYWORD_ONLY
        named = [
            inspect.Parameter(name, kind, default=defaults[name], annotation=annotation)
            for name, annotation in options.__annotations__.items()
        ]
        parameters = list(declared.parameters.values())[:-1]
        positional = [parameter for parameter in parameters if parameter.kind is not kind]
        last = [parameter for parameter in parameters if parameter.kind is kind]
        vars(function)["__signature__"] = declared.replace(parameters=[*positional, *named, *last])
        return function

    return decorate
