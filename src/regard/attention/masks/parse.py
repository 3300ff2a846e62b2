"""Masks written as text: parsed by ``ast``, built from a whitelist of calls, never run.

A text may come from anyone, so its length, depth, characters and numbers are bounded before it is
parsed.
"""

import ast
import re
from collections.abc import Callable, Collection
from inspect import signature
from typing import Literal, NamedTuple, NoReturn, get_args

import torch

from regard.attention.masks.base import Mask
from regard.attention.masks.rules import causal, documents, lengths, prefix, window
from regard.checks import check_choice, nearest
from regard.errors import RegardError, SettingError, excerpt

# What the arguments of a mask may be, where it is written as text.
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
        name: What it is called.
        make: What makes it of numbers, or of tensors of numbers.
        allowed: What its arguments may be: ``NUMBER``, ``NUMBERS`` or ``LIST``.

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
DEEPEST = 50  # brackets, signs and calls within each other
MOST = 100  # masks joined by & and |
LARGEST = 2**31 - 1

Value = int | None | list[int] | list[list[int]]

_FOREIGN = re.compile(r"[^A-Za-z_0-9.()\[\],=&|~ -]|(?<![A-Za-z_0-9])[0-9]+[A-Za-z_.]")
_AXES = {NUMBER: (0,), NUMBERS: (0, 1, 2), LIST: (1, 2)}  # how many a value may have
_PREFIXES = ("rg", "regard")
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
    if not isinstance(expression, str):
        raise SettingError(f"mask must be text; got {excerpt(expression)}.")
    if len(expression) > LONGEST:
        raise SettingError(
            f"mask must be at most {LONGEST} characters long; got {len(expression)}."
        )
    text = re.sub(r"\s", " ", expression)
    _check(text)
    start = len(text) - len(text.lstrip())
    try:
        tree = ast.parse(text[start:], mode="eval").body
    except SyntaxError as error:
        at = start + (error.offset or 1) - 1
        _complain("be an expression such as causal() & prefix(2)", text, at)
    except (RecursionError, MemoryError):  # of signs that _check does not count
        raise SettingError(f"mask must be nested at most {DEEPEST} deep; got more.") from None
    return _Builder(text, start).mask(tree)


def _check(text: str) -> None:
    """Raise unless the text may be parsed: its characters, its numbers, its depth."""
    if foreign := _FOREIGN.search(text):
        at = foreign.end() - 1
        raise SettingError(
            "mask must be made of names, whole numbers and ()[],=&|~; got "
            f"{text[at]!r} at character {at + 1}."
        )
    for number in re.finditer(r"[0-9]+", text):
        if len(number[0]) > 10 or int(number[0]) > LARGEST:
            digits = number[0] if len(number[0]) <= 20 else f"{number[0][:20]}…"
            raise SettingError(
                f"mask must have numbers up to {LARGEST}; got {digits!r} at character "
                f"{number.start() + 1}."
            )
    if (count := len(re.findall("[&|]", text)) + 1) > MOST:
        raise SettingError(f"mask must join at most {MOST} masks; got {count}.")
    depth = signs = calls = 0
    before = ""
    for at, sign in enumerate(text):
        depth += (sign in "([") - (sign in ")]")
        signs = signs + 1 if sign in "~-" else signs * (sign in " (")
        calls += before == ")" and sign == "("  # of what a call gives
        before = before if sign == " " else sign
        if depth + signs + calls > DEEPEST:
            raise SettingError(
                f"mask must be nested at most {DEEPEST} deep; got more at character {at + 1}."
            )


def _complain(rule: str, text: str, at: int) -> NoReturn:
    part = re.match(r"[A-Za-z_0-9.]+|.", text[at:])
    got = repr(part[0]) if part else "the end"
    raise SettingError(f"mask must {rule}; got {got} at character {at + 1}.")


