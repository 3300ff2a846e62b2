"""What a comparison has to show, as plain data: tables, lines, maps and a few sentences."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass

from regard.config import JsonValue
from regard.errors import SettingError


@dataclass(frozen=True, kw_only=True, slots=True)
class ComparisonTable:
    """Figures in rows.

    Attributes:
        title: What they are of.
        columns: Names of the columns.
        rows: As many cells each; the first names its row.
    """

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Curve:
    """Points from left to right.

    Attributes:
        name: What the legend calls it.
        points: Places and heights.
    """

    name: str
    points: tuple[tuple[int | float, int | float], ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Plot:
    """One pair of axes.

    Attributes:
        title: What stands above it.
        across: What the horizontal axis counts.
        up: What the vertical axis counts.
        lines: What is drawn; points that a logarithm cannot show are left out.
        log_across: Whether the horizontal axis is logarithmic.
        log_up: Whether the vertical axis is.
    """

    title: str
    across: str
    up: str
    lines: tuple[Curve, ...]
    log_across: bool = False
    log_up: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class HeatMap:
    """A matrix as colours, between the least of its numbers and the largest.

    Attributes:
        title: What stands above it.
        across: What its columns are.
        down: What its rows are.
        rows: The numbers.
    """

    title: str
    across: str
    down: str
    rows: tuple[tuple[float, ...], ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class ComparisonReport:
    """A comparison for people.

    Attributes:
        title: What was compared.
        text: What to know of it, a paragraph each.
        tables: Its figures.
        pictures: The same, drawn.
    """

    title: str
    text: tuple[str, ...]
    tables: tuple[ComparisonTable, ...]
    pictures: tuple[Plot | HeatMap, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Measurements(ABC):
    """What was measured of some things side by side."""

    def to_dict(self) -> dict[str, JsonValue]:
        """As plain data."""
        return {"comparison": type(self).__name__.lower(), **asdict(self)}

    @abstractmethod
    def report(self) -> ComparisonReport:
        """As tables and pictures."""


def check_ascending(name: str, numbers: Sequence[int], *, least: int) -> None:
    """Raise SettingError unless there are numbers, each above the one before."""
    if not numbers or list(numbers) != sorted(set(numbers)) or numbers[0] < least:
        got = ", ".join(map(str, numbers)) or "none"
        raise SettingError(f"{name} must be numbers from {least}, ascending; got {got}.")


def spread_row(name: str, values: Sequence[float], spreads: Sequence[float]) -> tuple[str, ...]:
    """A table's row of figures, each with its deviation.

    Example:
        >>> spread_row("dot", (4.0, 1234.0), (0.12, 5.0))
        ('dot', '4 ± 0.1', '1.23k ± 5')
    """
    pairs = zip(values, spreads, strict=True)
    return (name, *(f"{short(value)} ± {spread:.1g}" for value, spread in pairs))


def lines_over(
    places: Sequence[int | float], heights: Iterable[tuple[str, Sequence[int | float]]]
) -> tuple[Curve, ...]:
    """Lines over the same places, each with its name."""
    return tuple(
        Curve(name=name, points=tuple(zip(places, each, strict=True))) for name, each in heights
    )


def short(value: int | float) -> str:
    """Three digits that matter, and a letter for thousands, millions and more.

    Example:
        >>> [short(value) for value in (0, 0.00123, 2, 12.345, 128, 4321, 5_000_000, 1e-12)]
        ['0', '0.00123', '2', '12.3', '128', '4.32k', '5M', '1e-12']
    """
    size = abs(value)
    for letter, scale in (("T", 1e12), ("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if size >= scale:
            return f"{value / scale:.3g}{letter}"
    return f"{value:.3g}"


def in_bytes(count: int | float) -> str:
    """Bytes in units of 1,024.

    Example:
        >>> in_bytes(3 * 1024**2), in_bytes(512)
        ('3 MiB', '512 B')
    """
    for unit, scale in (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if count >= scale:
            return f"{count / scale:.3g} {unit}"
    return f"{count:.0f} B"


def in_seconds(value: int | float) -> str:
    """A time in the unit that suits it.

    Example:
        >>> in_seconds(0.00125), in_seconds(2.5)
        ('1.25 ms', '2.5 s')
    """
    return f"{value:.3g} s" if value >= 1 else f"{value * 1000:.3g} ms"
