"""``regard compare``: layers, gradients, scores, positions, norms, bandwidths side by side."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import App, Parameter

from regard.cli.output import note, progress_bar, say, write_file
from regard.cli.tables import print_table
from regard.devices.kinds import ON_CPU

if TYPE_CHECKING:
    from regard.comparison.report import Measurements

compare = App(
    name="compare",
    help="Measure layers, gradients, scores, positions, norms and bandwidths side by side.",
    help_format="markdown",
    default_parameter=Parameter(negative=()),
)

Numbers = Annotated[tuple[int, ...], Parameter(consume_multiple=True)]
Fractions = Annotated[tuple[float, ...], Parameter(consume_multiple=True)]
Names = Annotated[tuple[str, ...], Parameter(consume_multiple=True)]


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True, slots=True)
class Files:
    """Where what was measured is written.

    Attributes:
        out: Write all figures into this file, as JSON.
        page: Write a page with plots, which needs no network.
    """

    out: Annotated[Path | None, Parameter(name=["--out", "--output"])] = None
    page: Path | None = None


NOWHERE = Files()


@compare.default
def architectures(
    *,
    lengths: Numbers = (),
    width: int = 64,
    kernel: int = 3,
    window: int = 32,
    projections: bool = False,
    names: Annotated[Names, Parameter(name=["--only"])] = (),
    device: str = ON_CPU,
    repeats: int = 3,
    files: Files = NOWHERE,
) -> None:
    """Fully connected, convolutional, recurrent and self-attention layers, measured.

    Example: `regard compare --page compare.html`

    Example: `regard compare --lengths 256 512 1024 2048 4096 --width 128 --out compare.json`

    For each layer, as in table 1 of Vaswani et al. (2017): complexity, sequential operations and
    the longest path, counted and found by gradients, beside their closed forms; time and memory of
    a training step; and how all of them grow with the length. Self-attention is measured as the
    textbook writes it, with its weights built, and as `attend` runs it.

    Args:
        lengths: Positions n, ascending, three at least; by default 32 to 2,048.
        width: Width of a position's vector, d.
        kernel: Positions that a convolution reads at once, k.
        window: Keys that restricted self-attention sees, r.
        projections: Give self-attention its four projections, which table 1 leaves out.
        names: Only these layers: fully-connected, convolution, dilated, recurrence,
            attention-written, attention, restricted-written, restricted.
        device: Where to measure: cpu, cuda, cuda:1, mps; auto takes a GPU if there is one.
        repeats: How often a training step is timed; the median counts.
        files: Where the figures are written.
    """
    from regard.comparison.architectures import LENGTHS, architectures, count_measurements

    lengths = lengths or LENGTHS
    _run(
        partial(
            architectures,
            lengths=lengths,
            width=width,
            kernel=kernel,
            window=window,
            projections=projections,
            names=names,
            device=device,
            repeats=repeats,
        ),
        count_measurements(lengths, names),
        files,
    )


@compare.command
def gradients(
    *,
    length: int = 64,
    width: int = 32,
    radii: Fractions = (),
    input_scale: float = 0.01,
    draws: int = 5,
    files: Files = NOWHERE,
) -> None:
    """Gradient norm against distance: recurrences vanish or explode, attention does not.

    Example: `regard compare gradients --page gradients.html`

    Args:
        length: Positions.
        width: Width of inputs and states.
        radii: Spectral radii of the recurrent weight; by default 0.5, 0.9, 1 and 1.5.
        input_scale: Deviation of the inputs; large ones make tanh flat, and gradients vanish.
        draws: How many times weights and inputs are drawn, which gives the spread.
        files: Where the figures are written.
    """
    from regard.comparison.gradients import RADII, gradients

    radii = radii or RADII
    _run(
        partial(
            gradients,
            length=length,
            width=width,
            radii=radii,
            input_scale=input_scale,
            draws=draws,
        ),
        len(radii) + 3,
        files,
    )


@compare.command
def scores(
    *,
    widths: Numbers = (),
    keys: int = 32,
    queries: int = 64,
    draws: int = 3,
    files: Files = NOWHERE,
) -> None:
    """Additive, dot, scaled dot and bilinear scores: variance, entropy and gradient against d.

    Example: `regard compare scores --widths 4 64 1024`

    Args:
        widths: Of queries and keys, ascending; by default 4 to 1,024.
        keys: How many keys a query chooses from.
        queries: How many queries are drawn each time.
        draws: How many times all is drawn, which gives the spread.
        files: Where the figures are written.
    """
    from regard.comparison.scores import WIDTHS, scores

    widths = widths or WIDTHS
    _run(
        partial(
            scores,
            widths=widths,
            keys=keys,
            queries=queries,
            draws=draws,
        ),
        len(widths),
        files,
    )


@compare.command
def positions(
    *,
    length: int = 64,
    width: int = 32,
    shifts: Numbers = (),
    files: Files = NOWHERE,
) -> None:
    """Sinusoidal positions: beside binary numbers, shifts as linear maps, shuffled inputs.

    Example: `regard compare positions --page positions.html`

    Args:
        length: Positions.
        width: Width of the vectors, d; even.
        shifts: Distances whose linear maps are checked; by default 1, 5 and 20.
        files: Where the figures are written.
    """
    from regard.comparison.positions import SHIFTS, positions

    _run(
        partial(
            positions,
            length=length,
            width=width,
            shifts=shifts or SHIFTS,
        ),
        3,
        files,
    )


@compare.command
def norms(
    *,
    batch: int = 16,
    mean_length: int = 32,
    width: int = 32,
    spreads: Numbers = (),
    times: Numbers = (),
    batches: int = 50,
    files: Files = NOWHERE,
) -> None:
    """Layer norm against batch norm on padded batches, and on longer inputs than in training.

    Example: `regard compare norms --page norms.html`

    Args:
        batch: Sentences in a batch.
        mean_length: Their mean length.
        width: Width of the states.
        spreads: How far lengths go below and above the mean; by default 0 to 31.
        times: Lengths in use, as multiples of the mean; by default 1 to 16.
        batches: How many batches are drawn for each figure.
        files: Where the figures are written.
    """
    from regard.comparison.norms import SPREADS, TIMES, norms

    spreads = spreads or tuple(spread for spread in SPREADS if spread < mean_length)
    times = times or TIMES
    _run(
        partial(
            norms,
            batch=batch,
            mean_length=mean_length,
            width=width,
            spreads=spreads,
            times=times,
            batches=batches,
        ),
        len(spreads) + len(times),
        files,
    )


@compare.command
def bandwidths(
    *,
    sizes: Numbers = (),
    bandwidth: float = 1.0,
    draws: int = 3,
    files: Files = NOWHERE,
) -> None:
    """Kernel regression against the number of points: only a shrinking bandwidth finds the curve.

    Example: `regard compare bandwidths --page bandwidths.html`

    Args:
        sizes: Numbers of points n, ascending; by default 50 to 50,000.
        bandwidth: The fixed one; the other is so many times n^(−1/5).
        draws: How many times points and noise are drawn, which gives the spread.
        files: Where the figures are written.
    """
    from regard.comparison.bandwidths import SIZES, bandwidths

    sizes = sizes or SIZES
    _run(
        partial(
            bandwidths,
            sizes=sizes,
            bandwidth=bandwidth,
            draws=draws,
        ),
        len(sizes),
        files,
    )


def _run(measure: Callable[..., "Measurements"], total: int, files: Files) -> None:
    """Measure with a bar, print the tables, and write what is asked for."""
    from regard.comparison.page import page

    with progress_bar("measuring", lambda: total) as advance:
        found = measure(progress=advance)
    report = found.report()
    for place, table in enumerate(report.tables):
        if place:
            say()
        print_table(table)
    for paragraph in report.text:
        note(paragraph)
    if files.out is not None:
        write_file(files.out, json.dumps(found.to_dict(), indent=1, ensure_ascii=False) + "\n")
        note(f"wrote {files.out}")
    if files.page is not None:
        write_file(files.page, page(report))
        note(f"wrote {files.page}")
