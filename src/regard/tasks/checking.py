"""Checks of a task's examples before training."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from regard.errors import DataError
from regard.text import BadLines, Finding, normalize
from regard.text.checking import Lengths, described_lengths, lengths_of
from regard.text.findings import SPOILT, CheckReport, described_findings
from regard.text.reading.records import HARMLESS

_SHOWN = 60  # characters of a text in an example
_FEW = 10  # examples of a label below which little can be learned of it
_MOST_LABELS = 20
_SPLITS = ("train", "valid", "test")


@dataclass(frozen=True, slots=True)
class CheckedExample:
    """Texts and labels of an example of any task."""

    parts: tuple[str, ...]  # its input: one text, or several
    labels: tuple[str, ...]  # one label, a tag for each word, or nothing to count
    where: str
    answers: tuple[str, ...] = ()  # true answers in words of their own, or choices

    @property
    def text(self) -> str:
        """The whole input."""
        return "\t".join(self.parts)

    def sign(self, test: Callable[[str], str | None]) -> str | None:
        """Finding of a check in the first of its texts that has one."""
        texts = map(normalize, (*self.parts, *self.answers))
        return next(filter(None, map(test, texts)), None)


_Splits: TypeAlias = Mapping[str, Sequence[CheckedExample]]
# A kind of finding, its cases, their meaning, and whether something should be done about them.
_Note: TypeAlias = tuple[str, Sequence[str], str, bool]


@dataclass(frozen=True, slots=True)
class ExamplesReport(CheckReport):
    """Findings of ``check_examples``, problems first."""

    unit: str
    counts: Mapping[str, int]  # of each split
    labels: Mapping[str, int]  # of training, the most frequent first
    lengths: Lengths | None  # of training texts; None of numbers and pictures
    findings: tuple[Finding, ...]

    def lines(self) -> list[str]:
        counts = "; ".join(f"{name}: {count:,}" for name, count in self.counts.items())
        lines = [f"{self.unit}: {counts}"]
        if self.lengths is not None:
            lines.append(f"    {described_lengths(self.lengths)}")
        total = sum(self.labels.values())
        for label, count in list(self.labels.items())[:_MOST_LABELS]:
            lines.append(f"    {label}: {count:,} ({count / total:.1%})")
        if len(self.labels) > _MOST_LABELS:
            lines.append(f"    and {len(self.labels) - _MOST_LABELS:,} labels more")
        return [*lines, *described_findings(self.findings)]


def check_examples(
    read: Callable[[str, BadLines], Sequence[CheckedExample]],
    *,
    unit: str,
    examples: int = 3,
    are_texts: bool = True,
) -> ExamplesReport:
    """Look for what spoils a training or makes its results untrue; DataError without examples."""
    bad_lines = BadLines()
    every = {split: read(split, bad_lines) for split in _SPLITS}
    splits = {split: part for split, part in every.items() if part}
    if "train" not in splits:
        raise DataError("data.train must name examples to check; got none.")
    train = splits["train"]
    labels = Counter(label for one in train for label in one.labels)
    findings = [
        Finding(
            "bad lines",
            count,
            f"{reason} left out",
            reason not in HARMLESS,
            tuple(bad_lines.examples[reason][:examples]),
        )
        for reason, count in bad_lines.counts.items()
    ]
    notes = (*_overlaps(splits), *_labels(splits, labels), *_repeats(train), *_encodings(splits))
    for kind, cases, meaning, is_problem in notes:
        if cases:
            findings.append(Finding(kind, len(cases), meaning, is_problem, tuple(cases[:examples])))
    locations = [one.where for one in train]
    return ExamplesReport(
        unit=unit,
        counts={split: len(part) for split, part in splits.items()},
        labels=dict(labels.most_common()),
        lengths=lengths_of([one.text for one in train], locations) if are_texts else None,
        findings=tuple(sorted(findings, key=lambda finding: not finding.is_problem)),
    )


def _overlaps(splits: _Splits) -> Iterator[_Note]:
    """Held-out texts that occur in training."""
    first: dict[str, str] = {}
    for one in splits["train"]:
        first.setdefault(one.text, one.where)
    for split, part in splits.items():
        if split != "train":
            cases = [
                f"{one.where} = {first[one.text]}: {_short(one.text)}"
                for one in part
                if one.text in first
            ]
            meaning = f"texts of {split} that occur in training, so that results flatter"
            yield "overlap", cases, meaning, True


def _labels(splits: _Splits, counts: Mapping[str, int]) -> Iterator[_Note]:
    """Labels that training does not have, or hardly has."""
    for split, part in splits.items():
        if split != "train" and counts:
            cases = [
                f"{one.where}: {label!r}: {_short(one.text)}"
                for one in part
                for label in dict.fromkeys(one.labels)
                if label not in counts
            ]
            meaning = f"labels in {split} that training does not have. Is it the right column?"
            yield "unknown label", cases, meaning, True
    rare = [f"{label}: {count}" for label, count in counts.items() if count < _FEW]
    yield "rare label", rare, f"labels with fewer than {_FEW} examples in training", False


def _repeats(train: Sequence[CheckedExample]) -> Iterator[_Note]:
    """Texts that occur again, and those with several labels."""
    groups: dict[str, list[CheckedExample]] = defaultdict(list)
    for one in train:
        groups[one.text].append(one)
    again = [(one, group[0]) for group in groups.values() for one in group[1:]]
    cases = [f"{one.where} = {first.where}: {_short(one.text)}" for one, first in again]
    yield "duplicates", cases, "training texts that repeat an earlier one", False
    cases = [
        f"{one.where}: {' '.join(one.labels)!r}, at {first.where} "
        f"{' '.join(first.labels)!r}: {_short(one.text)}"
        for one, first in again
        if one.labels != first.labels
    ]
    # A sentence may have other tags in another place; a text's one label may not.
    is_problem = all(len(one.labels) == 1 for one in train)
    yield "contradiction", cases, "training texts labelled otherwise before", is_problem


def _encodings(splits: _Splits) -> Iterator[_Note]:
    """Text decoded wrongly, characters that no text should hold, markup."""
    for kind, test, meaning, is_problem in SPOILT:
        cases = [
            f"{one.where}: {sign}: {_short(one.text)}"
            for part in splits.values()
            for one in part
            if (sign := one.sign(test))
        ]
        yield kind, cases, meaning, is_problem


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _SHOWN else f"{line[: _SHOWN - 1]}…"
