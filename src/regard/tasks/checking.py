"""Checks of examples before a long training: what spoils it, or makes its results untrue."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass

import numpy as np

from regard.config import JsonValue
from regard.errors import DataError
from regard.progress import progress
from regard.text import BadLines, normalize
from regard.text.languages import (
    length_unit,
    main_script,
    markup,
    misplaced,
    misreading,
    side_script,
    stray_character,
)
from regard.text.normalization import split_words
from regard.text.reading.records import HARMLESS

_SHOWN = 60  # characters of a text in a case
_FEW = 10  # examples of a label below which little can be learned of it
_MOST_LABELS = 20
_SMALL = 1000  # examples below which there may be too few to hold some out
_SPLITS = ("train", "valid", "test")
_FAR = 6.0  # deviations from the usual ratio of lengths; real corpora have long tails
_SPREAD_OF_NORMAL = 1.4826  # standard deviation over the median absolute one
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
        """All parts."""
        return "\t".join(self.parts)

    def side(self, number: int) -> tuple[str, str]:
        """One part, and its place."""
        return self.parts[number], (self.target_where if number else None) or self.where

    def texts(self) -> list[tuple[str, str]]:
        """All parts and answers, and their places."""
        sides = map(self.side, range(len(self.parts)))
        return [*sides, *((answer, self.where) for answer in self.answers)]


@dataclass(frozen=True, slots=True)
class Finding:
    """One kind of oddity.

    Attributes:
        kind: A short name, the same in every report.
        count: How many lines, examples or characters have it.
        meaning: What is counted.
        is_problem: Whether something should be done about it; some are only worth knowing.
        examples: The first ones, as ``file:line: text``.
    """

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
        """Summarise texts with their places."""
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

    def to_dict(self) -> dict[str, JsonValue]:
        """The report as plain data, for JSON."""
        return asdict(self)

    def lines(self) -> list[str]:
        """The report for people; ``!`` marks problems, and examples stand below."""
        counts = "; ".join(f"{name}: {count:,}" for name, count in self.counts.items())
        lines = [f"{self.unit}: {counts}"]
        for name, side in self.sides.items():
            lines += side.lines(name)
        total = sum(self.labels.values())
        for label, count in list(self.labels.items())[:_MOST_LABELS]:
            lines.append(f"    {label}: {count:,} ({count / total:.1%})")
        if len(self.labels) > _MOST_LABELS:
            lines.append(f"    and {len(self.labels) - _MOST_LABELS:,} labels more")
        for finding in self.findings:
            sign = "!" if finding.is_problem else "-"
            lines.append(f"{sign} {finding.meaning}: {finding.count:,}")
            lines += [f"    {example}" for example in finding.examples]
        return lines if self.problems else [*lines, "No problems found."]


# A kind of finding, its cases, their meaning, and whether something should be done about them.
_Note = tuple[str, Sequence[str], str, bool]


@dataclass(frozen=True, slots=True)
class _Corpus:
    """Examples to check, by split; translations are compared side by side."""

    splits: Mapping[str, Sequence[CheckedExample]]
    unit: str
    are_texts: bool
    is_translation: bool

    @property
    def train(self) -> Sequence[CheckedExample]:
        return self.splits["train"]

    def sides(self, split: str) -> dict[str, list[tuple[str, str]]]:
        """The texts of a split with their places: those of each side, or the whole ones."""
        part = self.splits[split]
        if not self.is_translation:
            return {"text": [(one.text, one.where) for one in part]}
        return {n: [one.side(i) for one in part] for i, n in enumerate(("source", "target"))}

    def held_out(self) -> Iterator[tuple[str, str, list[tuple[str, str]], list[tuple[str, str]]]]:
        """Each other split, side by side: its name, the side's, its texts and training's."""
        known = self.sides("train")
        for split in self.splits:
            if split != "train":
                for name, texts in self.sides(split).items():
                    yield split, name, texts, known[name]


def check_examples(
    read: Callable[[str, BadLines], Sequence[CheckedExample]],
    *,
    unit: str,
    examples: int = 3,
    are_texts: bool = True,
    is_translation: bool = False,
    split: Callable[[], object] | None = None,
) -> CheckReport:
    """Look for what spoils a training or makes its results untrue; DataError without examples.

    Args:
        read: Returns the examples of a split, and counts lines that are left out.
        unit: Name of the examples, in the plural.
        examples: How many cases to keep of each finding.
        are_texts: Whether the parts are texts, not numbers or pictures.
        is_translation: Whether the two parts of each example say the same in two languages.
        split: Holds examples out as a training does; DataError where it cannot.
    """
    bad_lines = BadLines()
    every = {split: read(split, bad_lines) for split in _SPLITS}
    corpus = _Corpus({k: v for k, v in every.items() if v}, unit, are_texts, is_translation)
    if "train" not in corpus.splits:
        raise DataError("data.train must name examples to check; got none.")
    findings = [
        Finding(
            "bad lines",
            count,
            f"lines left out ({reason})",
            reason not in HARMLESS,
            tuple(bad_lines.examples[reason][:examples]),
        )
        for reason, count in bad_lines.counts.items()
    ]
    if split is not None and len(corpus.train) < _SMALL:
        try:
            split()
        except DataError as error:
            meaning = "reasons for which `regard train` refuses the text"
            findings.append(Finding("refused", 1, meaning, True, (str(error),)))
    with progress("checking", len(_FINDERS)) as advance:
        for find in _FINDERS:
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


def _overlaps(corpus: _Corpus) -> Iterator[_Note]:
    """Held-out texts that occur in training, case, spaces and punctuation aside."""
    fold = _folded if corpus.are_texts else str
    for split, name, texts, known in corpus.held_out():
        first = {fold(text): where for text, where in reversed(known)}
        cases = [
            f"{where} = {first[fold(text)]}: {_short(text)}"
            for text, where in texts
            if fold(text) in first
        ]
        meaning = f"{corpus.unit} of {split} whose {name} occurs in training, so that results"
        yield "overlap", cases, f"{meaning} flatter", True


def _labels(corpus: _Corpus) -> Iterator[_Note]:
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
    rare = [f"{label}: {n}" for label, n in counts.most_common() if n < _FEW]
    yield "rare label", rare, f"labels with fewer than {_FEW} examples in training", False


def _encodings(corpus: _Corpus) -> Iterator[_Note]:
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


def _languages(corpus: _Corpus) -> Iterator[_Note]:
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


def _ratios(corpus: _Corpus) -> Iterator[_Note]:
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


def _characters(corpus: _Corpus) -> Iterator[_Note]:
    """Characters of held-out texts that training does not have, each where it first occurs."""
    for split, name, texts, training in corpus.held_out() if corpus.are_texts else ():
        known = {" "}.union(*(text for text, _ in training))
        first: dict[str, str] = {}
        for text, where in texts:
            for char in set(text).difference(known, first):
                first[char] = f"{where}: {char!r} in {_short(text)}"
        cases = [case for _, case in sorted(first.items())]
        meaning = f"characters in {name}s of {split} that never occur in training"
        yield "new characters", cases, meaning, False


def _repeats(corpus: _Corpus) -> Iterator[_Note]:
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
    # A sentence may have other tags in another place; a text's one label may not.
    is_problem = all(len(one.labels) == 1 for one in corpus.train)
    yield "contradiction", cases, "training texts labelled otherwise before", is_problem
    for side, (name, other) in enumerate((("source", "target"), ("target", "source"))):
        groups: dict[str, dict[str, CheckedExample]] = {}
        for one in corpus.train if corpus.is_translation else ():
            groups.setdefault(one.parts[side], {}).setdefault(one.parts[1 - side], one)
        cases = [
            f"{next(iter(group.values())).side(side)[1]}: {_short(text)} ({len(group)} times)"
            for text, group in groups.items()
            if len(group) > 1
        ]
        yield f"repeated {name}s", cases, f"{name}s with more than one {other}", False


_FINDERS = (_overlaps, _labels, _encodings, _languages, _ratios, _characters, _repeats)


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
