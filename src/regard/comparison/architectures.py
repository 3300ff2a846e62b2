"""Fully connected, convolutional, recurrent and self-attention layers, as in Vaswani's table 1."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter

import torch

from regard.checks import check_at_least
from regard.choices import choose
from regard.comparison.candidates import CANDIDATES, Candidate, LayerSizes
from regard.comparison.dispatch import peak_bytes, trace
from regard.comparison.growth import LEAST_POINTS, Growth, seconds
from regard.comparison.paths import path_length
from regard.comparison.report import (
    ComparisonReport,
    ComparisonTable,
    Curve,
    Measurements,
    Plot,
    in_bytes,
    in_seconds,
    short,
)
from regard.devices import find_device
from regard.devices.kinds import ON_CPU
from regard.errors import SettingError

LENGTHS = (32, 64, 128, 256, 512, 1024, 2048)
PATH_LENGTHS = (8, 16, 32, 64)
# Reach does not depend on the width, so a narrow stack finds paths as long.
_PATH_WIDTH = 4


@dataclass(frozen=True, kw_only=True, slots=True)
class MeasuredLayer:
    """What was measured of one layer, and what its closed forms say.

    Attributes:
        name: As it is asked for.
        title: As it is shown.
        operations: Order of its multiply-adds, by the literature; the next two alike.
        steps: Order of its steps that wait for each other.
        path: Order of its longest path.
        expected: The powers of the length in operations, steps and bytes.
        lengths: Those that were tried; very large ones are left out.
        multiply_adds: Counted of a forward pass at each length.
        derived_multiply_adds: The closed form at each.
        dependent_steps: Kernels that had to run one after another at each.
        seconds: The median time of a training step, forward and backward, at each.
        bytes: The most that its tensors took at once, beyond inputs and weights.
        path_lengths: The lengths at which paths were looked for.
        paths: Hops until the last output had a gradient at the first input.
        derived_paths: The closed form.
        operations_growth: Of ``multiply_adds``; None for fewer than three lengths, as below.
        steps_growth: Of ``dependent_steps``.
        seconds_growth: Of ``seconds``.
        bytes_growth: Of ``bytes``.
    """

    name: str
    title: str
    operations: str
    steps: str
    path: str
    expected: tuple[int, int, int]
    lengths: tuple[int, ...]
    multiply_adds: tuple[int, ...]
    derived_multiply_adds: tuple[int, ...]
    dependent_steps: tuple[int, ...]
    seconds: tuple[float, ...]
    bytes: tuple[int, ...]
    path_lengths: tuple[int, ...]
    paths: tuple[int, ...]
    derived_paths: tuple[int, ...]
    operations_growth: Growth | None
    steps_growth: Growth | None
    seconds_growth: Growth | None
    bytes_growth: Growth | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Architectures(Measurements):
    """Layers side by side.

    Attributes:
        width: d.
        kernel: k.
        window: r.
        projections: Whether self-attention had its projections.
        device: Where it was measured.
        threads: On how many threads of a CPU.
        rows: One for each layer.

    Example:
        >>> found = architectures(
        ...     lengths=(2, 4, 8), width=2, path_lengths=(9,), names=("attention", "recurrence")
        ... )
        >>> found["attention"].paths, found["recurrence"].paths
        ((1,), (9,))
        >>> table = found.report().tables[1]
        >>> dict(zip(table.columns[-2:], table.rows[1][-2:], strict=True))
        {'hops, n = 9': '9', 'closed form': '9'}
    """

    width: int
    kernel: int
    window: int
    projections: bool
    device: str
    threads: int
    rows: tuple[MeasuredLayer, ...]

    def __getitem__(self, name: str) -> MeasuredLayer:
        """The row of a layer, by the name it is asked for."""
        return choose("architecture", name, {row.name: row for row in self.rows})

    def report(self) -> ComparisonReport:
        """As tables and plots."""
        setting = f"d = {self.width}, k = {self.kernel}, r = {self.window}"
        return ComparisonReport(
            title="Layers side by side",
            text=_text(self),
            tables=(
                _operations_table(self, setting),
                _paths_table(self),
                _training_table(self, setting),
            ),
            pictures=tuple(_plot(self, *plotted) for plotted in _PLOTS),
        )


def architectures(
    *,
    lengths: Sequence[int] = LENGTHS,
    width: int = 64,
    kernel: int = 3,
    window: int = 32,
    projections: bool = False,
    names: Sequence[str] = (),
    path_lengths: Sequence[int] = PATH_LENGTHS,
    device: str = ON_CPU,
    repeats: int = 3,
    most_bytes: int = 2**29,
    progress: Callable[[int], None] = lambda count: None,
) -> Architectures:
    """Complexity, dependent steps, longest path, time and memory of layers, all measured.

    Vaswani et al. (2017), table 1. Multiply-adds are counted as kernels are dispatched, dependent
    steps by how long each kernel has to wait, paths by which input has a gradient at which output;
    time and memory are those of a training step. Closed forms stand beside what was counted.

    Args:
        lengths: Positions n, ascending; three at least, to see how things grow.
        width: Width of a position's vector, d.
        kernel: Positions that a convolution reads at once, k.
        window: Keys that restricted self-attention sees, r.
        projections: Whether self-attention gets its four projections, 4nd² multiply-adds more.
        names: Which layers; all of ``CANDIDATES`` if none are named.
        path_lengths: Positions at which the longest path is looked for.
        device: Where to measure.
        repeats: How often a training step is timed; the median counts.
        most_bytes: Lengths at which a layer would hold much more than this are left out.
        progress: Told of each measurement that is done.

    Raises:
        SettingError: A number is out of range, or a name or the device is unknown.

    Example:
        >>> found = architectures(
        ...     lengths=(4, 8, 16), width=2, path_lengths=(9,), names=("convolution", "recurrence")
        ... )
        >>> [(row.title, row.multiply_adds, row.paths) for row in found.rows]
        [('convolution', (48, 96, 192), (4,)), ('recurrence', (32, 64, 128), (9,))]
    """
    _check_lengths("lengths", lengths)
    check_at_least("repeats", repeats, 1)
    chosen = {name: choose("architecture", name, CANDIDATES) for name in names or tuple(CANDIDATES)}
    sizes = LayerSizes(
        length=lengths[-1], width=width, kernel=kernel, window=window, projections=projections
    )
    where = find_device(device)
    rows = []
    for name, kind in chosen.items():
        tried = [n for n in lengths if 4 * kind.floats(replace(sizes, length=n)) <= most_bytes]
        points = []
        for n in lengths:
            if n in tried:
                points.append(_measure(kind, replace(sizes, length=n), where, repeats))
            progress(1)
        narrow = [replace(sizes, length=n, width=_PATH_WIDTH) for n in path_lengths]
        paths = tuple(path_length(kind, each) for each in narrow)
        progress(1)
        counted, steps, taken, held = zip(*points, strict=True) if points else ((),) * 4
        rows.append(
            MeasuredLayer(
                name=name,
                title=kind.title,
                operations=kind.operations,
                steps=kind.steps,
                path=kind.path,
                expected=kind.powers,
                lengths=tuple(tried),
                multiply_adds=counted,
                derived_multiply_adds=tuple(
                    kind.multiply_adds(replace(sizes, length=n)) for n in tried
                ),
                dependent_steps=steps,
                seconds=taken,
                bytes=held,
                path_lengths=tuple(path_lengths),
                paths=paths,
                derived_paths=tuple(kind.longest_path(each) for each in narrow),
                operations_growth=Growth.fit(tried, counted),
                steps_growth=Growth.fit(tried, steps),
                seconds_growth=Growth.fit(tried, taken),
                bytes_growth=Growth.fit(tried, held),
            )
        )
    return Architectures(
        width=width,
        kernel=kernel,
        window=window,
        projections=projections,
        device=str(where),
        threads=torch.get_num_threads(),
        rows=tuple(rows),
    )


def count_measurements(lengths: Sequence[int], names: Sequence[str] = ()) -> int:
    """How many measurements ``architectures`` will tell ``progress`` of."""
    return (len(lengths) + 1) * len(names or CANDIDATES)


def _measure(
    kind: type[Candidate], sizes: LayerSizes, device: torch.device, repeats: int
) -> tuple[int, int, float, int]:
    """Multiply-adds, dependent steps, seconds and bytes of one layer."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        # The last layer of a stack that reaches everywhere has the widest gaps.
        layer = kind(replace(sizes, depth=kind.longest_path(sizes) - 1)).to(device)
        states = torch.randn(sizes.length, sizes.width).to(device).requires_grad_()
    traced = trace(layer, states)

    def train() -> None:
        layer(states).sum().backward()
        states.grad = None
        layer.zero_grad()

    taken = seconds(train, repeats=repeats, device=device)
    return traced.multiply_adds, traced.steps, taken, peak_bytes(train)


