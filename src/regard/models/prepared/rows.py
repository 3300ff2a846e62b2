"""What is done to each row before and after a product in int8, in compiled loops."""

import numpy as np

from regard.attention.engine.kernels.compiling import compiled
from regard.attention.engine.kernels.elementary import largest_absolute

f32 = np.float32


@compiled
def to_unit_rows(first, stop, states, out, sizes):  # type: ignore[no-untyped-def]
    """Each row over its largest absolute value, so that rounding does not depend on other rows."""
    for r in range(first, stop):
        row, target = states[r], out[r]
        size = largest_absolute(row)
        sizes[r] = size
        share = f32(1) / size if size > f32(0) else f32(0)
        for c in range(row.size):
            target[c] = row[c] * share


@compiled
def from_unit_rows(first, stop, products, sizes, bias):  # type: ignore[no-untyped-def]
    """Multiply each row by its size again, and add the bias, which may have no entries."""
    for r in range(first, stop):
        row, size = products[r], sizes[r]
        if bias.size:
            for c in range(row.size):
                row[c] = row[c] * size + bias[c]
        else:
            for c in range(row.size):
                row[c] *= size
