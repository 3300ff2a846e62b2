"""Sparsemax and entmax-1.5 of rows, and their gradients, as loops without a sort.

The threshold τ of ``Σ max(0, x − τ)^p = 1`` is where a convex, falling function is zero. Newton's
method from below it never goes beyond: for p = 1 it is the algorithm of Michelot (1986), which ends
after finitely many steps; for p = 2 the number of right digits doubles with each. A step is one
pass over a row that stays in the first cache, and few are needed. Beside the entmax package:
``benchmarks/records/attention.json``.
"""

import numpy as np

from regard.kernels.compiling import inlined
from regard.kernels.elementary import largest
from regard.kernels.team import parallel

f32 = np.float32

# Codes in the loops of the weightings that ``Weighting.compiled_as`` names.
CODES = {"sparsemax": 0, "entmax15": 1}
_SPARSEMAX = CODES["sparsemax"]
# Where the steps end: they get no further in float32, or go on for a NaN's sake.
_MOST_STEPS, _SMALLEST_STEP = 64, f32(1e-8)


@parallel
def rows(first, stop, weighting, scores, weights):
    """Weights of rows of scores, (n, M), that sum to one; zeros for a row of −inf."""
    for n in range(first, stop):
        weights[n] = scores[n]
        weigh(weighting, weights[n])


@parallel
def gradient(first, stop, weighting, weights, grad, slopes_out):
    """Gradient of rows of scores, (n, M), from weights and their gradient."""
    for n in range(first, stop):
        slopes_out[n] = grad[n]
        slope(weighting, weights[n], slopes_out[n])


@inlined
def weigh(weighting, row):
    """Turn a row of scores to weights, in place: ``max(0, s − τ)``, or ``max(0, s / 2 − τ)²``."""
    best, is_linear = largest(row), weighting == _SPARSEMAX
    if best == -np.inf:
        row[:] = f32(0)
        return
    scale = f32(1) if is_linear else f32(0.5)
    for m in range(row.size):  # kept, or the threshold might be lost in a sum with the best
        row[m] = (row[m] - best) * scale
    threshold = f32(-1)
    for _ in range(_MOST_STEPS):
        total, change = f32(0), f32(0)
        for m in range(row.size):
            root = max(row[m] - threshold, f32(0))
            total += root if is_linear else root * root
            change += f32(root > f32(0)) if is_linear else f32(2) * root
        step = (total - f32(1)) / change
        threshold += step
        if not step > _SMALLEST_STEP:
            break
    for m in range(row.size):
        root = row[m] - threshold
        root = f32(0) if root < f32(0) else root
        row[m] = root if is_linear else root * root


@inlined
def _share(weight, is_linear):
    """Share of a weight in the mean of the gradients: by its support, or its root."""
    return f32(weight > f32(0)) if is_linear else np.sqrt(weight)


@inlined
def slope(weighting, weights, slopes):
    """Turn the gradient of a row of weights to that of its scores: less its mean, by shares."""
    is_linear = weighting == _SPARSEMAX
    total, shares = f32(0), f32(0)
    for m in range(weights.size):
        share = _share(weights[m], is_linear)
        total += share * slopes[m] if weights[m] != f32(0) else f32(0)
        shares += share
    mean = total / shares if shares > f32(0) else f32(0)
    for m in range(weights.size):
        share = _share(weights[m], is_linear)
        slopes[m] = share * (slopes[m] - mean) if weights[m] != f32(0) else f32(0)
