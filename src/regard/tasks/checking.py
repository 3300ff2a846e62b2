"""Checks of examples before a long training, for faults that spoil it or its results."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace

import numpy as np

from regard.config import JsonValue
from regard.errors import DataError
from regard.progress import progress
from regard.tasks.oddities import FINDERS, CheckedExample, Corpus
from regard.text import BadLines
from regard.text.languages import length_unit, side_script
from regard.text.normalization import split_words
from regard.text.reading.records import HARMLESS

_MOST_LABELS = 10
_SPLITS = ("train", "valid", "test")


@dataclass(frozen=True, slots=True)
class Finding:
    """One kind of oddity."""

    kind: str
    count: int
    meaning: str
    is_problem: bool
    examples: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TextSummary:
    """Summary of training texts; lengths are in words, or in characters of an unspaced script."""

    distinct: int
    characters: int
    script: str
    unit: str
    mean: float
    median: int
    p95: int
    longest: int
    longest_where: str

    @classmethod
    def of(cls, texts: Sequence[tuple[str, str]]) -> "TextSummary":
        """Summarise texts and where they were read."""
        plain = [text for text, _ in texts]
        sizes = [sum(word != " " for word in split_words(text)) for text in plain]
        longest, script = int(np.argmax(sizes)), side_script(plain)
        median, p95 = np.quantile(sizes, [0.5, 0.95], method="inverted_cdf").tolist()
        return cls(
            distinct=len(set(plain)),
            characters=len(set().union(*plain) - {" "}),
            script=script,
            unit=length_unit(script),
            mean=float(np.mean(sizes)),
            median=int(median),
            p95=int(p95),
            longest=sizes[longest],
            longest_where=texts[longest][1],
        )

    def lines(self, name: str) -> list[str]:
        """The summary for people."""
        script = f", mostly {self.script}" if self.script else ""
        return [
            f"{name}: {self.distinct:,} distinct, {self.characters:,} characters{script}",
            f"    {self.mean:.1f} {self.unit} on average, half at most {self.median}, "
            f"95 % at most {self.p95}, the longest {self.longest} ({self.longest_where})",
        ]


@dataclass(frozen=True, slots=True)
class CheckReport:
    """Findings of ``check_examples``, problems first."""

    unit: str
    counts: Mapping[str, int]  # of each split
    sides: Mapping[str, TextSummary]  # of training: ``source`` and ``target``, or ``text``
    labels: Mapping[str, int]  # of training, the most frequent first
    findings: tuple[Finding, ...]

    @property
    def problems(self) -> tuple[Finding, ...]:
        """The findings that something should be done about."""
        return tuple(finding for finding in self.findings if finding.is_problem)

    def with_refusal(self, reason: str) -> "CheckReport":
        """The report with the reason for which a training refuses the text."""
        refusal = Finding("refused", 1, "`regard train` refuses this", True, (reason,))
        return replace(self, findings=(refusal, *self.findings))

    def to_dict(self) -> dict[str, JsonValue]:
        """The report as plain data, for JSON."""
        return asdict(self)

    def lines(self) -> list[str]:
        """The report for people: problems with ``!`` and examples below; a line for others."""
        counts = "; ".join(f"{name}: {count:,}" for name, count in self.counts.items())
        lines = [f"{self.unit}: {counts}"]
        for name, side in self.sides.items():
            lines += side.lines(name)
        if self.labels:
            total = sum(self.labels.values())
            labels = [
                f"{label} {count:,} ({count / total:.1%})"
                for label, count in list(self.labels.items())[:_MOST_LABELS]
            ]
            if len(self.labels) > _MOST_LABELS:
                labels.append(f"and {len(self.labels) - _MOST_LABELS:,} more")
            lines.append(f"labels: {', '.join(labels)}")
        for finding in self.findings:
            head = f"{'!' if finding.is_problem else '-'} {finding.meaning}: {finding.count:,}"
            if finding.is_problem:
                lines += [head, *(f"    {example}" for example in finding.examples)]
            else:
                lines.append("; ".join([head, *finding.examples[:1]]))
        return lines if self.problems else [*lines, "No problems found."]


def check_examples(
    read: Callable[[str, BadLines], Sequence[CheckedExample]],
    *,
    unit: str,
    examples: int = 3,
    are_texts: bool = True,
    is_translation: bool = False,
) -> CheckReport:
    """Look for examples that spoil a training or its results; DataError without examples."""
    bad_lines = BadLines()
    every = {split: read(split, bad_lines) for split in _SPLITS}
    corpus = Corpus({k: v for k, v in every.items() if v}, unit, are_texts, is_translation)
    if "train" not in corpus.splits:
        raise DataError("data.train must name examples to check; got none.")
    findings = [
        Finding(
            "bad lines",
            count,
            f"lines left out ({reason})"
            if reason in HARMLESS
            else f"lines that cannot be read ({reason}), which stop a training unless "
            "--on-bad-line skip leaves them out",
            reason not in HARMLESS,
            tuple(bad_lines.examples[reason][:examples]),
        )
        for reason, count in bad_lines.counts.items()
    ]
    with progress("checking", len(FINDERS)) as advance:
        for find in FINDERS:
            findings += [
                Finding(kind, len(cases), meaning, is_problem, tuple(cases[:examples]))
                for kind, cases, meaning, is_problem in find(corpus)
                if cases
            ]
            advance(1)
    sides = corpus.sides("train") if are_texts else {}
    labels = Counter(label for one in corpus.train for label in one.labels)
    return CheckReport(
        unit=unit,
        counts={split: len(part) for split, part in corpus.splits.items()},
        sides={name: TextSummary.of(texts) for name, texts in sides.items()},
        labels=dict(labels.most_common()),
        findings=tuple(sorted(findings, key=lambda finding: not finding.is_problem)),
    )