def _check_lengths(name: str, lengths: Sequence[int]) -> None:
    if len(lengths) < LEAST_POINTS or list(lengths) != sorted(set(lengths)) or lengths[0] < 2:
        raise SettingError(
            f"{name} must be three numbers or more, ascending from 2; "
            f"got {', '.join(map(str, lengths)) or 'none'}. For example: 128 256 512 1024."
        )


def _text(found: Architectures) -> tuple[str, ...]:
    projections = (
        "Self-attention has its four projections, 4nd² multiply-adds, which table 1 leaves out."
        if found.projections
        else "Self-attention stands without its four projections, as in table 1; they would add "
        "4nd² multiply-adds."
    )
    return (
        "After table 1 of Vaswani et al. (2017): n positions of width d, kernels of k positions, "
        "r keys nearby. Multiply-adds are counted as kernels are dispatched, in a forward pass; "
        "steps are kernels that have to wait for each other, and what happens inside one is not "
        "seen; the path is how many hops it takes until the last output has a gradient at the "
        "first input. Exponents are slopes of logarithms over the longer half of the lengths, "
        "with their standard errors.",
        projections,
        "Restricted self-attention by attend works in blocks of queries, each of which computes "
        "a few more pairs than its window has; up to two hundred positions or so the fused kernel "
        "with a mask is faster, and computes all. On a CPU its blocks are compiled loops, counted "
        "as the tensor operations that stand for them.",
        f"Measured on {found.device}"
        + (f", {found.threads} thread(s)." if found.device == "cpu" else "."),
    )


