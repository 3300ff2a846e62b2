"""Reports of evaluations, as plain data and as lines to read, and the speed of the answers."""

import html
import resource
import statistics
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TypeVar

import torch

from regard.checks import counted
from regard.config import JsonValue
from regard.errors import SettingError
from regard.metrics import MetricScore, SystemComparison
from regard.tasks.tables import Table

# Examples that are also answered by themselves, unless that takes longer than all together.
_ALONE = 20

AnswerT = TypeVar("AnswerT")


def beside_baselines(
    metric: str, value: float, baselines: Mapping[str, float], *, sign: int = 1
) -> str | None:
    """A sentence that compares a result with the best baseline; None if there is none."""
    if not baselines:
        return None
    best = max(baselines, key=lambda name: sign * baselines[name])
    gain = sign * (value - baselines[best])
    relation = "above the best baseline" if gain > 0 else "below a baseline"
    verdict = "no better than a baseline" if gain == 0 else relation
    figures = f"{best} has {metric} {baselines[best]:.2f}, this model {value:.2f}"
    return f"This is {verdict}: {figures}."


@dataclass(frozen=True, kw_only=True, slots=True)
class Report(ABC):
    """How good the answers of one system are."""

    count: int

    @abstractmethod
    def lines(self) -> Iterator[str]:
        """The report as people read it on a terminal."""

    def to_dict(self) -> dict[str, JsonValue]:
        """The report as plain data, ready for JSON."""
        return asdict(self)

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def _repr_html_(self) -> str:
        """Show the report in a notebook as on a terminal."""
        return f"<pre>{html.escape(str(self))}</pre>"


@dataclass(frozen=True, kw_only=True, slots=True)
class OutputExample:
    """One output to read."""

    kind: str
    index: int
    source: str | None
    text: str
    references: tuple[str, ...]
    chrf: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Bucket:
    """The quality over the sources of about one length."""

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
    """Scores of a trivial baseline."""

    name: str
    scores: tuple[MetricScore, ...]
    p_value: float | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class TextReport(Report):
    """How good the texts are that were written."""

    scores: tuple[MetricScore, ...]
    baselines: tuple[Baseline, ...]
    by_length: tuple[Bucket, ...]
    outputs: tuple[OutputExample, ...]
    tables: tuple[Table, ...] = ()
    beside: str | None = None  # the sentence of ``beside_baselines``

    def score(self, name: str) -> float:
        """The figure called ``name``."""
        for one in self.scores:
            if one.name == name:
                return one.value
        names = ", ".join(one.name for one in self.scores)
        raise SettingError(f"name must be one of {names}; got {name!r}.")

    def lines(self) -> Iterator[str]:
        yield counted(self.count, "sentences")
        yield from (f"  {score}" for score in self.scores)
        for baseline in self.baselines:
            chance = "" if baseline.p_value is None else f" (p = {baseline.p_value:.4f})"
            yield f"  baseline, {baseline.name}: {_in_line(baseline.scores)}{chance}"
        if self.beside is not None:
            yield f"  {self.beside}"
        for bucket in self.by_length:
            figures = _in_line(bucket.scores)
            yield f"  sources of length {bucket.name} ({bucket.count}): {figures}"
        for table in self.tables:
            yield from (f"  {line}" for line in table.lines())
        for output in self.outputs:
            yield f"  {output.kind} #{output.index + 1} (chrF {output.chrf:.1f})"
            if output.source is not None:
                yield f"    source    {output.source}"
            yield f"    output    {output.text}"
            yield from (f"    reference {reference}" for reference in output.references)


@dataclass(frozen=True, kw_only=True, slots=True)
class Figure:
    """One figure of a metric."""

    name: str
    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.name} {self.value:.2f} (95 %: {self.low:.2f} to {self.high:.2f})"


