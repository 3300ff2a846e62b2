"""A picture whose parts are the tokens of an example."""

from collections.abc import Sequence
from dataclasses import dataclass

from regard.errors import DataError

SHADES = " ░▒▓█"  # from dark to light

Box = tuple[int, int, int, int]  # top, left, rows, columns


@dataclass(frozen=True, kw_only=True, slots=True)
class Image:
    """Pictures as inputs of attention.

    Attributes:
        pixels: Rows of pixels, each of one number (grey) or of three (red, green, blue), 0 to 1.
        boxes: For each source token the part of the picture that it is: its top row, its first
            column, and how many rows and columns; None for a token that is none of it.

    Raises:
        DataError: Rows differ in length, a pixel is not one number or three from 0 to 1, or a box
            lies outside the picture.

    Example:
        >>> pixels = (((0.25,), (0.5,)), ((1.0,), (0.75,)))
        >>> print(draw_image(Image(pixels=pixels, boxes=((0, 0, 1, 2), (1, 0, 1, 2)))))
        ░░▒▒
        ██▓▓
        >>> Image(pixels=pixels, boxes=((0, 0, 1, 2), (2, 0, 1, 2)))
        Traceback (most recent call last):
        regard.errors.DataError: image.boxes must lie within 2 × 2 pixels; got [2, 0, 1, 2].
    """

    pixels: tuple[tuple[tuple[float, ...], ...], ...]
    boxes: tuple[Box | None, ...]

    def __post_init__(self) -> None:
        if not self.pixels or len({len(row) for row in self.pixels}) != 1:
            raise DataError("image.pixels must be rows of equal length; got others.")
        every = [pixel for row in self.pixels for pixel in row]
        if {len(pixel) for pixel in every} not in ({1}, {3}):
            raise DataError("image.pixels must be of one number each, or of three; got others.")
        if not all(0 <= value <= 1 for pixel in every for value in pixel):
            raise DataError("image.pixels must be between 0 and 1; got others.")
        height, width = len(self.pixels), len(self.pixels[0])
        for box in filter(None, self.boxes):
            top, left, rows, columns = box
            if not (0 <= top < top + rows <= height and 0 <= left < left + columns <= width):
                raise DataError(
                    f"image.boxes must lie within {height} × {width} pixels; got {list(box)}."
                )

    def check(self, tokens: int) -> None:
        """Raise DataError unless there is a box, or None, for each of so many tokens."""
        if len(self.boxes) != tokens:
            raise DataError(
                f"image.boxes must be one for each of {tokens} source tokens; got "
                f"{len(self.boxes)}."
            )


def draw_image(image: Image, weights: Sequence[float] | None = None) -> str:
    """Draw a picture for a terminal; beside it the weights of its boxes, the largest brightest.

    Example:
        >>> boxes = ((0, 0, 1, 1), (0, 1, 1, 1))
        >>> print(draw_image(Image(pixels=(((0.0,), (1.0,)),), boxes=boxes), [0.4, 0.2]))
          ██   ██▒▒
    """
    grey = [[sum(pixel) / len(pixel) for pixel in row] for row in image.pixels]
    if weights is None:
        return "\n".join(map(_shaded, grey))
    parts = [
        (box, weight) for box, weight in zip(image.boxes, weights, strict=True) if box is not None
    ]
    full = max((weight for _, weight in parts), default=0.0) or 1.0
    heat = [[0.0] * len(row) for row in grey]
    for (top, left, rows, columns), weight in parts:
        for row in heat[top : top + rows]:
            row[left : left + columns] = [weight / full] * columns
    pairs = zip(grey, heat, strict=True)
    return "\n".join(f"{_shaded(left)}   {_shaded(right)}" for left, right in pairs)


def _shaded(row: Sequence[float]) -> str:
    """Draw a row of pixels, two characters each, which are about a square."""
    return "".join(2 * SHADES[round(value * (len(SHADES) - 1))] for value in row)
