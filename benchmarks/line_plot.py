"""A line plot as SVG text, so that a figure needs no drawing library."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

_WIDTH, _HEIGHT = 400, 300
_LEFT, _RIGHT, _TOP, _BOTTOM = 48, 16, 66, 46
# Okabe and Ito's colours, which readers with colour blindness tell apart.
_COLOURS = ("#d55e00", "#0072b2", "#009e73", "#cc79a7")
_DASHES = ("6 3", "none", "2 2", "8 2 2 2")
_STYLE = (
    "text{font:12px sans-serif;fill:#222}.axis{stroke:#222}.grid{stroke:#ddd}"
    ".line{fill:none;stroke-width:2}.title{font-weight:bold}"
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Curve:
    """One system's points.

    Attributes:
        name: What the legend calls it.
        points: Places and heights, from left to right.
        margins: Half the height of each point's error bar.
    """

    name: str
    points: tuple[tuple[float, float], ...]
    margins: tuple[float, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Panel:
    """One pair of axes.

    Attributes:
        title: What stands above it.
        across: What the horizontal axis counts.
        up: What the vertical axis counts.
        lines: What is drawn; the same number in the same order in every panel.
    """

    title: str
    across: str
    up: str
    lines: tuple[Curve, ...]


def draw(panels: Sequence[Panel]) -> str:
    """The panels side by side, each with a legend.

    Example:
        >>> line = Curve(name="a & b", points=((1.0, 2.0), (3.0, 4.0)), margins=(0.5, 0.5))
        >>> text = draw([Panel(title="T", across="x", up="y", lines=(line,))])
        >>> text.startswith("<svg"), "a &amp; b" in text
        (True, True)
    """
    parts = [
        f'<g transform="translate({place * _WIDTH} 0)">{_panel(panel)}</g>'
        for place, panel in enumerate(panels)
    ]
    size = f'width="{_WIDTH * len(panels)}" height="{_HEIGHT}"'
    box = f'viewBox="0 0 {_WIDTH * len(panels)} {_HEIGHT}"'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} {box}><style>{_STYLE}</style>\n'
        '<rect width="100%" height="100%" fill="white"/>\n' + "\n".join(parts) + "\n</svg>\n"
    )


def _panel(panel: Panel) -> str:
    right = 1.05 * max(x for line in panel.lines for x, _ in line.points)
    top = 1.1 * max(
        y + margin
        for line in panel.lines
        for (_, y), margin in zip(line.points, line.margins, strict=True)
    )
    top = top or 1.0  # where all is zero

    def across(x: float) -> float:
        return round(_LEFT + x / right * (_WIDTH - _LEFT - _RIGHT), 1)

    def up(y: float) -> float:
        return round(_HEIGHT - _BOTTOM - y / top * (_HEIGHT - _TOP - _BOTTOM), 1)

    parts = []
    for y in _ticks(top):
        parts.append(
            f'<path class="grid" d="M{_LEFT} {up(y)}H{_WIDTH - _RIGHT}"/>'
            f'<text x="{_LEFT - 6}" y="{up(y) + 4}" text-anchor="end">{y:g}</text>'
        )
    parts.append(f'<path class="axis" d="M{_LEFT} {up(0)}H{_WIDTH - _RIGHT}"/>')
    foot = _HEIGHT - _BOTTOM + 16
    for x in _ticks(right):
        parts.append(f'<text x="{across(x)}" y="{foot}" text-anchor="middle">{x:g}</text>')
    middle = (_LEFT + _WIDTH - _RIGHT) / 2
    parts += [
        f'<text class="title" x="{_LEFT}" y="16">{escape(panel.title)}</text>',
        f'<text x="{middle}" y="{_HEIGHT - 12}" text-anchor="middle">{escape(panel.across)}</text>',
        f'<text x="8" y="{_TOP - 10}">{escape(panel.up)}</text>',
    ]
    for place, line in enumerate(panel.lines):
        colour, dash = _COLOURS[place % 4], _DASHES[place % 4]
        path = "L".join(f"{across(x)} {up(y)}" for x, y in line.points)
        pen = f'stroke="{colour}" stroke-dasharray="{dash}"'
        parts.append(f'<path class="line" {pen} d="M{path}"/>')
        for (x, y), margin in zip(line.points, line.margins, strict=True):
            bar = f"M{across(x)} {up(y - margin)}V{up(y + margin)}"
            parts.append(
                f'<path stroke="{colour}" d="{bar}"/>'
                f'<circle cx="{across(x)}" cy="{up(y)}" r="3" fill="{colour}"/>'
            )
        start, height = _LEFT + (0, 170)[place % 2], 32 + 14 * (place // 2)
        parts.append(
            f'<path class="line" {pen} d="M{start} {height}h18"/>'
            f'<text x="{start + 22}" y="{height + 4}">{escape(line.name)}</text>'
        )
    return "\n".join(parts)


def _ticks(most: float) -> list[float]:
    """Four to eight round numbers from zero to ``most``."""
    step = next(
        size
        for power in (0.01, 0.1, 1, 10, 100, 1000, 10_000, 100_000)
        for size in (power, 2 * power, 5 * power)
        if most / size <= 8
    )
    return [round(step * count, 2) for count in range(int(most / step) + 1)]