def _operations_table(found: Architectures, setting: str) -> ComparisonTable:
    return ComparisonTable(
        title=f"Operations per layer ({setting})",
        columns=("layer", "n", "operations", "counted", "of closed form", "exponent", "expected"),
        rows=tuple(
            (
                row.title,
                f"{row.lengths[-1]:,}",
                row.operations,
                short(row.multiply_adds[-1]),
                f"{row.multiply_adds[-1] / row.derived_multiply_adds[-1]:.2f} ×",
                str(row.operations_growth or "–"),
                f"{row.expected[0]}",
            )
            for row in found.rows
            if row.lengths
        ),
    )


def _paths_table(found: Architectures) -> ComparisonTable:
    at = next((row.path_lengths[-1] for row in found.rows if row.path_lengths), None)
    return ComparisonTable(
        title="Sequential operations, and the longest path from an input to an output",
        columns=(
            "layer",
            "sequential",
            "steps",
            "exponent",
            "path",
            "hops" if at is None else f"hops, n = {at}",
            "closed form",
        ),
        rows=tuple(
            (
                row.title,
                row.steps,
                f"{row.dependent_steps[-1]:,}" if row.dependent_steps else "–",
                str(row.steps_growth or "–"),
                row.path,
                f"{row.paths[-1]}" if row.paths else "–",
                f"{row.derived_paths[-1]}" if row.paths else "–",
            )
            for row in found.rows
        ),
    )


def _training_table(found: Architectures, setting: str) -> ComparisonTable:
    return ComparisonTable(
        title=f"A training step ({setting}, float32)",
        columns=("layer", "n", "time", "exponent", "memory", "exponent", "expected"),
        rows=tuple(
            (
                row.title,
                f"{row.lengths[-1]:,}",
                in_seconds(row.seconds[-1]),
                str(row.seconds_growth or "–"),
                in_bytes(row.bytes[-1]),
                str(row.bytes_growth or "–"),
                f"{row.expected[2]}",
            )
            for row in found.rows
            if row.lengths
        ),
    )


# What is drawn of each layer: title, what is counted, at which lengths it was, and how much.
_PLOTS = (
    ("Operations per layer", "multiply-adds", "lengths", "multiply_adds"),
    ("Steps that wait for each other", "kernels in a row", "lengths", "dependent_steps"),
    ("Longest path from input to output", "hops", "path_lengths", "paths"),
    ("Time of a training step", "seconds", "lengths", "seconds"),
    ("Memory of a training step", "bytes", "lengths", "bytes"),
)


def _plot(found: Architectures, title: str, up: str, places: str, heights: str) -> Plot:
    points = attrgetter(places, heights)
    return Plot(
        title=title,
        across="length n",
        up=up,
        lines=tuple(
            Curve(name=row.title, points=tuple(zip(*points(row), strict=True)))
            for row in found.rows
        ),
        log_across=True,
        log_up=True,
    )
