"""Products of states with weights in int8 on processors that add up four products of bytes at once.

Both sides are rounded to eight bits, each state by itself as it comes. Sums are whole numbers, so
that a state's product does not depend on its neighbours. Weights lie in panels of sixteen outputs,
in each of which four inputs of an output stand together, and nowhere else: the vector of a token is
read from there as well.
"""

from collections.abc import Callable

import llvmlite.binding
import numba
import numpy as np
from jaxtyping import Float32, Int, Int8

from regard.attention.engine.kernels.compiling import compiled, in_order, shared
from regard.attention.engine.kernels.elementary import largest_absolute, whole
from regard.attention.engine.kernels.vectors import copy
from regard.models.prepared.panels import Bytes, tile_of

f32, i32 = np.float32, np.int32

# Outputs side by side, inputs of one that stand together, and what weights are moved by.
OUTPUTS, INPUTS, _MOVED = 16, 4, 128
_MOST = f32(127)
# States of a tile, panels of one, and states that go through all panels before the next do.
_ROWS, _PANELS, _BLOCK = 8, 3, 96


def has_bytes() -> bool:
    """Whether the processor that loops are compiled for does this."""
    chosen = numba.config.CPU_NAME or numba.config.CPU_FEATURES  # type: ignore[attr-defined]
    return not chosen and bool(llvmlite.binding.get_host_cpu_features().get("avx512vnni"))


