"""What was looked at, as plain data: the viewer's JSON, version 1.

A document is made by whoever holds a model, written once, and read by a page, a notebook or a
script; nothing in it needs torch. Members may be added to a version, and readers skip the ones
they do not know; a change to a member that exists is a new version, which older readers refuse.
"""

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Literal

from regard.checks import check_at_least
from regard.choices import choose
from regard.errors import DataError
from regard.viewer.members import Number, built, each, optional, take, typed

FORMAT = "regard.attention"
VERSION = 1

Kind = Literal["cross", "encoder", "decoder"]
Head = int | Literal["mean"]
Layer = int | Literal["mean"]

# Which tokens look (rows) and which are looked at (columns), by kind.
_AXES = {
    "cross": ("output", "source"),
    "encoder": ("source", "source"),
    "decoder": ("output", "output"),
}

# Halves of surrogate pairs, which UTF-8 cannot hold; a broken byte token may bring one.
_HALVES = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, kw_only=True, slots=True)
class Token:
    """One token and where it stands in its text.

    Attributes:
        text: What people are shown; a space marker such as ``▁`` may be left in.
        start: First character, counted in Unicode code points of the source or output text.
        end: One past the last character; equal to ``start`` for a token that is no text, such as
            the end of the sentence.
    """

    text: str
    start: int
    end: int


@dataclass(frozen=True, kw_only=True, slots=True)
class GoldLinks:
    """Links that people set, as pairs (source token, output token).

    Attributes:
        sure: Links that every annotator sets.
        possible: Links that some would set; those in ``sure`` need not be repeated.
    """

    sure: tuple[tuple[int, int], ...] = ()
    possible: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class View:
    """Which map of an example is meant.

    Attributes:
        kind: ``cross`` (output looks at source), ``encoder`` or ``decoder`` (each at itself).
        layer: Counted from 0, the page shows it counted from 1; or ``"mean"`` over layers.
        head: Counted from 0, or ``"mean"`` over the heads of the layer.
    """

    kind: Kind = "cross"
    layer: Layer = "mean"
    head: Head = "mean"

    def __post_init__(self) -> None:
        choose("kind", self.kind, _AXES)
        _check_number("layer", self.layer)
        _check_number("head", self.head)


@dataclass(frozen=True, kw_only=True, slots=True)
class AttentionMap:
    """The weights of one head: one row per token that looks.

    Row ``t`` of a ``cross`` or ``decoder`` map belongs to the query that predicts output token
    ``t``. The keys of a ``decoder`` map are the decoder's inputs: column 0 is the start sign and
    column ``j`` is output token ``j - 1``.

    Attributes:
        kind: ``cross`` (T × S), ``encoder`` (S × S) or ``decoder`` (T × T).
        layer: Counted from 0.
        head: Counted from 0, or ``"mean"``.
        rows: Weights, any nested sequence; kept as tuples with four significant digits.

    Example:
        >>> AttentionMap(kind="cross", layer=0, head=0, rows=[[1 / 3, 2 / 3]]).rows
        ((0.3333, 0.6667),)
    """

    kind: Kind
    layer: int
    head: Head
    rows: Sequence[Sequence[float]]

    def __post_init__(self) -> None:
        choose("kind", self.kind, _AXES)
        check_at_least("layer", self.layer, 0)
        _check_number("head", self.head)
        rows = tuple(tuple(_four_digits(weight) for weight in row) for row in self.rows)
        object.__setattr__(self, "rows", rows)


@dataclass(frozen=True, kw_only=True, slots=True)
class Example:
    """One text, what the model made of it, and what it looked at.

    Attributes:
        source: The text read.
        output: The text written.
        source_tokens: The columns of a ``cross`` map.
        output_tokens: Its rows.
        maps: The heads that were kept. The page adds the means of heads and of layers itself.
        score: The search's score of the output, or None.
        gold: Links people set, or None.
    """

    source: str
    output: str
    source_tokens: tuple[Token, ...]
    output_tokens: tuple[Token, ...]
    maps: tuple[AttentionMap, ...] = ()
    score: float | None = None
    gold: GoldLinks | None = None

    def __post_init__(self) -> None:
        _check_tokens("source", self.source, self.source_tokens)
        _check_tokens("output", self.output, self.output_tokens)
        if self.score is not None and not math.isfinite(self.score):
            raise DataError(f"score must be finite or None; got {self.score}.")
        sizes = {"source": len(self.source_tokens), "output": len(self.output_tokens)}
        for found in self.maps:
            _check_shape(found, *(sizes[side] for side in _AXES[found.kind]))
        for link in (*self.gold.sure, *self.gold.possible) if self.gold else ():
            if not (0 <= link[0] < sizes["source"] and 0 <= link[1] < sizes["output"]):
                raise DataError(
                    f"gold links must be pairs (source token, output token) of "
                    f"{sizes['source']} and {sizes['output']} tokens; got {link}."
                )


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
        opening: The map to open with; None opens with the mean of the cross layers.

    Example:
        >>> token = Token(text="ja", start=0, end=2)
        >>> seen = AttentionMap(kind="cross", layer=0, head=0, rows=[[1.0]])
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
        """The document that ``to_json`` wrote, checked member by member.

        Members this version does not know are skipped.

        Raises:
            DataError: The text is no JSON, another format or a newer version, or a member is
                missing, of another type, or contradicts the others.
        """
        return _document(text)


