"""Exports of annotation tools: doccano, Label Studio, Prodigy, spaCy and brat; CLUENER's spans."""

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Any, TypeGuard

from regard.config import JsonValue
from regard.errors import DataError
from regard.text.normalization import split_words

# The key of the reason to learn nothing from a record, and the two reasons.
LEFT_OUT = "left out"
REJECTED = "annotations that were rejected or skipped"
UNANNOTATED = "texts without an annotation, or whose annotators disagree"
# Keys at which spans of characters are, those of a text, and those of a span.
SPANS = ("spans", "entities", "ents", "label", "labels", "annotations")
TEXTS = ("text", "data", "content", "sentence")
_STARTS, _ENDS = ("start", "start_offset"), ("end", "end_offset")
_LABELS = ("label", "labels", "entity", "type", "tag", "entity_type", "hypertextlabels")
# Answers of Prodigy.
_ANSWERS = ("accept", "reject", "ignore")
# Characters of a text in messages.
_SHOWN = 40
_MARK = re.compile("['’]|[^'’]+")
# A span of brat: T1, a tab, type and offsets, a tab, the text.
_BRAT = re.compile(r"T\S*\t(\S+) (\d+) ([\d; ]*\d)(?:\t(.*))?")


@dataclass(frozen=True, slots=True)
class _Span:
    """Characters with a label, and their text where the export has it."""

    start: int
    end: int
    label: str
    where: str


def as_record(value: JsonValue) -> JsonValue:
    """The record of an export as an object of texts, labels and lists of spans.

    Other values, and objects that no annotation tool wrote, are returned as they are.
    """
    if isinstance(value, list) and len(value) == 2 and isinstance(value[0], str):
        entities = value[1]
        members = {"entities": entities} if isinstance(entities, list) else entities
        return as_record({"text": value[0], **members}) if isinstance(members, dict) else value
    if not isinstance(value, dict):
        return value
    done = value.get("annotations", value.get("completions"))
    if isinstance(value.get("data"), dict) and isinstance(done, list):
        return _of_label_studio(value["data"], done)
    if value.get("answer") in _ANSWERS and isinstance(value.get("text"), str):
        return _of_prodigy(value)
    if isinstance(value.get("text"), str) and (spans := _spans_of_mentions(value.get("label"))):
        return {**value, "label": spans}
    cats = value.get("cats")
    if isinstance(cats, dict) and cats and all(isinstance(n, int | float) for n in cats.values()):
        chosen = [name for name, weight in cats.items() if weight >= 0.5]
        return {**{k: v for k, v in value.items() if k != "cats"}, "label": _single(chosen)}
    return value


def _spans_of_mentions(labels: Any) -> list[JsonValue]:
    """Spans of CLUENER's mentions by label, whose ends are the last characters; else none."""
    try:
        return [
            [start, end + 1, label]
            for label, mentions in labels.items()
            for spans in mentions.values()
            for start, end in spans
        ]
    except (AttributeError, TypeError, ValueError):
        return []


def _single(values: list[JsonValue] | JsonValue) -> JsonValue:
    return values[0] if isinstance(values, list) and len(values) == 1 else values


