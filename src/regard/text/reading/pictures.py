"""Pictures: numbers in lines of JSON, rows of pixels and a label, or picture files in folders."""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Unpack

import numpy as np
from jaxtyping import Float32

from regard.checks import choose
from regard.config import JsonValue
from regard.errors import DataError, SettingError
from regard.text.reading.folders import PICTURES
from regard.text.reading.forms import text_suffix
from regard.text.reading.lines import Line, read_lines, readable
from regard.text.reading.records import Handling, object_of, usable


@dataclass(frozen=True, slots=True, eq=False)
class Picture:
    """A picture of rows, columns and channels, and its label unless that is to be predicted."""

    pixels: Float32[np.ndarray, "Y X P"]
    label: str | None
    where: str

    def check(self, shape: Sequence[int], why: str) -> None:
        """See that the picture is of this shape."""
        if self.pixels.shape != tuple(shape):
            want, got = (" × ".join(map(str, sizes)) for sizes in (shape, self.pixels.shape))
            raise DataError(
                f"{self.where}: pixels must be {want} (rows, columns, channels), {why}; got {got}."
            )

    def __eq__(self, other: object) -> bool:
        """Whether it is the same picture under the same label, wherever it stands."""
        return isinstance(other, Picture) and repr(self) == repr(other)

    def __hash__(self) -> int:
        return hash(repr(self))

    def __repr__(self) -> str:
        """Whole, where an array's own leaves out the middle: it tells pictures apart."""
        digest = hashlib.sha256(self.pixels.tobytes()).hexdigest()
        return f"Picture({self.pixels.shape}, {digest}, {self.label!r})"


def read_pictures(path: Path, **handling: Unpack[Handling]) -> Iterator[Picture]:
    """Read lines of objects with ``pixels`` and ``label``; all are of the size of the first."""
    choose(f"the ending of {path}", text_suffix(path), {".jsonl": None})
    shape: tuple[int, ...] = ()

    def parse(line: Line) -> Picture:
        nonlocal shape
        picture = picture_of(object_of(readable(line), line.where), line.where, needs_label=True)
        shape = shape or picture.pixels.shape
        picture.check(shape, "as the first picture's")
        return picture

    yield from usable(
        read_lines(path), parse, "pictures", rule=f"{path} must hold pictures", **handling
    )


def read_picture_folder(
    folder: Path, *, size: int = 0, **handling: Unpack[Handling]
) -> Iterator[Picture]:
    """Read the picture files of a folder of labels, scaled to ``size`` unless that is 0."""
    files = sorted(file for file in folder.rglob("*") if file.suffix.lower() in PICTURES)
    shape: tuple[int, ...] = ()

    def open_file(file: Path) -> Picture:
        nonlocal shape
        pixels = read_pixels(file, size=size, channels=shape[2] if shape else None)
        picture = Picture(pixels, file.parent.name, str(file))
        shape = shape or pixels.shape
        picture.check(shape, "as the first picture's; data.size scales all to one size")
        return picture

    yield from usable(
        files,
        open_file,
        "pictures",
        rule=f"{folder} must hold a folder of picture files for each label",
        **handling,
    )


def check_pillow() -> None:
    """Raise SettingError unless Pillow is installed."""
    try:
        import PIL  # noqa: F401
    except ImportError:
        cure = "pip install pillow."
        raise SettingError(f"Pillow must be installed to open pictures: {cure}") from None


def read_pixels(
    file: Path, *, size: int = 0, channels: int | None = None
) -> Float32[np.ndarray, "Y X P"]:
    """The pixels of a picture file, from 0 to 255; one channel is grey, three are RGB."""
    check_pillow()
    from PIL import Image

    try:
        with Image.open(file) as image:
            is_grey = image.mode in ("1", "L", "LA") if channels is None else channels == 1
            converted = image.convert("L" if is_grey else "RGB")
            pixels = np.asarray(
                converted.resize((size, size)) if size else converted, dtype=np.float32
            )
    except (OSError, EOFError, SyntaxError, ValueError, Image.DecompressionBombError) as error:
        raise DataError(f"{file} must be a picture that Pillow opens; {error}.") from None
    return pixels.reshape(*pixels.shape[:2], -1)


def picture_of(
    record: Mapping[str, JsonValue], where: str, *, needs_label: bool = False
) -> Picture:
    """The picture that a record holds."""
    if "pixels" not in record:
        keys = ", ".join(map(repr, record)) or "none"
        raise DataError(f"{where}: expected the key 'pixels'; found {keys}.")
    label = record.get("label")
    if needs_label and (isinstance(label, bool) or not isinstance(label, str | int) or label == ""):
        raise DataError(f"{where}: label must be text; got {label!r}.")
    return Picture(_pixels(record["pixels"], where), None if label is None else str(label), where)


def _pixels(rows: object, where: str) -> Float32[np.ndarray, "Y X P"]:
    rule = "pixels must be rows of equal length, of numbers or of lists of numbers"
    if not isinstance(rows, list) or not all(isinstance(row, list) and row for row in rows):
        raise DataError(f"{where}: {rule}; got {type(rows).__name__} {str(rows)[:60]}.")
    lengths = sorted({len(row) for row in rows}, reverse=True)
    if len(lengths) != 1:
        got = f"a row of {lengths[0]} and one of {lengths[1]}" if lengths else "none"
        raise DataError(f"{where}: {rule}; got {got}.")
    try:
        with np.errstate(over="ignore"):  # which makes them infinite
            numbers = np.array(rows)
            pixels = numbers.astype(np.float32)
    except (TypeError, ValueError, OverflowError):
        raise DataError(f"{where}: {rule}; got {str(rows)[:60]} …") from None
    if (
        numbers.dtype.kind not in "iuf"
        or pixels.ndim not in (2, 3)
        or not pixels.size
        or not np.isfinite(pixels).all()
    ):
        raise DataError(f"{where}: {rule}, all finite; got {str(rows)[:60]} …")
    return pixels.reshape(*pixels.shape[:2], -1)
