"""A picture whose parts are the tokens of an example."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from regard.errors import DataError

SHADES = " ░▒▓█"  # from dark to light
_WIDEST = 128  # pixels of a side, on a page
_WIDEST_DRAWN = 32  # and in a terminal

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


def in_patches(
    pixels: Float[np.ndarray, "Y X P"], patch: tuple[int, int], *, before: int = 0
) -> tuple[Image, list[str]]:
    """A picture of whole patches, row by row, and the names of these: row and column from 1.

    Of a picture of more than 128 pixels neighbours are averaged, as many as divide a patch.

    Example:
        >>> image, names = in_patches(np.ones((2, 4, 1)), (2, 2), before=1)
        >>> image.boxes, names
        ((None, (0, 0, 2, 2), (0, 2, 2, 2)), ['1,1', '1,2'])
    """
    down, across = pixels.shape[0] // patch[0], pixels.shape[1] // patch[1]
    common = math.gcd(*patch)
    divisors = [n for n in range(1, common + 1) if common % n == 0]
    fitting = (n for n in divisors if max(pixels.shape[:2]) <= n * _WIDEST)
    factor = next(fitting, common)
    rows, columns = (side // factor for side in patch)
    shape = (down * rows, factor, across * columns, factor, -1)
    whole = pixels[: down * patch[0], : across * patch[1]].reshape(shape).mean((1, 3))
    cells = [(row, column) for row in range(down) for column in range(across)]
    boxes = [(row * rows, column * columns, rows, columns) for row, column in cells]
    image = Image(
        pixels=tuple(
            tuple(tuple(float(f"{value:.4g}") for value in pixel) for pixel in row)
            for row in whole.tolist()
        ),
        boxes=(*[None] * before, *boxes),
    )
    return image, [f"{row + 1},{column + 1}" for row, column in cells]


def draw_image(image: Image, weights: Sequence[float] | None = None) -> str:
    """Draw a picture for a terminal; beside it the weights of its boxes, the largest brightest.

    Example:
        >>> boxes = ((0, 0, 1, 1), (0, 1, 1, 1))
        >>> print(draw_image(Image(pixels=(((0.0,), (1.0,)),), boxes=boxes), [0.4, 0.2]))
          ██   ██▒▒
    """
    grey = np.array([[sum(pixel) / len(pixel) for pixel in row] for row in image.pixels])
    if weights is None:
        return "\n".join(map(_shaded, _reduced(grey)))
    parts = [
        (box, weight) for box, weight in zip(image.boxes, weights, strict=True) if box is not None
    ]
    full = max((weight for _, weight in parts), default=0.0) or 1.0
    heat = np.zeros_like(grey)
    for (top, left, rows, columns), weight in parts:
        heat[top : top + rows, left : left + columns] = weight / full
    pairs = zip(_reduced(grey), _reduced(heat), strict=True)
    return "\n".join(f"{_shaded(left)}   {_shaded(right)}" for left, right in pairs)


def _reduced(pixels: Float[np.ndarray, "Y X"]) -> list[list[float]]:
    """Average neighbours, so that a picture is at most as wide as a terminal."""
    step = -(-max(pixels.shape) // _WIDEST_DRAWN)
    firsts = [np.arange(0, size, step) for size in pixels.shape]
    sums = np.add.reduceat(np.add.reduceat(pixels, firsts[0], axis=0), firsts[1], axis=1)
    sizes = [
        np.diff(np.append(starts, size)) for starts, size in zip(firsts, pixels.shape, strict=True)
    ]
    means: list[list[float]] = (sums / np.outer(*sizes)).tolist()
    return means


def _shaded(row: Sequence[float]) -> str:
    """Draw a row of pixels, two characters each, which are about a square."""
    return "".join(2 * SHADES[round(value * (len(SHADES) - 1))] for value in row)
