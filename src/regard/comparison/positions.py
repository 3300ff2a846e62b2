"""Positions: waves beside binary numbers, shifts as linear maps, and what a shuffle changes."""

from collections.abc import Callable
from dataclasses import dataclass
from math import log, pi

import torch
from jaxtyping import Float
from torch import Tensor

from regard.attention import alibi, attend, causal
from regard.checks import check_at_least
from regard.comparison.report import (
    ComparisonReport,
    ComparisonTable,
    HeatMap,
    Measurements,
    Plot,
    short,
)
from regard.errors import SettingError
from regard.layers.positions import LearnedPositions, RotaryPositions, sinusoidal

SHIFTS = (1, 5, 20)


@dataclass(frozen=True, kw_only=True, slots=True)
class Wave:
    """One pair of columns, a sine and a cosine.

    Attributes:
        pair: Its number j; columns 2j and 2j + 1.
        frequency: By the formula, 10000^(−2j/d) radians a position.
        measured: By the angle between neighbouring rows of the matrix.
        period: Positions until it repeats.
    """

    pair: int
    frequency: float
    measured: float
    period: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Shift:
    """One linear map that moves all positions on.

    Attributes:
        shift: By how much, δ.
        error: Of the rotations by δ·frequency: the largest difference to the rows they stand for,
            in float32.
        fitted_error: Of the best map of each pair of columns, found from half of the positions by
            least squares and tried on the others, in float64.
        random_error: The same for a table of random numbers, as learned positions begin.
    """

    shift: int
    error: float
    fitted_error: float
    random_error: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Shuffled:
    """What self-attention makes of its inputs in another order or at other places.

    Attributes:
        title: How positions are told.
        shuffled: The largest difference between the outputs for shuffled inputs and the outputs
            shuffled alike: 0 (to rounding) if places play no part.
        moved: The same if all places are 7 further on: 0 if distances alone count.
    """

    title: str
    shuffled: float
    moved: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Positions(Measurements):
    """The sinusoidal matrix and what it can do.

    Attributes:
        length: Rows.
        width: Columns, d.
        matrix: Its numbers.
        waves: Its pairs of columns, fast to slow.
        bits: The binary numbers 0 to 7, the lowest bit first.
        bit_periods: After how many numbers each bit repeats, measured from ``bits``.
        shifts: Shifts as linear maps.
        shuffled: What a shuffle changes.

    Example:
        >>> found = positions(length=16, width=8, shifts=(3,))
        >>> found.bits[6], len(found.matrix), [round(wave.period) for wave in found.waves]
        ((0, 1, 1), 16, [6, 63, 628, 6283])
        >>> [row.title for row in found.shuffled if row.moved > 1e-3]
        ['sinusoidal', 'learned (random table)']
    """

    length: int
    width: int
    matrix: tuple[tuple[float, ...], ...]
    waves: tuple[Wave, ...]
    bits: tuple[tuple[int, ...], ...]
    bit_periods: tuple[int, ...]
    shifts: tuple[Shift, ...]
    shuffled: tuple[Shuffled, ...]

    def report(self) -> ComparisonReport:
        """As tables and a map."""
        waves = [self.waves[round(k * (len(self.waves) - 1) / 7)] for k in range(8)]
        pictures: tuple[Plot | HeatMap, ...] = (
            HeatMap(
                title="Sinusoidal positions",
                across=f"number of the vector, 0 to {self.width - 1}",
                down=f"position, 0 to {self.length - 1}",
                rows=self.matrix,
            ),
            HeatMap(
                title="The binary numbers 0 to 7",
                across="bit, the lowest first",
                down="number",
                rows=tuple(tuple(float(bit) for bit in row) for row in self.bits),
            ),
        )
        return ComparisonReport(
            title="Positions",
            text=(
                "Counting in binary, the lowest bit changes with every number, the next with every "
                "second, the third with every fourth. Sinusoidal positions do the same with waves: "
                "each pair of columns is a sine and a cosine slower than the pair before.",
                "Row i + δ is row i times a matrix that does not depend on i: each pair turned by "
                "δ times its frequency. So a layer can learn to look a fixed distance away. A "
                "table of random numbers, as learned positions begin, has no such matrix.",
                "Self-attention without positions answers shuffled inputs with shuffled outputs: "
                "it cannot tell the order. Positions break that, and so does a causal mask alone. "
                "Where distances alone count, moving everything on changes nothing.",
            ),
            tables=(
                ComparisonTable(
                    title="Bits and waves",
                    columns=(
                        "bit",
                        "0 to 7",
                        "repeats after",
                        "wave (pair)",
                        "frequency",
                        "measured",
                        "period",
                    ),
                    rows=tuple(
                        (
                            f"{place}" if place < 3 else "",
                            "".join(f"{row[place]}" for row in self.bits) if place < 3 else "",
                            f"{self.bit_periods[place]}" if place < 3 else "",
                            f"{wave.pair}",
                            short(wave.frequency),
                            short(wave.measured),
                            short(wave.period),
                        )
                        for place, wave in enumerate(dict.fromkeys(waves))
                    ),
                ),
                ComparisonTable(
                    title="A shift is a linear map: largest error",
                    columns=("δ", "rotations, float32", "fitted maps", "fitted, random table"),
                    rows=tuple(
                        (
                            f"{shift.shift}",
                            f"{shift.error:.1e}",
                            f"{shift.fitted_error:.1e}",
                            f"{shift.random_error:.2g}",
                        )
                        for shift in self.shifts
                    ),
                ),
                ComparisonTable(
                    title="Self-attention of shuffled and of moved inputs: largest difference",
                    columns=("positions", "shuffled", "7 further on"),
                    rows=tuple(
                        (row.title, f"{row.shuffled:.1e}", f"{row.moved:.1e}")
                        for row in self.shuffled
                    ),
                ),
            ),
            pictures=pictures,
        )


