"""An attention map as lines of text, for a terminal."""

import unicodedata
from collections.abc import Iterator, Sequence

from regard.errors import ShapeError

_SHADES = " ░▒▓█"
_CELL = 6  # two of shade, a space, three of figure
_GAP = 2


def draw_text(
    weights: Sequence[Sequence[float]],
    source_tokens: Sequence[str],
    output_tokens: Sequence[str],
    *,
    width: int = 80,
) -> str:
    """The map as text: source tokens across, output tokens down, a shade and a figure a cell.

    Weights below 0.005 are left as a dot. A Chinese, Japanese or Korean character takes two
    columns of a terminal and is counted so. A source that does not fit is continued in a
    second block below the first.

    Args:
        weights: One row per output token, one weight per source token.
        source_tokens: Heads of the columns.
        output_tokens: Heads of the rows.
        width: Columns of the terminal.

    Returns:
        Lines without a newline at the end.

    Raises:
        ShapeError: There are not as many weights as pairs of tokens.

    Example:
        >>> print(draw_text([[0.97, 0.03], [0.004, 0.996]], ["我", "爱"], ["I", "love"]))
              我      爱
           I  ██ .97     .03
        love       ·  ██ 1.0
    """
    got = [len(row) for row in weights]
    if got != [len(source_tokens)] * len(output_tokens):
        raise ShapeError(
            f"weights must have {len(output_tokens)} rows (output tokens) of "
            f"{len(source_tokens)} (source tokens); got rows of {got}."
        )
    names = [shown(token) for token in output_tokens]
    heads = [shown(token) for token in source_tokens]
    margin = max(map(width_of, names), default=0)
    blocks = []
    for first, last in _blocks(
        [max(_CELL, width_of(head)) + _GAP for head in heads], width - margin
    ):
        lines = [_line("", heads[first:last], heads[first:last], margin)]
        for name, row in zip(names, weights, strict=True):
            cells = [_cell(weight) for weight in row[first:last]]
            lines.append(_line(name, cells, heads[first:last], margin))
        blocks.append("\n".join(lines))
    return "\n\n".join(blocks)


def _blocks(columns: Sequence[int], room: int) -> Iterator[tuple[int, int]]:
    """Ranges of columns that fit; at least one column each."""
    first, used = 0, 0
    for place, column in enumerate(columns):
        if place > first and used + column > room:
            yield first, place
            first, used = place, 0
        used += column
    yield first, len(columns)


def _line(name: str, cells: Sequence[str], heads: Sequence[str], margin: int) -> str:
    line = " " * (margin - width_of(name)) + name
    for cell, head in zip(cells, heads, strict=True):
        line += " " * _GAP + cell + " " * (max(_CELL, width_of(head)) - width_of(cell))
    return line.rstrip()


def _cell(weight: float) -> str:
    if weight < 0.005:
        return " " * (_CELL - 1) + "·"
    figure = f"{weight:.2f}"[1:] if weight < 0.995 else "1.0"
    shade = _SHADES[min(len(_SHADES) - 1, int(weight * (len(_SHADES) - 1) + 0.5))]
    return f"{shade * 2} {figure}"


def shown(token: str) -> str:
    """The token on one line, with its spaces and controls visible."""
    shown = token.replace("▁", " ").strip() or "␣"
    return "".join(c if c.isprintable() else "·" for c in shown)


def width_of(text: str) -> int:
    """Columns of a terminal that a text takes."""
    return sum(_columns(character) for character in text)


def _columns(character: str) -> int:
    if unicodedata.category(character) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1
