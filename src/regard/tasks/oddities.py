"""Finders of examples that spoil a training, or make its results untrue."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from regard.checks import plural
from regard.metrics.labels import combined_labels
from regard.text import normalize
from regard.text.languages import main_script, markup, misplaced, misreading, stray_character

_SHOWN = 60  # characters of a text in a case
_FEW = 10  # examples of a label below which little can be learned of it
_FEW_OTHERS = 0.1  # of the texts, that have another label than most
_FAR = 6.0  # deviations from the usual ratio of lengths; real corpora have long tails
_SPREAD_OF_NORMAL = 1.4826  # standard deviation over the median absolute one
# Labels that may say that an example has none.
_NO_LABEL = ("none", "null", "n/a", "na", "-", "--", "?", "unknown", "无", "空")
# Signs of a spoilt text: kind, test, meaning, whether it is a problem.
_SPOILT: tuple[tuple[str, Callable[[str], str | None], str, bool], ...] = (
    ("encoding", misreading, "texts that look decoded from the wrong encoding", True),
    ("characters", stray_character, "texts with control or private-use characters", True),
    ("markup", markup, "texts with HTML entities or tags", False),
)


@dataclass(frozen=True, slots=True)
class CheckedExample:
    """Texts and labels of an example of any task."""

    parts: tuple[str, ...]  # its input: one text, or several; of a translation, both sides
    labels: tuple[str, ...]  # one label, a tag for each word, or nothing to count
    where: str
    answers: tuple[str, ...] = ()  # true answers in words of their own, or choices
    target_where: str | None = None  # of a translation whose target is in another file

    @property
    def text(self) -> str:
        """The parts in one text."""
        return "\t".join(self.parts)

    def side(self, number: int) -> tuple[str, str]:
        """One part, and where it was read."""
        return self.parts[number], (self.target_where if number else None) or self.where

    def texts(self) -> list[tuple[str, str]]:
        """All parts and answers, and where they were read."""
        sides = map(self.side, range(len(self.parts)))
        return [*sides, *((answer, self.where) for answer in self.answers)]


# A kind of finding, its cases, their meaning, and whether something should be done about them.
Note = tuple[str, Sequence[str], str, bool]


@dataclass(frozen=True, slots=True)
class Corpus:
    """Examples to check, by split; translations are compared side by side."""

    splits: Mapping[str, Sequence[CheckedExample]]
    unit: str
    are_texts: bool
    is_translation: bool

    @property
    def train(self) -> Sequence[CheckedExample]:
        """The training examples."""
        return self.splits["train"]

    def sides(self, split: str) -> dict[str, list[tuple[str, str]]]:
        """The texts of a split and where they were read: those of each side, or the whole ones."""
        part = self.splits[split]
        if not self.is_translation:
            return {"text": [(one.text, one.where) for one in part]}
        return {n: [one.side(i) for one in part] for i, n in enumerate(("source", "target"))}

    def held_out(self) -> Iterator[tuple[str, str, list[tuple[str, str]], list[tuple[str, str]]]]:
        """Each held-out split and side: their names, the side's texts and those of training."""
        training = self.sides("train")
        for split in self.splits:
            if split != "train":
                for name, texts in self.sides(split).items():
                    yield split, name, texts, training[name]


def _overlaps(corpus: Corpus) -> Iterator[Note]:
    """Held-out texts that occur in training, case, spaces and punctuation aside."""
    fold = _folded if corpus.are_texts else str
    for split, name, texts, of_training in corpus.held_out():
        first = {fold(text): where for text, where in reversed(of_training)}
        cases = [
            f"{where} = {first[fold(text)]}: {_short(text)}"
            for text, where in texts
            if fold(text) in first
        ]
        meaning = f"{corpus.unit} of {split} whose {name} occurs in training, so that results"
        yield "overlap", cases, f"{meaning} flatter", True


def _labels(corpus: Corpus) -> Iterator[Note]:
    """Labels that training does not have, or hardly has."""
    counts = Counter(label for one in corpus.train for label in one.labels)
    for split, part in corpus.splits.items():
        if split != "train" and counts:
            cases = [
                f"{one.where}: {label!r}: {_short(one.text)}"
                for one in part
                for label in dict.fromkeys(one.labels)
                if label not in counts
            ]
            meaning = f"labels in {split} that training does not have. Is it the right column?"
            yield "unknown label", cases, meaning, True
    spellings: dict[str, list[str]] = {}
    for label in counts:
        spellings.setdefault("".join(label.casefold().split()), []).append(label)
    cases = [
        ", ".join(f"{label!r} {counts[label]:,}" for label in group)
        for group in spellings.values()
        if len(group) > 1
    ]
    meaning = "labels that differ in capitals or spaces alone, and are learned as different ones"
    yield "spellings", cases, meaning, True
    rare = [f"{label}: {n}" for label, n in counts.most_common() if n < _FEW]
    yield "rare label", rare, f"labels with fewer than {_FEW} examples in training", False


def _single_labels(corpus: Corpus) -> Iterator[Note]:
    """Labels that say none or several, and few texts with another label than all others."""
    counts = Counter(label for one in corpus.train for label in one.labels)
    if len(counts) < 2 or not all(len(one.labels) == 1 for one in corpus.train):
        return
    no_label = set(_NO_LABEL) - ({"-", "--"} if counts.keys() & {"+", "++"} else set())
    cases = [f"{label!r}: {n:,}" for label, n in counts.items() if label.casefold() in no_label]
    meaning = "labels that read like none at all. Unless they are classes, leave their texts out"
    yield "no label", cases, meaning, False
    cases = [f"{label!r}: {counts[label]:,}" for label in combined_labels(counts)]
    meaning = "labels that hold several, each combination learned as a class of its own. Leave the"
    yield "combined label", cases, f"{meaning} one that decides", True
    ((most, count),) = counts.most_common(1)
    minority = counts.total() - count
    cases = [
        f"{one.where}: {one.labels[0]!r}: {_short(one.text)}"
        for one in corpus.train
        if one.labels[0] != most
    ]
    is_one = minority < _FEW and minority < _FEW_OTHERS * counts.total()
    meaning = f"texts that are not {most!r}, as all others are: too few to learn them"
    yield "one label", cases if is_one else [], meaning, True


