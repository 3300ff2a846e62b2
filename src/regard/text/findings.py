"""The oddities that ``check_pairs`` looks for, one function each."""

from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass

import numpy as np

from regard.config import JsonValue
from regard.text.languages import markup, misplaced, misreading, stray_character
from regard.text.reading.lines import BadLines
from regard.text.reading.pairs import Pair
from regard.text.reading.records import HARMLESS
from regard.text.tokenizers.pieces import Tokenizer
from regard.text.tokenizers.tokenizer import PairTokenizer

_SHOWN = 60  # characters of a sentence in an example
_FAR = 6.0  # deviations from the usual ratio of lengths; real corpora have long tails
_SPREAD_OF_NORMAL = 1.4826  # standard deviation over the median absolute one

_SIDES = ("source", "target")


@dataclass(frozen=True, slots=True)
class Finding:
    """One kind of oddity.

    Attributes:
        kind: A short name, the same in every report.
        count: How many lines, pairs or characters have it.
        meaning: What is counted.
        is_problem: Whether something should be done about it; some are only worth knowing.
        examples: The first ones, as ``file:line: text``.
    """

    kind: str
    count: int
    meaning: str
    is_problem: bool
    examples: tuple[str, ...]


class CheckReport(ABC):
    """Findings of one check, problems first."""

    __slots__ = ()

    findings: tuple[Finding, ...]

    @property
    def problems(self) -> tuple[Finding, ...]:
        """The findings that something should be done about."""
        return tuple(finding for finding in self.findings if finding.is_problem)

    def to_dict(self) -> dict[str, JsonValue]:
        """The report as plain data, for JSON."""
        table: dict[str, JsonValue] = asdict(self)  # type: ignore[call-overload]
        return table

    @abstractmethod
    def lines(self) -> list[str]:
        """The report for people; ``!`` marks problems, and examples stand below."""


def described_findings(findings: Sequence[Finding]) -> list[str]:
    """Findings for people; ``!`` marks problems, and examples stand below."""
    lines = []
    for finding in findings:
        sign = "!" if finding.is_problem else "-"
        lines.append(f"{sign} {finding.meaning}: {finding.count:,}")
        lines += [f"    {example}" for example in finding.examples]
    if not any(finding.is_problem for finding in findings):
        lines.append("No problems found.")
    return lines


# Whether a text is spoilt: kind, what finds the sign of it, meaning, whether it is a problem.
SPOILT: tuple[tuple[str, Callable[[str], str | None], str, bool], ...] = (
    ("encoding", misreading, "texts that look decoded from the wrong encoding", True),
    ("characters", stray_character, "texts with control or private-use characters", True),
    ("markup", markup, "texts with HTML entities or tags", False),
)


@dataclass(frozen=True, slots=True)
class Data:
    """Sets to check: the training pairs, and others by name."""

    train: Sequence[Pair]
    held_out: Mapping[str, Sequence[Pair]]
    tokenizer: PairTokenizer | None
    bad_lines: BadLines
    examples: int

    def everything(self) -> Iterator[Pair]:
        """The pairs of all sets."""
        yield from self.train
        for pairs in self.held_out.values():
            yield from pairs

    def finding(
        self, kind: str, cases: Sequence[str], meaning: str, *, is_problem: bool = True
    ) -> Finding:
        """A finding that keeps the first of ``cases``."""
        return Finding(kind, len(cases), meaning, is_problem, tuple(cases[: self.examples]))


def bad_lines(data: Data) -> Iterator[Finding]:
    """Lines that reading left out, by reason."""
    for reason, count in data.bad_lines.counts.items():
        examples = tuple(data.bad_lines.examples[reason][: data.examples])
        meaning, is_problem = f"lines left out, {reason}", reason not in HARMLESS
        yield Finding("bad lines", count, meaning, is_problem, examples)


def overlaps(data: Data) -> Iterator[Finding]:
    """Held-out pairs with a side that occurs in training, case, spaces and punctuation aside."""
    first: dict[str, dict[str, str]] = {side: {} for side in _SIDES}
    for pair in data.train:
        for side in _SIDES:
            first[side].setdefault(_folded(getattr(pair, side)), _location(pair, side))
    for name, pairs in data.held_out.items():
        for side in _SIDES:
            cases = [
                f"{_location(pair, side)} = {earlier}: {_short(getattr(pair, side))}"
                for pair in pairs
                if (earlier := first[side].get(_folded(getattr(pair, side))))
            ]
            meaning = f"pairs of {name} whose {side} occurs in training, so that results flatter"
            yield data.finding("overlap", cases, meaning)


def wrong_encodings(data: Data) -> Iterator[Finding]:
    """Text decoded wrongly, characters that no text should hold, markup."""
    for kind, test, meaning, is_problem in SPOILT:
        cases = [
            f"{_location(pair, side)}: {sign}: {_short(text)}"
            for pair in data.everything()
            for side in _SIDES
            if (sign := test(text := getattr(pair, side)))
        ]
        yield data.finding(kind, cases, meaning, is_problem=is_problem)


