"""What was looked at, as plain data: the viewer's JSON, version 3.

A document is made by whoever holds a model, written once, and read by a page, a notebook or a
script; nothing in it needs torch. Members may be added to a version, and readers skip the ones
they do not know; a change to a member that exists is a new version, which older readers refuse.

Version 1 has texts, tokens and maps of plain numbers. Version 2 adds to an example ``summaries``
(``LayerSummary``: what heads looked at, in packed bytes, for texts of any length), ``started``,
``label``, ``search``, ``changes``, ``importances`` and ``answer``. It allows a layer to have no
maps, which readers of version 1 cannot draw. Version 3 has arrays of steps (``Packed.steps``),
``top_counts`` and ``image``. Documents of older versions are still read.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from regard.choices import choose
from regard.errors import DataError
from regard.viewer.example import (
    AXES,
    Answer,
    AttentionMap,
    Change,
    Example,
    GoldLinks,
    Importance,
    LayerSummary,
    Line,
    Token,
    View,
)
from regard.viewer.image import read_image
from regard.viewer.members import Number, built, each, flag, optional, take, typed
from regard.viewer.packing import Packed
from regard.viewer.search import read_search

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
        """The document that ``to_json`` wrote, in this version or an older one, checked.

        Members this version does not know are skipped.

        Raises:
            DataError: The text is no JSON, another format or a newer version, or a member is
                missing, of another type, or contradicts the others.
        """
        return _document(text)


def _members(value: object) -> dict[str, object]:
    return {field.name: getattr(value, field.name) for field in fields(value)}  # type: ignore[arg-type]


def _document(text: str) -> Document:
    try:
        members = json.loads(text)
    except (ValueError, RecursionError) as error:
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
    gold, search = members.get("gold"), members.get("search")
    read = {
        "source": take(members, "source", str, where),
        "output": take(members, "output", str, where),
        "source_tokens": each(members, "source_tokens", _token, where),
        "output_tokens": each(members, "output_tokens", _token, where),
        "maps": each(members, "maps", _map, where),
        "summaries": _maybe(members, "summaries", _summary, where),
        "started": flag(members, "started", True, where),
        "label": optional(members, "label", str, where),
        "score": _score(members, where),
        "gold": None if gold is None else _gold(gold, f"{where}.gold"),
        "search": None if search is None else read_search(search, f"{where}.search"),
        "changes": _maybe(members, "changes", _change, where),
        "importances": _maybe(members, "importances", _importance, where),
        "answer": _answer(optional(members, "answer", dict, where), f"{where}.answer"),
        "image": read_image(optional(members, "image", dict, where), f"{where}.image"),
    }
    return built(where, Example, **read)


def _maybe(members: Mapping[str, Any], name: str, read: Any, where: str) -> Any:
    """A list that came with version 2."""
    return () if members.get(name) is None else each(members, name, read, where)


def _score(members: Mapping[str, Any], where: str) -> float | None:
    score = optional(members, "score", Number, where)
    return None if score is None else float(score)


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


def _summary(value: object, where: str) -> LayerSummary:
    members = typed(value, dict, where)
    measures = optional(members, "measures", dict, where) or {}
    lines = {name: _line(members, name, where) for name in _LINES}
    arrays = {name: _packed(members, name, where) for name in _ARRAYS}
    return built(
        where,
        LayerSummary,
        kind=_kind(members, where),
        layer=take(members, "layer", int, where),
        heads=_whole_numbers(members, "heads", where),
        measures={
            name: tuple(
                None if one is None else float(typed(one, Number, f"{where}.measures.{name}"))
                for one in typed(values, list, f"{where}.measures.{name}")
            )
            for name, values in measures.items()
        },
        bucket=_pair(members, "bucket", where),
        start=_pair(members, "start", where),
        top_heads=_whole_numbers(members, "top_heads", where),
        top_counts=(
            _whole_numbers(members, "top_counts", where) if members.get("top_counts") else ()
        ),
        **lines,
        **arrays,
    )


_LINES = ("entropy", "distance", "first", "received")
_ARRAYS = ("pooled", "top_keys", "top_weights", "rows")


def _line(members: Mapping[str, Any], name: str, where: str) -> Line | None:
    line = optional(members, name, dict, where)
    if line is None:
        return None
    where = f"{where}.{name}"
    packed = _packed(line, "values", where)
    if packed is None:
        raise DataError(f"{where} must have a member 'values'; got {', '.join(line) or 'nothing'}.")
    return built(where, Line, values=packed, places=take(line, "places", int, where))


def _packed(members: Mapping[str, Any], name: str, where: str) -> Packed | None:
    packed = optional(members, name, dict, where)
    if packed is None:
        return None
    where = f"{where}.{name}"
    read = built(
        where,
        Packed,
        shape=_whole_numbers(packed, "shape", where),
        bits=take(packed, "bits", int, where),
        scale=take(packed, "scale", str, where),
        low=float(take(packed, "low", Number, where)),
        high=float(take(packed, "high", Number, where)),
        data=take(packed, "data", str, where),
        steps=flag(packed, "steps", False, where),
    )
    return built(where, read.checked)


def _change(value: object, where: str) -> Change:
    members = typed(value, dict, where)
    edit, output = (take(members, name, str, where) for name in ("edit", "output"))
    return Change(edit=edit, output=output, score=_score(members, where))


def _importance(value: object, where: str) -> Importance:
    members = typed(value, dict, where)
    correlation = optional(members, "correlation", Number, where)
    return Importance(
        method=take(members, "method", str, where),
        values=_weights(members.get("values"), f"{where}.values"),
        output=optional(members, "output", int, where),
        correlation=None if correlation is None else float(correlation),
    )


def _answer(members: Mapping[str, Any] | None, where: str) -> Answer | None:
    if members is None:
        return None
    return Answer(
        labels=each(members, "labels", _label, where),
        tags=each(members, "tags", lambda value, place: str(typed(value, str, place)), where),
        values=_weights(members.get("values"), f"{where}.values"),
        measure=take(members, "measure", str, where),
        side=optional(members, "side", str, where),
    )


def _label(value: object, where: str) -> tuple[str, float]:
    pair = typed(value, list, where)
    if len(pair) != 2:
        raise DataError(f"{where} must be a pair [label, probability]; got {pair}.")
    return str(typed(pair[0], str, where)), float(typed(pair[1], Number, where))


def _view(value: object, where: str) -> View:
    members = typed(value, dict, where)
    layer, head = (_number(members, name, where) for name in ("layer", "head"))
    return built(where, View, kind=_kind(members, where), layer=layer, head=head)


def _kind(members: Mapping[str, Any], where: str) -> Any:
    kind = take(members, "kind", str, where)
    return built(where, choose, name="kind", value=kind, table={name: name for name in AXES})


def _number(members: Mapping[str, Any], name: str, where: str) -> Any:
    return members[name] if members.get(name) == "mean" else take(members, name, int, where)


def _whole_numbers(members: Mapping[str, Any], name: str, where: str) -> tuple[int, ...]:
    return each(members, name, lambda value, place: int(typed(value, int, place)), where)


def _pair(members: Mapping[str, Any], name: str, where: str) -> tuple[int, int]:
    pair = _whole_numbers(members, name, where)
    if len(pair) != 2:
        raise DataError(f"{where}.{name} must be a pair [queries, keys]; got {list(pair)}.")
    return pair[0], pair[1]


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
