"""Masks written as text: parsed by rules of our own, built from a table of masks, never run.

A text may come from anyone, so its length, depth and numbers are bounded.
"""

import re
from collections.abc import Callable, Collection, Sequence
from inspect import signature
from operator import and_, or_
from typing import Any, Literal, NamedTuple, NoReturn, get_args

import torch

from regard.attention.masks.base import Mask
from regard.attention.masks.rules import causal, documents, lengths, prefix, window
from regard.checks import check_choice, nearest
from regard.errors import RegardError, SettingError, excerpt

# Kinds of arguments of a mask that is written as text.
Allowed = Literal["a whole number or None", "whole numbers", "a list of whole numbers"]
NUMBER: Allowed
NUMBERS: Allowed
LIST: Allowed
NUMBER, NUMBERS, LIST = get_args(Allowed)


class NamedMask(NamedTuple):
    """A mask that text may name, and the kind of its arguments."""

    make: Callable[..., Mask]
    allowed: Allowed  # of ``NUMBERS`` and ``LIST`` the first argument is needed

    @property
    def arguments(self) -> tuple[str, ...]:
        """The names of its arguments, in their order."""
        return tuple(signature(self.make).parameters)


RULES = {
    "causal": NamedMask(causal, NUMBER),
    "documents": NamedMask(documents, LIST),
    "lengths": NamedMask(lengths, NUMBERS),
    "prefix": NamedMask(prefix, NUMBERS),
    "window": NamedMask(window, NUMBER),
}


def register_mask(name: str, make: Callable[..., Mask], allowed: Allowed) -> None:
    """Let text name a mask of one's own.

    Args:
        name: Its name.
        make: Makes it of numbers, or of tensors of numbers.
        allowed: The kind of its arguments: ``NUMBER``, ``NUMBERS`` or ``LIST``.

    Raises:
        SettingError: There is no such kind of arguments.

    Example:
        >>> from regard.attention.masks import parse_mask
        >>> register_mask("around", lambda size: window(before=size, after=size), NUMBER)
        >>> print(parse_mask("around(1)").draw(3, 3))
        1 1 .
        1 1 1
        . 1 1
        >>> del RULES["around"]
    """
    check_choice("allowed", allowed, Allowed)
    RULES[name] = NamedMask(make, allowed)


LONGEST = 10_000  # characters
DEEPEST = 50  # brackets and signs within each other
MOST = 100  # masks joined by & and |
LARGEST = 2**31 - 1

Value = int | list[Any] | None
Joins = Sequence[tuple[str, Callable[[Mask, Mask], Mask]]]

_TOKEN = re.compile(r"(?:rg\.|regard\.)?[A-Za-z_][A-Za-z_0-9]*|-?[0-9]+|\S")
_JOINS = (("|", or_), ("&", and_))  # the weakest first
_AXES = {NUMBER: (0,), NUMBERS: (0, 1, 2), LIST: (1, 2)}  # how many a value may have
_EXPRESSION = "mask must be an expression such as causal() & prefix(2)"
# Masks that are made of things which text cannot hold.
_UNWRITABLE = {"dense": "a tensor", "where": "a function"}


def parse_mask(expression: str) -> Mask:
    """The mask that an expression describes, such as ``causal() & window(before=4) | prefix(2)``.

    Understood are ``causal``, ``documents``, ``lengths``, ``prefix`` and ``window`` with whole
    numbers, None and lists of numbers as arguments; ``&``, ``|`` and ``~``, which bind as in
    Python (``~`` first, ``|`` last); and parentheses. A name may begin with ``rg.``. Text is read,
    never run, so an expression may come from anyone. The ``repr`` of a mask is one.

    Args:
        expression: The text.

    Raises:
        SettingError: It is no such expression; the message says where, counted in characters from
            1, and offers the nearest name.

    Example:
        >>> mask = parse_mask("causal() & window(before=1) | prefix(1)")
        >>> print(mask.draw(4, 4))
        1 . . .
        1 1 . .
        1 1 1 .
        1 . 1 1
        >>> mask
        causal() & window(before=1) | prefix(1)
        >>> parse_mask("casual()")
        Traceback (most recent call last):
        regard.errors.SettingError: mask must be made of causal, documents, lengths, prefix, window; got 'casual' at character 1. Did you mean 'causal'?
    """  # noqa: E501
    if not isinstance(expression, str):
        raise SettingError(f"mask must be text; got {excerpt(expression)}.")
    if len(expression) > LONGEST:
        raise SettingError(
            f"mask must be at most {LONGEST} characters long; got {len(expression)}."
        )
    if (count := 1 + len(re.findall("[&|]", expression))) > MOST:
        raise SettingError(f"mask must join at most {MOST} masks; got {count}.")
    parser = _Parser(expression)
    mask = parser.mask()
    parser.take("")
    return mask


