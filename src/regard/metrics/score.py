"""Scores of a system, and comparisons of two systems."""

from dataclasses import asdict, dataclass, field

from regard.config import JsonValue


@dataclass(frozen=True, kw_only=True, slots=True)
class MetricScore:
    """One figure of one system, with what is needed to obtain it again.

    Attributes:
        name: The metric, as its authors write it.
        value: The figure, in percent.
        signature: How it was computed, as sacrebleu writes it.
        mean: Mean over the bootstrap resamples; None if there were none.
        margin: Half the width of the 95 % interval around ``mean``; None without resamples.
        details: What the figure was made of, where the metric tells.

    Example:
        >>> print(MetricScore(name="chrF2", value=61.25, signature="case:mixed", margin=0.71))
        chrF2 61.25 ± 0.71 (case:mixed)
    """

    name: str
    value: float
    signature: str
    mean: float | None = None
    margin: float | None = None
    details: dict[str, float] = field(default_factory=dict)

    def __str__(self) -> str:
        spread = "" if self.margin is None else f" ± {self.margin:.2f}"
        return f"{self.name} {self.value:.2f}{spread} ({self.signature})"

    def to_dict(self) -> dict[str, JsonValue]:
        """The score as plain data."""
        return asdict(self)


@dataclass(frozen=True, kw_only=True, slots=True)
class SystemComparison:
    """How two systems differ by one metric on the same sentences.

    Attributes:
        name: The metric.
        first: The first system's figure, in percent.
        second: The second system's.
        p_value: How often chance alone makes a difference as large; 1 where there is none.
        signature: How it was computed and tested, as sacrebleu writes it.

    Example:
        >>> figures = {"first": 30.1, "second": 31.4, "p_value": 0.012}
        >>> print(SystemComparison(name="BLEU", **figures, signature="ar:9"))
        BLEU 30.10 → 31.40 (+1.30, p = 0.0120; ar:9)
    """

    name: str
    first: float
    second: float
    p_value: float
    signature: str

    @property
    def difference(self) -> float:
        """How much higher the second figure is."""
        return self.second - self.first

    def __str__(self) -> str:
        return (
            f"{self.name} {self.first:.2f} → {self.second:.2f} "
            f"({self.difference:+.2f}, p = {self.p_value:.4f}; {self.signature})"
        )

    def to_dict(self) -> dict[str, JsonValue]:
        """The comparison as plain data."""
        return {**asdict(self), "difference": self.difference}