def positions(
    *,
    length: int = 64,
    width: int = 32,
    shifts: tuple[int, ...] = SHIFTS,
    progress: Callable[[int], None] = lambda count: None,
) -> Positions:
    """The sinusoidal positions of Vaswani et al. (2017), section 3.5, and other ways, examined.

    Args:
        length: Positions.
        width: Width of the vectors, d; even.
        shifts: Distances δ whose linear maps are checked.
        progress: Told of each part that is done.

    Raises:
        SettingError: A number is out of range.

    Example:
        >>> found = positions(length=16, width=8, shifts=(3,))
        >>> found.shifts[0].error < 1e-5, found.bit_periods
        (True, (2, 4, 8))
    """
    check_at_least("length", length, 8)
    check_at_least("width", width, 2)
    if width % 2:
        raise SettingError(f"width must be even; got {width}. Waves come in pairs.")
    for shift in shifts:
        check_at_least("shift", shift, 1)
    matrix = sinusoidal(torch.arange(length), width)
    bits = tuple(tuple(number >> bit & 1 for bit in range(3)) for number in range(8))
    waves = _waves(width)
    progress(1)
    moved = tuple(_shift(shift, length, width) for shift in shifts)
    progress(1)
    shuffled = _shuffled(length, width)
    progress(1)
    return Positions(
        length=length,
        width=width,
        matrix=tuple(tuple(row) for row in matrix.tolist()),
        waves=waves,
        bits=bits,
        bit_periods=tuple(_period([row[bit] for row in bits]) for bit in range(3)),
        shifts=moved,
        shuffled=shuffled,
    )


def _waves(width: int) -> tuple[Wave, ...]:
    rows = sinusoidal(torch.arange(2), width, dtype=torch.float64)
    angles = torch.atan2(rows[:, 0::2], rows[:, 1::2])
    measured = (angles[1] - angles[0]).tolist()
    frequencies = _frequencies(width).tolist()
    return tuple(
        Wave(pair=pair, frequency=frequency, measured=seen, period=2 * pi / seen)
        for pair, (frequency, seen) in enumerate(zip(frequencies, measured, strict=True))
    )


