"""Pictures of a summary: a small SVG for a notebook, and a matplotlib figure."""

from html import escape
from math import prod
from typing import TYPE_CHECKING

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional as F

from regard.plotting import new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_MOST_HEADS, _CELLS, _CELL, _GAP, _ACROSS = 16, 24, 4, 14, 8
_STRIP = 26
_MOST_PLOTTED, _PLOTTED_ACROSS = 32, 8
# Cividis, which people of any colour vision read alike.
_DARK, _MIDDLE, _LIGHT = (0, 34, 78), (124, 123, 120), (254, 232, 56)


def draw(pooled: Float[Tensor, "*b R C"], effective_keys: Float[Tensor, "*b N"], title: str) -> str:
    """A small static SVG for the cell of a notebook: no script, nothing from outside.

    The maps of the first heads, each above the effective number of keys along the queries.
    """
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


def plot(
    pooled: Float[Tensor, "*b R C"],
    effective_keys: Float[Tensor, "*b N"],
    received: Float[Tensor, "*b M"],
) -> "Figure":
    """A matplotlib figure, for papers and notebooks that have it.

    The map of every head, above what its queries spread over and what its keys receive.

    Of more than 32 heads, the first 32. No window is opened: the figure belongs to the caller.

    Raises:
        SettingError: matplotlib is not installed.
    """
    N, M = effective_keys.shape[-1], received.shape[-1]
    heads = [
        tensor.detach().float().cpu().flatten(0, -axes - 1)[:_MOST_PLOTTED]
        for tensor, axes in (
            (pooled.unsqueeze(0), 2),
            (effective_keys.unsqueeze(0), 1),
            (received.unsqueeze(0), 1),
        )
    ]
    count = len(heads[0])
    across = max(1, min(_PLOTTED_ACROSS, count))
    down = max(1, -(-count // across))
    with new_figure(figsize=(2.4 * across, 4.0 * down)) as figure:
        axes = figure.subplots(3 * down, across, squeeze=False, height_ratios=[3, 1, 1] * down)
        for panel in axes.flat:
            panel.set_visible(False)
        for number, (map_, effective, mass) in enumerate(zip(*heads, strict=True)):
            row, column = divmod(number, across)
            image, of_queries, of_keys = (axes[3 * row + k][column] for k in range(3))
            for panel in (image, of_queries, of_keys):
                panel.set_visible(True)
                panel.tick_params(labelsize=6)
            # The root shows small masses beside large ones.
            image.imshow(map_.sqrt().numpy(), cmap="cividis", aspect="auto", extent=(0, M, N, 0))
            image.set_title(f"{number}", fontsize=8)
            image.set_ylabel("query", fontsize=7)
            of_queries.plot(effective.numpy(), linewidth=0.8, color="#00529b")
            of_queries.set_ylabel("effective keys", fontsize=7)
            of_keys.plot(mass.numpy(), linewidth=0.8, color="#b35900")
            of_keys.set_ylabel("received", fontsize=7)
    return figure


def _head(map_: Tensor, line: Tensor, name: str, row: int, column: int) -> str:
    """One head at its place."""
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
    share = level / 15 * 2
    low, high = (_DARK, _MIDDLE) if share <= 1 else (_MIDDLE, _LIGHT)
    share = share if share <= 1 else share - 1
    return "#" + "".join(
        f"{round(a + (b - a) * share):02x}" for a, b in zip(low, high, strict=True)
    )
