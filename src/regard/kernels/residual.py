"""The residual connection in training: dropout, sum and norm of a row in one pass each way.

As operations of torch these are three passes forward and nine backward, each through memory.
``randoms`` are the bytes of ``layers.residual``; those below the threshold drop their element.

Its speed is a part of ``benchmarks/records/training_speed.json``.
"""

import numpy as np

from regard.kernels.compiling import compiled

f32, i32 = np.float32, np.int32

# Rows that one task takes, so that sums over rows do not depend on how many threads there are.
ROWS = 1024


@compiled
def add_norm(  # type: ignore[no-untyped-def]
    task, states, change, randoms, threshold, growth, weight, bias, eps, total, out, means, scales
):
    """``norm(states + dropout(change))`` of a task's rows, and what ``add_norm_back`` needs."""
    rows, width = states.shape
    grown, least = f32(growth), i32(threshold)
    for r in range(task * ROWS, min(rows, (task + 1) * ROWS)):
        sum_ = f32(0)
        for c in range(width):
            kept = grown if i32(randoms[r, c]) >= least else f32(0)
            x = states[r, c] + change[r, c] * kept
            total[r, c] = x
            sum_ += x
        mean, square = sum_ / f32(width), f32(0)
        for c in range(width):
            x = total[r, c] - mean
            square += x * x
        scale = f32(1) / np.sqrt(square / f32(width) + f32(eps))
        for c in range(width):
            out[r, c] = (total[r, c] - mean) * scale * weight[c] + bias[c]
        means[r], scales[r] = mean, scale


@compiled
def add_norm_back(  # type: ignore[no-untyped-def]
    task, grad, total, means, scales, weight, randoms, threshold, growth, d_total, d_change, sums
):
    """Gradients of the states and of the change; ``sums`` are a task's of weight and bias."""
    rows, width = grad.shape
    grown, least = f32(growth), i32(threshold)
    of_weight, of_bias = sums[task, 0], sums[task, 1]
    for c in range(width):
        of_weight[c] = of_bias[c] = f32(0)
    for r in range(task * ROWS, min(rows, (task + 1) * ROWS)):
        mean, scale = means[r], scales[r]
        first, second = f32(0), f32(0)
        for c in range(width):
            normed, slope = (total[r, c] - mean) * scale, grad[r, c]
            of_weight[c] += slope * normed
            of_bias[c] += slope
            first += slope * weight[c]
            second += slope * weight[c] * normed
        first, second = first / f32(width), second / f32(width)
        for c in range(width):
            normed = (total[r, c] - mean) * scale
            d_total[r, c] = scale * (grad[r, c] * weight[c] - first - normed * second)
        for c in range(width):  # by itself: of more arrays LLVM does not see that they are apart
            kept = grown if i32(randoms[r, c]) >= least else f32(0)
            d_change[r, c] = d_total[r, c] * kept
