"""Sparsemax and entmax-1.5 of rows, and their gradients, as loops without a sort.

The threshold τ of ``Σ max(0, x − τ)^p = 1`` is where a convex, falling function is zero. Newton's
method from below it never goes beyond: for p = 1 it is the algorithm of Michelot (1986), which ends
after finitely many steps; for p = 2 the number of right digits doubles with each. A step is one
pass over a row that stays in the first cache, and few are needed. Beside the entmax package:
``benchmarks/records/attention.json``.
"""

import numpy as np
from jaxtyping import Float32

from regard.kernels.compiling import compiled, inlined
from regard.kernels.elementary import largest

f32 = np.float32

# What the loops call the weightings that ``Weighting.compiled_as`` names.
CODES = {"sparsemax": 0, "entmax15": 1}
_SPARSEMAX = CODES["sparsemax"]
# Where the steps end: they get no further in float32, or go on for a NaN's sake.
_MOST_STEPS, _SMALLEST_STEP = 64, f32(1e-8)


@compiled
def rows(
    weighting: int,
    scores: Float32[np.ndarray, "n M"],
    weights: Float32[np.ndarray, "n M"],
) -> None:
    """Weights of rows of scores that sum to one; zeros for a row of −inf."""
    for n in range(scores.shape[0]):
        weights[n] = scores[n]
        weigh(weighting, weights[n])


@compiled
def gradient(
    weighting: int,
    weights: Float32[np.ndarray, "n M"],
    grad: Float32[np.ndarray, "n M"],
    slopes_out: Float32[np.ndarray, "n M"],
) -> None:
    """Gradient of the scores from weights and their gradient."""
    for n in range(weights.shape[0]):
        slopes_out[n] = grad[n]
        slope(weighting, weights[n], slopes_out[n])


@inlined
def weigh(weighting, row):  # type: ignore[no-untyped-def]
    """Turn a row of scores to weights, in place."""
    best = largest(row)
    if best == -np.inf:
        row[:] = f32(0)
    elif weighting == _SPARSEMAX:
        _to_sparsemax(row, best)
    else:
        _to_entmax15(row, best)


@inlined
def slope(weighting, weights, slopes):  # type: ignore[no-untyped-def]
    """Turn the gradient of a row of weights to that of its scores, in place."""
    if weighting == _SPARSEMAX:
        _slope_of_sparsemax(weights, slopes)
    else:
        _slope_of_entmax15(weights, slopes)


@inlined
def _to_sparsemax(row, best):  # type: ignore[no-untyped-def]
    """``max(0, score − τ)``."""
    for m in range(row.size):  # kept, or the threshold might be lost in a sum with the best
        row[m] -= best
    threshold = f32(-1)
    for _ in range(_MOST_STEPS):
        total, support = f32(0), f32(0)
        for m in range(row.size):
            weight = row[m] - threshold
            total += max(weight, f32(0))
            support += f32(1) if weight > f32(0) else f32(0)
        step = (total - f32(1)) / support
        threshold += step
        if not step > _SMALLEST_STEP:
            break
    for m in range(row.size):
        weight = row[m] - threshold
        row[m] = f32(0) if weight < f32(0) else weight


@inlined
def _to_entmax15(row, best):  # type: ignore[no-untyped-def]
    """``max(0, score / 2 − τ)²``."""
    for m in range(row.size):  # as in sparsemax
        row[m] = (row[m] - best) * f32(0.5)
    threshold = f32(-1)
    for _ in range(_MOST_STEPS):
        total, roots = f32(0), f32(0)
        for m in range(row.size):
            root = max(row[m] - threshold, f32(0))
            roots += root
            total += root * root
        step = (total - f32(1)) / (f32(2) * roots)
        threshold += step
        if not step > _SMALLEST_STEP:
            break
    for m in range(row.size):
        root = row[m] - threshold
        row[m] = f32(0) if root < f32(0) else root * root


@inlined
def _slope_of_sparsemax(weights, slopes):  # type: ignore[no-untyped-def]
    """The gradient of the weights less its mean, over the keys with weight."""
    total, support = f32(0), f32(0)
    for m in range(weights.size):
        total += slopes[m] if weights[m] > f32(0) else f32(0)
        support += f32(1) if weights[m] > f32(0) else f32(0)
    mean = total / max(support, f32(1))
    for m in range(weights.size):
        slopes[m] = slopes[m] - mean if weights[m] > f32(0) else f32(0)


@inlined
def _slope_of_entmax15(weights, slopes):  # type: ignore[no-untyped-def]
    """``root · (grad − mean)``, a mean weighed by the roots."""
    total, roots = f32(0), f32(0)
    for m in range(weights.size):
        root = np.sqrt(weights[m])
        total += root * slopes[m] if weights[m] != f32(0) else f32(0)
        roots += root
    mean = total / roots if roots > f32(0) else f32(0)
    for m in range(weights.size):
        root = np.sqrt(weights[m])
        slopes[m] = root * (slopes[m] - mean) if weights[m] != f32(0) else f32(0)
