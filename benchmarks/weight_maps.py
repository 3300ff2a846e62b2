"""Small attention maps side by side as SVG text, so that a figure needs no drawing library."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

_CELL, _COLUMNS = 22, 5
_LEFT, _TOP, _GAP = 64, 42, 14
_STYLE = (
    "text{font:12px sans-serif;fill:#222}.title{font-weight:bold;font-size:11px}"
    ".cell{stroke:#ddd;stroke-width:.5}"
)


@dataclass(frozen=True, kw_only=True, slots=True)
class WeightMap:
    """The weights of one model.

    Attributes:
        title: What stands above them.
        across: What is looked at, token by token.
        down: What was written.
        rows: A row of weights for each token written.
    """

    title: str
    across: tuple[str, ...]
    down: tuple[str, ...]
    rows: tuple[tuple[float, ...], ...]


def draw(maps: Sequence[WeightMap]) -> str:
    """The maps in rows of five; the darker, the more weight.

    Example:
        >>> rows = ((0.75, 0.25),)
        >>> text = draw([WeightMap(title="a < b", across=("我", "爱"), down=("I",), rows=rows)])
        >>> text.startswith("<svg"), "a &lt; b" in text, 'fill-opacity="0.75"' in text
        (True, True, True)
    """
    wide = _LEFT + _CELL * max(len(each.across) for each in maps) + _GAP
    wide = max(wide, 7 * max(len(each.title) for each in maps) + _GAP)
    high = _TOP + _CELL * max(len(each.down) for each in maps) + _GAP
    parts = [
        f'<g transform="translate({wide * (place % _COLUMNS)} {high * (place // _COLUMNS)})">'
        f"{_panel(each)}</g>"
        for place, each in enumerate(maps)
    ]
    width, height = wide * min(_COLUMNS, len(maps)), high * -(-len(maps) // _COLUMNS)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}"><style>{_STYLE}</style>\n'
        '<rect width="100%" height="100%" fill="white"/>\n' + "\n".join(parts) + "\n</svg>\n"
    )


def _panel(shown: WeightMap) -> str:
    parts = [f'<text class="title" x="4" y="14">{escape(shown.title)}</text>']
    for column, name in enumerate(shown.across):
        x = _LEFT + _CELL * (column + 0.5)
        parts.append(f'<text x="{x}" y="{_TOP - 6}" text-anchor="middle">{escape(name)}</text>')
    for line, (name, row) in enumerate(zip(shown.down, shown.rows, strict=True)):
        y = _TOP + _CELL * line
        parts.append(f'<text x="{_LEFT - 6}" y="{y + 15}" text-anchor="end">{escape(name)}</text>')
        parts += [
            f'<rect class="cell" x="{_LEFT + _CELL * column}" y="{y}" width="{_CELL}" '
            f'height="{_CELL}" fill="#0072b2" fill-opacity="{min(1.0, weight):.3g}"/>'
            for column, weight in enumerate(row)
        ]
    return "\n".join(parts)
