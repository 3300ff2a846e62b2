"""A small SVG of a summary, for a notebook."""

from html import escape
from math import prod

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional as F

_MOST_HEADS, _CELLS, _CELL, _GAP, _ACROSS = 16, 24, 4, 14, 8
_STRIP = 26
# Cividis, which people of any colour vision read alike.
_DARK, _MIDDLE, _LIGHT = (0, 34, 78), (124, 123, 120), (254, 232, 56)


def draw(pooled: Float[Tensor, "*b R C"], effective_keys: Float[Tensor, "*b N"], title: str) -> str:
    """Draw the maps of the first heads, each above its effective number of keys, as SVG."""
    pooled = pooled.detach().double().cpu()
    lead = pooled.shape[:-2]
    total = prod(lead)
    maps = pooled.reshape(total, *pooled.shape[-2:])[:_MOST_HEADS]
    lines = effective_keys.detach().double().cpu().reshape(total, effective_keys.shape[-1])
    size = _CELLS * _CELL
    across = max(1, min(_ACROSS, len(maps)))
    down = max(1, -(-len(maps) // across))
    width = across * (size + _GAP) + _GAP
    height = down * (size + _STRIP + 2 * _GAP) + _GAP
    parts = [
        _head(map_, line, _name(number, lead), *divmod(number, across))
        for number, (map_, line) in enumerate(zip(maps, lines, strict=False))
    ]
    more = f"; the first {len(maps)} of {total}" if total > len(maps) else ""
    title = escape(f"{title}{more}")
    return (
        f'<figure style="margin:0"><svg xmlns="http://www.w3.org/2000/svg" role="img" '
        f'aria-label="{title}" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="9" '
        f'fill="currentColor">{"".join(parts)}</svg>'
        f'<figcaption style="font:12px sans-serif;max-width:{width}px">{title}.<br>'
        "Maps: queries downwards, keys to the right, brighter where more weight falls. "
        "Lines: over how many keys each query's weights spread.</figcaption></figure>"
    )


def _head(map_: Tensor, line: Tensor, name: str, row: int, column: int) -> str:
    size = _CELLS * _CELL
    x = _GAP + column * (size + _GAP)
    y = _GAP + row * (size + _STRIP + 2 * _GAP)
    label = f'<text x="0" y="-3">{escape(name)}</text>'
    inside = label + _cells(map_) + _line(line, size)
    return f'<g transform="translate({x} {y})">{inside}</g>'


def _cells(map_: Tensor) -> str:
    """The map as rectangles, one for each run of cells of the same colour."""
    size = _CELLS * _CELL
    if not map_.numel():
        return f'<rect width="{size}" height="{size}" fill="none" stroke="currentColor"/>'
    R, C = map_.shape
    down, across = (max(1, -(-n // _CELLS)) for n in (R, C))
    sums = F.pad(map_, (0, -C % across, 0, -R % down))
    sums = sums.reshape(-(-R // down), down, -1, across).sum(dim=(1, 3))
    sums = sums.nan_to_num(0).clamp_min(0).sqrt()
    levels = (sums / sums.max().clamp_min(1e-30) * 15).round().long().tolist()
    rows, columns = len(levels), len(levels[0])
    high, wide = size / rows, size / columns
    drawn = [f'<rect width="{size}" height="{size}" fill="{_colour(0)}"/>']
    for r, row in enumerate(levels):
        c = 0
        while c < columns:
            end = c
            while end < columns and row[end] == row[c]:
                end += 1
            if row[c]:
                drawn.append(
                    f'<rect x="{c * wide:.4g}" y="{r * high:.4g}" width="{(end - c) * wide:.4g}" '
                    f'height="{high:.4g}" fill="{_colour(row[c])}"/>'
                )
            c = end
    return f'<g shape-rendering="crispEdges">{"".join(drawn)}</g>'


def _line(line: Tensor, size: int) -> str:
    """A value of each query from left to right, with its largest written beside."""
    if not line.numel():
        return ""
    points = F.adaptive_avg_pool1d(line.nan_to_num(0)[None], min(len(line), size))[0]
    most = points.max().clamp_min(1e-30)
    xs = torch.linspace(0, size, len(points)) if len(points) > 1 else torch.zeros(1)
    ys = size + _STRIP - points / most * (_STRIP - 12)
    path = " ".join(f"{x:.4g},{y:.4g}" for x, y in zip(xs.tolist(), ys.tolist(), strict=True))
    drawn = f'<polyline points="{path}" fill="none" stroke="currentColor" stroke-width="1"/>'
    label = f'<text x="{size}" y="{size + 9}" text-anchor="end">≤ {most.item():.3g} keys</text>'
    return drawn + label


def _name(number: int, lead: torch.Size) -> str:
    if not lead:
        return ""
    if len(lead) == 1:
        return f"{number}"
    batch, head = divmod(number, lead[-1])
    return f"head {head}" if len(lead) == 2 and lead[0] == 1 else f"row {batch}, head {head}"


def _colour(level: int) -> str:
    """One of sixteen colours, from dark to light."""
    position = level / 15 * 2
    low, high = (_DARK, _MIDDLE) if position <= 1 else (_MIDDLE, _LIGHT)
    position = position if position <= 1 else position - 1
    return "#" + "".join(
        f"{round(a + (b - a) * position):02x}" for a, b in zip(low, high, strict=True)
    )
