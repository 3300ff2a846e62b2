"""Masks written as text: read by a small grammar of their own, so that nothing is ever run.

The page's playground reads the same grammar in ``viewer/static/masks.js``; the tests hold the two
together, the messages included.
"""

import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, NoReturn

import torch
from torch import Tensor

from regard.attention.masks.base import Mask
from regard.attention.masks.rules import causal, documents, lengths, prefix, window
from regard.choices import nearest
from regard.errors import RegardError, SettingError

LONGEST = 10_000  # characters
DEEPEST = 50  # parentheses and ~ within each other
LARGEST = 2**31 - 1

_TOKEN = re.compile(
    r"[ \t\r\n]*(?:(-?[0-9]+)|((?:(?:rg|regard)\.)?[A-Za-z_][A-Za-z_0-9]*)|(.))?", re.S
)
_SIGNS = "()[],=&|~"

_Value = int | None | list[Any]


class _Rule(NamedTuple):
    """A mask that may be named: how it is made, and what its arguments may be."""

    make: Callable[..., Mask]
    arguments: tuple[str, ...]
    allowed: str


_NUMBER, _NUMBERS, _LIST = "a whole number or None", "whole numbers", "a list of whole numbers"

RULES: dict[str, _Rule] = {
    "causal": _Rule(causal, ("first",), _NUMBER),
    "documents": _Rule(documents, ("query_ids", "key_ids"), _LIST),
    "lengths": _Rule(lengths, ("n",), _NUMBERS),
    "prefix": _Rule(prefix, ("n",), _NUMBERS),
    "window": _Rule(window, ("before", "after", "first"), _NUMBER),
}

# Masks that are made of things which text cannot hold.
_UNWRITABLE = {"dense": "a tensor", "where": "a function"}


