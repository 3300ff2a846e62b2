"""Scores and comparisons of systems, their references, and drawing sentences again."""

import math
from collections.abc import Mapping, Sequence, Set, Sized
from dataclasses import asdict, dataclass, field
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float

from regard.config import JsonValue
from regard.errors import DataError, excerpt

if TYPE_CHECKING:
    from sacrebleu.metrics.base import Metric
    from sacrebleu.significance import Result


@dataclass(frozen=True, kw_only=True, slots=True)
class MetricScore:
    """One figure of one system, with the settings to obtain it again.

    Attributes:
        name: The metric, as its authors write it.
        value: The figure, in percent.
        signature: How it was computed, as sacrebleu writes it.
        mean: Mean over the bootstrap resamples; None if there were none.
        margin: Half the width of the 95 % interval around ``mean``; None without resamples.
        details: Parts of the figure, where the metric has them.

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


# For every sentence its right answer, or several; their number may differ.
References = Sequence[str | Sequence[str]]


def answers(references: References) -> list[tuple[str, ...]]:
    """Every sentence's right answers as a tuple.

    Raises:
        DataError: A sentence has none.

    Example:
        >>> answers(["Hi.", ["Run!", "Run."]])
        [('Hi.',), ('Run!', 'Run.')]
    """
    check_list("references", references)
    rows: list[tuple[str, ...]] = []
    for index, one in enumerate(references):
        row = [one] if isinstance(one, str) else one
        check_texts(f"references[{index}]", row)
        if not row:
            raise DataError(f"references[{index}] must hold at least one answer; got none.")
        rows.append(tuple(row))
    return rows


def check_texts(name: str, texts: Sequence[str]) -> None:
    """Raise DataError unless it is a list of texts; one text by itself is a list of its letters."""
    check_list(name, texts)
    for index, text in enumerate(texts):
        if not isinstance(text, str):
            raise DataError(f"{name}[{index}] must be text; got {excerpt(text)}.")


def check_list(name: str, values: object) -> None:
    """Raise DataError unless values have an order and a length, and are no text by themselves."""
    is_single = isinstance(values, str | bytes)
    if is_single or not hasattr(values, "__len__") or not hasattr(values, "__iter__"):
        cure = f" Put it into a list: [{excerpt(values)}]." if is_single else ""
        raise DataError(f"{name} must be a list; got {excerpt(values)}.{cure}")
    if isinstance(values, Mapping | Set):
        raise DataError(f"{name} must be a list; got a {type(values).__name__}.")


def check_as_many(name: str, values: Sized, expected_name: str, expected: Sized) -> None:
    """Raise DataError unless two lists are equally long."""
    if len(values) != len(expected):
        raise DataError(
            f"{name} must be as many as {expected_name}; got {len(values)} and {len(expected)}."
        )


def num_references(references: References) -> str:
    """The number of right answers as sacrebleu's signature has it."""
    counts = {len(right) for right in answers(references)}
    return str(counts.pop()) if len(counts) == 1 else "var"


def streams(hypotheses: Sequence[str], references: References) -> list[list[Any]]:
    """Transpose references for sacrebleu, which takes None where a sentence has no more."""
    check_texts("hypotheses", hypotheses)
    rows = answers(references)
    if len(rows) != len(hypotheses):
        raise DataError(
            f"references must have one entry per output; got {len(rows)} for "
            f"{len(hypotheses)} outputs."
        )
    if not rows:
        raise DataError("hypotheses must hold at least one output; got none.")
    return [list(stream) for stream in zip_longest(*rows)]


# Numbers sacrebleu may hold at once for a metric. It makes (draws, sentences, 18) of four bytes for
# a bootstrap, "bs", and (draws, sentences) of eight for swaps, "ar": 400 MB at most.
_MOST = {"bs": 5_000_000, "ar": 20_000_000}

# Seed of the resamples, as sacrebleu's.
SEED = 12345


def interval(drawn: Float[np.ndarray, " resamples"]) -> tuple[float, float]:
    """The mean of resampled figures, and half the width of their 95 % interval."""
    low, high = np.quantile(drawn, [0.025, 0.975])
    return float(drawn.mean()), float(high - low) / 2


def wilson(share: float, count: int) -> tuple[float, float]:
    """The 95 % interval of a proportion of ``count`` trials.

    Wilson (1927), https://doi.org/10.1080/01621459.1927.10502953: of no trial's failure, or of
    every one's, it still has a width, where resampling has none.

    Example:
        >>> [round(end, 3) for end in wilson(1.0, 5)]
        [0.566, 1.0]
        >>> [round(end, 3) for end in wilson(0.5, 100)]
        [0.404, 0.596]
    """
    z = 1.959964
    middle = (share + z * z / (2 * count)) / (1 + z * z / count)
    half = math.sqrt(share * (1 - share) / count + (z / (2 * count)) ** 2) / (1 + z * z / count) * z
    return max(0.0, middle - half), min(1.0, middle + half)


def floored(margin: float, value: float, count: int) -> float:
    """A margin in percent; that of Wilson's interval where no resample of ``count`` differs."""
    low, high = wilson(min(1.0, value / 100), count)  # sums of logarithms may be above 1
    return margin or 50 * (high - low)


def swapped(first: Sequence[float], second: Sequence[float], trials: int) -> float:
    """p-value of approximate randomisation (Noreen, 1989), two-sided."""
    differences = np.subtract(second, first)
    # Sums that differ in their last digit alone are equally large.
    least = abs(differences.sum()) - 1e-9 * np.abs(differences).sum()
    dice, as_large = np.random.default_rng(SEED), 0
    at_once = max(1, _MOST["ar"] // (4 * len(differences)))
    for done in range(0, trials, at_once):
        size = (min(at_once, trials - done), len(differences))
        as_large += int(np.sum(np.abs(dice.choice([-1.0, 1.0], size) @ differences) >= least))
    return (1 + as_large) / (1 + trials)


def draw(
    systems: Mapping[str, Sequence[str]], metrics: "Mapping[str, Metric]", kind: str, draws: int
) -> "dict[str, tuple[str, list[Result]]]":
    """Results of sacrebleu's significance test: "bs" draws sentences again, "ar" swaps outputs."""
    from sacrebleu.significance import PairedTest, Result

    sentences = max(len(outputs) for outputs in systems.values())
    affordable = min(draws, max(100, _MOST[kind] // sentences))
    signatures, results = PairedTest(
        list(systems.items()), metrics, None, test_type=kind, n_samples=affordable
    )()
    return {
        name: (signature.format(), [one for one in results[name] if isinstance(one, Result)])
        for name, signature in signatures.items()
    }
