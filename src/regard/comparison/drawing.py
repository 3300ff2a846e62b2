"""Plots and heat maps as SVG text: no script, no fonts, light and dark as the reader has it."""

from collections.abc import Callable, Sequence
from html import escape
from itertools import pairwise
from math import ceil, floor, log10

from regard.comparison.report import Curve, HeatMap, Plot, short

_WIDTH, _HEIGHT = 664, 360
_LEFT, _RIGHT, _TOP, _BOTTOM = 64, 16, 52, 48
_LEGEND = 236
# Okabe and Ito's colours, told apart by readers of any colour vision; light ones darkened for
# white paper, and the darkest lightened for black. Dashes and marks tell lines apart without them.
_LIGHT = ("#d55e00", "#0072b2", "#00805e", "#b0588a", "#8a6d00", "#3a8bc0", "#5b5b5b", "#9a3b00")
_DARK = ("#ff8a3d", "#5db5ee", "#2fcfa0", "#eda6cc", "#f0e04a", "#8fd0ff", "#bdbdbd", "#ffb27f")
_DASHES = ("none", "7 3", "2 3", "9 3 2 3")
_MARKS = (
    "M-3.5 0a3.5 3.5 0 1 0 7 0a3.5 3.5 0 1 0-7 0z",
    "M-3.2-3.2h6.4v6.4h-6.4z",
    "M0-4.2L4 3.2h-8z",
    "M0-4.4L4.4 0L0 4.4L-4.4 0z",
)
STYLE = (
    ".chart{--ink:#1f2328;--quiet:#59636e;--grid:#dfe3e8;--paper:#fff;"
    + "".join(f"--c{i}:{c};" for i, c in enumerate(_LIGHT))
    + "}@media(prefers-color-scheme:dark){.chart{--ink:#e6e9ee;--quiet:#9aa4af;--grid:#30363d;"
    "--paper:#14171c;"
    + "".join(f"--c{i}:{c};" for i, c in enumerate(_DARK))
    + "}}.chart text{font:13px system-ui,sans-serif;fill:var(--ink)}"
    ".chart .quiet{fill:var(--quiet);font-size:12px}.chart .title{font-weight:600;font-size:14px}"
    ".chart .paper{fill:var(--paper)}.chart .grid{stroke:var(--grid)}"
    ".chart .axis{stroke:var(--quiet);fill:none}.chart .line{fill:none;stroke-width:2}"
)


def draw(picture: Plot | HeatMap) -> str:
    """A picture as one SVG element, which stands alone as a file too.

    Example:
        >>> line = Curve(name="a & b", points=((1, 1), (10, 100)))
        >>> plot = Plot(title="T", across="x", up="y", lines=(line,), log_across=True, log_up=True)
        >>> text = draw(plot)
        >>> text.startswith("<svg"), "a &amp; b" in text, text.count("<title>")
        (True, True, 3)
    """
    inside = _map(picture) if isinstance(picture, HeatMap) else _plot(picture)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="chart" role="img" '
        f'aria-label="{escape(picture.title)}" width="{_WIDTH}" height="{_HEIGHT}" '
        f'viewBox="0 0 {_WIDTH} {_HEIGHT}"><style>{STYLE}</style>'
        f'<rect class="paper" width="{_WIDTH}" height="{_HEIGHT}" rx="8"/>{inside}</svg>\n'
    )