def parse_mask(expression: str) -> Mask:
    """The mask that an expression describes, such as ``causal() & window(before=4) | prefix(2)``.

    Understood are ``causal``, ``documents``, ``lengths``, ``prefix`` and ``window`` with whole
    numbers, None and lists of numbers as arguments; ``&``, ``|`` and ``~``, which bind as in
    Python (``~`` first, ``|`` last); and parentheses. A name may begin with ``rg.``. Text is read,
    never run, so an expression may come from anyone. It is what ``repr`` of a mask gives.

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
    if len(expression) > LONGEST:
        raise SettingError(
            f"mask must be at most {LONGEST} characters long; got {len(expression)}."
        )
    return _Reader(expression).read()


class _Token(NamedTuple):
    text: str
    start: int  # counted from 0

    @property
    def is_name(self) -> bool:
        return self.text[:1].isalpha() or self.text[:1] == "_"

    @property
    def is_number(self) -> bool:
        return self.text[-1:].isdigit() and not self.is_name

    def __str__(self) -> str:
        if not self.text:
            return f"the end at character {self.start + 1}"
        return f"{self.text!r} at character {self.start + 1}"


class _Reader:
    """Recursive descent: or → and → not → mask or parentheses."""

    def __init__(self, text: str) -> None:
        self._tokens = list(_tokens(text))
        self._at = 0
        self._depth = 0

    def read(self) -> Mask:
        mask = self._either()
        if self._next.text:
            self._complain("& or | or the end")
        return mask

    @property
    def _next(self) -> _Token:
        return self._tokens[self._at]

    def _take(self) -> _Token:
        token = self._next
        self._at += 1
        return token

    def _has(self, sign: str) -> bool:
        """Take the sign if it comes next."""
        if self._next.text != sign:
            return False
        self._at += 1
        return True

    def _expect(self, sign: str, rule: str) -> None:
        if not self._has(sign):
            self._complain(rule)

    def _complain(self, rule: str) -> NoReturn:
        raise SettingError(f"mask must have {rule} here; got {self._next}.")

    def _either(self) -> Mask:
        mask = self._both()
        while self._has("|"):
            mask = mask | self._both()
        return mask

    def _both(self) -> Mask:
        mask = self._operand()
        while self._has("&"):
            mask = mask & self._operand()
        return mask

    def _operand(self) -> Mask:
        self._depth += 1
        if self._depth > DEEPEST:
            raise SettingError(
                f"mask must be nested at most {DEEPEST} deep; got more at character "
                f"{self._next.start + 1}."
            )
        if self._has("~"):
            mask = ~self._operand()
        elif self._has("("):
            mask = self._either()
            self._expect(")", "& or | or )")
        else:
            mask = self._mask()
        self._depth -= 1
        return mask

    def _mask(self) -> Mask:
        token = self._next
        if not token.is_name:
            self._complain("a mask such as causal()")
        name = token.text.rpartition(".")[2]
        if name in _UNWRITABLE:
            raise SettingError(
                f"mask must be text; got {token}, which takes {_UNWRITABLE[name]}. "
                f"Call rg.{name} in Python."
            )
        if name not in RULES:
            raise SettingError(
                f"mask must be made of {', '.join(RULES)}; got {token}.{_hint(name, RULES)}"
            )
        self._at += 1
        self._expect("(", "(")
        given = self._arguments(name)
        rule = RULES[name]
        if rule.allowed != _NUMBER and rule.arguments[0] not in given:
            raise SettingError(
                f"{name} must be given {rule.arguments[0]}; got nothing at character "
                f"{token.start + 1}."
            )
        try:
            return rule.make(**given)
        except RegardError as error:
            raise SettingError(f"{error} It is at character {token.start + 1}.") from None

    def _arguments(self, name: str) -> dict[str, int | Tensor | None]:
        rule = RULES[name]
        given: dict[str, int | Tensor | None] = {}
        is_named = False
        while not self._has(")"):
            token = self._next
            if token.is_name and token.text != "None":
                is_named = True
                argument = self._argument_name(name)
            elif is_named:
                self._complain("a name, as after every named argument,")
            elif len(given) < len(rule.arguments):
                argument = rule.arguments[len(given)]
            else:
                raise SettingError(
                    f"{name} must be given at most {len(rule.arguments)} arguments; got {token}."
                )
            if argument in given:
                raise SettingError(f"{name} must be given {argument} once; got {token}.")
            given[argument] = self._argument(f"{argument} of {name}", rule.allowed)
            if self._next.text != ")":
                self._expect(",", ", or )")
        return given

    def _argument_name(self, name: str) -> str:
        token, arguments = self._take(), RULES[name].arguments
        if token.text not in arguments:
            raise SettingError(
                f"{name} must be given {' or '.join(arguments)}; got {token}."
                f"{_hint(token.text, arguments)}"
            )
        self._expect("=", "=")
        return token.text

    def _argument(self, name: str, allowed: str) -> int | Tensor | None:
        token = self._next
        value = self._value()
        depth = _depth(value)
        lists = (0,) if allowed == _NUMBER else (0, 1, 2) if allowed == _NUMBERS else (1, 2)
        if depth not in lists or (value is None and allowed != _NUMBER):
            raise SettingError(f"{name} must be {allowed}; got {token}.")
        return torch.tensor(value) if isinstance(value, list) else value

    def _value(self, level: int = 0) -> _Value:
        token = self._next
        if token.text == "None" and level == 0:
            self._at += 1
            return None
        if token.is_number:
            self._at += 1
            if len(token.text) > 11 or abs(int(token.text)) > LARGEST:
                raise SettingError(f"mask must have numbers up to {LARGEST}; got {token}.")
            return int(token.text)
        if token.text != "[" or level == 2:
            self._complain("a whole number" + (", None or a list" if level == 0 else ""))
        self._at += 1
        values: list[Any] = []
        while not self._has("]"):
            values.append(self._value(level + 1))
            if self._next.text != "]":
                self._expect(",", ", or ]")
        return values


def _tokens(text: str) -> list[_Token]:
    """Numbers, names and signs, and an empty one for the end."""
    found = []
    at = 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        assert match is not None  # every part of the pattern may be missing
        number, name, sign = match.groups()
        at = match.end()
        part = number or name or sign
        if part is None:
            break  # spaces at the end
        token = _Token(part, at - len(part))
        if sign is not None and sign not in _SIGNS:
            raise SettingError(f"mask must be made of names, numbers and {_SIGNS}; got {token}.")
        found.append(token)
    return [*found, _Token("", len(text))]


def _depth(value: _Value) -> int:
    """0 for a number, 1 for a list, 2 for lists of one length in a list; -1 for anything else."""
    if not isinstance(value, list):
        return 0
    inner = {(_depth(each), len(each) if isinstance(each, list) else 0) for each in value}
    if len(inner) != 1:
        return -1
    return next(iter(inner))[0] + 1


def _hint(name: str, names: Sequence[str] | dict[str, Any]) -> str:
    found = nearest(name, names)
    return f" Did you mean {found!r}?" if found else ""
