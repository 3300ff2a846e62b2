"""A step of the recurrence that stands in for self-attention, in compiled loops over rows.

What it keeps of a row stands where keys and values of self-attention would: in the store, at the
place of the step; of the past, only the place before is read.
"""

import numpy as np

from regard.kernels.compiling import compiled, inlined
from regard.kernels.elementary import sigmoid

f32 = np.float32


@inlined
def recur_rows(first, stop, projected, bias, store, ancestors, now, out):  # type: ignore[no-untyped-def]
    """See ``recur``; ``projected`` and ``out`` begin with row ``first``."""
    C = bias.size
    for r in range(first, stop):
        told, kept, given = projected[r - first], store[r, now], out[r - first]
        for c in range(C):
            gate = sigmoid(told[c] + bias[c])
            kept[c] = told[C + c] - gate * told[C + c]
            told[c] = gate
        if now > 0:
            before = store[ancestors[r, now - 1], now - 1]
            for c in range(C):
                kept[c] += told[c] * before[c]
        for c in range(C):
            given[c] = max(kept[c], f32(0))


@compiled
def recur(first, stop, projected, bias, store, ancestors, now, out):  # type: ignore[no-untyped-def]
    """``f c + (1 − f) x`` of each row, kept at place ``now``, and its ReLU.

    Args:
        first: The first row.
        stop: The row after the last.
        projected: Gates before their bias and sigmoid, and values, side by side, (R, 2 C); gates
            are overwritten.
        bias: Of the gates, (C,).
        store: One layer's states, (S, T, C).
        ancestors: The slot of each row at each place, (R, T).
        now: The place of this step.
        out: What the layer gives, (R, C).
    """
    part = projected[first:stop]
    recur_rows(first, stop, part, bias, store, ancestors, now, out[first:stop])
