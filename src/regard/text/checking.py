"""Checks of a corpus before a long training."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from regard.errors import DataError
from regard.text.findings import FINDERS, CheckReport, Data, Finding, described_findings
from regard.text.languages import side_script
from regard.text.normalization import split_words
from regard.text.reading.lines import BadLines
from regard.text.reading.pairs import Pair
from regard.text.tokenizers.pieces import Tokenizer
from regard.text.tokenizers.tokenizer import PairTokenizer

# Scripts that put no space between words, as ``side_script`` names them.
_UNSPACED_SCRIPTS = frozenset(
    ("Han or kana", "Bopomofo", "Thai", "Lao", "Khmer", "Myanmar", "Tibetan")
)

# How often ``check_pairs`` reports progress: one summary of each side follows the findings.
STEPS = len(FINDERS) + 2


@dataclass(frozen=True, slots=True)
class Lengths:
    """Lengths of the texts of a side, in tokens, or without a tokenizer in words or characters."""

    unit: str
    mean: float
    median: int
    p95: int
    longest: int
    longest_where: str


@dataclass(frozen=True, slots=True)
class SideSummary:
    """Summary of one side of the training pairs."""

    distinct: int
    script: str
    characters: int
    lengths: Lengths


@dataclass(frozen=True, slots=True)
class DataReport(CheckReport):
    """Findings of ``check_pairs``.

    Attributes:
        pairs: Training pairs that can be used.
        held_out: Pairs of each other set.
        source: The source side.
        target: The target side.
        findings: What is odd, problems first.
    """

    pairs: int
    held_out: Mapping[str, int]
    source: SideSummary
    target: SideSummary
    findings: tuple[Finding, ...]

    def lines(self) -> list[str]:
        held_out = "".join(f"; {name}: {count:,}" for name, count in self.held_out.items())
        lines = [f"pairs: {self.pairs:,}{held_out}"]
        for name, side in (("source", self.source), ("target", self.target)):
            script = f", mostly {side.script}" if side.script else ""
            counts = f"{side.distinct:,} distinct, {side.characters:,} characters{script}"
            lines += [f"{name}: {counts}", f"    {described_lengths(side.lengths)}"]
        return [*lines, *described_findings(self.findings)]


def check_pairs(
    pairs: Iterable[Pair],
    *,
    held_out: Mapping[str, Iterable[Pair]] | None = None,
    tokenizer: PairTokenizer | None = None,
    bad_lines: BadLines | None = None,
    examples: int = 3,
    progress: Callable[[int], None] | None = None,
) -> DataReport:
    r"""Look for what spoils training or makes results untrue.

    Args:
        pairs: The training pairs, read with ``on_bad_line="skip"`` to see all there is.
        held_out: Pairs of validation and test sets by name; they should not occur in training.
        tokenizer: Counts lengths, and shows which characters would be lost. None counts words,
            or characters in a script without spaces.
        bad_lines: What reading left out, and counted.
        examples: How many to keep of each kind.
        progress: Called with 1 after each of the ``STEPS`` of the work.

    Raises:
        DataError: There are no pairs.

    Example:
        >>> pairs = [Pair("我爱中国", "I love China", ("I love China",), "a.tsv:1")]
        >>> held_out = [Pair("我爱中国！", "I have China", ("I have China",), "b.tsv:1")]
        >>> print("\n".join(check_pairs(pairs, held_out={"test": held_out}).lines()))
        pairs: 1; test: 1
        source: 1 distinct, 4 characters, mostly Han or kana
            4.0 characters on average, half at most 4, 95 % at most 4, the longest 4 (a.tsv:1)
        target: 1 distinct, 10 characters, mostly Latin
            3.0 words on average, half at most 3, 95 % at most 3, the longest 3 (a.tsv:1)
        ! pairs of test whose source occurs in training, so that results flatter: 1
            b.tsv:1 = a.tsv:1: 我爱中国！
        - characters in sources of test that never occur in training: 1
            b.tsv:1: '！' in 我爱中国！
    """
    others = {name: list(other) for name, other in (held_out or {}).items()}
    data = Data(list(pairs), others, tokenizer, bad_lines or BadLines(), examples)
    if not data.train:
        raise DataError("The training set must hold at least one pair; got none.")
    advance = progress or (lambda count: None)
    findings = []
    for find in FINDERS:
        findings += [finding for finding in find(data) if finding.count]
        advance(1)
    sides = {}
    for side in ("source", "target"):
        sides[side] = _summary(data.train, side, getattr(tokenizer, side, None))
        advance(1)
    return DataReport(
        pairs=len(data.train),
        held_out={name: len(other) for name, other in others.items()},
        **sides,
        findings=tuple(sorted(findings, key=lambda finding: not finding.is_problem)),
    )


def length_unit(script: str) -> str:
    """Unit that ``split_words`` finds: words, or characters in a script without spaces."""
    return "characters" if script in _UNSPACED_SCRIPTS else "words"


def _summary(pairs: Sequence[Pair], side: str, tokenizer: Tokenizer | None) -> SideSummary:
    texts, locations = [getattr(pair, side) for pair in pairs], [pair.where for pair in pairs]
    if tokenizer is None:
        lengths = lengths_of(texts, locations)
    else:
        lengths = _lengths("tokens", [len(ids) for ids in tokenizer.encode_all(texts)], locations)
    return SideSummary(
        distinct=len(set(texts)),
        script=side_script(texts),
        characters=len(set().union(*texts) - {" "}),
        lengths=lengths,
    )


def lengths_of(texts: Sequence[str], locations: Sequence[str]) -> Lengths:
    """Lengths of texts, in words or in characters; ``places`` holds the ``file:line`` of each."""
    sizes = [sum(word != " " for word in split_words(text)) for text in texts]
    return _lengths(length_unit(side_script(texts)), sizes, locations)


def _lengths(unit: str, sizes: Sequence[int], locations: Sequence[str]) -> Lengths:
    longest = int(np.argmax(sizes))
    median, p95 = np.quantile(sizes, [0.5, 0.95], method="inverted_cdf").tolist()
    return Lengths(
        unit=unit,
        mean=float(np.mean(sizes)),
        median=int(median),
        p95=int(p95),
        longest=sizes[longest],
        longest_where=locations[longest],
    )


def described_lengths(lengths: Lengths) -> str:
    """Lengths as a phrase for people."""
    return (
        f"{lengths.mean:.1f} {lengths.unit} on average, half at most {lengths.median}, "
        f"95 % at most {lengths.p95}, the longest {lengths.longest} ({lengths.longest_where})"
    )