def _encodings(corpus: Corpus) -> Iterator[Note]:
    """Text decoded wrongly, characters that no text should hold, markup."""
    for kind, test, meaning, is_problem in _SPOILT:
        cases = [
            f"{where}: {sign}: {_short(text)}"
            for part in corpus.splits.values()
            for one in part
            for text, where in one.texts()
            if (sign := test(normalize(text)))
        ]
        yield kind, cases, meaning, is_problem


def _languages(corpus: Corpus) -> Iterator[Note]:
    """Translations whose sides are exchanged, or both in one language."""
    if not corpus.is_translation:
        return
    indices = misplaced(*([one.parts[side] for one in corpus.train] for side in (0, 1)))
    exchanged = "pairs that look exchanged"
    if indices["exchanged"]:
        source, target = map(main_script, corpus.train[indices["exchanged"][0]].parts)
        exchanged += f" ({source} to {target}; the others are {target} to {source})"
    for name, kind, meaning in (
        ("exchanged", "exchanged", exchanged),
        ("source", "language", "sources that look like the target's language"),
        ("target", "language", "targets that look like the source's language"),
    ):
        yield kind, [_both(corpus.train[index]) for index in indices[name]], meaning, True
    copies = [_both(one) for one in corpus.train if one.parts[0] == one.parts[1]]
    yield "copies", copies, "pairs with equal sides, not translated", False


def _ratios(corpus: Corpus) -> Iterator[Note]:
    """Translations whose lengths in characters do not fit: the measure of Gale & Church (1993)."""
    if not corpus.is_translation:
        return
    source, target = np.array([[len(part) for part in one.parts] for one in corpus.train], float).T
    ratio = float(np.median(target / source))
    deviation = (target - ratio * source) / np.sqrt((target + ratio * source) / 2)
    spread = _SPREAD_OF_NORMAL * float(np.median(np.abs(deviation - np.median(deviation))))
    far = np.abs(deviation - np.median(deviation)) > _FAR * max(spread, 0.1)
    cases = [
        f"{one.where}: {len(one.parts[0])} and {len(one.parts[1])} characters: {_sides(one)}"
        for one, is_far in zip(corpus.train, far, strict=True)
        if is_far
    ]
    meaning = f"pairs with lengths far from the usual 1 to {ratio:.2f}, perhaps no translations"
    yield "lengths", cases, meaning, True


def _characters(corpus: Corpus) -> Iterator[Note]:
    """Characters of held-out texts that training does not have, each where it first occurs."""
    for split, name, texts, training in corpus.held_out() if corpus.are_texts else ():
        alphabet = {" "}.union(*(text for text, _ in training))
        first: dict[str, str] = {}
        for text, where in texts:
            for char in set(text).difference(alphabet, first):
                first[char] = f"{where}: {char!r} in {_short(text)}"
        cases = [case for _, case in sorted(first.items())]
        meaning = f"characters in {plural(name)} of {split} that never occur in training"
        yield "new characters", cases, meaning, False


def _repeats(corpus: Corpus) -> Iterator[Note]:
    """Texts that occur again, those with several labels, sides with several translations."""
    first: dict[str, CheckedExample] = {}
    every = [(one, first.setdefault(one.text, one)) for one in corpus.train]
    again = [(one, earlier) for one, earlier in every if one is not earlier]
    cases = [f"{one.where} = {earlier.where}: {_sides(one)}" for one, earlier in again]
    yield "duplicates", cases, f"training {corpus.unit} that repeat an earlier one", False
    cases = [
        f"{one.where}: {' '.join(one.labels)!r}, at {earlier.where} "
        f"{' '.join(earlier.labels)!r}: {_short(one.text)}"
        for one, earlier in again
        if one.labels != earlier.labels
    ]
    # A sentence may have other tags elsewhere; a text's one label may not.
    is_problem = all(len(one.labels) == 1 for one in corpus.train)
    yield "contradiction", cases, "training texts labelled otherwise before", is_problem
    for side, (name, opposite) in enumerate((("source", "target"), ("target", "source"))):
        groups: dict[str, dict[str, CheckedExample]] = {}
        for one in corpus.train if corpus.is_translation else ():
            groups.setdefault(one.parts[side], {}).setdefault(one.parts[1 - side], one)
        cases = [
            f"{next(iter(group.values())).side(side)[1]}: {_short(text)} ({len(group)} times)"
            for text, group in groups.items()
            if len(group) > 1
        ]
        meaning = f"{plural(name)} with more than one {opposite}"
        yield f"repeated {plural(name)}", cases, meaning, False


FINDERS: tuple[Callable[[Corpus], Iterator[Note]], ...] = (
    _overlaps,
    _labels,
    _single_labels,
    _encodings,
    _languages,
    _ratios,
    _characters,
    _repeats,
)


def _folded(text: str) -> str:
    """A text without case, spaces and punctuation; as it is, if it is nothing else."""
    return "".join(filter(str.isalnum, text.casefold())) or text


def _both(one: CheckedExample) -> str:
    return f"{one.where}: {_sides(one)}"


def _sides(one: CheckedExample) -> str:
    return " | ".join(map(_short, one.parts))


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _SHOWN else f"{line[: _SHOWN - 1]}…"
