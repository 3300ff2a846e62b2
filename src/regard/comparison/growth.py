"""How a quantity grows with the length, and seconds, the one that is not counted."""

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import exp, log, sqrt

import torch

from regard.devices import wait_for

# No fit from fewer points: two lie on some line always.
LEAST_POINTS = 3


@dataclass(frozen=True, kw_only=True, slots=True)
class Growth:
    """``y ≈ factor · n^exponent``, a straight line through the logarithms.

    Attributes:
        exponent: 1 is linear, 2 is quadratic.
        error: The exponent's standard error; 0 where all points lie on the line.
        factor: What a length of one would have.
        first: The least length that was fitted.
        last: The largest.
    """

    exponent: float
    error: float
    factor: float
    first: int
    last: int

    @classmethod
    def fit(cls, lengths: Sequence[int], values: Sequence[int | float]) -> "Growth | None":
        """The least squares of the longer half of the lengths, of three at least; None if fewer.

        Short lengths are left out, since there what a call costs hides what a length costs.

        Args:
            lengths: Ascending.
            values: One for each, above zero.

        Example:
            >>> fitted = Growth.fit([10, 20, 40, 80], [5 * n**2 for n in (10, 20, 40, 80)])
            >>> print(fitted, round(fitted.factor, 6))
            2.00 ± 0.00 5.0
        """
        count = max(LEAST_POINTS, -(-len(lengths) // 2))
        if len(lengths) < LEAST_POINTS or min(values) <= 0:
            return None
        xs = [log(n) for n in lengths[-count:]]
        ys = [log(value) for value in values[-count:]]
        fitted = statistics.linear_regression(xs, ys)
        middle = statistics.fmean(xs)
        off = [y - fitted.intercept - fitted.slope * x for x, y in zip(xs, ys, strict=True)]
        spread = sum((x - middle) ** 2 for x in xs)
        error = sqrt(sum(d * d for d in off) / (count - 2) / spread)
        return cls(
            exponent=fitted.slope,
            error=error,
            factor=exp(fitted.intercept),
            first=lengths[-count],
            last=lengths[-1],
        )

    def __str__(self) -> str:
        """The exponent and its standard error."""
        return f"{self.exponent:.2f} ± {self.error:.2f}"


def seconds(call: Callable[[], object], *, repeats: int, device: torch.device) -> float:
    """The median time of a call, after one that is not counted."""
    taken = []
    for _ in range(repeats + 1):
        wait_for(device)
        began = time.perf_counter()
        call()
        wait_for(device)
        taken.append(time.perf_counter() - began)
    return statistics.median(taken[1:])
