"""Masks written as text, read by a small grammar of their own, so that nothing is ever run.

Not Python's own parser: it gives up on deep or damaged text in words that differ from version to
version, and a text may come from anyone. What is read is a tree of plain data, which JSON holds and
the page draws from (``MaskTree``)::

    causal() & ~window(before=1) | prefix(2)

    {"op": "or", "args": [
        {"op": "and", "args": [
            {"op": "rule", "name": "causal", "keywords": {}, "at": 1},
            {"op": "not", "args": [
                {"op": "rule", "name": "window", "keywords": {"before": 1}, "at": 13}]}]},
        {"op": "rule", "name": "prefix", "keywords": {"n": 2}, "at": 32}]}

``and`` and ``or`` have two arguments or more, ``not`` has one. A rule has the arguments that were
written, by their names: whole numbers, null, or lists of whole numbers, of one or two axes. ``at``
is where it stands in the text, in characters from 1.
"""

import re
from collections.abc import Callable, Collection, Iterator
from functools import reduce
from operator import and_, or_
from typing import Literal, NamedTuple, NoReturn, TypedDict, TypeVar

import torch

from regard.attention.masks.base import Mask
from regard.attention.masks.rules import LIST, NUMBER, NUMBERS, RULES, Allowed
from regard.choices import nearest
from regard.config import JsonValue
from regard.errors import RegardError, SettingError

LONGEST = 10_000  # characters
DEEPEST = 50  # parentheses and ~ within each other
LARGEST = 2**31 - 1

Value = int | None | list[int] | list[list[int]]
Item = TypeVar("Item")


class Joined(TypedDict):
    """Masks joined, or one turned round."""

    op: Literal["and", "or", "not"]
    args: "list[MaskTree]"


class Named(TypedDict):
    """A rule with what it was given."""

    op: Literal["rule"]
    name: str
    keywords: dict[str, Value]
    at: int


MaskTree = Joined | Named

_TOKEN = re.compile(
    r"[ \t\r\n]*(?:(-?[0-9]+)|((?:(?:rg|regard)\.)?[A-Za-z_][A-Za-z_0-9]*)|(.))?", re.S
)
_SIGNS = "()[],=&|~"
_OPERATORS: tuple[tuple[str, Literal["or", "and"]], ...] = (("|", "or"), ("&", "and"))

# How many axes a value may have, for each kind of argument.
_AXES = {NUMBER: (0,), NUMBERS: (0, 1, 2), LIST: (1, 2)}

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
    return _mask_of(_read(expression))


def parse_tree(expression: str) -> MaskTree:
    """What ``parse_mask`` reads, as plain data; see this module's first lines.

    Raises:
        SettingError: As ``parse_mask`` does.

    Example:
        >>> parse_tree("~causal()")["args"]
        [{'op': 'rule', 'name': 'causal', 'keywords': {}, 'at': 2}]
    """
    tree = _read(expression)
    _mask_of(tree)  # Whatever a rule has to say of its numbers.
    return tree


def grammar() -> dict[str, JsonValue]:
    """What the page's reader (``viewer/static/parsing.js``) needs to read the same, as plain data.

    Example:
        >>> grammar()["rules"]["window"]["takes"]
        ['before', 'after', 'first']
    """
    return {
        "token": _TOKEN.pattern,
        "signs": _SIGNS,
        "operators": [list(operator) for operator in _OPERATORS],
        "rules": {
            name: {"takes": list(rule.arguments), "allowed": rule.allowed}
            for name, rule in RULES.items()
        },
        "axes": {allowed: list(axes) for allowed, axes in _AXES.items()},
        "optional": NUMBER,
        "unwritable": _UNWRITABLE,
        "longest": LONGEST,
        "deepest": DEEPEST,
        "largest": LARGEST,
    }


def _mask_of(tree: MaskTree) -> Mask:
    if tree["op"] == "rule":
        given = {
            name: torch.tensor(value) if isinstance(value, list) else value
            for name, value in tree["keywords"].items()
        }
        try:
            return RULES[tree["name"]].make(**given)
        except RegardError as error:
            raise SettingError(f"{error} It is at character {tree['at']}.") from None
    masks = [_mask_of(each) for each in tree["args"]]
    if tree["op"] == "not":
        return ~masks[0]
    return reduce(and_ if tree["op"] == "and" else or_, masks)


def _read(expression: str) -> MaskTree:
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
        return f"{repr(self.text) if self.text else 'the end'} at character {self.start + 1}"