class _Builder:
    """Builds the mask of a syntax tree, node by node."""

    def __init__(self, text: str, start: int) -> None:
        self._text, self._start = text, start

    def mask(self, tree: ast.expr) -> Mask:
        match tree:
            case ast.BinOp(op=ast.BitAnd() | ast.BitOr() as sign):
                left, right = self.mask(tree.left), self.mask(tree.right)
                return left & right if isinstance(sign, ast.BitAnd) else left | right
            case ast.UnaryOp(op=ast.Invert(), operand=operand):
                return ~self.mask(operand)
            case ast.Call(func=ast.Name(id=name)):
                return self._rule(name, tree)
            case ast.Call(func=ast.Attribute(value=ast.Name(id=prefix), attr=name)) if (
                prefix in _PREFIXES
            ):
                return self._rule(name, tree)
        return self._complain("have a mask such as causal() here", tree)

    def _rule(self, name: str, call: ast.Call) -> Mask:
        where = f"at character {self._offset(call) + 1}"
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
        arguments = self._arguments(name, rule.arguments, call)
        if rule.allowed != NUMBER and rule.arguments[0] not in arguments:
            raise SettingError(f"{name} must be given {rule.arguments[0]}; got nothing {where}.")
        values = {
            argument: self._argument(f"{argument} of {name}", value, rule.allowed)
            for argument, value in arguments.items()
        }
        try:
            return rule.make(
                **{k: torch.tensor(v) if isinstance(v, list) else v for k, v in values.items()}
            )
        except RegardError as error:
            raise SettingError(f"{error} It is {where}.") from None

    def _arguments(
        self, name: str, arguments: tuple[str, ...], call: ast.Call
    ) -> dict[str, ast.expr]:
        if len(call.args) > len(arguments):
            extra = self._text[self._offset(call.args[len(arguments)]) :][:1]
            raise SettingError(
                f"{name} must be given at most {len(arguments)} arguments; got {extra!r} at "
                f"character {self._offset(call.args[len(arguments)]) + 1}."
            )
        by_name = dict(zip(arguments, call.args, strict=False))
        for each in call.keywords:
            got = f"got {each.arg!r} at character {self._offset(each) + 1}."
            if each.arg not in arguments:
                raise SettingError(
                    f"{name} must be given {' or '.join(arguments)}; {got}"
                    f"{_hint(str(each.arg), arguments)}"
                )
            if each.arg in by_name:
                raise SettingError(f"{name} must be given {each.arg} once; {got}")
            by_name[each.arg] = each.value
        return by_name

    def _argument(self, name: str, node: ast.expr, allowed: Allowed) -> Value:
        value = self._value(node)
        is_absent = value is None and allowed != NUMBER
        if is_absent or _depth(value) not in _AXES[allowed]:
            token = re.match(r"[\w-]+|.", self._text[self._offset(node) :])
            raise SettingError(
                f"{name} must be {allowed}; got {token[0] if token else 'the end'!r} at character "
                f"{self._offset(node) + 1}."
            )
        return value

    def _value(self, node: ast.expr) -> Value:
        match node:
            case ast.Constant(value=None):
                return None
            case ast.List(elts=items):
                return [self._item(each) for each in items]  # type: ignore[return-value]
        return self._number(node)

    def _item(self, node: ast.expr) -> int | list[int]:
        if isinstance(node, ast.List):
            return [self._number(each) for each in node.elts]
        return self._number(node)

    def _number(self, node: ast.expr) -> int:
        match node:
            case ast.Constant(value=int() as value) if not isinstance(value, bool):
                return value
            case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() as value)) if (
                not isinstance(value, bool)
            ):
                return -value
        return self._complain("have a whole number, None or a list here", node)

    def _offset(self, node: ast.expr | ast.keyword) -> int:
        return self._start + node.col_offset

    def _complain(self, rule: str, node: ast.expr) -> NoReturn:
        _complain(rule, self._text, self._offset(node))


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
