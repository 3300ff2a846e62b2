"""Vector operations on one row, for compiled loops."""

import numpy as np

from regard.kernels.compiling import inlined
from regard.kernels.elementary import exp, largest

f32 = np.float32


@inlined
def copy(row, out):  # type: ignore[no-untyped-def]
    """Writes a row to ``out``: in a third of the time that ``out[:] = row`` takes to compile."""
    for d in range(out.size):
        out[d] = row[d]


@inlined
def dot(one, other):  # type: ignore[no-untyped-def]
    """``Σ_d one_d · other_d``."""
    total = f32(0)
    for d in range(one.size):
        total += one[d] * other[d]
    return total


@inlined
def add_scaled(out, share, value):  # type: ignore[no-untyped-def]
    """Adds ``share · value`` to ``out``."""
    for d in range(out.size):
        out[d] += share * value[d]


@inlined
def to_weights(scores):  # type: ignore[no-untyped-def]
    """Scores turned to their softmax."""
    top = largest(scores)
    total = f32(0)
    for m in range(scores.size):
        scores[m] = exp(scores[m] - top)
        total += scores[m]
    share = f32(1) / total
    for m in range(scores.size):
        scores[m] *= share
