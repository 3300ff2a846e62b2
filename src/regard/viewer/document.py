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
from dataclasses import dataclass, fields, replace

from regard.errors import DataError
from regard.viewer.example import Example, View
from regard.viewer.reading import read_as

FORMAT = "regard.attention"
VERSION = 3

# Halves of surrogate pairs, which UTF-8 cannot hold; a broken byte token may bring one.
_HALVES = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, kw_only=True, slots=True)
class Document:
    """Everything one page shows.

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

    def to_json(self) -> str:
        """The document as one line of JSON."""
        members = {"format": FORMAT, "version": VERSION, **_members(self)}
        text = json.dumps(
            members, default=_members, ensure_ascii=False, separators=(",", ":"), allow_nan=False
        )
        return _HALVES.sub(lambda half: f"\\u{ord(half[0]):04x}", text)

    @classmethod
    def from_json(cls, text: str) -> "Document":
        """The document that ``to_json`` wrote, in this version or an older one, checked.

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
        return read_as(cls, members)


def beside(one: Document, other: Document, *, labels: tuple[str, str] | None = None) -> Document:
    """The examples of both documents, each labelled with where it is from.

    The page's Compare view puts examples of the same text next to each other: two models, or one
    model before and after it was changed.

    Args:
        one: The first; its title and its opening stand.
        other: The second.
        labels: What to call them. None takes their lines about the model, or their titles where
            those are the same.

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
    names = labels or _names(one, other)
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
        source_language=_common(one.source_language, other.source_language),
        output_language=_common(one.output_language, other.output_language),
    )


def _members(value: object) -> dict[str, object]:
    return {field.name: getattr(value, field.name) for field in fields(value)}  # type: ignore[arg-type]


def _check_version(members: object) -> None:
    if not isinstance(members, dict):
        raise DataError(f"document must be an object; got {repr(members)[:40]}.")
    if members.get("format") != FORMAT:
        raise DataError(f"format must be {FORMAT!r}; got {members.get('format')!r}.")
    version = read_as(_Version, members).version
    if not 1 <= version <= VERSION:
        raise DataError(
            f"version must be at most {VERSION}; got {version}. "
            "The document is from a newer regard: update this one."
        )


@dataclass(frozen=True, slots=True)
class _Version:
    version: int


def _names(one: Document, other: Document) -> tuple[str, str]:
    if one.model != other.model:
        return one.model, other.model
    return one.title, other.title


def _common(one: str | None, other: str | None) -> str | None:
    """The language of both; None lets the page go by the script of each text."""
    return one if one == other else None
