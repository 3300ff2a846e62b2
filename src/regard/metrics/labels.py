"""Scores of chosen labels and of entities in tag sequences: accuracy, F1, confusion."""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from regard.errors import DataError
from regard.metrics.score import check_as_many, check_list

# Signs between the labels of a cell, and those around each, as in a list of Python's.
_BETWEEN_LABELS, _AROUND_LABELS = ";|,/+&；、，", " []'\""


@dataclass(frozen=True, slots=True)
class LabelScore:
    """Precision, recall and F1 of one label in percent, and how many have it."""

    label: str
    precision: float
    recall: float
    f1: float
    count: int


def accuracy(predicted: Sequence[str], true: Sequence[str]) -> float:
    """The share of right labels, in percent."""
    _check(predicted, true)
    return 100 * sum(a == b for a, b in zip(predicted, true, strict=True)) / max(1, len(true))


def by_label(predicted: Sequence[str], true: Sequence[str]) -> list[LabelScore]:
    """Precision, recall and F1 of each label that is given or right, in alphabetical order."""
    _check(predicted, true)
    hits = Counter(a for a, b in zip(predicted, true, strict=True) if a == b)
    predicted_counts, true_counts = Counter(predicted), Counter(true)
    return [
        label_score(label, hits[label], predicted_counts[label], true_counts[label])
        for label in sorted(predicted_counts | true_counts)
    ]


def label_score(label: str, hits: int, predicted: int, true: int) -> LabelScore:
    """The score from counts; zero where it would divide by nothing."""
    total = predicted + true
    return LabelScore(
        label=label,
        precision=100 * hits / predicted if predicted else 0.0,
        recall=100 * hits / true if true else 0.0,
        f1=100 * 2 * hits / total if total else 0.0,
        count=true,
    )


def macro_f1(predicted: Sequence[str], true: Sequence[str]) -> float:
    """F1 averaged over labels, each counting alike, in percent."""
    scores = by_label(predicted, true)
    return sum(score.f1 for score in scores) / max(1, len(scores))


def confusion(predicted: Sequence[str], true: Sequence[str]) -> dict[tuple[str, str], int]:
    """The confusion matrix: counts by (true, predicted) label."""
    _check(predicted, true)
    return dict(Counter(zip(true, predicted, strict=True)))


def _check(predicted: Sequence[str], true: Sequence[str]) -> None:
    check_list("predicted", predicted)
    check_list("true", true)
    if len(predicted) != len(true):
        raise DataError(
            f"labels must be as many as are right; got {len(predicted)} for {len(true)} texts."
        )


Entity = tuple[str, int, int]


# Prefixes of the first, the last and the inner tags of an entity: BIO, BIOES, BILOU and BMEWO.
_BEGINS, _ENDS, _INSIDE = frozenset("BSUW"), frozenset("ESLUW"), frozenset("IM")
_MARKS = _BEGINS | _ENDS | _INSIDE
# A tag of an entity: B-PER, PER-B, or B where all are of one type.
_PREFIXED, _SUFFIXED, _BARE = (
    re.compile(pattern)
    for pattern in (
        "(?P<mark>[BIMESLUWbimesluw])[-_:](?P<kind>.+)",
        "(?P<kind>.+)[-_:](?P<mark>[BIMESLUWbimesluw])",
        "(?P<mark>[BIMESLUWbimesluw])(?P<kind>)",
    )
)


def combined_labels(labels: Iterable[str]) -> list[str]:
    """Labels that hold several others, with a sign between them.

    Each of their parts is a label by itself, or a part of another one.

    Example:
        >>> combined_labels(["food", "price", "food;price", "Sci/Tech"])
        ['food;price']
        >>> combined_labels(["['food', 'price']", "['price']", "['food']"])
        ["['food', 'price']"]
    """
    every = dict.fromkeys(labels)
    for sign in _BETWEEN_LABELS:
        parts = {
            label: {part.strip(_AROUND_LABELS) for part in label.split(sign)} for label in every
        }
        counts = Counter(part for pieces in parts.values() for part in pieces)
        combined = [
            label
            for label, pieces in parts.items()
            if len(pieces) > 1 and all(part and counts[part] > 1 for part in pieces)
        ]
        if combined:
            return combined
    return []


def entity_tags(tags: Collection[str]) -> dict[str, str] | None:
    """Each tag as ``B-X`` and the like, or ``B`` of one type alone; None if any marks no entity.

    Example:
        >>> entity_tags(["O", "PER-B", "LOC-I"])
        {'O': 'O', 'PER-B': 'B-PER', 'LOC-I': 'I-LOC'}
        >>> entity_tags(["O", "B", "I"])
        {'O': 'O', 'B': 'B', 'I': 'I'}
        >>> entity_tags(["NOUN", "VERB"])
    """
    inside = [tag for tag in tags if tag not in ("O", "o")]
    for pattern in (_PREFIXED, _SUFFIXED, _BARE) if inside else ():
        names = dict.fromkeys(tags, "O")
        for tag in inside:
            if match := pattern.fullmatch(tag):
                names[tag] = _spell(match["mark"].upper(), match["kind"])
        marks = {names[tag] for tag in inside}
        if "O" not in marks and (pattern is not _BARE or "B" in marks or marks == {"I"}):
            return names
    return None