def _plot(plot: Plot) -> str:
    lines = [_shown(line, plot) for line in plot.lines]
    points = [point for line in lines for point in line]
    if not points:
        return _words(plot.title, plot.across, plot.up) + (
            f'<text class="quiet" x="{_LEFT}" y="{_HEIGHT / 2}">nothing to show</text>'
        )
    right, bottom = _WIDTH - _RIGHT - _LEGEND, _HEIGHT - _BOTTOM
    across, ticks_across = _scale([x for x, _ in points], plot.log_across, _LEFT, right)
    up, ticks_up = _scale([y for _, y in points], plot.log_up, bottom, _TOP)
    parts = [
        f'<path class="grid" d="M{_LEFT} {up(y):.1f}H{right}"/>'
        f'<text class="quiet" x="{_LEFT - 7}" y="{up(y) + 4:.1f}" text-anchor="end">'
        f"{short(y)}</text>"
        for y in ticks_up
    ]
    parts += [
        f'<path class="axis" d="M{across(x):.1f} {bottom}v4"/>'
        f'<text class="quiet" x="{across(x):.1f}" y="{bottom + 17}" text-anchor="middle">'
        f"{x:g}</text>"
        for x in ticks_across
    ]
    parts.append(f'<path class="axis" d="M{_LEFT} {bottom}H{right}"/>')
    parts.append(_words(plot.title, plot.across, plot.up))
    for place, (line, shown) in enumerate(zip(plot.lines, lines, strict=True)):
        colour, dash = f"var(--c{place % 8})", _DASHES[place // 2 % 4]
        mark = _MARKS[place % 4]
        pen = f'class="line" style="stroke:{colour}" stroke-dasharray="{dash}"'
        if shown:
            path = "L".join(f"{across(x):.1f} {up(y):.1f}" for x, y in shown)
            parts.append(f'<path {pen} d="M{path}"/>')
        # Of many points a few are marked, so that marks do not hide the line.
        step = max(1, ceil(len(shown) / 12))
        for x, y in shown[::step]:
            parts.append(
                f'<path style="fill:{colour}" d="{mark}" '
                f'transform="translate({across(x):.1f} {up(y):.1f})">'
                f"<title>{escape(line.name)}: {x:g}, {y:.4g}</title></path>"
            )
        x, y = right + 16, _TOP + 10 + 24 * place
        nothing = "0" if line.points else "none"
        name = escape(line.name if shown else f"{line.name} ({nothing})")
        parts.append(
            f'<path {pen} d="M{x} {y}h28"/>'
            f'<path style="fill:{colour}" d="{mark}" transform="translate({x + 14} {y})">'
            f"<title>{name}</title></path>"
            f'<text x="{x + 36}" y="{y + 4}" style="font-size:12px">{name}</text>'
        )
    return "".join(parts)


def _map(heat: HeatMap) -> str:
    values = [value for row in heat.rows for value in row]
    low, high = min(values), max(values)
    rows, columns = len(heat.rows), len(heat.rows[0])
    wide = min((_WIDTH - _LEFT - 110) / columns, 60)
    tall = (_HEIGHT - _TOP - _BOTTOM) / rows
    cells = []
    for r, row in enumerate(heat.rows):
        for c, value in enumerate(row):
            share = (value - low) / (high - low) if high > low else 0.5
            cells.append(
                f'<rect x="{_LEFT + c * wide:.2f}" y="{_TOP + r * tall:.2f}" '
                f'width="{wide:.2f}" height="{tall:.2f}" fill="{_cividis(share)}"/>'
            )
    x = _LEFT + columns * wide + 20
    steps = 24
    bar = "".join(
        f'<rect x="{x:.1f}" y="{_TOP + k * 6}" width="16" height="6.3" '
        f'fill="{_cividis(1 - k / (steps - 1))}"/>'
        for k in range(steps)
    )
    ends = (
        f'<text class="quiet" x="{x + 22:.1f}" y="{_TOP + 10}">{high:.3g}</text>'
        f'<text class="quiet" x="{x + 22:.1f}" y="{_TOP + 6 * steps}">{low:.3g}</text>'
    )
    return f'<g shape-rendering="crispEdges">{"".join(cells)}{bar}</g>{ends}' + _words(
        heat.title, heat.across, heat.down
    )


def _words(title: str, across: str, up: str) -> str:
    return (
        f'<text class="title" x="16" y="24">{escape(title)}</text>'
        f'<text class="quiet" x="{_LEFT}" y="{_HEIGHT - 12}">{escape(across)} →</text>'
        f'<text class="quiet" x="16" y="{_TOP - 10}">{escape(up)}</text>'
    )


def _shown(line: Curve, plot: Plot) -> list[tuple[int | float, int | float]]:
    """The points that can be drawn."""
    return [
        (x, y)
        for x, y in line.points
        if (x > 0 or not plot.log_across) and (y > 0 or not plot.log_up)
    ]


def _scale(
    values: Sequence[int | float], is_log: bool, start: int, stop: int
) -> tuple[Callable[[int | float], float], Sequence[int | float]]:
    """Where a value stands between two places, and which are written."""
    ticks: Sequence[int | float]
    ticks = _log_ticks(values) if is_log else _ticks(min(values), max(values))
    least, most = min(*values, ticks[0]), max(*values, ticks[-1])
    if is_log:
        least, most = log10(least), log10(most)

    def place(value: int | float) -> float:
        at = log10(value) if is_log else value
        share = (at - least) / (most - least) if most > least else 0.5
        return start + share * (stop - start)

    return place, ticks


def _log_ticks(values: Sequence[int | float]) -> Sequence[int | float]:
    """The values themselves where they are few, as lengths are; else powers of ten."""
    distinct = sorted(set(values))
    if len(distinct) <= 8 and all(value == int(value) for value in distinct):
        doubles = [b / a for a, b in pairwise(distinct)]
        if all(ratio >= 1.5 for ratio in doubles) and len(distinct) > 2:
            return distinct
    first, last = floor(log10(distinct[0])), ceil(log10(distinct[-1]))
    step = max(1, ceil((last - first) / 6))
    return [10.0**power for power in range(first, last + 1, step)]


def _ticks(low: int | float, high: int | float) -> list[float]:
    """Four to eight round numbers around the values, from zero where that is near."""
    low = min(low, 0.0) if low < 0.5 * high else low
    size = (high - low) or abs(high) or 1.0
    power = 10.0 ** floor(log10(size))
    step = next(
        unit * power / 10 for unit in (1, 2, 5, 10, 20, 50) if size / (unit * power / 10) <= 6
    )
    first, last = floor(low / step), ceil(high / step)
    return [round(step * count, 10) for count in range(first, last + 1)]


# Cividis, which people of any colour vision read alike, at five places.
_COLOURS = ((0, 34, 78), (66, 78, 108), (124, 123, 120), (187, 172, 106), (254, 232, 56))


def _cividis(share: int | float) -> str:
    """The colour at a share from 0 to 1."""
    at = min(max(share, 0.0), 1.0) * (len(_COLOURS) - 1)
    place = min(int(at), len(_COLOURS) - 2)
    low, high = _COLOURS[place], _COLOURS[place + 1]
    return "#" + "".join(
        f"{round(a + (b - a) * (at - place)):02x}" for a, b in zip(low, high, strict=True)
    )
