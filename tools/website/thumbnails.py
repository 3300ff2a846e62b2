"""Small drawings of pages of attention, for the cards of the gallery."""

import html
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from regard.viewer import Example, Token

WIDTH, HEIGHT = 320, 150
_INK, _BLUE = "#7a828a", "#2563b8"  # read on light and on dark
_MOST_WORDS, _MOST_HEADS, _MOST_CELLS = 14, 6, 24
_FAINTEST = 0.04

Weights = NDArray[np.float64]


def thumbnail(example: Example) -> str:
    """Draw an example as SVG: a picture, links between two texts, a shaded text, or heat maps.

    Example:
        >>> from regard.viewer import show
        >>> thumbnail(show([[1.0, 0.0], [0.5, 0.5]]).document.examples[0]).count("<rect")
        3
    """
    if example.image is not None:
        shapes = _pixels([[float(np.mean(pixel)) for pixel in row] for row in example.image.pixels])
    elif example.answer is not None and example.answer.values:
        shapes = _shaded(example.source_tokens or example.output_tokens, example.answer.values)
    else:
        cross = [rows for kind, rows in _heads(example) if kind == "cross"]
        sizes = (len(example.source_tokens), len(example.output_tokens))
        if cross and example.sides == "texts" and max(sizes) <= _MOST_WORDS:
            mean = np.mean(cross, axis=0)
            shapes = _links(example.source_tokens, example.output_tokens, mean)
        else:
            shapes = _maps([rows for _, rows in _heads(example)][:_MOST_HEADS])
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
        f'font-family="sans-serif" font-size="13">{"".join(shapes)}</svg>\n'
    )


def _heads(example: Example) -> Iterator[tuple[str, Weights]]:
    """Weights of every head that are kept whole, by kind."""
    for one in example.maps:
        yield one.kind, np.asarray(one.rows)
    for layer in example.summaries:
        if (packed := layer.rows or layer.pooled) is not None:
            for rows in packed.values():
                yield layer.kind, np.asarray(rows)


def _maps(heads: Sequence[Weights]) -> Iterator[str]:
    across = min(3, len(heads))
    down = -(-len(heads) // max(1, across))
    side = min((WIDTH - 8 * across) / max(1, across), (HEIGHT - 8 * down) / max(1, down))
    left, top = (WIDTH - across * (side + 8)) / 2, (HEIGHT - down * (side + 8)) / 2
    for number, weights in enumerate(heads):
        cut = weights[:_MOST_CELLS, :_MOST_CELLS]
        cell = side / max(cut.shape)
        x, y = left + number % across * (side + 8), top + number // across * (side + 8)
        for (row, column), weight in np.ndenumerate(cut / max(cut.max(), 1e-9)):
            if weight >= _FAINTEST:
                yield _cell(x + column * cell, y + row * cell, cell, float(weight))


def _pixels(rows: Sequence[Sequence[float]]) -> Iterator[str]:
    cell = HEIGHT / len(rows)
    left = (WIDTH - cell * len(rows[0])) / 2
    for y, row in enumerate(rows):
        for x, light in enumerate(row):
            yield _cell(left + x * cell, y * cell, cell, light)


def _cell(x: float, y: float, side: float, share: float) -> str:
    return (
        f'<rect x="{x:.1f}" y="{y:.1f}" width="{side * 0.95:.1f}" height="{side * 0.95:.1f}" '
        f'fill="{_BLUE}" fill-opacity="{share:.2f}"/>'
    )


def _links(source: Sequence[Token], output: Sequence[Token], weights: Weights) -> Iterator[str]:
    above, below = _places(source), _places(output)
    for (row, column), weight in np.ndenumerate(weights / max(weights.max(), 1e-9)):
        if weight >= _FAINTEST:
            x, to = above[column], below[row]
            yield (
                f'<path d="M{x:.0f} 34C{x:.0f} 75 {to:.0f} 75 {to:.0f} 116" fill="none" '
                f'stroke="{_BLUE}" stroke-width="{0.5 + 4 * weight:.1f}" '
                f'stroke-opacity="{0.1 + 0.8 * weight:.2f}"/>'
            )
    for tokens, places, y in ((source, above, 26), (output, below, 134)):
        yield from (_word(token, x, y) for token, x in zip(tokens, places, strict=True))


def _shaded(tokens: Sequence[Token], values: Sequence[float]) -> Iterator[str]:
    full = max(*values, 1e-9)
    x, y = 16.0, 40.0
    for token, value in zip(tokens, values, strict=True):
        wide = _width(token)
        if x + wide > WIDTH - 16:
            x, y = 16.0, y + 26
        yield (
            f'<rect x="{x - 3:.0f}" y="{y - 15:.0f}" width="{wide:.0f}" height="21" rx="3" '
            f'fill="{_BLUE}" fill-opacity="{max(0.0, value) / full * 0.6:.2f}"/>'
        )
        yield _word(token, x + wide / 2 - 3, y)
        x += wide + 3


def _places(tokens: Sequence[Token]) -> list[float]:
    """Middles of words that stand across the drawing by their widths."""
    widths = np.array([_width(token) for token in tokens])
    ends = np.cumsum(widths) * min(2.0, (WIDTH - 16) / widths.sum())
    starts = np.concatenate([[0.0], ends[:-1]])
    return list((starts + ends) / 2 + (WIDTH - ends[-1]) / 2)


def _width(token: Token) -> float:
    return 8 + sum(13.0 if sign > "\u2e80" else 7.2 for sign in token.text)


def _word(token: Token, x: float, y: float) -> str:
    text = html.escape(token.text.replace("▁", "").replace("Ġ", ""))
    return f'<text x="{x:.0f}" y="{y:.0f}" text-anchor="middle" fill="{_INK}">{text}</text>'