class _Reader:
    """Recursive descent: or → and → not → mask or parentheses."""

    def __init__(self, text: str) -> None:
        self._tokens = list(_tokens(text))
        self._at = 0
        self._depth = 0

    def read(self) -> MaskTree:
        tree = self._joined()
        if self._next.text:
            self._complain("& or | or the end")
        return tree

    @property
    def _next(self) -> _Token:
        return self._tokens[self._at]

    def _has(self, sign: str) -> bool:
        """Take the sign if it comes next."""
        found = self._next.text == sign
        self._at += found
        return found

    def _expect(self, sign: str, rule: str) -> None:
        if not self._has(sign):
            self._complain(rule)

    def _complain(self, rule: str) -> NoReturn:
        raise SettingError(f"mask must have {rule} here; got {self._next}.")

    def _joined(self, level: int = 0) -> MaskTree:
        """What one of ``_OPERATORS`` joins, or those that bind closer."""
        if level == len(_OPERATORS):
            return self._operand()
        sign, op = _OPERATORS[level]
        parts = [self._joined(level + 1)]
        while self._has(sign):
            parts.append(self._joined(level + 1))
        return parts[0] if len(parts) == 1 else {"op": op, "args": parts}

    def _operand(self) -> MaskTree:
        self._depth += 1
        if self._depth > DEEPEST:
            raise SettingError(
                f"mask must be nested at most {DEEPEST} deep; got more at character "
                f"{self._next.start + 1}."
            )
        tree: MaskTree
        if self._has("~"):
            tree = {"op": "not", "args": [self._operand()]}
        elif self._has("("):
            tree = self._joined()
            self._expect(")", "& or | or )")
        else:
            tree = self._rule()
        self._depth -= 1
        return tree

    def _rule(self) -> Named:
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
        first, *_ = RULES[name].arguments
        if RULES[name].allowed != NUMBER and first not in given:
            raise SettingError(
                f"{name} must be given {first}; got nothing at character {token.start + 1}."
            )
        return {"op": "rule", "name": name, "keywords": given, "at": token.start + 1}

    def _arguments(self, name: str) -> dict[str, Value]:
        arguments, allowed = RULES[name].arguments, RULES[name].allowed
        given: dict[str, Value] = {}
        is_named = False
        while not self._has(")"):
            token = self._next
            if token.is_name and token.text != "None":
                is_named = True
                argument = self._argument_name(name, arguments)
            elif is_named:
                self._complain("a name, as after every named argument,")
            elif len(given) < len(arguments):
                argument = arguments[len(given)]
            else:
                raise SettingError(
                    f"{name} must be given at most {len(arguments)} arguments; got {token}."
                )
            if argument in given:
                raise SettingError(f"{name} must be given {argument} once; got {token}.")
            given[argument] = self._argument(f"{argument} of {name}", allowed)
            if self._next.text != ")":
                self._expect(",", ", or )")
        return given

    def _argument_name(self, name: str, arguments: tuple[str, ...]) -> str:
        token = self._next
        self._at += 1
        if token.text not in arguments:
            raise SettingError(
                f"{name} must be given {' or '.join(arguments)}; got {token}."
                f"{_hint(token.text, arguments)}"
            )
        self._expect("=", "=")
        return token.text

    def _argument(self, name: str, allowed: Allowed) -> Value:
        token = self._next
        if self._has("None"):
            value, axes = None, 0 if allowed == NUMBER else None
        else:
            value, axes = self._value()
        if axes not in _AXES[allowed]:
            raise SettingError(f"{name} must be {allowed}; got {token}.")
        return value

    def _value(self) -> tuple[Value, int | None]:
        """A number or a list, and how many axes it has; None if its rows are unlike."""
        if self._next.text != "[":
            return self._number(", None or a list"), 0
        rows = self._list(
            lambda: self._list(self._number) if self._next.text == "[" else self._number()
        )
        numbers = [row for row in rows if isinstance(row, int)]
        lists = [row for row in rows if isinstance(row, list)]
        if not lists:
            return numbers, 1 if numbers else None
        is_even = not numbers and len({len(row) for row in lists}) == 1 and lists[0]
        return lists, 2 if is_even else None

    def _list(self, read: Callable[[], Item]) -> list[Item]:
        self._expect("[", "[")
        found: list[Item] = []
        while not self._has("]"):
            found.append(read())
            if self._next.text != "]":
                self._expect(",", ", or ]")
        return found

    def _number(self, instead: str = "") -> int:
        token = self._next
        if not token.is_number:
            self._complain(f"a whole number{instead}")
        if len(token.text) > 11 or abs(int(token.text)) > LARGEST:
            raise SettingError(f"mask must have numbers up to {LARGEST}; got {token}.")
        self._at += 1
        return int(token.text)


def _tokens(text: str) -> Iterator[_Token]:
    """Numbers, names and signs, and an empty one for the end."""
    for match in _TOKEN.finditer(text):
        number, name, sign = match.groups()
        part = number or name or sign
        if part is None:
            break  # spaces at the end
        token = _Token(part, match.end() - len(part))
        if sign is not None and sign not in _SIGNS:
            raise SettingError(f"mask must be made of names, numbers and {_SIGNS}; got {token}.")
        yield token
    yield _Token("", len(text))


def _hint(name: str, names: Collection[str]) -> str:
    found = nearest(name, names)
    return f" Did you mean {found!r}?" if found else ""
