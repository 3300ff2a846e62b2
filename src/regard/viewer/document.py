"""Attention as plain data: the viewer's JSON, version 3.

A document is made by whoever holds a model, written once, and read by a page, a notebook or a
script; nothing in it needs torch. Members may be added to a version, and readers skip the ones
they do not know; a change to a member that exists is a new version, which older readers refuse.

Version 1 has texts, tokens and maps of plain numbers. Version 2 adds to an example ``summaries``
(``LayerSummary``: what heads looked at, in packed bytes, for texts of any length), ``started``,
``label``, ``search``, ``changes``, ``importances`` and ``answer``. It allows a layer to have no
maps, which readers of version 1 cannot draw. Version 3 has arrays of steps (``PackedArray.steps``),
``top_counts`` and ``image``. Documents of older versions are still read.
"""

import json
import re
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, is_dataclass, replace
from functools import cache, partial
from types import NoneType, UnionType
from typing import Annotated, Literal, TypeVar

from regard.errors import DataError, RegardError
from regard.viewer.example import Example, View
from regard.viewer.packing import PackedArray

T = TypeVar("T")
Reader = Callable[[object], object]

_NAMES: dict[type, str] = {str: "text", int: "a whole number", list: "a list", dict: "an object"}

FORMAT = "regard.attention"
VERSION = 3

# Halves of surrogate pairs, which UTF-8 cannot hold; a broken byte token may bring one.
_HALVES = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, kw_only=True, slots=True)
class Document:
    """Data of one page.

    Attributes:
        title: Heading of the page.
        task: What the model does, such as ``translation``.
        model: One line about the model.
        examples: What there is to look at, in order.
        source_language: BCP 47 tag of the sources, such as ``zh``; None lets the page go by the
            script.
        output_language: The same of the outputs.
        opening: The map to open with; None opens with the grid of heads where there are many, and
            else with the mean of the cross layers.
        tab: The view to open with, by its name in links, such as ``compare``; None leaves that to
            the page.

    Example:
        >>> from regard.viewer import HeadMap, Token
        >>> token = Token(text="ja", start=0, end=2)
        >>> seen = HeadMap(kind="cross", layer=0, head=0, rows=[[1.0]])
        >>> example = Example(source="ja", output="ja", source_tokens=(token,),
        ...                   output_tokens=(token,), maps=(seen,))
        >>> document = Document(title="One word", task="copy", model="none", examples=(example,))
        >>> Document.from_json(document.to_json()) == document
        True
    """

    title: str
    task: str
    model: str
    examples: tuple[Example, ...]
    source_language: str | None = None
    output_language: str | None = None
    opening: View | None = None
    tab: str | None = None

    def to_json(self, **others: object) -> str:
        """Write the document as one line of JSON; ``others`` are members that readers skip."""
        members = {"format": FORMAT, "version": VERSION, **_members(self), **others}
        text = json.dumps(
            members, default=_members, ensure_ascii=False, separators=(",", ":"), allow_nan=False
        )
        return _HALVES.sub(lambda half: f"\\u{ord(half[0]):04x}", text)

    @classmethod
    def from_json(cls, text: str) -> "Document":
        """Read and check what ``to_json`` wrote, in this version or an older one.

        Members this version does not know are skipped.

        Raises:
            DataError: The text is no JSON, another format or a newer version, or a member is
                missing, of another type, or contradicts the others.
        """
        try:
            members = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise DataError(f"document must be JSON; got {text[:20]!r}… ({error}).") from None
        _check_version(members)
        return _read_as(cls, members)


def beside(one: Document, other: Document, *, labels: tuple[str, str] | None = None) -> Document:
    """Join the examples of both documents, each labelled with its origin.

    The page's Compare view puts examples of the same text next to each other: two models, or one
    model before and after it was changed.

    Args:
        one: The first; its title and its opening stand.
        other: The second.
        labels: Their names. None takes their lines about the model, or their titles where those are
            the same.

    Raises:
        DataError: Either has no examples, or the labels are the same.

    Example:
        >>> from regard.viewer import Example
        >>> example = Example(source="ja", output="", source_tokens=(), output_tokens=())
        >>> first, second = (
        ...     Document(title="", task="", model=name, examples=(example,))
        ...     for name in ("small", "large")
        ... )
        >>> [example.label for example in beside(first, second).examples]
        ['small', 'large']
    """
    if not one.examples or not other.examples:
        raise DataError("documents must have examples to stand side by side; got one without.")
    by_model = one.model != other.model
    names = labels or ((one.model, other.model) if by_model else (one.title, other.title))
    if names[0] == names[1]:
        raise DataError(f"labels must differ; got {names[0]!r} twice. Pass labels=.")
    return replace(
        one,
        model=" · ".join(dict.fromkeys(each.model for each in (one, other) if each.model)),
        examples=tuple(
            replace(example, label=f"{name}: {example.label}" if example.label else name)
            for name, document in zip(names, (one, other), strict=True)
            for example in document.examples
        ),
        source_language=_same(one.source_language, other.source_language),
        output_language=_same(one.output_language, other.output_language),
    )


