"""What an evaluation found, as plain data and as lines to read."""

from collections.abc import Iterable
from dataclasses import asdict, dataclass

from regard.config import JsonValue
from regard.errors import SettingError
from regard.metrics import MetricScore, SystemComparison


@dataclass(frozen=True, kw_only=True, slots=True)
class Output:
    """One output to read.

    Attributes:
        kind: Why this one: ``best``, ``worst`` or ``random``.
        index: Its place in the corpus, from zero.
        source: What was to be translated; None if it was not given.
        text: What came out.
        references: What is right.
        chrf: How near it came, from 0 to 100.
    """

    kind: str
    index: int
    source: str | None
    text: str
    references: tuple[str, ...]
    chrf: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Bucket:
    """The quality over the sources of about one length.

    Attributes:
        shortest: Length of the shortest source it may hold.
        longest: Length of the longest; None for the bucket without an end.
        count: Sentences in it.
        mean_length: Their mean length.
        scores: Their figures.
    """

    shortest: int
    longest: int | None
    count: int
    mean_length: float
    scores: tuple[MetricScore, ...]

    @property
    def name(self) -> str:
        """The lengths it holds, as people write them."""
        return f"{self.shortest}+" if self.longest is None else f"{self.shortest}-{self.longest}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Baseline:
    """What outputs that took no work would score.

    Attributes:
        name: How they are made.
        scores: Their figures, in the order of the report's.
    """

    name: str
    scores: tuple[MetricScore, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Report:
    """How good the outputs of one system are.

    Attributes:
        count: Sentences.
        scores: Figures with signatures.
        baselines: The same figures for outputs that took no work.
        by_length: Quality by length of the source; empty if no sources were given.
        outputs: Ten to read: three best, three worst, four at random, all different.
    """

    count: int
    scores: tuple[MetricScore, ...]
    baselines: tuple[Baseline, ...]
    by_length: tuple[Bucket, ...]
    outputs: tuple[Output, ...]

    def score(self, name: str) -> float:
        """The figure called ``name``.

        Raises:
            SettingError: The report has none of that name.
        """
        for one in self.scores:
            if one.name == name:
                return one.value
        known = ", ".join(one.name for one in self.scores)
        raise SettingError(f"name must be one of {known}; got {name!r}.")

    def to_dict(self) -> dict[str, JsonValue]:
        """The report as plain data, ready for JSON."""
        return asdict(self)

    def __str__(self) -> str:
        return "\n".join(_lines(self))


@dataclass(frozen=True, kw_only=True, slots=True)
class Difference:
    """One sentence on which two systems differ.

    Attributes:
        index: Its place in the corpus, from zero.
        source: What was to be translated; None if it was not given.
        first: What the first system made of it.
        second: What the second did.
        references: What is right.
        gain: How much nearer the second came, in chrF; below zero where the first did.
    """

    index: int
    source: str | None
    first: str
    second: str
    references: tuple[str, ...]
    gain: float


@dataclass(frozen=True, kw_only=True, slots=True)
class PairedComparison:
    """How two systems differ on the same sentences.

    Attributes:
        comparisons: By each metric, with the probability that it is chance.
        better: Sentences on which the second system is nearer by chrF.
        worse: Sentences on which the first is.
        equal: Sentences on which they are as near.
        differences: The sentences to read: the second's largest gains, then its largest losses.
    """

    comparisons: tuple[SystemComparison, ...]
    better: int
    worse: int
    equal: int
    differences: tuple[Difference, ...]

    def to_dict(self) -> dict[str, JsonValue]:
        """The comparison as plain data, ready for JSON."""
        return {
            **asdict(self),
            "comparisons": [one.to_dict() for one in self.comparisons],
        }

    def __str__(self) -> str:
        lines = [str(one) for one in self.comparisons]
        return "\n".join(
            [*lines, f"{self.better} sentences better, {self.worse} worse, {self.equal} equal"]
        )


def _lines(report: Report) -> Iterable[str]:
    """The report as people read it on a terminal."""
    yield f"{report.count} sentences"
    yield from (f"  {score}" for score in report.scores)
    for baseline in report.baselines:
        figures = ", ".join(f"{score.name} {score.value:.2f}" for score in baseline.scores)
        yield f"  baseline, {baseline.name}: {figures}"
    for bucket in report.by_length:
        figures = ", ".join(f"{score.name} {score.value:.2f}" for score in bucket.scores)
        yield f"  sources of length {bucket.name} ({bucket.count}): {figures}"
    for output in report.outputs:
        yield f"  {output.kind} #{output.index + 1} (chrF {output.chrf:.1f})"
        if output.source is not None:
            yield f"    source    {output.source}"
        yield f"    output    {output.text}"
        yield from (f"    reference {reference}" for reference in output.references)