@dataclass(frozen=True, kw_only=True, slots=True)
class AnswerReport(Report):
    """How good the answers are that were computed in one pass."""

    unit: str
    figures: tuple[Figure, ...]
    baselines: dict[str, dict[str, float]]
    tables: tuple[Table, ...]
    examples: tuple[tuple[str, str], ...]
    learned: tuple[str, ...] = ()
    beside: str | None = None  # the sentence of ``beside_baselines``

    def lines(self) -> Iterator[str]:
        yield counted(self.count, self.unit)
        yield from (f"  {line}" for line in (*self.figures, *self.learned))
        for name, figures in self.baselines.items():
            scores = ", ".join(f"{metric} {value:.2f}" for metric, value in figures.items())
            yield f"  beside it, {name}: {scores}"
        if self.beside is not None:
            yield f"  {self.beside}"
        for table in self.tables:
            yield from ("", *table.lines())
        yield from ("", *(f"{kind}: {text}" for kind, text in self.examples))


@dataclass(frozen=True, kw_only=True, slots=True)
class Difference:
    """One sentence on which two systems differ."""

    index: int
    source: str | None
    first: str
    second: str
    references: tuple[str, ...]
    gain: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Comparison:
    """How two systems differ on the same examples: of texts by chrF, of answers of a task."""

    unit: str | None = None  # name of examples; None of texts
    comparisons: tuple[SystemComparison, ...]  # with the probability that each is chance
    better: int  # examples of which the second system's output is nearer
    worse: int
    equal: int
    # The second's largest gains, then its largest losses; of answers as (before, after).
    differences: tuple[Difference, ...] | tuple[tuple[str, str], ...]

    def to_dict(self) -> dict[str, JsonValue]:
        """The comparison as plain data, ready for JSON."""
        table = {**asdict(self), "comparisons": [one.to_dict() for one in self.comparisons]}
        return {name: value for name, value in table.items() if value is not None}

    def __str__(self) -> str:
        unit, lines = self.unit or "sentences", [str(one) for one in self.comparisons]
        lines.append(f"{counted(self.better, unit)} better, {self.worse} worse, {self.equal} equal")
        for pair in self.differences:
            if isinstance(pair, tuple):
                lines += [f"  was  {pair[0]}", f"  is   {pair[1]}"]
        return "\n".join(lines)


def _in_line(scores: Iterable[MetricScore]) -> str:
    return ", ".join(f"{score.name} {score.value:.2f}" for score in scores)


@dataclass(frozen=True, kw_only=True, slots=True)
class Speed:
    """Speed of answers on this machine."""

    per_second: float
    alone_ms: float
    peak_mib: float
    threads: int

    def to_dict(self) -> dict[str, JsonValue]:
        """Plain data, ready for JSON."""
        return {name: round(value, 3) for name, value in asdict(self).items()}

    def __str__(self) -> str:
        return (
            f"speed: {self.per_second:,.1f} a second, {self.alone_ms:,.1f} ms for one alone, "
            f"{self.peak_mib:,.0f} MiB at most, {self.threads} thread{'s' * (self.threads > 1)}"
        )


def answer_timed(
    answer: Callable[..., Sequence[AnswerT]],
    examples: Sequence[object],
    *,
    device: torch.device,
    progress: Callable[[int], None] | None = None,
) -> tuple[Sequence[AnswerT], Speed]:
    """Answers to the examples, and how fast they came."""
    if len(examples) > 1:
        answer(examples[:1])  # loads the model
    started = time.perf_counter()
    answers = answer(examples, progress=progress)
    seconds, alone = time.perf_counter() - started, list[float]()
    for example in examples[:_ALONE]:
        if sum(alone) > seconds:
            break
        before = time.perf_counter()
        answer([example])
        alone.append(time.perf_counter() - before)
    if device.type == "cuda":
        peak = torch.cuda.max_memory_allocated(device)
    else:  # of the process since it began
        unit = 1 if sys.platform == "darwin" else 1024
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
    return answers, Speed(
        per_second=len(examples) / seconds,
        alone_ms=1000 * statistics.median(alone),
        peak_mib=peak / 2**20,
        threads=torch.get_num_threads(),
    )
