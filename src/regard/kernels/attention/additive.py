"""Additive attention as two loops: scores w · tanh(q + k), softmax, and all their gradients.

``tanh(q + k) = u / (u + 2)`` with ``u = e^(2q + 2k) − 1``: after one exponential per query and per
key, a hidden unit costs a few additions and products and a division. Where exponentials might
overflow, or queries are too few to be worth the keys' exponentials, tanh itself is worked out, as a
quotient of polynomials.

A hidden unit lives in a register, and in the backward pass in a row that stays in the first cache.
Keys are taken four at a time, so that the data of a query are read and written once for the
four; one by one where a mask hides some of them. Backward, the numbers of four keys lie in one
array, constant distances apart: rows that might overlap as far as LLVM can see would be worked on
a number at a time.

Its speed and memory beside the formula written out: ``benchmarks/records/additive_attention.json``.
"""

from typing import TypeAlias

import numpy as np
from jaxtyping import Float32, UInt8

from regard.kernels.compiling import inlined, shared, uncounted_part, written_in
from regard.kernels.elementary import LOWEST, exp, fill, largest, tanh, to_powers
from regard.kernels.team import parallel

# Batch row, head and query of a block's first; how many heads it has; batch row, head and key of
# the first of ``key``, ``offset`` and ``value``, and the key after the block's last.
BlockOffsets: TypeAlias = tuple[int, int, int, int, int, int, int, int]

f32 = np.float32

# Keys whose gradients are summed up over a few queries before they join the whole sum: so many
# stay in the first cache, and a sum in two steps is rounded less.
_KEYS, _QUERIES = 8, 32
# Hidden units, or features of values, in a row of the array of four keys; of more, there are
# several such arrays.
_ROW = 128
# Where its rows begin: keys, their offsets, and their gradients; values, and theirs; and the hidden
# units of a query's pairs, its gradient, and that of the weights of hidden units.
_OFFSET, _OF_KEY, _KEY_ROWS = 4 * _ROW, 8 * _ROW, 12 * _ROW
_OF_VALUE, _VALUE_ROWS = 4 * _ROW, 8 * _ROW
_OF_QUERY, _OF_W, _QUERY_ROWS = 4 * _ROW, 5 * _ROW, 6 * _ROW
# The numbers of four pairs: scores that become weights, weights after dropout, gradients of scores.
_DROPPED, _SLOPE, _PAIR_NUMBERS = 4, 8, 12
# Bytes of a cache line.
_LINE = 64


@inlined
def _pick(array, i):
    if array is None:
        return None
    return array[i]


@inlined
def _unit(query, key, offset):
    """A hidden unit: ``tanh(q + k)``, from factors of ``u`` where there is an offset."""
    if offset is None:
        return tanh(query + key)
    u = query * key + offset
    return u / (u + f32(2))


@inlined
def _score_all(query, key, offset, w, scores):
    """The scores of a query with all keys."""
    fours = scores.size - scores.size % 4
    for m in range(0, fours, 4):
        k0, k1, k2, k3 = key[m], key[m + 1], key[m + 2], key[m + 3]
        r0, r1, r2, r3 = (
            _pick(offset, m),
            _pick(offset, m + 1),
            _pick(offset, m + 2),
            _pick(offset, m + 3),
        )
        s0, s1, s2, s3 = f32(0), f32(0), f32(0), f32(0)
        for d in range(w.shape[0]):
            s0 += w[d] * _unit(query[d], k0[d], _pick(r0, d))
            s1 += w[d] * _unit(query[d], k1[d], _pick(r1, d))
            s2 += w[d] * _unit(query[d], k2[d], _pick(r2, d))
            s3 += w[d] * _unit(query[d], k3[d], _pick(r3, d))
        scores[m], scores[m + 1], scores[m + 2], scores[m + 3] = s0, s1, s2, s3
    for m in range(fours, scores.size):
        k0, r0, s0 = key[m], _pick(offset, m), f32(0)
        for d in range(w.shape[0]):
            s0 += w[d] * _unit(query[d], k0[d], _pick(r0, d))
        scores[m] = s0


@inlined
def _lane(of_pairs, b, h):
    """Index of a head's pairs in (b or 1, h or 1, n, m); of an empty array the view is empty."""
    return b % max(1, of_pairs.shape[0]), h % max(1, of_pairs.shape[1])


@inlined
def _adjust(scores, bias, masked, n):
    """Add bias and mask to a query's scores."""
    for m in range(bias.shape[1]):
        scores[m] += bias[n, m]
    for m in range(masked.shape[1]):
        if masked[n, m]:
            scores[m] = -np.inf


