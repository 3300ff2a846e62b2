"""Scores of chosen labels and of entities in tag sequences: accuracy, F1, confusion."""

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from regard.errors import DataError


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
    """The score from counts; what would divide by nothing is zero."""
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
    if len(predicted) != len(true):
        raise DataError(
            f"labels must be as many as are right; got {len(predicted)} for {len(true)} texts."
        )


Entity = tuple[str, int, int]


# What begins an entity, and what ends one, in BIO, BIOES, BILOU and BMEWO.
_BEGINS, _ENDS, _INSIDE = frozenset("BSUW"), frozenset("ESLUW"), frozenset("IM")
_MARKS = _BEGINS | _ENDS | _INSIDE


def entities(tags: Sequence[str]) -> list[Entity]:
    """The entities of a sentence as (type, first, one past the last), read as ``conlleval`` does.

    ``B-X`` begins one; ``I-X`` (``M-X``) goes on with the one before if that is of type X, else
    begins one; ``E-X`` (``L-X``) is its last word, and ``S-X`` (``U-X``, ``W-X``) its only one;
    anything else is outside.

    Example:
        >>> entities(["B-PER", "I-PER", "O", "I-LOC", "B-LOC"])
        [('PER', 0, 2), ('LOC', 3, 4), ('LOC', 4, 5)]
        >>> entities(["B-PER", "E-PER", "S-PER", "O"])
        [('PER', 0, 2), ('PER', 2, 3)]
    """
    spans: list[Entity] = []
    kind, first, is_ended = "", 0, False
    for position, tag in enumerate([*tags, "O"]):
        prefix, _, name = tag.partition("-")
        name = name if prefix in _MARKS else ""
        if kind and (name != kind or prefix in _BEGINS or is_ended):
            spans.append((kind, first, position))
            kind = ""
        if name and not kind:
            kind, first = name, position
        is_ended = prefix in _ENDS
    return spans


def as_bio(tags: Sequence[str]) -> tuple[str, ...]:
    """Convert entity tags to IOB2, from IOB1, BIOES, BILOU, BMEWO, and slips."""
    return _spelled(tags, single="B", inside="I", last="I")


def as_known(tags: Sequence[str], known: Collection[str]) -> tuple[str, ...]:
    """Convert entity tags to the scheme of known tags, such as those of a run."""
    prefixes = {tag.partition("-")[0] for tag in known}
    single, inside, last = (
        next((mark for mark in marks if mark in prefixes), bio)
        for marks, bio in (("SUW", "B"), ("M", "I"), ("EL", "I"))
    )
    return _spelled(tags, single=single, inside=inside, last=last)


def _spelled(tags: Sequence[str], *, single: str, inside: str, last: str) -> tuple[str, ...]:
    mended = list(tags)
    for kind, first, end in entities(tags):
        size = end - first
        marks = [single] if size == 1 else ["B", *[inside] * (size - 2), last]
        mended[first:end] = [f"{mark}-{kind}" for mark in marks]
    return tuple(mended)


def marks_entities(tags: Collection[str]) -> bool:
    """Whether all tags are ``O`` or mark a word of an entity, ``B-X``, and some are not ``O``."""
    return all(tag == "O" or (tag[:1] in _MARKS and tag[1:2] == "-") for tag in tags) and any(
        tag != "O" for tag in tags
    )


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
    each = [
        label_score(kind, hits[kind], predicted_counts[kind], true_counts[kind])
        for kind in sorted(predicted_counts | true_counts)
    ]
    return label_score("all", hits.total(), predicted_counts.total(), true_counts.total()), each
