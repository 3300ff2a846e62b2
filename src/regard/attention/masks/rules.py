"""The masks that text may name; a new one is a file beside this one, and a line here."""

from collections.abc import Callable
from inspect import signature
from typing import Literal, NamedTuple, get_args

from regard.attention.masks.base import Mask
from regard.attention.masks.documents import documents
from regard.attention.masks.lengths import lengths, prefix
from regard.attention.masks.window import causal, window
from regard.choices import check_choice

# What the arguments of a mask may be, where it is written as text.
Allowed = Literal["a whole number or None", "whole numbers", "a list of whole numbers"]
NUMBER: Allowed
NUMBERS: Allowed
LIST: Allowed
NUMBER, NUMBERS, LIST = get_args(Allowed)


class NamedMask(NamedTuple):
    """A mask that text may name.

    Attributes:
        make: What makes it of numbers, or of tensors of numbers.
        allowed: What its arguments may be: ``NUMBER``; or ``NUMBERS`` or ``LIST``, of which it
            needs the first.
    """

    make: Callable[..., Mask]
    allowed: Allowed

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
