"""Entities in tag sequences, and how well they were found."""

from collections import Counter
from collections.abc import Collection, Sequence

from regard.errors import DataError
from regard.metrics.labels import LabelScore, label_score

Entity = tuple[str, int, int]


def entities(tags: Sequence[str]) -> list[Entity]:
    """The entities of a sentence as (type, first, one past the last), read as ``conlleval`` does.

    ``B-X`` begins one; ``I-X`` goes on with the one before if that is of type X, else begins one;
    anything else is outside.

    Example:
        >>> entities(["B-PER", "I-PER", "O", "I-LOC", "B-LOC"])
        [('PER', 0, 2), ('LOC', 3, 4), ('LOC', 4, 5)]
    """
    found: list[Entity] = []
    kind, first = "", 0
    for place, tag in enumerate([*tags, "O"]):
        prefix, _, name = tag.partition("-")
        inside = prefix in ("B", "I") and bool(name)
        if kind and not (inside and prefix == "I" and name == kind):
            found.append((kind, first, place))
            kind = ""
        if inside and not kind:
            kind, first = name, place
    return found


def as_bio(tags: Sequence[str]) -> tuple[str, ...]:
    """The same entities, each beginning with a ``B-``.

    Of files that write ``B-`` only between neighbours of one type (IOB1), and of slips.

    Example:
        >>> as_bio(["I-PER", "I-PER", "O", "B-LOC", "I-PER"])
        ('B-PER', 'I-PER', 'O', 'B-LOC', 'B-PER')
    """
    mended = list(tags)
    for kind, first, end in entities(tags):
        mended[first:end] = [f"B-{kind}", *[f"I-{kind}"] * (end - first - 1)]
    return tuple(mended)


def is_bio(tags: Collection[str]) -> bool:
    """Whether tags mark entities: all are ``O``, ``B-X`` or ``I-X``, and some are not ``O``.

    Example:
        >>> is_bio(["O", "B-PER"]), is_bio(["NOUN", "VERB"]), is_bio(["O"])
        (True, False, False)
    """
    return all(tag == "O" or tag[:2] in ("B-", "I-") for tag in tags) and any(
        tag != "O" for tag in tags
    )


def entity_scores(
    given: Sequence[Sequence[str]], right: Sequence[Sequence[str]]
) -> tuple[LabelScore, list[LabelScore]]:
    """Precision, recall and F1 of whole entities, over all types and of each.

    An entity counts where its type and both its ends are right: Tjong Kim Sang & De Meulder (2003),
    https://aclanthology.org/W03-0419.

    Args:
        given: The tags of each sentence.
        right: The right ones.

    Raises:
        DataError: A sentence has more or fewer tags than are right.

    Example:
        >>> all_types, each = entity_scores([["B-A", "O", "B-B"]], [["B-A", "O", "B-A"]])
        >>> all_types.f1, [(score.label, score.f1) for score in each]
        (50.0, [('A', 66.66666666666667), ('B', 0.0)])
    """
    hits: Counter[str] = Counter()
    given_counts: Counter[str] = Counter()
    right_counts: Counter[str] = Counter()
    for place, (ours, theirs) in enumerate(zip(given, right, strict=True)):
        if len(ours) != len(theirs):
            raise DataError(
                f"tags must be as many as are right; got {len(ours)} for {len(theirs)} words in "
                f"sentence {place + 1}."
            )
        found, gold = set(entities(ours)), set(entities(theirs))
        hits.update(kind for kind, _, _ in found & gold)
        given_counts.update(kind for kind, _, _ in found)
        right_counts.update(kind for kind, _, _ in gold)
    each = [
        label_score(kind, hits[kind], given_counts[kind], right_counts[kind])
        for kind in sorted(given_counts | right_counts)
    ]
    return label_score("all", hits.total(), given_counts.total(), right_counts.total()), each
