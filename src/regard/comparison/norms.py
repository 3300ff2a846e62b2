"""Layer norm against batch norm: jitter on padded batches, and longer inputs than in training."""

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from regard.attention import attend, lengths
from regard.checks import check_at_least
from regard.comparison.report import (
    ComparisonReport,
    ComparisonTable,
    Measurements,
    Plot,
    lines_over,
)
from regard.errors import SettingError
from regard.layers.norms import BatchNorm

SPREADS = (0, 8, 16, 24, 31)
TIMES = (1, 2, 4, 8, 16)
TITLES = ("layer norm", "batch norm", "batch norm, padding counted")


@dataclass(frozen=True, kw_only=True, slots=True)
class NormCurve:
    """One norm.

    Attributes:
        title: What it is called.
        jitter: How far what one sentence is turned into moves with the other sentences of its
            batch: the deviation over batches, by how much lengths vary.
        deviation: What it gives longer inputs in use: the deviation of its outputs, which should be
            one, at each multiple of the lengths it was trained on.
    """

    title: str
    jitter: tuple[float, ...]
    deviation: tuple[float, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Norms(Measurements):
    """Norms on sentences of different lengths.

    Attributes:
        batch: Sentences in a batch.
        mean_length: Their mean length.
        width: Width of the states.
        batches: How many batches were drawn for each figure.
        spreads: How far lengths go below and above the mean.
        times: Lengths in use, as multiples of those of training.
        variance_jitter: The relative deviation, over batches, of the variance that a batch norm
            works with, by spread; first without padding, then with.
        curves: One for each norm.

    Example:
        >>> found = norms(batch=4, mean_length=8, width=8, spreads=(0, 7), times=(1, 4), batches=5)
        >>> [curve.title for curve in found.curves if curve.jitter[1] > 1e-3]
        ['batch norm', 'batch norm, padding counted']
        >>> [table.columns for table in found.report().tables]
        [('norm', '± 0', '± 7'), ('norm', '8', '32')]
    """

    batch: int
    mean_length: int
    width: int
    batches: int
    spreads: tuple[int, ...]
    times: tuple[int, ...]
    variance_jitter: tuple[tuple[float, ...], tuple[float, ...]]
    curves: tuple[NormCurve, ...]

    def report(self) -> ComparisonReport:
        """As tables and plots."""
        pictures = (
            Plot(
                title="Jitter: one sentence, normed in many batches",
                across=f"lengths vary by ± (mean {self.mean_length})",
                up="deviation over batches",
                lines=lines_over(self.spreads, ((c.title, c.jitter) for c in self.curves)),
            ),
            Plot(
                title="The variance that a batch norm works with",
                across=f"lengths vary by ± (mean {self.mean_length})",
                up="relative deviation over batches",
                lines=lines_over(self.spreads, zip(TITLES[1:], self.variance_jitter, strict=True)),
            ),
            Plot(
                title="Longer inputs in use: what comes out",
                across=f"length, as a multiple of {self.mean_length}",
                up="deviation (one is right)",
                lines=lines_over(self.times, ((c.title, c.deviation) for c in self.curves)),
                log_across=True,
            ),
        )
        plain, padded = self.variance_jitter
        return ComparisonReport(
            title="Norms on sentences of different lengths",
            text=(
                "The states are what self-attention makes of random tokens; the longer a "
                "sentence, the smaller they are. A layer norm looks at one state at a time, so "
                "neither the other sentences of a batch nor the length change what it gives. A "
                "batch norm's mean and variance are those of its batch; they move the more the "
                "lengths differ, above all where padding is counted. In use it divides by what "
                "training had, so that longer inputs come out too small.",
            ),
            tables=(
                ComparisonTable(
                    title=f"Jitter by how lengths vary ({self.batches} batches of {self.batch})",
                    columns=("norm", *(f"± {spread}" for spread in self.spreads)),
                    rows=(
                        *((c.title, *(f"{value:.3f}" for value in c.jitter)) for c in self.curves),
                        ("variance of a batch, relative", *(f"{value:.1%}" for value in plain)),
                        ("the same, padding counted", *(f"{value:.1%}" for value in padded)),
                    ),
                ),
                ComparisonTable(
                    title="Deviation of outputs in use, by length (one is right)",
                    columns=("norm", *(f"{n * self.mean_length:,}" for n in self.times)),
                    rows=tuple(
                        (c.title, *(f"{value:.3f}" for value in c.deviation)) for c in self.curves
                    ),
                ),
            ),
            pictures=pictures,
        )


def norms(
    *,
    batch: int = 16,
    mean_length: int = 32,
    width: int = 32,
    spreads: Sequence[int] = SPREADS,
    times: Sequence[int] = TIMES,
    batches: int = 50,
    progress: Callable[[int], None] = lambda count: None,
) -> Norms:
    """Layer norm, and batch norm with and without padding, on what self-attention puts out.

    The states are what ``attend`` makes of random tokens. The more tokens a sentence has, the more
    values each state is a mean of, and the smaller it is: its size depends on the length, as it
    does in a Transformer before its norm. A batch norm divides by the size that its batch has, or
    in use by the running average of training; a layer norm by the size of each state.

    Args:
        batch: Sentences in a batch.
        mean_length: Their mean length.
        width: Width of the states.
        spreads: How far lengths go below and above their mean, drawn evenly.
        times: Lengths in use, as multiples of ``mean_length``.
        batches: How many batches are drawn for each figure.
        progress: Told of each spread and each multiple that is done.

    Raises:
        SettingError: A number is out of range.

    Example:
        >>> found = norms(batch=4, mean_length=8, width=8, spreads=(0, 7), times=(1, 4), batches=5)
        >>> layer, batch, padded = found.curves
        >>> layer.jitter[1] < 1e-6 < batch.jitter[1], batch.deviation[1] < 0.8
        (True, True)
    """
    check_at_least("batch", batch, 2)
    check_at_least("mean_length", mean_length, 2)
    check_at_least("width", width, 2)
    check_at_least("batches", batches, 2)
    if not spreads or not all(0 <= spread < mean_length for spread in spreads):
        got = ", ".join(map(str, spreads)) or "none"
        raise SettingError(f"spreads must be from 0 to below mean_length={mean_length}; got {got}.")
    if not times or min(times) < 1:
        got = ", ".join(map(str, times)) or "none"
        raise SettingError(f"times must be numbers from 1; got {got}.")
    texts = _Texts(width)
    jitters, of_variance = [], []
    for spread in spreads:
        found, seen = _jitter(texts, batch, mean_length, spread, batches)
        jitters.append(found)
        of_variance.append(seen)
        progress(1)
    trained = _train(texts, batch, mean_length, max(spreads), batches)
    deviations = []
    for multiple in times:
        deviations.append(_use(texts, trained, batch, multiple * mean_length))
        progress(1)
    plain, padded = zip(*of_variance, strict=True)
    return Norms(
        batch=batch,
        mean_length=mean_length,
        width=width,
        batches=batches,
        spreads=tuple(spreads),
        times=tuple(times),
        variance_jitter=(plain, padded),
        curves=tuple(
            NormCurve(title=title, jitter=jitter, deviation=deviation)
            for title, jitter, deviation in zip(
                TITLES, zip(*jitters, strict=True), zip(*deviations, strict=True), strict=True
            )
        ),
    )


class _Texts:
    """Draws padded batches of states: attention over random tokens."""

    def __init__(self, width: int) -> None:
        self.generator = torch.Generator().manual_seed(0)
        self.width = width

    def draw(
        self, sizes: Int[Tensor, " B"], first: Float[Tensor, "S C"] | None = None
    ) -> tuple[Float[Tensor, "B N C"], Bool[Tensor, "B N"]]:
        """States, zero on padding, and which are real; the first sentence may be given."""
        N = int(sizes.max())
        tokens = torch.randn(len(sizes), N, self.width, generator=self.generator)
        if first is not None:
            tokens[0, : len(first)] = first
        is_real = torch.arange(N) < sizes[:, None]
        states = attend(tokens[:, None], tokens[:, None], mask=lengths(sizes.tolist()))[:, 0]
        return states * is_real[..., None], is_real

    def lengths(self, batch: int, mean_length: int, spread: int) -> Int[Tensor, " B"]:
        """Lengths from ``mean_length − spread`` to ``mean_length + spread``."""
        shape = (batch,)
        return torch.randint(
            mean_length - spread, mean_length + spread + 1, shape, generator=self.generator
        )


def _jitter(
    texts: _Texts, batch: int, mean_length: int, spread: int, batches: int
) -> tuple[tuple[float, ...], tuple[float, float]]:
    """How far one sentence's normed states move from batch to batch, and the variances too."""
    same = torch.randn(mean_length, texts.width, generator=texts.generator)
    normed: tuple[list[Tensor], ...] = ([], [], [])
    variances: tuple[list[float], list[float]] = ([], [])
    layer = nn.LayerNorm(texts.width)
    with torch.no_grad():
        for _ in range(batches):
            sizes = texts.lengths(batch, mean_length, spread)
            sizes[0] = mean_length
            states, is_real = texts.draw(sizes, first=same)
            plain, padded = BatchNorm(texts.width), BatchNorm(texts.width)
            outputs = layer(states), plain(states, is_real), padded(states)
            for kept, output in zip(normed, outputs, strict=True):
                kept.append(output[0, :mean_length])
            for seen, rows in zip(variances, (states[is_real], states), strict=True):
                seen.append(rows.flatten(0, -2).var(dim=0).mean().item())
    moved = tuple(torch.stack(kept).std(dim=0).mean().item() for kept in normed)
    relative = [statistics.stdev(seen) / statistics.fmean(seen) for seen in variances]
    return moved, (relative[0], relative[1])


def _train(
    texts: _Texts, batch: int, mean_length: int, spread: int, batches: int
) -> tuple[nn.Module, BatchNorm, BatchNorm]:
    """The norms after seeing batches of training, ready for use."""
    layer, plain, padded = nn.LayerNorm(texts.width), BatchNorm(texts.width), BatchNorm(texts.width)
    for _ in range(batches):
        states, is_real = texts.draw(texts.lengths(batch, mean_length, spread))
        plain(states, is_real)
        padded(states)
    return layer.eval(), plain.eval(), padded.eval()


@torch.no_grad()
def _use(
    texts: _Texts, norms: tuple[nn.Module, BatchNorm, BatchNorm], batch: int, length: int
) -> tuple[float, ...]:
    """The deviation of what each norm makes of sentences that all have one length."""
    states, _ = texts.draw(torch.full((batch,), length))
    return tuple(norm(states).std().item() for norm in norms)
