"""Products of states with weights in int8 on processors that add up two products of sixteen bits.

Each state is rounded by itself as it comes, to as many bits as the sum has room for, fourteen at
most: what is lost is lost by the weights. Sums are whole numbers, so that a state's product does
not depend on its neighbours. Weights lie in panels of eight outputs, in each of which two inputs of
an output stand together, and nowhere else: the vector of a token is read from there as well.
"""

import numpy as np
from jaxtyping import Int, Int8

from regard.kernels.compiling import compiled, in_order, shared
from regard.kernels.elementary import largest_absolute, whole
from regard.kernels.products.packed import PAIRED_OUTPUTS, PAIRED_STEP, Pairs, tiling
from regard.kernels.vectors import copy

f32, i64 = np.float32, np.int64

# Outputs side by side, inputs of one that stand together, and what states are rounded to.
OUTPUTS, INPUTS, ROUNDED = PAIRED_OUTPUTS, 2, np.int16
_MOST = 2**14 - 1


def lay_out(values: Int8[np.ndarray, "O I"]) -> Int8[np.ndarray, "o i 16"]:
    """Rounded weights as they are multiplied, with zeros where inputs and outputs are missing."""
    outputs, inputs = values.shape
    o, i = -(-outputs // OUTPUTS), -(-inputs // INPUTS)
    room = np.zeros((o * OUTPUTS, i * INPUTS), np.int8)
    room[:outputs, :inputs] = values
    paired = room.reshape(o, OUTPUTS, i, INPUTS).transpose(0, 2, 1, 3)
    return np.ascontiguousarray(paired.reshape(o, i, PAIRED_STEP))


def weights_of(
    panels: Int8[np.ndarray, "o i 16"], ids: Int[np.ndarray, " N"], inputs: int
) -> Int8[np.ndarray, "N I"]:
    """The weights of some outputs."""
    o, i, _ = panels.shape
    values = panels.reshape(o, i, OUTPUTS, INPUTS)[ids // OUTPUTS, :, ids % OUTPUTS]
    weights: np.ndarray = values.reshape(len(ids), i * INPUTS)[:, :inputs]
    return weights


@shared
def weight_at(panels, output, place):  # type: ignore[no-untyped-def]
    """One weight."""
    return panels[output // OUTPUTS, place // INPUTS, output % OUTPUTS * INPUTS + place % INPUTS]


_by_tiles = tiling(Pairs)


@in_order
def _round_rows(first, stop, states, out, sizes):  # type: ignore[no-untyped-def]
    """Rows as whole numbers, and what gives them back."""
    inputs = states.shape[1]
    most = f32(min(_MOST, (2**31 - 1) // (127 * inputs)))
    for r in range(first, stop):
        row, target = states[r], out[r]
        size = largest_absolute(row)
        sizes[r] = size / most
        share = most / size if size > f32(0) else f32(0)
        for c in range(inputs):
            target[c] = whole(row[c] * share)
        for c in range(inputs, target.size):
            target[c] = 0


@shared
def multiply_rows(states, weight, scales, bias, out):  # type: ignore[no-untyped-def]
    """``states @ weightᵀ + bias``, both rounded.

    Args:
        states: (R, I).
        weight: ``lay_out``.
        scales: What gives back each output's weights, ``in_lanes`` of eight.
        bias: Zeros where there is none, the same.
        out: (R, O).
    """
    rows, panels = states.shape[0], weight.shape[0]
    given = np.empty((rows, INPUTS * weight.shape[1]), np.int16)
    sizes = np.empty(rows, np.float32)
    _round_rows(0, rows, states, given, sizes)
    if out.shape[1] == panels * OUTPUTS:
        _by_tiles(i64(0), panels, given, weight, sizes, sizes, scales, bias, out)
        return
    made = np.empty((rows, panels * OUTPUTS), np.float32)
    _by_tiles(i64(0), panels, given, weight, sizes, sizes, scales, bias, made)
    for r in range(rows):
        copy(made[r], out[r])


@compiled
def round_part(first, stop, states, out, begins, sizes):  # type: ignore[no-untyped-def]
    """Rows ``first`` to ``stop`` rounded, and what gives them back; sums begin with nothing."""
    _round_rows(first, stop, states, out, sizes)


@compiled
def multiply_part(first, stop, states, weight, begins, sizes, scales, bias, out):  # type: ignore[no-untyped-def]
    """Panels ``first`` to ``stop`` of the product; ``out`` has the outputs of whole panels."""
    _by_tiles(first, stop, states, weight, sizes, sizes, scales, bias, out)