class _Parser:
    """Parses an expression by recursive descent: a method for each rule of the grammar."""

    def __init__(self, text: str) -> None:
        self._tokens = [(token[0], token.start() + 1) for token in _TOKEN.finditer(text)]
        self._tokens += [("", len(text) + 1)] * 2  # the end, and a token to look ahead to
        self._next = self._depth = 0

    def mask(self, joins: Joins = _JOINS) -> Mask:
        """Masks joined by signs, of which the first binds weakest."""
        if not joins:
            return self._one()
        (sign, join), *stronger = joins
        mask = self.mask(stronger)
        while self._takes(sign):
            mask = join(mask, self.mask(stronger))
        return mask

    def take(self, token: str) -> None:
        """Go past a token; SettingError if another one comes."""
        if not self._takes(token):
            self._refuse(_EXPRESSION)

    def _one(self) -> Mask:
        if self._depth == DEEPEST:
            at = self._tokens[self._next][1]
            raise SettingError(
                f"mask must be nested at most {DEEPEST} deep; got more at character {at}."
            )
        self._depth += 1
        if self._takes("~"):
            mask = ~self._one()
        elif self._takes("("):
            mask = self.mask()
            self.take(")")
        else:
            mask = self._rule()
        self._depth -= 1
        return mask

    def _rule(self) -> Mask:
        token, at = self._tokens[self._next]
        if not token[:1].isidentifier():
            self._refuse(_EXPRESSION)
        self._next += 1
        name, where = token.rpartition(".")[2], f"at character {at}"
        if name in _UNWRITABLE:
            raise SettingError(
                f"mask must be text; got {name!r} {where}, which takes {_UNWRITABLE[name]}. "
                f"Call rg.{name} in Python."
            )
        if name not in RULES:
            raise SettingError(
                f"mask must be made of {', '.join(RULES)}; got {name!r} {where}."
                f"{_hint(name, RULES)}"
            )
        rule = RULES[name]
        values, named = dict[str, Value](), dict[str, Value]()
        self.take("(")
        self._until(")", lambda: self._argument(name, values, named))
        values |= named
        if rule.allowed != NUMBER and rule.arguments[0] not in values:
            raise SettingError(f"{name} must be given {rule.arguments[0]}; got nothing {where}.")
        try:
            return rule.make(
                **{k: torch.tensor(v) if isinstance(v, list) else v for k, v in values.items()}
            )
        except RegardError as error:
            raise SettingError(f"{error} It is {where}.") from None

    def _argument(self, name: str, values: dict[str, Value], named: dict[str, Value]) -> None:
        rule, key = RULES[name], self._tokens[self._next][0]
        names, allowed = rule.arguments, rule.allowed
        if self._tokens[self._next + 1][0] == "=":
            if key not in names:
                self._refuse(f"{name} must be given {' or '.join(names)}", _hint(key, names))
            if key in values or key in named:
                self._refuse(f"{name} must be given {key} once")
            self._next += 2
            values = named
        elif named:
            self._refuse(_EXPRESSION)
        elif len(values) == len(names):
            self._refuse(f"{name} must be given at most {len(names)} arguments")
        else:
            key = names[len(values)]
        start = self._next
        value = values[key] = self._value()
        if (value is None and allowed != NUMBER) or _depth(value) not in _AXES[allowed]:
            self._next = start
            self._refuse(f"{key} of {name} must be {allowed}")

    def _value(self, depth: int = 2) -> Value:
        """A whole number, None, or a list of numbers, or of lists of numbers."""
        token = self._tokens[self._next][0]
        if depth and self._takes("["):
            items = list[Value]()
            self._until("]", lambda: items.append(self._value(depth - 1)))
            return items
        if depth == 2 and self._takes("None"):
            return None
        digits = token.removeprefix("-")
        if not digits.isdecimal():
            self._refuse("mask must have a whole number, None or a list here")
        if len(digits) > 10 or int(digits) > LARGEST:
            raise SettingError(
                f"mask must have numbers up to {LARGEST}; got {excerpt(digits)} at character "
                f"{self._tokens[self._next][1]}."
            )
        self._next += 1
        return int(token)

    def _until(self, end: str, read: Callable[[], None]) -> None:
        """Read parts with commas between them, up to a bracket."""
        while not self._takes(end):
            read()
            if not self._takes(","):
                self.take(end)
                return

    def _takes(self, token: str) -> bool:
        """Whether the next token is this one, which is then gone past."""
        is_next = self._tokens[self._next][0] == token
        self._next += is_next
        return is_next

    def _refuse(self, rule: str, cure: str = "") -> NoReturn:
        """Raise a SettingError with the next token and its position."""
        token, at = self._tokens[self._next]
        got = excerpt(token) if token else "the end"
        raise SettingError(f"{rule}; got {got} at character {at}.{cure}")


def _depth(value: Value) -> int | None:
    """Axes of a value: 0 of a number; None of a list whose rows are unlike, or empty."""
    if not isinstance(value, list):
        return 0
    if all(isinstance(row, int) for row in value):
        return 1 if value else None
    rows = {len(row) if isinstance(row, list) else 0 for row in value}
    return 2 if len(rows) == 1 and 0 not in rows else None


def _hint(name: str, names: Collection[str]) -> str:
    close = nearest(name, names)
    return f" Did you mean {close!r}?" if close else ""