def wrong_languages(data: Data) -> Iterator[Finding]:
    """Pairs whose sides are exchanged, or both in one language."""
    indices = misplaced([pair.source for pair in data.train], [pair.target for pair in data.train])
    for name, kind, meaning in (
        ("exchanged", "exchanged", "pairs that look exchanged, source for target"),
        ("source", "language", "sources that look like the target's language"),
        ("target", "language", "targets that look like the source's language"),
    ):
        yield data.finding(kind, [_at(data.train[i]) for i in indices[name]], meaning)
    copies = [_at(pair) for pair in data.train if pair.source == pair.target]
    yield data.finding("copies", copies, "pairs with equal sides, not translated", is_problem=False)


def repeats(data: Data) -> Iterator[Finding]:
    """Pairs that occur again, and sentences with several translations."""
    occurrences: dict[tuple[str, str], list[Pair]] = defaultdict(list)
    for pair in data.train:
        occurrences[pair.source, pair.target].append(pair)
    again = [pair for group in occurrences.values() for pair in group[1:]]
    first = {key: group[0].where for key, group in occurrences.items()}
    cases = [f"{pair.where} = {first[pair.source, pair.target]}: {_both(pair)}" for pair in again]
    yield data.finding("duplicates", cases, "pairs that repeat an earlier pair", is_problem=False)
    for side in _SIDES:
        groups: dict[str, list[Pair]] = defaultdict(list)
        for group in occurrences.values():
            groups[getattr(group[0], side)].append(group[0])
        cases = [
            f"{_location(group[0], side)}: {_short(text)} ({len(group)} times)"
            for text, group in groups.items()
            if len(group) > 1
        ]
        other = "target" if side == "source" else "source"
        meaning = f"{side}s with more than one {other}"
        yield data.finding(f"repeated {side}s", cases, meaning, is_problem=False)


def odd_ratios(data: Data) -> Iterator[Finding]:
    """Pairs whose lengths in characters do not fit: the measure of Gale & Church (1993)."""
    lengths = np.array([[len(pair.source), len(pair.target)] for pair in data.train], dtype=float).T
    if lengths.size == 0:
        return
    source, target = lengths
    ratio = float(np.median(target / source))
    deviation = (target - ratio * source) / np.sqrt((target + ratio * source) / 2)
    spread = _SPREAD_OF_NORMAL * float(np.median(np.abs(deviation - np.median(deviation))))
    far = np.abs(deviation - np.median(deviation)) > _FAR * max(spread, 0.1)
    cases = [
        f"{pair.where}: {len(pair.source)} and {len(pair.target)} characters: {_both(pair)}"
        for pair, is_far in zip(data.train, far, strict=True)
        if is_far
    ]
    meaning = f"pairs with lengths far from the usual 1 to {ratio:.2f}, perhaps no translations"
    yield data.finding("lengths", cases, meaning)


def unknown_characters(data: Data) -> Iterator[Finding]:
    """Characters that the tokenizer loses or spells in bytes; or, without one, that are new."""
    for side in _SIDES:
        if data.tokenizer is None:
            yield from _new_characters(data, side)
        else:
            yield from _hard_characters(data, side, getattr(data.tokenizer, side))


def _new_characters(data: Data, side: str) -> Iterator[Finding]:
    known = set().union(*(getattr(pair, side) for pair in data.train))
    for name, pairs in data.held_out.items():
        cases = _character_cases(pairs, side, lambda char: char not in known)
        meaning = f"characters in {side}s of {name} that never occur in training"
        yield data.finding("new characters", cases, meaning, is_problem=False)


def _hard_characters(data: Data, side: str, tokenizer: Tokenizer) -> Iterator[Finding]:
    def is_lost(char: str) -> bool:
        return tokenizer.unk_id in tokenizer.encode(char)

    def is_spelled(char: str) -> bool:
        return any(piece.text.startswith("<0x") for piece in tokenizer.pieces(char))

    pairs = list(data.everything())
    lost = _character_cases(pairs, side, is_lost)
    meaning = f"characters in {side}s that the tokenizer does not know and loses"
    yield data.finding("lost characters", lost, meaning)
    spelled = _character_cases(pairs, side, is_spelled)
    meaning = f"characters in {side}s that the tokenizer spells in bytes"
    yield data.finding("spelled characters", spelled, meaning, is_problem=False)


FINDERS: tuple[Callable[[Data], Iterator[Finding]], ...] = (
    bad_lines,
    overlaps,
    wrong_encodings,
    wrong_languages,
    odd_ratios,
    unknown_characters,
    repeats,
)


def _character_cases(pairs: Sequence[Pair], side: str, is_odd: Callable[[str], bool]) -> list[str]:
    """One case per odd character: where it first occurs."""
    first: dict[str, Pair] = {}
    for pair in pairs:
        for char in set(getattr(pair, side)).difference(first):
            first[char] = pair
    return [
        f"{_location(pair, side)}: {char!r} in {_short(getattr(pair, side))}"
        for char, pair in sorted(first.items())
        if char != " " and is_odd(char)
    ]


def _folded(text: str) -> str:
    """``text`` without case, spaces and punctuation; as it is, if it is nothing else."""
    return "".join(filter(str.isalnum, text.casefold())) or text


def _at(pair: Pair) -> str:
    return f"{pair.where}: {_both(pair)}"


def _both(pair: Pair) -> str:
    return f"{_short(pair.source)} | {_short(pair.target)}"


def _location(pair: Pair, side: str) -> str:
    return pair.where if side == "source" else pair.target_where or pair.where


def _short(text: str) -> str:
    return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"