def _members(value: object) -> dict[str, object]:
    return {field.name: getattr(value, field.name) for field in fields(value)}  # type: ignore[arg-type]


def _four_digits(weight: float) -> float:
    if not -1e-6 <= weight <= 1.01:  # room for rounding in half precision; false for NaN
        raise DataError(f"weights must be between 0 and 1; got {weight}.")
    return float(f"{min(max(weight, 0.0), 1.0):.4g}")


def _check_tokens(side: str, text: str, tokens: Sequence[Token]) -> None:
    for token in tokens:
        if not 0 <= token.start <= token.end <= len(text):
            raise DataError(
                f"{side}_tokens must lie within the {len(text)} characters of {side}; got "
                f"{token.text!r} at {token.start}:{token.end}."
            )


def _check_shape(found: AttentionMap, height: int, width: int) -> None:
    got = sorted({len(row) for row in found.rows})
    if len(found.rows) != height or got not in ([width], []):
        raise DataError(
            f"rows of a {found.kind} map must be {height} × {width} weights; got "
            f"{len(found.rows)} × {'/'.join(map(str, got)) or 0} in layer {found.layer}, "
            f"head {found.head}."
        )


def _document(text: str) -> Document:
    try:
        members = json.loads(text)
    except ValueError as error:
        raise DataError(f"document must be JSON; got {text[:20]!r}… ({error}).") from None
    members = typed(members, dict, "document")
    _check_version(members)
    opening = members.get("opening")
    return Document(
        title=take(members, "title", str),
        task=take(members, "task", str),
        model=take(members, "model", str),
        examples=each(members, "examples", _example),
        source_language=optional(members, "source_language", str),
        output_language=optional(members, "output_language", str),
        opening=None if opening is None else _view(opening, "opening"),
    )


def _check_number(name: str, value: int | Literal["mean"]) -> None:
    if value != "mean":
        check_at_least(name, value, 0)


def _check_version(members: Mapping[str, Any]) -> None:
    if members.get("format") != FORMAT:
        raise DataError(f"format must be {FORMAT!r}; got {members.get('format')!r}.")
    version = take(members, "version", int)
    if not 1 <= version <= VERSION:
        raise DataError(
            f"version must be at most {VERSION}; got {version}. "
            "The document is from a newer regard: update this one."
        )


def _example(value: object, where: str) -> Example:
    members = typed(value, dict, where)
    gold = members.get("gold")
    score = optional(members, "score", Number, where)
    read = {
        "source": take(members, "source", str, where),
        "output": take(members, "output", str, where),
        "source_tokens": each(members, "source_tokens", _token, where),
        "output_tokens": each(members, "output_tokens", _token, where),
        "maps": each(members, "maps", _map, where),
        "score": None if score is None else float(score),
        "gold": None if gold is None else _gold(gold, f"{where}.gold"),
    }
    return built(where, Example, **read)


def _token(value: object, where: str) -> Token:
    members = typed(value, dict, where)
    return Token(
        text=take(members, "text", str, where),
        start=take(members, "start", int, where),
        end=take(members, "end", int, where),
    )


def _map(value: object, where: str) -> AttentionMap:
    members = typed(value, dict, where)
    return built(
        where,
        AttentionMap,
        kind=_kind(members, where),
        layer=take(members, "layer", int, where),
        head=_number(members, "head", where),
        rows=each(members, "rows", _weights, where),
    )


def _view(value: object, where: str) -> View:
    members = typed(value, dict, where)
    layer, head = (_number(members, name, where) for name in ("layer", "head"))
    return built(where, View, kind=_kind(members, where), layer=layer, head=head)


def _kind(members: Mapping[str, Any], where: str) -> Any:
    kind = take(members, "kind", str, where)
    return built(where, choose, name="kind", value=kind, table={name: name for name in _AXES})


def _number(members: Mapping[str, Any], name: str, where: str) -> Any:
    return members[name] if members.get(name) == "mean" else take(members, name, int, where)


def _weights(value: object, where: str) -> tuple[float, ...]:
    return tuple(float(typed(weight, Number, where)) for weight in typed(value, list, where))


def _gold(value: object, where: str) -> GoldLinks:
    members = typed(value, dict, where)
    return GoldLinks(
        sure=each(members, "sure", _link, where),
        possible=each(members, "possible", _link, where),
    )


def _link(value: object, where: str) -> tuple[int, int]:
    pair = [typed(index, int, where) for index in typed(value, list, where)]
    if len(pair) != 2:
        raise DataError(f"{where} must be a pair [source token, output token]; got {pair}.")
    return pair[0], pair[1]
