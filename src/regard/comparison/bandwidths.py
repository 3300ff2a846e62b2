"""Kernel regression with more and more points: a fixed bandwidth, and one that shrinks."""

import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch

from regard.checks import check_at_least, check_positive
from regard.comparison.report import (
    ComparisonReport,
    ComparisonTable,
    Measurements,
    Plot,
    check_ascending,
    lines_over,
    spread_row,
)
from regard.models import KernelRegression, KernelRegressionConfig
from regard.models.kernel_regression import SineExample

SIZES = (50, 500, 2000, 10_000, 50_000)
# Of curves with two derivatives, no other power of n leaves so small an error (Stone, 1980).
POWER = -1 / 5


@dataclass(frozen=True, kw_only=True, slots=True)
class BandwidthCurve:
    """One way to choose the bandwidth, at every number of points.

    Attributes:
        title: What it is called.
        bandwidths: What it chooses; None is no end, which is average pooling.
        error: The root of the mean squared distance from the true curve.
        error_spread: Its standard deviation over the draws.
    """

    title: str
    bandwidths: tuple[float | None, ...]
    error: tuple[float, ...]
    error_spread: tuple[float, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Bandwidths(Measurements):
    """Errors against the number of points.

    Attributes:
        sizes: Numbers of points, n.
        draws: How many times points and noise were drawn.
        curves: One for each way to choose the bandwidth.

    Example:
        >>> found = bandwidths(sizes=(32, 1024), bandwidth=2.0, draws=2)
        >>> for curve in found.curves[1:]:
        ...     print(curve.title, [round(each, 3) for each in curve.bandwidths])
        fixed, 2 [2.0, 2.0]
        shrinking, 2 · n^(−1/5) [1.0, 0.5]
        >>> found.report().tables[0].columns
        ('bandwidth', 'n = 32', 'n = 1,024')
    """

    sizes: tuple[int, ...]
    draws: int
    curves: tuple[BandwidthCurve, ...]

    def report(self) -> ComparisonReport:
        """As a table and a plot."""
        title = "Distance from the true curve"
        return ComparisonReport(
            title="Kernel regression against the number of points",
            text=(
                "Nadaraya-Watson regression is consistent, which is to say that it finds the "
                "curve if it sees enough points, only if its bandwidth shrinks as they come. With "
                "a fixed one, more points make it surer of the smoothed curve, which is not the "
                "curve: its error stays. A bandwidth learned from n points is right for about n "
                "points.",
            ),
            tables=(
                ComparisonTable(
                    title=f"{title}, RMSE (± over {self.draws} draws)",
                    columns=("bandwidth", *(f"n = {size:,}" for size in self.sizes)),
                    rows=tuple(
                        spread_row(curve.title, curve.error, curve.error_spread)
                        for curve in self.curves
                    ),
                ),
            ),
            pictures=(
                Plot(
                    title=title,
                    across="points n",
                    up="root mean squared error",
                    lines=lines_over(
                        self.sizes, ((curve.title, curve.error) for curve in self.curves)
                    ),
                    log_across=True,
                    log_up=True,
                ),
            ),
        )


def bandwidths(
    *,
    sizes: Sequence[int] = SIZES,
    bandwidth: float = 1.0,
    draws: int = 3,
    progress: Callable[[int], None] = lambda count: None,
) -> Bandwidths:
    """How far Nadaraya-Watson is from the true curve, as it sees more points.

    The curve is that of ``SineExample``, y = 2 sin x + x^0.8 seen with noise. The estimate tends to
    the curve if the bandwidth h shrinks while n·h grows (Nadaraya, 1964; Watson, 1964): with h = n^
    (−1/5), say. With a fixed bandwidth it tends to the curve smoothed by the kernel, which is
    another one, however many points there are.

    Args:
        sizes: Numbers of points n, ascending.
        bandwidth: The fixed one; the other is so many times n^(−1/5).
        draws: How many times all is drawn, which gives the spread.
        progress: Told of each size that is done.

    Raises:
        SettingError: A number is out of range.

    Example:
        >>> found = bandwidths(sizes=(50, 2000), draws=2)
        >>> fixed, shrinking = (curve.error for curve in found.curves[1:])
        >>> fixed[1] > 0.6, shrinking[1] < shrinking[0] / 2
        (True, True)
    """
    check_ascending("sizes", sizes, least=2)
    check_positive("bandwidth", bandwidth)
    check_at_least("draws", draws, 2, cure="One draw has no spread.")
    ways: dict[str, Callable[[int], float | None]] = {
        "average pooling": lambda n: None,
        f"fixed, {bandwidth:g}": lambda n: bandwidth,
        f"shrinking, {bandwidth:g} · n^(−1/5)": lambda n: bandwidth * n**POWER,
    }
    errors: dict[str, list[list[float]]] = {title: [] for title in ways}
    for size in sizes:
        drawn = [SineExample.draw(seed, count=size) for seed in range(draws)]
        for title, choose in ways.items():
            errors[title].append([_error(each, choose(size)) for each in drawn])
        progress(1)
    return Bandwidths(
        sizes=tuple(sizes),
        draws=draws,
        curves=tuple(
            BandwidthCurve(
                title=title,
                bandwidths=tuple(map(choose, sizes)),
                error=tuple(map(statistics.fmean, errors[title])),
                error_spread=tuple(map(statistics.stdev, errors[title])),
            )
            for title, choose in ways.items()
        ),
    )


@torch.no_grad()
def _error(example: SineExample, bandwidth: float | None) -> float:
    config = KernelRegressionConfig(bandwidth=math.inf if bandwidth is None else bandwidth)
    model = KernelRegression(config)
    guesses = model(example.asked, example.places, example.seen)
    return float((guesses - example.truth).square().mean().sqrt())