def _of_prodigy(record: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    """An example of Prodigy; of options the accepted ones are the label."""
    members = {
        k: v for k, v in record.items() if k not in ("answer", "accept", "options", "tokens")
    }
    if record["answer"] != "accept":
        members[LEFT_OUT] = REJECTED
    elif isinstance(accepted := record.get("accept"), list):
        options = record.get("options")
        texts = {
            str(option.get("id")): option.get("text")
            for option in (options if isinstance(options, list) else [])
            if isinstance(option, dict)
        }
        chosen = [one if isinstance(one, str) else texts.get(str(one), one) for one in accepted]
        members["label"] = _single(chosen)
    return members


def _of_label_studio(
    data: dict[str, JsonValue], annotations: Sequence[JsonValue]
) -> dict[str, JsonValue]:
    """A task's data, and the annotations of most annotators, or of the ground truth."""
    every = [annotation for annotation in annotations if isinstance(annotation, dict)]
    done = [
        annotation
        for annotation in every
        if not (annotation.get("was_cancelled") or annotation.get("skipped"))
    ]
    done = [annotation for annotation in done if annotation.get("ground_truth")][:1] or done
    results = [json.dumps(_members(annotation.get("result"))) for annotation in done]
    ranked = Counter(results).most_common(2)
    if not ranked:
        return {**data, LEFT_OUT: REJECTED if every else UNANNOTATED}
    if len(ranked) > 1 and ranked[0][1] == ranked[1][1]:
        return {**data, LEFT_OUT: UNANNOTATED}
    return {**data, **json.loads(ranked[0][0])}


def _members(results: JsonValue) -> dict[str, JsonValue]:
    """Labels and spans of an annotation of Label Studio, by the names of their controls."""
    spans: dict[str, list[JsonValue]] = {}
    members: dict[str, JsonValue] = {}
    for result in results if isinstance(results, list) else []:
        value = result.get("value") if isinstance(result, dict) else None
        if not isinstance(value, dict):
            continue
        name, kind = str(result.get("from_name", "label")), str(result.get("type"))
        if "start" not in value:
            chosen = value.get(kind, value.get("choices", value.get("text")))
            members[name] = _single(chosen)
        elif any(key in value for key in _LABELS):
            spans.setdefault(name, []).append(value)
    for group in spans.values():
        group.sort(key=lambda span: json.dumps(span, sort_keys=True))
    return {**members, **spans}


def brat_lines(text: Sequence[str], annotations: Sequence[str], name: str) -> Iterator[bytes]:
    """The lines of a text with brat's annotations of it, each as an object of JSON."""
    spans: list[list[JsonValue]] = [[] for _ in text]
    starts = [0, *accumulate(map(len, text))]
    for number, line in enumerate(annotations, 1):
        if not line.startswith("T"):
            continue  # relations, events, notes
        match, where = _BRAT.fullmatch(line.rstrip("\r\n")), f"{name}:{number}"
        begin = int(match[2]) if match else 0
        if match is None or begin >= starts[-1]:
            raise DataError(
                f"{where}: expected T, a number, a tab, a type and two offsets within the "
                f"{starts[-1]:,} characters of the text; got {line[:_SHOWN].strip()!r}."
            )
        index = next(n for n, (_, end) in enumerate(pairwise(starts)) if begin < end)
        first = starts[index]
        end = int(match[3]) - first if match[3].isdecimal() else match[3]
        span = {"start": begin - first, "end": end, "label": match[1], "where": where}
        spans[index].append({**span, "text": match[4]} if match[4] else span)
    for line, line_spans in zip(text, spans, strict=True):
        record = {"text": line.rstrip("\r\n"), "spans": line_spans}
        yield f"{json.dumps(record) if line.strip() else ''}\n".encode()


def are_spans(value: JsonValue) -> TypeGuard[list[JsonValue]]:
    """Whether a value is a list of spans of characters, one at least."""
    return isinstance(value, list) and bool(value) and all(map(_is_span, value))


def _is_span(value: JsonValue) -> bool:
    if isinstance(value, list):
        is_triple = len(value) == 3 and isinstance(value[2], str | list)
        return is_triple and all(isinstance(bound, int) for bound in value[:2])
    return isinstance(value, dict) and all(
        any(key in value for key in keys) for keys in (_STARTS, _ENDS, _LABELS)
    )


def words_of(text: str) -> list[tuple[int, int]]:
    """The start and the end of each word, number, mark and character of an unspaced script."""
    ends, at = [], 0
    for piece in split_words(text):
        for part in _MARK.findall(piece):
            word = part.strip()
            start = at + part.find(word)
            if word:
                ends.append((start, start + len(word)))
            at += len(part)
    return ends


def tagged_words(text: str, spans: Sequence[JsonValue], where: str) -> tuple[list[str], list[str]]:
    """The words of a text, and a tag in BIO for each by the spans of characters."""
    word_spans = words_of(text)
    if not word_spans:
        raise DataError(f"{where}: the text has no words. Leave it out.")
    words, tags = [text[start:end] for start, end in word_spans], ["O"] * len(word_spans)
    parsed = {_span(span, text, where): None for span in spans}
    ordered = sorted(parsed, key=lambda span: (span.start, span.end))
    for previous, following in pairwise(ordered):
        if following.start < previous.end:
            raise DataError(
                f"{following.where}: spans must not overlap, as a word has one tag; got "
                f"{_quote(previous, text)} and {_quote(following, text)}. Keep one of them."
            )
    for span in ordered:
        positions = enumerate(word_spans)
        inside = [n for n, (start, end) in positions if span.start < end and start < span.end]
        if not inside:
            raise DataError(f"{span.where}: a span must hold a word; got white space. Take it out.")
        for n in inside:
            start, end = word_spans[n]
            if start < span.start or span.end < end:
                raise DataError(
                    f"{span.where}: a span must begin and end with a word; got "
                    f"{_quote(span, text)} inside {words[n]!r}, which is {start} to {end}. "
                    "Correct its offsets."
                )
            tags[n] = f"{'B' if n == inside[0] else 'I'}-{span.label}"
    return words, tags


def _span(value: JsonValue, text: str, where: str) -> _Span:
    """The span of a list or an object, white space at its ends left out."""
    if isinstance(value, list) and len(value) == 3:
        start, end, label, cited = *value, None
    elif isinstance(value, dict):
        start, end, label = (
            next((value[key] for key in keys if value.get(key) is not None), None)
            for keys in (_STARTS, _ENDS, _LABELS)
        )
        cited, where = value.get("text"), str(value.get("where", where))
    else:
        start, end, label, cited = value, None, None, None
    label = _single(label)
    if isinstance(label, list) and label:
        raise DataError(f"{where}: a span must have one label; got {label}. Keep one of them.")
    rule = "a span must have a label, and a start and an end as whole numbers"
    if not (isinstance(start, int) and isinstance(end, int) and isinstance(label, str)):
        raise DataError(f"{where}: {rule}; got {json.dumps(value, ensure_ascii=False)[:80]}.")
    if not label.strip():
        raise DataError(f"{where}: {rule}; its label is empty.")
    if not 0 <= start < end <= len(text):
        raise DataError(
            f"{where}: a span must lie within the {len(text)} characters of its text; got {start} "
            f"to {end} ({label}). Offsets count characters, not bytes."
        )
    part = text[start:end]
    if isinstance(cited, str) and cited.replace("\\n", " ").split() != part.split():
        raise DataError(
            f"{where}: a span must be where its text stands; got {part[:_SHOWN]!r} at {start} to "
            f"{end} for {cited[:_SHOWN]!r}. Offsets count characters, not bytes or units of UTF-16."
        )
    start += len(part) - len(part.lstrip())
    return _Span(start, start + len(part.strip()), label.strip(), where)


def _quote(span: _Span, text: str) -> str:
    return f"{span.start} to {span.end} ({text[span.start : span.end][:_SHOWN]!r}, {span.label})"
