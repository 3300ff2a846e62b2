"""Checks of a task's examples before training."""

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Protocol, runtime_checkable

from regard.config import JsonValue
from regard.errors import DataError
from regard.text import BadLines, Finding, normalize
from regard.text.checking import Lengths, described_lengths, lengths_of
from regard.text.findings import SPOILT, described_findings
from regard.text.reading.records import HARMLESS

_SHOWN = 60  # characters of a text in an example
_FEW = 10  # examples of a label below which little can be learned of it
_MOST_LABELS = 20
_SPLITS = ("train", "valid", "test")


@dataclass(frozen=True, slots=True)
class CheckedExample:
    """Texts and labels of an example of any task.

    Attributes:
        parts: What is asked about: one text, or several.
        labels: What is right: one label, a tag for each word, or nothing to count.
        where: ``file:line``.
        answers: What is right in words of its own, or to be chosen from.
    """

    parts: tuple[str, ...]
    labels: tuple[str, ...]
    where: str
    answers: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """All that is asked about."""
        return "\t".join(self.parts)

    def sign(self, test: Callable[[str], str | None]) -> str | None:
        """Finding of a check in the first of its texts that has one."""
        texts = map(normalize, (*self.parts, *self.answers))
        return next(filter(None, map(test, texts)), None)


@runtime_checkable
class CheckReport(Protocol):
    """Findings of one check."""

    @property
    def problems(self) -> Sequence[Finding]:
        """The findings that something should be done about."""

    def to_dict(self) -> dict[str, JsonValue]:
        """The report as plain data, for JSON."""

    def lines(self) -> list[str]:
        """The report for people; ``!`` marks problems."""


@dataclass(frozen=True, slots=True)
class ExamplesReport:
    """Findings of ``check_examples``.

    Attributes:
        unit: What examples are called.
        counts: Examples of each split.
        labels: How often each label or tag occurs in training, most often first.
        lengths: How long the training texts are; None of numbers and pictures.
        findings: What is odd, problems first.
    """

    unit: str
    counts: Mapping[str, int]
    labels: Mapping[str, int]
    lengths: Lengths | None
    findings: tuple[Finding, ...]

    @property
    def problems(self) -> tuple[Finding, ...]:
        """The findings that something should be done about."""
        return tuple(finding for finding in self.findings if finding.is_problem)

    def to_dict(self) -> dict[str, JsonValue]:
        """The report as plain data, for JSON."""
        return asdict(self)

    def lines(self) -> list[str]:
        """The report for people; ``!`` marks problems, and examples stand below."""
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
    """Look for what spoils a training or makes its results untrue.

    Args:
        read: What the examples of a split say, given its name and where lines left out are counted.
        unit: What examples are called, in the plural.
        examples: How many to keep of each kind.
        are_texts: Whether they have a length.

    Raises:
        DataError: There are no training examples, or a file cannot be read.
    """
    bad_lines = BadLines()
    every = {split: read(split, bad_lines) for split in _SPLITS}
    said = {split: found for split, found in every.items() if found}
    if "train" not in said:
        raise DataError("data.train must name examples to check; got none.")
    notes = _Notes(said, examples)
    notes.bad_lines(bad_lines)
    notes.overlaps()
    notes.labels()
    notes.repeats()
    notes.encodings()
    train = said["train"]
    counts = Counter(label for one in train for label in one.labels)
    places = [one.where for one in train]
    return ExamplesReport(
        unit=unit,
        counts={split: len(found) for split, found in said.items()},
        labels=dict(counts.most_common()),
        lengths=lengths_of([one.text for one in train], places) if are_texts else None,
        findings=tuple(sorted(notes.found, key=lambda finding: not finding.is_problem)),
    )


@dataclass(slots=True)
class _Notes:
    """The findings so far."""

    said: Mapping[str, Sequence[CheckedExample]]
    kept: int
    found: list[Finding] = field(default_factory=list)

    def add(
        self, kind: str, cases: Sequence[str], meaning: str, *, is_problem: bool = True
    ) -> None:
        if cases:
            self.found.append(
                Finding(kind, len(cases), meaning, is_problem, tuple(cases[: self.kept]))
            )

    def bad_lines(self, bad_lines: BadLines) -> None:
        """Skipped lines, by reason."""
        for reason, count in bad_lines.counts.items():
            shown = tuple(bad_lines.examples[reason][: self.kept])
            is_problem = reason not in HARMLESS
            self.found.append(Finding("bad lines", count, f"{reason} left out", is_problem, shown))

    def overlaps(self) -> None:
        """Held-out texts that occur in training."""
        first: dict[str, str] = {}
        for one in self.said["train"]:
            first.setdefault(one.text, one.where)
        for split, found in self.said.items():
            if split != "train":
                cases = [
                    f"{one.where} = {first[one.text]}: {_short(one.text)}"
                    for one in found
                    if one.text in first
                ]
                meaning = f"texts of {split} that occur in training, so that results flatter"
                self.add("overlap", cases, meaning)

    def labels(self) -> None:
        """Labels that training does not have, or hardly has."""
        counts = Counter(label for one in self.said["train"] for label in one.labels)
        for split, found in self.said.items():
            if split != "train" and counts:
                cases = [
                    f"{one.where}: {label!r}: {_short(one.text)}"
                    for one in found
                    for label in dict.fromkeys(one.labels)
                    if label not in counts
                ]
                meaning = f"labels in {split} that training does not have. Is it the right column?"
                self.add("unknown label", cases, meaning)
        rare = [f"{label}: {count}" for label, count in counts.items() if count < _FEW]
        meaning = f"labels with fewer than {_FEW} examples in training"
        self.add("rare label", rare, meaning, is_problem=False)

    def repeats(self) -> None:
        """Texts that occur again, and those with several labels."""
        groups: dict[str, list[CheckedExample]] = defaultdict(list)
        for one in self.said["train"]:
            groups[one.text].append(one)
        again = [
            f"{one.where} = {group[0].where}: {_short(one.text)}"
            for group in groups.values()
            for one in group[1:]
        ]
        self.add("duplicates", again, "training texts that repeat an earlier one", is_problem=False)
        odd = [
            f"{one.where}: {' '.join(one.labels)!r}, at {group[0].where} "
            f"{' '.join(group[0].labels)!r}: {_short(one.text)}"
            for group in groups.values()
            for one in group[1:]
            if one.labels != group[0].labels
        ]
        # A sentence may have other tags in another place; a text's one label may not.
        is_problem = all(len(one.labels) == 1 for one in self.said["train"])
        meaning = "training texts labelled otherwise before"
        self.add("contradiction", odd, meaning, is_problem=is_problem)

    def encodings(self) -> None:
        """Text decoded wrongly, characters that no text should hold, markup."""
        for kind, test, meaning, is_problem in SPOILT:
            cases = [
                f"{one.where}: {sign}: {_short(one.text)}"
                for found in self.said.values()
                for one in found
                if (sign := one.sign(test))
            ]
            self.add(kind, cases, meaning, is_problem=is_problem)


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _SHOWN else f"{line[: _SHOWN - 1]}…"
