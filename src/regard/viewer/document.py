"""Attention as plain data: the viewer's JSON, version 3.

A document is made by whoever holds a model, written once, and read by a page, a notebook or a
script; nothing in it needs torch. Members may be added to a version, and readers skip the ones
they do not know; a change to a member that exists is a new version, which older readers refuse.

Version 1 has texts, tokens and maps of plain numbers. Version 2 adds to an example ``summaries``
(``LayerSummary``: weights of heads, in packed bytes, for texts of any length), ``started``,
``label``, ``search``, ``changes``, ``importances`` and ``answer``. It allows a layer to have no
maps, which readers of version 1 cannot draw. Version 3 has arrays of steps (``PackedArray.steps``),
``top_counts`` and ``image``. Documents of older versions are still read.
"""

import json
import re
import typing
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, is_dataclass, replace
from functools import cache
from types import NoneType, UnionType
from typing import Literal, TypeVar

from regard.errors import DataError, RegardError
from regard.viewer.example import Example, View
from regard.viewer.packing import PackedArray

T = TypeVar("T")

_NAMES: dict[type, str] = {
    bool: "true or false",
    dict: "an object",
    float: "a number",
    int: "a whole number",
    list: "a list",
    str: "text",
}

FORMAT = "regard.attention"
VERSION = 3

# Halves of surrogate pairs, which UTF-8 cannot hold; a broken byte token may bring one.
_HALVES = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, kw_only=True, slots=True)
class Document:
    """Data of one page.

    Attributes:
        title: Heading of the page.
        task: Task of the model, such as ``translation``.
        model: One line about the model.
        examples: Examples of the page, in order.
        source_language: BCP 47 tag of the sources, such as ``zh``; None lets the page go by the
            script.
        output_language: The same of the outputs.
        opening: The map to open with; None opens with the head with the sharpest links, or, where
            no ``confidence`` of heads is known, with the mean of the cross layers or the grid.
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

    def to_json(self, **extra: object) -> str:
        """Write the document as one line of JSON; ``extra`` are members that readers skip."""
        members = {"format": FORMAT, "version": VERSION, **_members(self), **extra}
        text = json.dumps(
            members, default=_members, ensure_ascii=False, separators=(",", ":"), allow_nan=False
        )
        return _HALVES.sub(lambda half: f"\\u{ord(half[0]):04x}", text)

    @classmethod
    def from_json(cls, text: str) -> "Document":
        """Read and check a document of ``to_json``, of this version or an older one.

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
        return _read_object(cls, members, "")


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
        model=" · ".join(
            dict.fromkeys(document.model for document in (one, other) if document.model)
        ),
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


def _check_version(document: object) -> None:
    members = _typed(dict, document, "document")
    if members.get("format") != FORMAT:
        raise DataError(f"format must be {FORMAT!r}; got {members.get('format')!r}.")
    if "version" not in members:
        raise DataError(f"document must have a member 'version'; got {', '.join(members)}.")
    version = _typed(int, members["version"], "version")
    if not 1 <= version <= VERSION:
        raise DataError(
            f"version must be at most {VERSION}; got {version}. "
            "The document is from a newer regard: update this one."
        )


def _same(first: str | None, second: str | None) -> str | None:
    """Language of both; None lets the page go by the script of each text."""
    return first if first == second else None


def _read(hint: object, value: object, name: str) -> object:
    """Read a value by its annotation; ``name`` is its name in messages."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if is_dataclass(hint) and isinstance(hint, type):
        return _read_object(hint, value, name)
    if origin in (typing.Union, UnionType):
        free = [word for argument in arguments for word in typing.get_args(argument)]
        free += [None] * (NoneType in arguments)
        is_free = isinstance(value, str | None) and value in free
        return value if is_free else _read(arguments[0], value, name)
    if origin is Literal:  # its class checks the word
        return _typed(str, value, name)
    if origin in (tuple, Sequence):
        return _read_list(arguments, _typed(list, value, name), name)
    if origin is Mapping:
        items = _typed(dict, value, name).items()
        return {key: _read(arguments[1], one, f"{name}.{key}") for key, one in items}
    if hint is float and type(value) is int:
        return float(value)
    assert isinstance(hint, type)
    return _typed(hint, value, name)


def _read_list(hints: tuple[object, ...], values: list[object], name: str) -> tuple[object, ...]:
    if hints[0] is float and all(type(value) is float for value in values):  # they are many
        return tuple(values)
    is_fixed = len(hints) > 1 and hints[-1] is not Ellipsis
    if is_fixed and len(values) != len(hints):
        raise DataError(f"{name} must be a list of {len(hints)}; got {values}.")
    value_hints = hints if is_fixed else hints[:1] * len(values)
    pairs = enumerate(zip(value_hints, values, strict=True))
    return tuple(_read(hint, value, f"{name}[{n}]") for n, (hint, value) in pairs)


def _read_object(kind: type[T], value: object, name: str) -> T:
    """Read a dataclass; null is absent, unknown members are skipped."""
    members, hints = _typed(dict, value, name), _hints_of(kind)  # type: ignore[arg-type]
    values: dict[str, object] = {}
    for field in fields(kind):  # type: ignore[arg-type]
        hint, member = hints[field.name], members.get(field.name)
        has_default = (field.default, field.default_factory) != (MISSING, MISSING)
        if member is None and (has_default or NoneType in typing.get_args(hint)):
            values |= {} if has_default else {field.name: None}
            continue
        if field.name not in members:
            has = ", ".join(members) or "nothing"
            where = name or "document"
            raise DataError(f"{where} must have a member {field.name!r}; got {has}.")
        values[field.name] = _read(hint, member, f"{name}.{field.name}".lstrip("."))
    try:
        result = kind(**values)
        if isinstance(result, PackedArray):
            result.checked()
    except RegardError as error:
        raise DataError(f"{name or 'document'}: {error}") from None
    return result


@cache
def _hints_of(kind: type) -> dict[str, object]:
    return typing.get_type_hints(kind)


def _typed(kind: type[T], value: object, name: str) -> T:
    """Check the type of a value; true and false are no numbers."""
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise DataError(f"{name} must be {_NAMES[kind]}; got {repr(value)[:40]}.")
    return value