def _spell(mark: str, kind: str) -> str:
    return f"{mark}-{kind}" if kind else mark


def entities(tags: Sequence[str]) -> list[Entity]:
    """The entities of a sentence as (type, first, one past the last), read as ``conlleval`` does.

    ``B-X`` begins one; ``I-X`` (``M-X``) goes on with the one before if that is of type X, else
    begins one; ``E-X`` (``L-X``) is its last word, and ``S-X`` (``U-X``, ``W-X``) its only one;
    without a type it is ''; anything else is outside.

    Example:
        >>> entities(["B-PER", "I-PER", "O", "I-LOC", "B-LOC"])
        [('PER', 0, 2), ('LOC', 3, 4), ('LOC', 4, 5)]
        >>> entities(["B-PER", "E-PER", "S-PER", "O"])
        [('PER', 0, 2), ('PER', 2, 3)]
    """
    spans: list[Entity] = []
    kind, first, is_ended = None, 0, False
    for position, tag in enumerate([*tags, "O"]):
        prefix, _, entity = tag.partition("-")
        name = entity if prefix in _MARKS else None
        if kind is not None and (name != kind or prefix in _BEGINS or is_ended):
            spans.append((kind, first, position))
            kind = None
        if name is not None and kind is None:
            kind, first = name, position
        is_ended = prefix in _ENDS
    return spans


def as_bio(tags: Sequence[str]) -> tuple[str, ...]:
    """Convert entity tags to IOB2, from IOB1, BIOES, BILOU, BMEWO, and slips."""
    return _spelled(tags, single="B", inside="I", last="I")


def to_scheme(tags: Sequence[str], vocabulary: Collection[str]) -> tuple[str, ...]:
    """Convert entity tags to the scheme and the spelling of a vocabulary, such as a run's."""
    names = entity_tags(vocabulary) or {}
    prefixes = {name.partition("-")[0] for name in names.values()}
    single, inside, last = (
        next((mark for mark in marks if mark in prefixes), bio)
        for marks, bio in (("SUW", "B"), ("M", "I"), ("EL", "I"))
    )
    spelled = {name: tag for tag, name in names.items()}
    mended = _spelled(tags, single=single, inside=inside, last=last)
    return tuple(spelled.get(tag, tag) for tag in mended)


def _spelled(tags: Sequence[str], *, single: str, inside: str, last: str) -> tuple[str, ...]:
    mended = list(tags)
    for kind, first, end in entities(tags):
        size = end - first
        marks = [single] if size == 1 else ["B", *[inside] * (size - 2), last]
        mended[first:end] = [_spell(mark, kind) for mark in marks]
    return tuple(mended)


def marks_entities(tags: Collection[str]) -> bool:
    """Whether all tags are ``O`` or mark a word of an entity, ``B-X``, and some are not ``O``."""
    names = entity_tags(tags)
    return names is not None and all(tag == name for tag, name in names.items())


def is_bio(tags: Collection[str]) -> bool:
    """Whether tags mark entities by ``B-X`` and ``I-X`` alone."""
    return marks_entities(tags) and all(tag[0] in "OBI" for tag in tags)


def entity_scores(
    predicted: Sequence[Sequence[str]], true: Sequence[Sequence[str]]
) -> tuple[LabelScore, list[LabelScore]]:
    """Precision, recall and F1 of whole entities, over all types and of each: CoNLL-2003."""
    hits: Counter[str] = Counter()
    predicted_counts: Counter[str] = Counter()
    true_counts: Counter[str] = Counter()
    check_list("predicted", predicted)
    check_list("true", true)
    check_as_many("predicted", predicted, "true", true)
    for index, (ours, theirs) in enumerate(zip(predicted, true, strict=True)):
        if len(ours) != len(theirs):
            raise DataError(
                f"tags must be as many as are right; got {len(ours)} for {len(theirs)} words in "
                f"sentence {index + 1}."
            )
        spans, true_spans = set(entities(ours)), set(entities(theirs))
        hits.update(kind for kind, _, _ in spans & true_spans)
        predicted_counts.update(kind for kind, _, _ in spans)
        true_counts.update(kind for kind, _, _ in true_spans)
    by_type = [
        label_score(kind or "entity", hits[kind], predicted_counts[kind], true_counts[kind])
        for kind in sorted(predicted_counts | true_counts)
    ]
    return label_score("all", hits.total(), predicted_counts.total(), true_counts.total()), by_type
