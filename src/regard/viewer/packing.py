"""Arrays of numbers as few bytes: quantised, deflated, and written as text for JSON."""

import base64
import binascii
import math
import zlib
from dataclasses import dataclass
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from regard.checks import check_count, choose
from regard.errors import DataError

Scale = Literal["linear", "log"]
Whole = NDArray[np.uint8 | np.uint16 | np.uint32]

_TYPES: dict[int, type[np.uint8 | np.uint16 | np.uint32]] = {
    8: np.uint8,
    16: np.uint16,
    32: np.uint32,
}
_SCALES = {"linear": "even steps", "log": "even ratios"}
_FAINTEST = 1e-7  # of the largest: a smaller value counts as zero on a log scale
_MOST = 1 << 30  # bytes that one array may unfold to


@dataclass(frozen=True, kw_only=True, slots=True)
class PackedArray:
    """An array of whole numbers ``q`` of 8, 16 or 32 bits that stand for values.

    On a linear scale the value is ``low + q (high - low) / (2^bits - 1)``. On a log scale it is 0
    for ``q = 0`` and else ``low (high / low)^((q - 1) / (2^bits - 2))``, so that small values keep
    as many digits as large ones.

    With ``steps`` each number is the step from the one before it along the axis before the last,
    and ranks (the last axis) stand one after another; steps wrap around, and are doubled with the
    sign as the last bit. So keys that stay, or move on with their query, take few bytes.

    The bytes stand plane by plane, all highest bytes first, which deflates better than number by
    number; they are deflated without a header (the browser's ``deflate-raw``) and written in
    base 64.

    Attributes:
        shape: Sizes of the axes, the last one running fastest.
        bits: 8, 16 or 32.
        scale: ``linear`` or ``log``.
        low: Value of the smallest number, on a log scale of the smallest above zero.
        high: Value of the largest.
        data: The bytes.
        steps: Whether the numbers stand as steps.

    Example:
        >>> packed = pack([[0.0, 0.5], [1.0, 0.25]], bits=8)
        >>> packed.values().round(2)
        array([[0.  , 0.5 ],
               [1.  , 0.25]])
    """

    shape: tuple[int, ...]
    bits: int
    scale: Scale
    low: float
    high: float
    data: str
    steps: bool = False

    def __post_init__(self) -> None:
        choose("scale", self.scale, _SCALES)
        if self.bits not in _TYPES:
            raise DataError(f"bits must be 8, 16 or 32; got {self.bits}.")
        for size in self.shape:
            check_count("shape", size, 0)
        if not (math.isfinite(self.low) and math.isfinite(self.high) and self.low <= self.high):
            raise DataError(f"low must be at most high; got {self.low} and {self.high}.")
        if self.steps and len(self.shape) < 2:
            raise DataError(f"shape must have two axes for steps; got {list(self.shape)}.")
        if self.scale == "log" and self.low <= 0:
            raise DataError(f"low must be above 0 on a log scale; got {self.low}.")

    @property
    def step(self) -> float:
        """Largest rounding error: half a step, relative to the value on a log scale."""
        if self.scale == "linear":
            return (self.high - self.low) / (2.0**self.bits - 1) / 2
        return math.pow(self.high / self.low, 0.5 / (2**self.bits - 2)) - 1

    def checked(self) -> Self:
        """Return the array, once its bytes have been inflated and counted.

        Raises:
            DataError: They are no base 64, cannot be inflated, or are too few or too many.
        """
        self._bytes()
        return self

    def values(self) -> NDArray[np.float64]:
        """Return the values, in an array of this shape."""
        planes = np.frombuffer(self._bytes(), dtype=np.uint8).reshape(self.bits // 8, -1)
        numbers = np.zeros(planes.shape[1], dtype=np.float64)
        for plane in planes:
            numbers = numbers * 256 + plane
        if self.steps:
            numbers = _unrolled(numbers, self.shape, self.bits)
        if self.scale == "linear":
            values = self.low + numbers * ((self.high - self.low) / (2**self.bits - 1))
        else:
            powers = (numbers - 1) / (2**self.bits - 2)
            values = np.where(numbers == 0, 0.0, self.low * (self.high / self.low) ** powers)
        return np.asarray(values.reshape(self.shape), dtype=np.float64)

    def _bytes(self) -> bytes:
        size = math.prod(self.shape) * self.bits // 8
        if size > _MOST:
            raise DataError(f"shape must be of at most {_MOST} bytes; got {list(self.shape)}.")
        inflate = zlib.decompressobj(wbits=-zlib.MAX_WBITS)
        try:
            data = inflate.decompress(base64.b64decode(self.data, validate=True), size + 1)
        except (binascii.Error, ValueError, zlib.error) as error:
            raise DataError(f"data must be deflated bytes in base 64; got {error}.") from None
        if len(data) != size or not (inflate.eof or size == 0):
            raise DataError(
                f"data must hold {size} bytes, as shape {list(self.shape)} of {self.bits} bits "
                f"says; got {'more' if len(data) > size else len(data)}."
            )
        return data


def pack(
    values: ArrayLike, *, bits: int = 8, scale: Scale = "linear", steps: bool = False
) -> PackedArray:
    """Pack numbers as bytes, on the scale from their least to their largest.

    A log scale keeps zeros, and every value of at least a ten-millionth of the largest to within
    ``PackedArray.step`` of itself; a smaller value, or one below zero, counts as zero.

    Args:
        values: An array of finite numbers.
        bits: 8, 16 or 32 for each.
        scale: ``linear`` keeps differences, ``log`` keeps ratios.
        steps: Whether the steps along the axis before the last are stored.

    Raises:
        DataError: A value is not finite.

    Example:
        >>> packed = pack([0.0, 0.001, 1.0], scale="log")
        >>> packed.shape, packed.bits, packed.values().round(4).tolist(), round(packed.step, 3)
        ((3,), 8, [0.0, 0.001, 1.0], 0.014)
    """
    array = np.asarray(values, dtype=np.float64)
    if not np.isfinite(array).all():
        raise DataError("values must be finite; got infinite ones or NaN.")
    high = float(array.max(initial=0.0 if scale == "log" else -np.inf)) if array.size else 0.0
    if scale == "linear":
        low = float(array.min()) if array.size else 0.0
        unit = (high - low) / (2**bits - 1) or 1.0
        numbers = (array - low) / unit
    else:
        high = high or 1.0
        drawn = array[array >= high * _FAINTEST]
        low = float(drawn.min()) if drawn.size else high
        ratio = math.log(high / low) / (2**bits - 2) or 1.0
        powers = np.log(np.maximum(array, low) / low) / ratio
        numbers = np.where(array < high * _FAINTEST, 0.0, 1 + powers)
    return _packed(numbers, bits=bits, scale=scale, low=low, high=high, steps=steps)


def pack_integers(values: ArrayLike, *, steps: bool = False) -> PackedArray:
    """Pack whole numbers from -1 up, exactly: in two bytes each if they fit, else in four.

    Example:
        >>> pack_integers([3, -1, 65_000]).values()
        array([ 3.0e+00, -1.0e+00,  6.5e+04])
    """
    array = np.asarray(values, dtype=np.int64)
    bits = 16 if array.max(initial=0) <= 2**16 - 2 else 32
    high = float(2**bits - 2)
    return _packed(array + 1, bits=bits, scale="linear", low=-1.0, high=high, steps=steps)


def _packed(
    numbers: NDArray[np.float64 | np.int64], *, bits: int, steps: bool, **values: Any
) -> PackedArray:
    shape = numbers.shape
    whole: Whole = np.rint(numbers).astype(_TYPES[bits])
    if steps and len(shape) > 1:
        whole = _rolled(whole, bits)
    planes = [(whole >> shift).astype(np.uint8) for shift in range(bits - 8, -1, -8)]
    deflate = zlib.compressobj(9, wbits=-zlib.MAX_WBITS)
    data = deflate.compress(b"".join(plane.tobytes() for plane in planes)) + deflate.flush()
    text = base64.b64encode(data).decode()
    return PackedArray(shape=shape, bits=bits, data=text, steps=steps, **values)


def _rolled(numbers: Whole, bits: int) -> Whole:
    """(…, N, K) numbers as the steps along N, (…, K, N)."""
    ranks = np.swapaxes(numbers.astype(np.int64), -1, -2)
    half = 2 ** (bits - 1)
    steps = (np.diff(ranks, axis=-1, prepend=0) + half) % (2 * half) - half
    folded: Whole = np.where(steps < 0, -2 * steps - 1, 2 * steps).astype(_TYPES[bits])
    return folded


def _unrolled(steps: NDArray[np.float64], shape: tuple[int, ...], bits: int) -> NDArray[np.float64]:
    """Invert ``_rolled``, flat."""
    *lead, N, K = shape
    whole = steps.astype(np.int64).reshape(*lead, K, N)
    signed = np.where(whole % 2, -(whole + 1) // 2, whole // 2)
    numbers = np.cumsum(signed, axis=-1) % 2**bits
    flat: NDArray[np.float64] = np.swapaxes(numbers, -1, -2).astype(np.float64).reshape(-1)
    return flat
