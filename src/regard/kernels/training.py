"""Passes of training over whole batches: dropout, the residual connection, and the loss.

As operations of torch each is several passes through memory: three forward and nine backward of the
residual connection with a norm, three of dropout, four of the loss, and some twenty with R-Drop.
Numbers are of float32, or the bits of bfloat16 where a pass says so; sums are of float32.
``randoms`` are the bytes of ``layers.residual``; those below the threshold drop their element.

Its speed is a part of ``benchmarks/records/training_speed.json``.
"""

import numpy as np

from regard.kernels.bfloat16 import narrowed, widened
from regard.kernels.compiling import inlined
from regard.kernels.elementary import exp, largest
from regard.kernels.team import parallel

f32, i32 = np.float32, np.int32

# Sizes of one task: elements of dropout and of the residual connection; rows whose gradients are
# summed, which does not depend on how many threads there are; rows of logits.
ELEMENTS, ROWS, WORDS = 2**17, 1024, 32


@parallel
def drop(first, stop, values, randoms, threshold, growth, out):
    """``dropout(values)`` of elements ``first`` to ``stop``; both sides may be of bfloat16."""
    grown, least = f32(growth), i32(threshold)
    for i in range(first, stop):
        kept = grown if i32(randoms[i]) >= least else f32(0)
        out[i] = narrowed(widened(values[i]) * kept, out[i])


@parallel
def add_dropped(first, stop, states, change, randoms, threshold, growth, total):
    """``states + dropout(change)`` of elements ``first`` to ``stop``; each may be of bfloat16."""
    grown, least = f32(growth), i32(threshold)
    for i in range(first, stop):
        kept = grown if i32(randoms[i]) >= least else f32(0)
        total[i] = narrowed(widened(states[i]) + widened(change[i]) * kept, total[i])


@parallel
def add_norm(first, stop, states, change, randoms, threshold, growth, weight, bias, eps, written):
    """``norm(states + dropout(change))`` of some rows, and the inputs of ``add_norm_back``.

    ``change`` may be of bfloat16, as its gradient is then.
    """
    total, out, means, scales = written
    width = states.shape[1]
    grown, least = f32(growth), i32(threshold)
    for r in range(first, stop):
        sum_ = f32(0)
        for c in range(width):
            kept = grown if i32(randoms[r, c]) >= least else f32(0)
            x = states[r, c] + widened(change[r, c]) * kept
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


@parallel
def add_norm_back(
    task, _, grad, total, means, scales, weight, randoms, threshold, growth, d_total, d_change, sums
):
    """Gradients of one task's states and change; ``sums`` are those of weight and bias."""
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
            d_change[r, c] = narrowed(d_total[r, c] * kept, d_change[r, c])


@parallel
def cross_entropy(first, stop, logits, labels, smoothing, gradient, losses):
    """Losses of rows ``first`` to ``stop`` against smoothed labels, and their gradient."""
    width = logits.shape[1]
    shares = np.empty(width, f32)
    for r in range(first, stop):
        log_sum, sum_ = _to_shares(logits[r], shares)
        losses[r] = _loss(logits[r], labels[r], smoothing, log_sum, sum_)
        _subtract_label(shares, labels[r], smoothing, f32(1))
        for v in range(width):
            gradient[r, v] = narrowed(shares[v], gradient[r, v])


@parallel
def two_passes(first, stop, logits, labels, smoothing, weight, gradient, losses):
    """Mean losses of words that two passes read, and the gradient of R-Drop.

    ``logits`` are those of the passes, (2, R, V). To the gradient of the mean comes ``weight``
    times that of ``(KL(p‖q) + KL(q‖p)) / 2``: of KL(p‖q) it is p · (gap − KL) by the logits of p,
    with gap = log p − log q, and q − p by those of q.
    """
    width = logits.shape[2]
    p, q = np.empty(width, f32), np.empty(width, f32)
    half, of_gap = f32(0.5), f32(weight) * f32(0.5)
    for r in range(first, stop):
        first_pass, second = logits[0, r], logits[1, r]
        log_p, sum_p = _to_shares(first_pass, p)
        log_q, sum_q = _to_shares(second, q)
        loss = _loss(first_pass, labels[r], smoothing, log_p, sum_p)
        losses[r] = half * (loss + _loss(second, labels[r], smoothing, log_q, sum_q))
        lse_gap = log_p - log_q
        mean_gap_p, mean_gap_q = f32(0), f32(0)
        for v in range(width):
            gap = widened(first_pass[v]) - widened(second[v]) - lse_gap
            mean_gap_p += p[v] * gap
            mean_gap_q += q[v] * gap
        for v in range(width):
            gap = widened(first_pass[v]) - widened(second[v]) - lse_gap
            slope = p[v] - q[v]
            by_p = of_gap * (p[v] * (gap - mean_gap_p) + slope)
            by_q = of_gap * (q[v] * (mean_gap_q - gap) - slope)
            p[v] = half * p[v] + by_p
            q[v] = half * q[v] + by_q
        _subtract_label(p, labels[r], smoothing, half)
        _subtract_label(q, labels[r], smoothing, half)
        for v in range(width):
            gradient[0, r, v] = narrowed(p[v], gradient[0, r, v])
            gradient[1, r, v] = narrowed(q[v], gradient[1, r, v])


@inlined
def _to_shares(logits, shares):
    """Softmax of a row; returns its log-sum-exp, and the sum of the logits."""
    total, sum_ = f32(0), f32(0)
    for v in range(shares.size):
        shares[v] = widened(logits[v])
    top = largest(shares)
    for v in range(shares.size):
        sum_ += shares[v]
        shares[v] = exp(shares[v] - top)
        total += shares[v]
    share = f32(1) / total
    for v in range(shares.size):
        shares[v] *= share
    return top + np.log(total), sum_


@inlined
def _loss(logits, label, smoothing, log_sum, sum_):
    """Cross-entropy of a row against its label mixed with the uniform distribution."""
    expected = f32(smoothing) / f32(logits.size) * sum_
    return log_sum - (f32(1) - f32(smoothing)) * widened(logits[label]) - expected


@inlined
def _subtract_label(slopes, label, smoothing, factor):
    """Take the smoothed label, times ``factor``, off a row."""
    uniform = factor * f32(smoothing) / f32(slopes.size)
    for v in range(slopes.size):
        slopes[v] -= uniform
    slopes[label] -= factor * (f32(1) - f32(smoothing))