def _members(value: object) -> dict[str, object]:
    return {field.name: getattr(value, field.name) for field in fields(value)}  # type: ignore[arg-type]


def _check_version(members: object) -> None:
    if not isinstance(members, dict):
        raise DataError(f"document must be an object; got {repr(members)[:40]}.")
    if members.get("format") != FORMAT:
        raise DataError(f"format must be {FORMAT!r}; got {members.get('format')!r}.")
    if "version" not in members:
        raise DataError(f"document must have a member 'version'; got {', '.join(members)}.")
    version = members["version"]
    if not isinstance(version, int) or isinstance(version, bool):
        raise DataError(f"version must be a whole number; got {repr(version)[:40]}.")
    if not 1 <= version <= VERSION:
        raise DataError(
            f"version must be at most {VERSION}; got {version}. "
            "The document is from a newer regard: update this one."
        )


def _same(one: str | None, other: str | None) -> str | None:
    """Language of both; None lets the page go by the script of each text."""
    return one if one == other else None


def _read_as(what: type[T], value: object) -> T:
    """Read a dataclass by its annotations; null is absent, unknown members are skipped."""
    try:
        result = _object(what, value)
    except _MisreadError as error:
        raise DataError(f"{error.where or 'document'}{error.rule}") from None
    assert isinstance(result, what)
    return result


class _MisreadError(Exception):
    """Error of a value, and the path of the value."""

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
    if origin is Annotated:  # a tuple, and its name in messages
        kinds, description = typing.get_args(arguments[0]), str(arguments[1])
        if kinds[-1] is Ellipsis:
            return partial(_list, _reader(kinds[0]), name=description)
        return partial(_fixed, [_reader(each) for each in kinds], description)
    if origin in (typing.Union, UnionType):
        return _union(arguments)
    if origin is Literal:  # its class checks the word
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
    values: dict[str, object] = {}
    for name, (read, has_default, may_be_none) in _readers_of(what).items():
        member = members.get(name)
        if member is None and (has_default or may_be_none):
            values |= {} if has_default else {name: None}
            continue
        if name not in members:
            has = ", ".join(members) or "nothing"
            raise _MisreadError(f" must have a member {name!r}; got {has}.")
        try:
            values[name] = read(member)
        except _MisreadError as error:
            raise error.within(name) from None
    try:
        result = what(**values)
        if isinstance(result, PackedArray):
            result.checked()
    except RegardError as error:
        raise _MisreadError(f": {error}") from None
    return result


@cache
def _readers_of(what: type) -> dict[str, tuple[Reader, bool, bool]]:
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
    """Read the values of a list; an error names the index."""
    values = []
    for index, one in enumerate(_typed(list, value)):
        try:
            values.append(read(one))
        except _MisreadError as error:
            raise error.within(f"{name}[{index}]") from None
    return tuple(values)


def _numbers(read: Reader, value: object) -> tuple[object, ...]:
    """Read numbers, which are many: an error is about all of them."""
    return tuple(map(read, _typed(list, value)))


def _fixed(readers: Sequence[Reader], rule: str, value: object) -> tuple[object, ...]:
    values = _typed(list, value)
    if len(values) != len(readers):
        raise _MisreadError(f" must be {rule}; got {values}.")
    return tuple(read(one) for read, one in zip(readers, values, strict=True))


def _mapping(read: Reader, value: object) -> dict[str, object]:
    values = {}
    for name, one in _typed(dict, value).items():
        try:
            values[name] = read(one)
        except _MisreadError as error:
            raise error.within(name) from None
    return values


def _float(value: object) -> float:
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise _MisreadError(f" must be a number; got {repr(value)[:40]}.")
    return float(value)


def _flag(value: object) -> bool:
    if not isinstance(value, bool):
        raise _MisreadError(f" must be true or false; got {repr(value)[:40]}.")
    return value


def _typed(kind: type[T], value: object) -> T:
    """Check the type of a value; true and false are no numbers."""
    if not isinstance(value, kind) or isinstance(value, bool):
        raise _MisreadError(f" must be {_NAMES[kind]}; got {repr(value)[:40]}.")
    return value


_SIMPLE: dict[type, Reader] = {
    str: partial(_typed, str),
    int: partial(_typed, int),
    float: _float,
    bool: _flag,
}