def in_bytes(values: Int8[np.ndarray, "O I"]) -> Int8[np.ndarray, "o i 64"]:
    """Rounded weights as they are multiplied, with zeros where inputs and outputs are missing."""
    outputs, inputs = values.shape
    o, i = -(-outputs // OUTPUTS), -(-inputs // INPUTS)
    room = np.zeros((o * OUTPUTS, i * INPUTS), np.int8)
    room[:outputs, :inputs] = values
    moved = room.reshape(o, OUTPUTS, i, INPUTS).transpose(0, 2, 1, 3) ^ np.int8(-_MOVED)
    return np.ascontiguousarray(moved.reshape(o, i, OUTPUTS * INPUTS))


def from_bytes(
    panels: Int8[np.ndarray, "o i 64"], ids: Int[np.ndarray, " N"], inputs: int
) -> Int8[np.ndarray, "N I"]:
    """The weights of some outputs."""
    o, i, _ = panels.shape
    found = panels.reshape(o, i, OUTPUTS, INPUTS)[ids // OUTPUTS, :, ids % OUTPUTS]
    moved: np.ndarray = found.reshape(len(ids), i * INPUTS)[:, :inputs] ^ np.int8(-_MOVED)
    return moved


@shared
def from_byte(panels, output, place):  # type: ignore[no-untyped-def]
    """One weight."""
    lane = output % OUTPUTS * INPUTS + place % INPUTS
    return i32(panels[output // OUTPUTS, place // INPUTS, lane]) ^ i32(-_MOVED)


_ONE, _TWO, _FOUR, _EIGHT = (tile_of(Bytes, rows, _PANELS) for rows in (1, 2, 4, _ROWS))
_ONE_ALONE, _FOUR_ALONE = (tile_of(Bytes, rows, 1) for rows in (1, 4))


@in_order
def _round_rows(first, stop, states, out, begins, sizes):  # type: ignore[no-untyped-def]
    """Rows as whole numbers up to 127, what gives them back, and what sums begin with."""
    inputs = states.shape[1]
    for r in range(first, stop):
        row, target = states[r], out[r]
        size = largest_absolute(row)
        sizes[r] = size / _MOST
        share = _MOST / size if size > f32(0) else f32(0)
        total = i32(0)
        for c in range(inputs):
            number = whole(row[c] * share)
            target[c] = number
            total += i32(np.int8(number))
        for c in range(inputs, target.size):
            target[c] = 0
        begins[r] = -_MOVED * total


@in_order
def _through(panel, rows, states, weight, begins, sizes, scales, bias, out):  # type: ignore[no-untyped-def]
    """All states through the panels of one tile."""
    steps = weight.shape[1]
    apart, width, out_width = steps * 64, states.shape[1], out.shape[1] * 4
    weights, made = weight.ctypes.data + panel * apart, out.ctypes.data + panel * 64
    scaled, added = scales.ctypes.data + panel * 64, bias.ctypes.data + panel * 64
    given, begin, size = states.ctypes.data, begins.ctypes.data, sizes.ctypes.data
    is_whole = weight.shape[0] - panel >= _PANELS
    r = 0
    while r < rows:
        asked, to, left = given + r * width, made + r * out_width, rows - r
        rest = (width, weights, apart, steps, begin + r * 4, size + r * 4, scaled, added)
        if is_whole and left >= _ROWS:
            _EIGHT(asked, *rest, to, out_width)
            r += _ROWS
        elif left >= 4:
            if is_whole:
                _FOUR(asked, *rest, to, out_width)
            else:
                _FOUR_ALONE(asked, *rest, to, out_width)
            r += 4
        elif is_whole and left >= 2:
            _TWO(asked, *rest, to, out_width)
            r += 2
        else:
            if is_whole:
                _ONE(asked, *rest, to, out_width)
            else:
                _ONE_ALONE(asked, *rest, to, out_width)
            r += 1


@shared
def _by_tiles(first, stop, states, weight, begins, sizes, scales, bias, out):  # type: ignore[no-untyped-def]
    """States through panels ``first`` to ``stop``, a few at a time."""
    rows = states.shape[0]
    for block in range(0, rows, _BLOCK):
        count, panel = min(_BLOCK, rows - block), first
        given, begin, size = states[block:], begins[block:], sizes[block:]
        while panel < stop:
            _through(panel, count, given, weight[:stop], begin, size, scales, bias, out[block:])
            panel += _PANELS if stop - panel >= _PANELS else 1


@shared
def byte_rows(states, weight, scales, bias, out):  # type: ignore[no-untyped-def]
    """``states @ weightᵀ + bias``, both rounded.

    Args:
        states: (R, I).
        weight: ``in_bytes``.
        scales: What gives back each output's weights, ``in_lanes`` of sixteen.
        bias: Zeros where there is none, the same.
        out: (R, O).
    """
    rows, panels = states.shape[0], weight.shape[0]
    given = np.empty((rows, INPUTS * weight.shape[1]), np.int8)
    begins, sizes = np.empty(rows, np.int32), np.empty(rows, np.float32)
    _round_rows(0, rows, states, given, begins, sizes)
    if out.shape[1] == panels * OUTPUTS:
        _by_tiles(0, panels, given, weight, begins, sizes, scales, bias, out)
        return
    made = np.empty((rows, panels * OUTPUTS), np.float32)
    _by_tiles(0, panels, given, weight, begins, sizes, scales, bias, made)
    for r in range(rows):
        copy(made[r], out[r])


@compiled
def round_to_bytes(first, stop, states, out, begins, sizes):  # type: ignore[no-untyped-def]
    """Rows ``first`` to ``stop`` in bytes, what their sums begin with, and what gives them back."""
    _round_rows(first, stop, states, out, begins, sizes)


@compiled
def multiply_bytes(first, stop, states, weight, begins, sizes, scales, bias, out):  # type: ignore[no-untyped-def]
    """Panels ``first`` to ``stop`` of the product; ``out`` has the outputs of whole panels."""
    _by_tiles(first, stop, states, weight, begins, sizes, scales, bias, out)


Share = Callable[[int, int, Callable[[int, int], None]], None]


def product(
    states: Float32[np.ndarray, "R I"],
    weight: Int8[np.ndarray, "o i 64"],
    scales: Float32[np.ndarray, " o16"],
    bias: Float32[np.ndarray, " o16"],
    share: Share,
) -> Float32[np.ndarray, "R o16"]:
    """The same as ``byte_rows``, its rows and panels shared out among threads."""
    (rows, inputs), (panels, steps, _) = states.shape, weight.shape
    given = np.empty((rows, INPUTS * steps), np.int8)
    begins, sizes = np.empty(rows, np.int32), np.empty(rows, np.float32)
    out = np.empty((rows, panels * OUTPUTS), np.float32)
    share(rows, inputs, lambda *part: round_to_bytes(*part, states, given, begins, sizes))
    rest = (given, weight, begins, sizes, scales, bias, out)
    share(panels, rows * inputs, lambda *part: multiply_bytes(*part, *rest))
    return out