def _frequencies(width: int) -> Float[Tensor, " P"]:
    return torch.exp(torch.arange(0, width, 2, dtype=torch.float64) * (-log(10000) / width))


def _period(values: list[int]) -> int:
    """After how many places a list of numbers repeats itself."""
    return next(
        period
        for period in range(1, len(values) + 1)
        if all(values[k] == values[k % period] for k in range(len(values)))
    )


def _shift(shift: int, length: int, width: int) -> Shift:
    """Whether row i times one matrix is row i + δ, for every i."""
    places = torch.arange(length)
    here, there = (sinusoidal(at, width) for at in (places, places + shift))
    error = (here @ _rotation(shift, width).float() - there).abs().max().item()
    waves = sinusoidal(torch.arange(length + shift), width, dtype=torch.float64)
    generator = torch.Generator().manual_seed(0)
    random = torch.randn(length + shift, width, generator=generator, dtype=torch.float64)
    return Shift(
        shift=shift,
        error=error,
        fitted_error=_fit_error(waves, shift),
        random_error=_fit_error(random, shift),
    )


def _rotation(shift: int, width: int) -> Float[Tensor, "C C"]:
    """Each pair turned by δ times its frequency, for rows from the left."""
    angles = shift * _frequencies(width)
    rotation = torch.zeros(width, width, dtype=torch.float64)
    even = torch.arange(0, width, 2)
    rotation[even, even] = rotation[even + 1, even + 1] = angles.cos()
    rotation[even + 1, even] = angles.sin()
    rotation[even, even + 1] = -angles.sin()
    return rotation


def _fit_error(table: Float[Tensor, "N C"], shift: int) -> float:
    """How far the best map of each pair, from even places, misses at odd ones."""
    here, there = table[:-shift], table[shift:]
    errors = []
    for pair in range(0, table.shape[1], 2):
        columns = slice(pair, pair + 2)
        found = torch.linalg.lstsq(here[0::2, columns], there[0::2, columns]).solution
        missed = here[1::2, columns] @ found - there[1::2, columns]
        errors.append(float(missed.abs().max()))
    return max(errors)


_Attention = Callable[[Float[Tensor, "N C"], int], Float[Tensor, "N C"]]


@torch.no_grad()
def _shuffled(length: int, width: int) -> tuple[Shuffled, ...]:
    """Self-attention of random inputs in two orders, and at two places."""
    generator = torch.Generator().manual_seed(0)
    inputs = torch.randn(length, width, generator=generator)
    order = torch.randperm(length, generator=generator)
    table = LearnedPositions(width, max_length=length + 7)
    table.table.copy_(torch.randn(table.table.shape, generator=generator))
    rotary = RotaryPositions(width)

    def plain(states: Tensor, first: int) -> Tensor:
        return attend(states, states)

    def after(states: Tensor, first: int) -> Tensor:
        return attend(states, states, mask=causal())

    def waves(states: Tensor, first: int) -> Tensor:
        return plain(states + sinusoidal(torch.arange(length) + first, width), first)

    def learned(states: Tensor, first: int) -> Tensor:
        return plain(table(states, first=first), first)

    def turned(states: Tensor, first: int) -> Tensor:
        angled = rotary(states[None, None], first=first)[0, 0]
        return attend(angled, angled, states)

    def sloped(states: Tensor, first: int) -> Tensor:
        return attend(states[None, None], states[None, None], bias=alibi())[0, 0]

    ways: dict[str, _Attention] = {
        "none": plain,
        "none, causal mask": after,
        "sinusoidal": waves,
        "learned (random table)": learned,
        "rotary": turned,
        "ALiBi": sloped,
    }
    found = []
    for title, way in ways.items():
        there = way(inputs, 0)
        shuffled = (way(inputs[order], 0) - there[order]).abs().max().item()
        moved = (way(inputs, 7) - there).abs().max().item()
        found.append(Shuffled(title=title, shuffled=shuffled, moved=moved))
    return tuple(found)