@inlined
def _mix(powers, factor, n, total, value, out):
    """The values weighted by powers over their total, written to ``out``."""
    for m in range(factor.shape[1]):
        powers[m] *= factor[n, m]
    scale = f32(1) / total if total != 0 else f32(0)
    fill(out, f32(0))
    for m in range(powers.size):
        if powers[m] != 0:  # a NaN in a value is not to reach who does not see it
            weight = powers[m] * scale
            for e in range(out.size):
                out[e] += weight * value[m, e]


@shared
def _fill(rows, begin, features):
    """Copy features of keys, (m, D), to the rows of their fours, (m / 4, D / row, …)."""
    for m in range(features.shape[0]):
        for d in range(features.shape[1]):
            rows[m // 4, d // _ROW, begin + m % 4 * _ROW + d % _ROW] = features[m, d]


@uncounted_part
def _empty(rows, begin, features):
    """Add rows, (D / row, …), to ``features``, and zero them."""
    for c in range(rows.shape[0]):
        total = features[c * _ROW : c * _ROW + _ROW]
        row = rows[c, begin : begin + total.size]
        for d in range(total.size):
            total[d] += row[d]
        row[:] = f32(0)


@shared
def _mark_visible(visible, masked, n, m, end):
    """Mark the visible ones of four keys; returns their number."""
    count = 0
    for i in range(4):
        is_visible = m + i < end and not (masked.size and masked[n, m + i])
        visible[i] = is_visible
        count += is_visible
    return count


@inlined
def _score_four(query, offset, w, keys, units, numbers):
    """Adds the part of a row of hidden units to the scores of four pairs, and keeps the units."""
    s0, s1, s2, s3 = f32(0), f32(0), f32(0), f32(0)
    for d in range(w.size):
        t = _unit(query[d], keys[d], _pick(offset, _OFFSET + d))
        units[d] = t
        s0 += w[d] * t
        t = _unit(query[d], keys[_ROW + d], _pick(offset, _OFFSET + _ROW + d))
        units[_ROW + d] = t
        s1 += w[d] * t
        t = _unit(query[d], keys[2 * _ROW + d], _pick(offset, _OFFSET + 2 * _ROW + d))
        units[2 * _ROW + d] = t
        s2 += w[d] * t
        t = _unit(query[d], keys[3 * _ROW + d], _pick(offset, _OFFSET + 3 * _ROW + d))
        units[3 * _ROW + d] = t
        s3 += w[d] * t
    numbers[0] += s0
    numbers[1] += s1
    numbers[2] += s2
    numbers[3] += s3


@uncounted_part
def _zero_masked(visible, units, numbers):
    """Zero the units and weights of masked pairs."""
    for i in range(4):
        if not visible[i]:
            units[:, i * _ROW : i * _ROW + _ROW] = f32(0)
            numbers[i], numbers[_DROPPED + i] = f32(0), f32(0)


@shared
def _to_weights(numbers, bias, factor, n, m, end, best, scale):
    """Turn scores of four pairs to weights."""
    if bias.size:
        for i in range(min(4, end - m)):
            numbers[i] += bias[n, m + i]
    for i in range(4):
        numbers[i] = exp(numbers[i] - best) * scale
        numbers[_DROPPED + i] = numbers[i]
    if factor.size:
        for i in range(min(4, end - m)):
            numbers[_DROPPED + i] *= factor[n, m + i]


@inlined
def _value_four(numbers, d_out, values):
    """Adds the part of a row of features to the gradients of four weights, and to the values'."""
    w0, w1, w2, w3 = numbers[4], numbers[5], numbers[6], numbers[7]
    s0, s1, s2, s3 = f32(0), f32(0), f32(0), f32(0)
    for e in range(d_out.size):
        g = d_out[e]
        s0 += g * values[e]
        s1 += g * values[_ROW + e]
        s2 += g * values[2 * _ROW + e]
        s3 += g * values[3 * _ROW + e]
        values[_OF_VALUE + e] += w0 * g
        values[_OF_VALUE + _ROW + e] += w1 * g
        values[_OF_VALUE + 2 * _ROW + e] += w2 * g
        values[_OF_VALUE + 3 * _ROW + e] += w3 * g
    numbers[_SLOPE] += s0
    numbers[_SLOPE + 1] += s1
    numbers[_SLOPE + 2] += s2
    numbers[_SLOPE + 3] += s3


@shared
def _add_visible_values(numbers, d_out, values, visible):
    """Accumulate gradients of visible pairs alone, where the gradient has a NaN or an infinity."""
    for i in range(4):
        if visible[i]:
            for e in range(d_out.size):
                numbers[_SLOPE + i] += d_out[e] * values[i * _ROW + e]
                values[_OF_VALUE + i * _ROW + e] += numbers[_DROPPED + i] * d_out[e]


@shared
def _to_score_gradients(numbers, visible, d_scores, n, m, mean):
    """Turn gradients of four weights to those of their scores."""
    for i in range(4):
        slope = numbers[_SLOPE + i] * numbers[_DROPPED + i] - numbers[i] * mean
        numbers[_SLOPE + i] = slope if visible[i] else f32(0)
    if d_scores.size:
        for i in range(4):
            if visible[i]:
                d_scores[n, m + i] = numbers[_SLOPE + i]


@inlined
def _unit_four(numbers, keys, units, size):
    """Adds to the gradients of a row of hidden units: of four keys, their query, and ``w``."""
    g0, g1, g2, g3 = numbers[8], numbers[9], numbers[10], numbers[11]
    for d in range(size):
        t0, t1, t2, t3 = units[d], units[_ROW + d], units[2 * _ROW + d], units[3 * _ROW + d]
        p0, p1, p2, p3 = g0 * t0, g1 * t1, g2 * t2, g3 * t3
        units[_OF_W + d] += p0 + p1 + p2 + p3
        p0, p1, p2, p3 = g0 - p0 * t0, g1 - p1 * t1, g2 - p2 * t2, g3 - p3 * t3
        keys[_OF_KEY + d] += p0
        keys[_OF_KEY + _ROW + d] += p1
        keys[_OF_KEY + 2 * _ROW + d] += p2
        keys[_OF_KEY + 3 * _ROW + d] += p3
        units[_OF_QUERY + d] += p0 + p1 + p2 + p3


@written_in
def _add_up(of_queries, offset, w, pairs, sums, block, rows):
    """Add the parts of some queries and keys to each other's gradients, and to that of ``w``."""
    query, top, total, d_out, mean, d_query = of_queries
    masked, bias, factor, d_scores = pairs
    of_keys, of_values, of_query, visible, numbers = sums
    n0, first, end = block
    for n in range(rows[0], rows[1]):
        if total[n0 + n] == 0:  # nothing is seen
            continue
        query_n, d_out_n, mean_n = query[n0 + n], d_out[n0 + n], mean[n0 + n]
        for m in range(first, end, 4):
            keys, values = of_keys[(m - first) // 4], of_values[(m - first) // 4]
            count = _mark_visible(visible, masked, n, m, end)
            if count == 0:
                continue
            numbers[:] = f32(0)
            for c in range(keys.shape[0]):
                part = slice(c * _ROW, min(w.size, c * _ROW + _ROW))
                offsets = None if offset is None else keys[c]
                _score_four(query_n[part], offsets, w[part], keys[c], of_query[c], numbers)
            _to_weights(numbers, bias, factor, n, m, end, top[n0 + n], f32(1) / total[n0 + n])
            if count < 4:
                _zero_masked(visible, of_query, numbers)
            for c in range(values.shape[0]):
                part = slice(c * _ROW, min(d_out_n.size, c * _ROW + _ROW))
                if count == 4 or np.isfinite(mean_n):
                    _value_four(numbers, d_out_n[part], values[c])
                else:
                    _add_visible_values(numbers, d_out_n[part], values[c], visible)
            _to_score_gradients(numbers, visible, d_scores, n, m, mean_n)
            for c in range(keys.shape[0]):
                _unit_four(numbers, keys[c], of_query[c], min(w.size - c * _ROW, _ROW))
        _empty(of_query, _OF_QUERY, d_query[n0 + n])


@parallel
def forward(
    first: int,
    stop: int,
    height: int,
    query: Float32[np.ndarray, "B H N D"],
    key: Float32[np.ndarray, "b h M D"],
    offset: Float32[np.ndarray, "b h M D"] | None,
    value: Float32[np.ndarray, "b h M E"],
    w: Float32[np.ndarray, "Hw D"],
    masked: UInt8[np.ndarray, "..."],
    bias: Float32[np.ndarray, "..."],
    factor: Float32[np.ndarray, "..."],
    out: Float32[np.ndarray, "B H N E"],
    top: Float32[np.ndarray, "B H N"],
    total: Float32[np.ndarray, "B H N"],
    block: BlockOffsets,
) -> None:
    """Mixed values of queries, ``height`` of a head, their best scores, and sums of powers."""
    b0, h0, n0, width, kb, kh, begin, last = block
    scores = np.empty(last - begin, f32)
    for index in range(first, stop):
        lane, n = index // height, index % height
        b, h = lane // width, lane % width
        key_index = (b0 + b - kb, h0 + h - kh)
        keys, values = key[key_index][begin:last], value[key_index][begin:last]
        offsets = None if offset is None else offset[key_index][begin:last]
        weights = w[(h0 + h) % w.shape[0]]
        biased, masked_pairs = bias[_lane(bias, b, h)], masked[_lane(masked, b, h)]
        at = (b0 + b, h0 + h, n0 + n)
        _score_all(query[at], keys, offsets, weights, scores)
        _adjust(scores, biased, masked_pairs, n)
        best = max(largest(scores), LOWEST)
        powers = to_powers(scores, best)
        _mix(scores, factor[_lane(factor, b, h)], n, powers, values, out[at])
        top[at], total[at] = best, powers


@shared
def _zeros(rows, size, width):
    """Zeros aligned to a cache line: a vector across two lines would be read from both."""
    count = rows * size * width
    room = np.zeros(count + _LINE // 4, f32)
    first = -room.ctypes.data % _LINE // 4
    return room[first : first + count].reshape(rows, size, width)


@uncounted_part
def _add_lane(offset, inputs, statistics, written, sums, block, lane, rows):
    """Add the part of some queries of a head to all gradients.

    ``sums`` are the arrays of the keys at hand, of their values and of a query; which of four keys
    it sees, and the numbers of those four pairs.
    """
    query, key, _, value, w, masked, bias, factor = inputs
    top, total, d_out, mean = statistics
    d_query, d_key, d_value, d_w, d_scores = written
    b0, h0, n0, width, kb, kh, first, last = block
    of_keys, of_values, of_query, _, _ = sums
    b, h = lane // width, lane % width
    at, key_index = (b0 + b, h0 + h), (b0 + b - kb, h0 + h - kh)
    of_queries = query[at], top[at], total[at], d_out[at], mean[at], d_query[at]
    pairs = (
        masked[_lane(masked, b, h)],
        bias[_lane(bias, b, h)],
        factor[_lane(factor, b, h)],
        d_scores[_lane(d_scores, b, h)],
    )
    for m0 in range(first, last, _KEYS):
        some = slice(m0, min(last, m0 + _KEYS))
        _fill(of_keys, 0, key[key_index][some])
        if offset is not None:
            _fill(of_keys, _OFFSET, offset[key_index][some])
        _fill(of_values, 0, value[key_index][some])
        corner = (n0, m0 - first, some.stop - first)
        for n in range(rows[0], rows[1], _QUERIES):
            queries = (n, min(n + _QUERIES, rows[1]))
            _add_up(of_queries, offset, w[(h0 + h) % w.shape[0]], pairs, sums, corner, queries)
            for m in range(m0, some.stop):
                four, row = (m - m0) // 4, (m - m0) % 4 * _ROW
                _empty(of_keys[four], _OF_KEY + row, d_key[key_index][m])
                _empty(of_values[four], _OF_VALUE + row, d_value[key_index][m])
            _empty(of_query, _OF_W, d_w[at])


@parallel
def backward(first, stop, cut, inputs, statistics, written, block):
    """Add to all gradients; those of queries and keys lack the factor ``w``.

    Each of ``first`` to ``stop`` is a part of a head's queries; ``cut`` are the queries of a head,
    those of a part, and the number of heads. ``inputs`` are as ``forward`` has them, ``statistics``
    its sums and (B, H, N) of the gradient; of those ``written``, all but the first and the last
    have one for each part of the queries.
    """
    (height, rows, lanes), query, value = cut, inputs[0], inputs[3]
    across, along = -(-query.shape[3] // _ROW), -(-value.shape[3] // _ROW)
    sums = (
        _zeros(_KEYS // 4, across, _KEY_ROWS),
        _zeros(_KEYS // 4, along, _VALUE_ROWS),
        _zeros(1, across, _QUERY_ROWS)[0],
        np.zeros(4, np.bool_),
        np.zeros(_PAIR_NUMBERS, f32),
    )
    d_query, d_key, d_value, d_w, d_scores = written
    for index in range(first, stop):
        part, lane = index // lanes, index % lanes
        some = (part * rows, min(height, part * rows + rows))
        of_part = (d_query, d_key[part], d_value[part], d_w[part], d_scores)
        _add_lane(inputs[2], inputs, statistics, of_part, sums, block, lane, some)
