"""Sparsemax and entmax-1.5 of rows, and their gradients, as loops without a sort.

The threshold τ of ``Σ max(0, x − τ)^p = 1`` is where a convex, falling function is zero. Newton's
method from below it never goes beyond: for p = 1 it is the algorithm of Michelot (1986), which ends
after finitely many steps; for p = 2 the number of right digits doubles with each. A step is one
pass over a row that stays in the first cache, and few are needed.
"""

import numpy as np
from jaxtyping import Float32

from regard.attention.engine.kernels.compiling import compiled
from regard.attention.engine.kernels.elementary import largest

f32 = np.float32

# Where the steps end: they get no further in float32, or go on for a NaN's sake.
_MOST_STEPS, _SMALLEST_STEP = 64, f32(1e-8)


@compiled
def sparsemax(scores: Float32[np.ndarray, "n M"], weights: Float32[np.ndarray, "n M"]) -> None:
    """``max(0, score − τ)`` of rows that sum to one; zeros for a row of −inf.

    Args:
        scores: One row per query.
        weights: Written.
    """
    for n in range(scores.shape[0]):
        row, found = scores[n], weights[n]
        best = largest(row)
        if best == -np.inf:
            found[:] = f32(0)
            continue
        for m in range(row.size):  # kept, or the threshold might be lost in a sum with the best
            found[m] = row[m] - best
        threshold = f32(-1)
        for _ in range(_MOST_STEPS):
            total, support = f32(0), f32(0)
            for m in range(row.size):
                left = found[m] - threshold
                total += max(left, f32(0))
                support += f32(1) if left > f32(0) else f32(0)
            step = (total - f32(1)) / support
            threshold += step
            if not step > _SMALLEST_STEP:
                break
        for m in range(row.size):
            left = found[m] - threshold
            found[m] = f32(0) if left < f32(0) else left


@compiled
def entmax15(scores: Float32[np.ndarray, "n M"], weights: Float32[np.ndarray, "n M"]) -> None:
    """``max(0, score / 2 − τ)²`` of rows that sum to one; zeros for a row of −inf.

    Args:
        scores: One row per query.
        weights: Written.
    """
    for n in range(scores.shape[0]):
        row, found = scores[n], weights[n]
        best = largest(row)
        if best == -np.inf:
            found[:] = f32(0)
            continue
        for m in range(row.size):  # as in sparsemax
            found[m] = (row[m] - best) * f32(0.5)
        threshold = f32(-1)
        for _ in range(_MOST_STEPS):
            total, roots = f32(0), f32(0)
            for m in range(row.size):
                root = max(found[m] - threshold, f32(0))
                roots += root
                total += root * root
            step = (total - f32(1)) / (f32(2) * roots)
            threshold += step
            if not step > _SMALLEST_STEP:
                break
        for m in range(row.size):
            root = found[m] - threshold
            found[m] = f32(0) if root < f32(0) else root * root


@compiled
def sparsemax_gradient(
    weights: Float32[np.ndarray, "n M"],
    grad: Float32[np.ndarray, "n M"],
    found: Float32[np.ndarray, "n M"],
) -> None:
    """The gradient of the scores: that of the weights less its mean, over the keys with weight.

    Args:
        weights: One row per query.
        grad: Their gradient.
        found: Written.
    """
    for n in range(weights.shape[0]):
        total, support = f32(0), f32(0)
        for m in range(weights.shape[1]):
            is_in = f32(1) if weights[n, m] > f32(0) else f32(0)
            total += is_in * grad[n, m]
            support += is_in
        mean = total / max(support, f32(1))
        for m in range(weights.shape[1]):
            is_in = f32(1) if weights[n, m] > f32(0) else f32(0)
            found[n, m] = is_in * (grad[n, m] - mean)


@compiled
def entmax15_gradient(
    weights: Float32[np.ndarray, "n M"],
    grad: Float32[np.ndarray, "n M"],
    found: Float32[np.ndarray, "n M"],
) -> None:
    """The gradient of the scores: ``root · (grad − mean)``, a mean weighed by the roots.

    Args:
        weights: One row per query.
        grad: Their gradient.
        found: Written.
    """
    for n in range(weights.shape[0]):
        total, roots = f32(0), f32(0)
        for m in range(weights.shape[1]):
            root = np.sqrt(weights[n, m])
            total += root * grad[n, m]
            roots += root
        mean = total / roots if roots > f32(0) else f32(0)
        for m in range(weights.shape[1]):
            found[n, m] = np.sqrt(weights[n, m]) * (grad[n, m] - mean)
