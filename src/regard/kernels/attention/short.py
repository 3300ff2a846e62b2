"""Attention over dot products of short rows, head by head, where a projection put them.

Products and operands are those of ``dot``, and between products one pass goes over a row of
weights: batched products would take longer over copies of the heads than over themselves. Gradients
are written as (B, N, H, D), which is how a projection wants them.

Its speed is a part of ``benchmarks/records/training_speed.json``.
"""

import numpy as np

from regard.kernels.attention.dot import PLAIN, TURNED, all_of, multiply_at, row_of
from regard.kernels.attention.dropout import bits_of_head, bits_of_key, bits_of_row, factor
from regard.kernels.compiling import inlined
from regard.kernels.elementary import to_weights
from regard.kernels.team import parallel

f32, u32 = np.float32, np.uint32


@parallel
def forward(first, stop, sizes, query, key, value, scale, penalty, noise, weights, left, out):
    """Answers of heads ``first`` to ``stop``, and their weights.

    ``sizes`` are (H, N, M, D, E); ``noise`` is (seed, threshold, growth), ``left`` the weights
    after it; a growth of 0 drops none, and ``left`` may be ``weights``.
    """
    H, N, M, D, E = sizes
    seed, threshold, growth = noise
    of_keys = np.empty(M, u32)
    for m in range(M):
        of_keys[m] = bits_of_key(m)
    for index in range(first, stop):
        b, h = index // H, index % H
        q, k, v = row_of(query, b, h, 0), row_of(key, b, h, 0), row_of(value, b, h, 0)
        scores, kept = all_of(weights[index]), all_of(left[index])
        multiply_at(TURNED, PLAIN, M, N, D, scale, k, q, 0, scores)
        of_head = bits_of_head(seed, b, h)
        for n in range(N):
            row = weights[index, n]
            if penalty.size:
                _add(row, penalty, b, h, n)
            to_weights(row)
            if growth > 0:
                of_row, dropped = bits_of_row(of_head, n), left[index, n]
                for m in range(M):
                    dropped[m] = row[m] * factor(of_row, of_keys[m], u32(threshold), f32(growth))
        multiply_at(PLAIN, PLAIN, E, N, M, 1, v, kept, 0, row_of(out, b, h, 0))


@parallel
def backward(
    first, stop, sizes, query, key, value, scale, weights, left, grad, d_query, d_key, d_value
):
    """Gradients of queries, keys and values of heads ``first`` to ``stop``."""
    H, N, M, D, E = sizes
    slopes = np.empty((N, M), f32)
    s = all_of(slopes)
    for index in range(first, stop):
        b, h = index // H, index % H
        q, k, v = row_of(query, b, h, 0), row_of(key, b, h, 0), row_of(value, b, h, 0)
        g = row_of(grad, b, h, 0)
        dq, dk = (d_query[b, 0, h].ctypes.data, H * D), (d_key[b, 0, h].ctypes.data, H * D)
        dv, kept = (d_value[b, 0, h].ctypes.data, H * E), all_of(left[index])
        multiply_at(TURNED, PLAIN, M, N, E, 1, v, g, 0, s)
        multiply_at(PLAIN, TURNED, E, M, N, 1, g, kept, 0, dv)
        for n in range(N):
            _to_slopes(slopes[n], weights[index, n], left[index, n])
        multiply_at(PLAIN, PLAIN, D, N, M, scale, k, s, 0, dq)
        multiply_at(PLAIN, TURNED, D, M, N, scale, q, s, 0, dk)


@inlined
def _add(row, penalty, b, h, n):
    """Add the penalty of a row, which may be that of all batch rows, heads or queries."""
    of_row = penalty[
        min(b, penalty.shape[0] - 1), min(h, penalty.shape[1] - 1), min(n, penalty.shape[2] - 1)
    ]
    for m in range(row.size):
        row[m] += of_row[m]


@inlined
def _to_slopes(slope, weights, left):
    """Gradient of a row of scores, in place of that of the weights that dropout left."""
    total = f32(0)
    for m in range(slope.size):
        part = slope[m] * left[m]
        slope[m] = part
        total += part
    for m in range(slope.size):
        slope[m] -= weights[m] * total
