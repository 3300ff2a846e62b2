"""Additive, dot, scaled dot and bilinear scores as the width grows: what becomes of the softmax."""

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import log, sqrt

import torch
from jaxtyping import Float
from torch import Tensor

from regard.attention import Additive, Bilinear, Dot, ScaledDot
from regard.checks import check_at_least
from regard.comparison.report import (
    ComparisonReport,
    ComparisonTable,
    Measurements,
    Plot,
    check_ascending,
    lines_over,
    spread_row,
)

WIDTHS = (4, 16, 64, 256, 1024)


@dataclass(frozen=True, kw_only=True, slots=True)
class ScoreCurve:
    """One score at every width; each figure with the standard deviation over the draws.

    Attributes:
        title: What it is called.
        variance: Of the scores of random queries and keys.
        variance_spread: Over the draws; the next two alike.
        entropy: Of the softmax over the keys, in nats; log of their number if all weigh the same.
        entropy_spread: See there.
        gradient: The norm of the softmax's Jacobian by the scores: what is left to learn from.
        gradient_spread: See there.
    """

    title: str
    variance: tuple[float, ...]
    variance_spread: tuple[float, ...]
    entropy: tuple[float, ...]
    entropy_spread: tuple[float, ...]
    gradient: tuple[float, ...]
    gradient_spread: tuple[float, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Scores(Measurements):
    """Scores against the width.

    Attributes:
        widths: Of queries and keys, d.
        keys: How many keys a query chooses from.
        queries: How many queries were drawn each time.
        draws: How many times.
        curves: One for each score.

    Example:
        >>> found = scores(widths=(4, 64), draws=2)
        >>> [(curve.title, [round(each) for each in curve.variance]) for curve in found.curves[:2]]
        [('dot', [4, 63]), ('scaled dot', [1, 1])]
        >>> found.report().tables[0].title
        'Variance of the score (± over 2 draws)'
    """

    widths: tuple[int, ...]
    keys: int
    queries: int
    draws: int
    curves: tuple[ScoreCurve, ...]

    def report(self) -> ComparisonReport:
        """As tables and plots."""
        pictures = []
        tables = []
        for title, up, name, is_log in (
            ("Variance of the score", "variance", "variance", True),
            (f"Entropy of the softmax over {self.keys} keys", "nats", "entropy", False),
            ("Gradient of the softmax", "norm of the Jacobian", "gradient", True),
        ):
            pictures.append(
                Plot(
                    title=title,
                    across="width d",
                    up=up,
                    lines=lines_over(
                        self.widths, ((curve.title, getattr(curve, name)) for curve in self.curves)
                    ),
                    log_across=True,
                    log_up=is_log,
                )
            )
            tables.append(
                ComparisonTable(
                    title=f"{title} (± over {self.draws} draws)",
                    columns=("score", *(f"d = {width:,}" for width in self.widths)),
                    rows=tuple(
                        spread_row(
                            curve.title, getattr(curve, name), getattr(curve, f"{name}_spread")
                        )
                        for curve in self.curves
                    ),
                )
            )
        return ComparisonReport(
            title="Scores against the width",
            text=(
                "Queries and keys of independent numbers with mean 0 and variance 1. Their dot "
                "product has variance d. A softmax of scores that far apart is nearly arg-max: "
                f"its entropy goes to 0 (all alike would be {log(self.keys):.2f} nats), its "
                "gradient too, and with it all learning. Dividing by √d mends that. The bilinear "
                "score has the dot product's fault, and the additive one never had it, since tanh "
                "keeps every summand below one.",
            ),
            tables=tuple(tables),
            pictures=tuple(pictures),
        )


def scores(
    *,
    widths: Sequence[int] = WIDTHS,
    keys: int = 32,
    queries: int = 64,
    draws: int = 3,
    progress: Callable[[int], None] = lambda count: None,
) -> Scores:
    """Variance of scores, entropy of their softmax and its gradient, against the width d.

    Queries and keys are drawn with mean 0 and variance 1. Their dot product then has variance d, so
    its softmax comes near to arg-max, whose gradient is zero; divided by √d it stays as it is
    (Vaswani et al., 2017, section 3.2.1). The matrices of the bilinear score have entries of
    variance 1/d and those of the additive one 1/(2d), w has 1/h with h = d, which keeps what they
    put out at variance one: what layers are initialised with.

    Args:
        widths: Of queries and keys, ascending.
        keys: How many keys a query chooses from.
        queries: How many queries are drawn each time.
        draws: How many times all is drawn, which gives the spread.
        progress: Told of each width that is done.

    Raises:
        SettingError: A number is out of range.

    Example:
        >>> found = scores(widths=(4, 256), draws=2)
        >>> dot, scaled = (found.curves[k] for k in (0, 1))
        >>> dot.gradient[1] < dot.gradient[0] / 2, scaled.gradient[1] > scaled.gradient[0] / 2
        (True, True)
    """
    check_ascending("widths", widths, least=1)
    check_at_least("keys", keys, 2)
    check_at_least("queries", queries, 2)
    check_at_least("draws", draws, 2, cure="One draw has no spread.")
    titles = ("dot", "scaled dot", "bilinear", "additive")
    found: dict[str, list[list[tuple[float, float, float]]]] = {title: [] for title in titles}
    for width in widths:
        generator = torch.Generator().manual_seed(width)
        drawn = [_draw(width, keys, queries, generator) for _ in range(draws)]
        for title in titles:
            found[title].append([_figures(each[title]) for each in drawn])
        progress(1)
    return Scores(
        widths=tuple(widths),
        keys=keys,
        queries=queries,
        draws=draws,
        curves=tuple(_curve(title, samples) for title, samples in found.items()),
    )


def _draw(
    d: int, keys: int, queries: int, generator: torch.Generator
) -> dict[str, Float[Tensor, "N M"]]:
    """Every score of the same random queries and keys."""

    def normal(*shape: int, scale: float = 1.0) -> Tensor:
        return scale * torch.randn(*shape, generator=generator)

    query, key = normal(queries, d), normal(keys, d)
    ways = [normal(d, d, scale=1 / sqrt(2 * d)) for _ in range(2)]
    w = normal(d, scale=1 / sqrt(d))
    between = normal(d, d, scale=1 / sqrt(d))
    return {
        "dot": Dot().tile(query, key),
        "scaled dot": ScaledDot().tile(query, key),
        "bilinear": Bilinear(between).tile(query, key, between),
        "additive": Additive(w).tile(query @ ways[0], key @ ways[1], w),
    }


def _figures(values: Float[Tensor, "N M"]) -> tuple[float, float, float]:
    """Variance of scores, and the mean entropy and gradient norm of their softmax."""
    given = values.double().requires_grad_()
    weights = given.softmax(dim=-1)
    entropy = torch.special.entr(weights).sum(dim=-1).mean()
    # Row j of every query's Jacobian at once: a query's weights depend on its own scores alone.
    ways = torch.eye(weights.shape[1], dtype=weights.dtype)[:, None].expand(-1, *weights.shape)
    (jacobian,) = torch.autograd.grad(weights, given, ways, is_grads_batched=True)  # (M, N, M)
    norm = jacobian.square().sum(dim=(0, 2)).sqrt().mean()
    return values.var().item(), entropy.item(), norm.item()


def _curve(title: str, samples: Sequence[Sequence[tuple[float, float, float]]]) -> ScoreCurve:
    middle, spread = (
        [tuple(measure(column) for column in zip(*drawn, strict=True)) for drawn in samples]
        for measure in (statistics.fmean, statistics.stdev)
    )
    variance, entropy, gradient = zip(*middle, strict=True)
    variance_spread, entropy_spread, gradient_spread = zip(*spread, strict=True)
    return ScoreCurve(
        title=title,
        variance=variance,
        variance_spread=variance_spread,
        entropy=entropy,
        entropy_spread=entropy_spread,
        gradient=gradient,
        gradient_spread=gradient_spread,
    )
