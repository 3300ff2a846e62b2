"""Products of states with weights in int8 on processors that add up four products of bytes at once.

Both sides are rounded to eight bits, each state by itself as it comes. Sums are whole numbers, so
that a state's product does not depend on its neighbours. Weights lie in panels of sixteen outputs,
in each of which four inputs of an output stand together, and nowhere else: the vector of a token is
read from there as well.
"""

import numpy as np
from jaxtyping import Int, Int8

from regard.kernels.compiling import compiled, in_order, shared
from regard.kernels.elementary import largest_absolute, whole
from regard.kernels.products.packed import Bytes, has, tiling
from regard.kernels.vectors import copy

f32, i32, i64 = np.float32, np.int32, np.int64

# Outputs side by side, inputs of one that stand together, and what states are rounded to.
OUTPUTS, INPUTS, ROUNDED = 16, 4, np.int8
# Weights are moved by so much.
_MOVED, _MOST = 128, f32(127)


def has_bytes() -> bool:
    """Whether the processor that loops are compiled for does this."""
    return has("avx512vnni")


def lay_out(values: Int8[np.ndarray, "O I"]) -> Int8[np.ndarray, "o i 64"]:
    """Rounded weights as they are multiplied, with zeros where inputs and outputs are missing."""
    outputs, inputs = values.shape
    o, i = -(-outputs // OUTPUTS), -(-inputs // INPUTS)
    room = np.zeros((o * OUTPUTS, i * INPUTS), np.int8)
    room[:outputs, :inputs] = values
    moved = room.reshape(o, OUTPUTS, i, INPUTS).transpose(0, 2, 1, 3) ^ np.int8(-_MOVED)
    return np.ascontiguousarray(moved.reshape(o, i, OUTPUTS * INPUTS))


def weights_of(
    panels: Int8[np.ndarray, "o i 64"], ids: Int[np.ndarray, " N"], inputs: int
) -> Int8[np.ndarray, "N I"]:
    """The weights of some outputs."""
    o, i, _ = panels.shape
    found = panels.reshape(o, i, OUTPUTS, INPUTS)[ids // OUTPUTS, :, ids % OUTPUTS]
    moved: np.ndarray = found.reshape(len(ids), i * INPUTS)[:, :inputs] ^ np.int8(-_MOVED)
    return moved


@shared
def weight_at(panels, output, place):  # type: ignore[no-untyped-def]
    """One weight."""
    lane = output % OUTPUTS * INPUTS + place % INPUTS
    return i32(panels[output // OUTPUTS, place // INPUTS, lane]) ^ i32(-_MOVED)


_by_tiles = tiling(Bytes)


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


@shared
def multiply_rows(states, weight, scales, bias, out):  # type: ignore[no-untyped-def]
    """``states @ weightᵀ + bias``, both rounded.

    Args:
        states: (R, I).
        weight: ``lay_out``.
        scales: What gives back each output's weights, ``in_lanes`` of sixteen.
        bias: Zeros where there is none, the same.
        out: (R, O).
    """
    rows, panels = states.shape[0], weight.shape[0]
    given = np.empty((rows, INPUTS * weight.shape[1]), np.int8)
    begins, sizes = np.empty(rows, np.int32), np.empty(rows, np.float32)
    _round_rows(0, rows, states, given, begins, sizes)
    if out.shape[1] == panels * OUTPUTS:
        _by_tiles(i64(0), panels, given, weight, begins, sizes, scales, bias, out)
        return
    made = np.empty((rows, panels * OUTPUTS), np.float32)
    _by_tiles(i64(0), panels, given, weight, begins, sizes, scales, bias, made)
    for r in range(rows):
        copy(made[r], out[r])


@compiled
def round_part(first, stop, states, out, begins, sizes):  # type: ignore[no-untyped-def]
    """Rows ``first`` to ``stop`` in bytes, what their sums begin with, and what gives them back."""
    _round_rows(first, stop, states, out, begins, sizes)


@compiled
def multiply_part(first, stop, states, weight, begins, sizes, scales, bias, out):  # type: ignore[no-untyped-def]
    """Panels ``first`` to ``stop`` of the product; ``out`` has the outputs of whole panels."""
    _by_tiles(first, stop, states, weight, begins, sizes, scales, bias, out)
