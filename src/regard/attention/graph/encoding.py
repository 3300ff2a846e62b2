"""Scores, masks, biases and weightings as words, tensors and numbers, and back.

An operator in a compiled or exported graph takes tensors, numbers and text, but no objects. A
built-in object is its name followed by the arguments it is made with, which it keeps as attributes
of the same names; so a new one needs nothing here.
"""

from collections.abc import Iterator, Sequence
from inspect import signature
from sys import modules
from typing import Any, NamedTuple

import torch
from torch import Tensor

from regard.attention.biases import PositionBias
from regard.attention.masks import Mask
from regard.attention.scores import Score
from regard.attention.weighting import Weighting

_FAMILIES = (Score, Mask, PositionBias, Weighting)
_HERE = "regard.attention."
_BACKENDS = "regard.attention.backends."
_CONSTANTS = {"None": None, "True": True, "False": False}


def _kinds(family: type) -> Iterator[type]:
    """The classes of a family that are written here, whoever else has added to it."""
    kind: type
    for kind in family.__subclasses__():
        yield from _kinds(kind)
        # Those of backends carry something inside of a call, and are in no graph.
        if kind.__module__.startswith(_HERE) and not kind.__module__.startswith(_BACKENDS):
            # As the module holds it: a class with slots has a first version that nobody uses.
            yield vars(modules[kind.__module__])[kind.__name__]


# Every built-in class by its name, and the names of what it is made with.
BUILT_IN: dict[str, type] = {each.__name__: each for family in _FAMILIES for each in _kinds(family)}
_ARGUMENTS = {each: tuple(signature(each).parameters) for each in BUILT_IN.values()}


class Encoded(NamedTuple):
    """An object taken apart: class names before their arguments, which are tensors or numbers."""

    form: str  # names of classes and kinds of arguments
    tensors: Sequence[Tensor]
    integers: Sequence[int]
    floats: Sequence[float]


def is_built_in(value: object) -> bool:
    """Whether ``encode`` can take an object, and all that it is made of, apart."""
    if value is None or isinstance(value, Tensor | int | float | str | torch.SymInt):
        return True
    if type(value) not in _ARGUMENTS:
        return False
    for name in _ARGUMENTS[type(value)]:
        if not hasattr(value, name) or not is_built_in(getattr(value, name)):
            return False
    return True


def encode(*values: object) -> Encoded:
    """Take built-in objects apart, one after the other; numbers stay, so graphs may vary them."""
    parts = _Parts([], [], [], [])
    for value in values:
        _flatten(value, parts)
    return Encoded(" ".join(parts.words), *parts[1:])


def decode(encoded: Encoded) -> list[Any]:
    """Return the objects that ``encode`` was given."""
    words = iter(encoded.form.split())
    leaves: dict[str, Iterator[object]] = {
        "tensor": iter(encoded.tensors),
        "int": iter(encoded.integers),
        "float": iter(encoded.floats),
    }
    return [_unflatten(word, words, leaves) for word in words]


class _Parts(NamedTuple):
    words: list[str]
    tensors: list[Tensor]
    integers: list[int]
    floats: list[float]


def _flatten(value: object, parts: _Parts) -> None:
    if isinstance(value, Tensor):
        parts.words.append("tensor")
        parts.tensors.append(value)
    elif value is None or isinstance(value, bool):
        parts.words.append(str(value))
    elif isinstance(value, int | torch.SymInt):
        parts.words.append("int")
        parts.integers.append(value)  # type: ignore[arg-type]
    elif isinstance(value, float):
        parts.words.append("float")
        parts.floats.append(value)
    elif isinstance(value, str):
        # Words are told apart by spaces.
        parts.words.append("'" + value.replace("%", "%25").replace(" ", "%20"))
    else:
        kind = type(value)
        parts.words.append(kind.__name__)
        for name in _ARGUMENTS[kind]:
            _flatten(getattr(value, name), parts)


def _unflatten(word: str, words: Iterator[str], leaves: dict[str, Iterator[object]]) -> object:
    if word in _CONSTANTS:
        return _CONSTANTS[word]
    if word in leaves:
        return next(leaves[word])
    if word.startswith("'"):
        return word[1:].replace("%20", " ").replace("%25", "%")
    kind = BUILT_IN[word]
    return kind(**{name: _unflatten(next(words), words, leaves) for name in _ARGUMENTS[kind]})
