"""Additive attention as two loops: scores w · tanh(q + k), softmax, and all their gradients.

``tanh(q + k) = u / (u + 2)`` with ``u = e^(2q + 2k) − 1``: after one exponential per query and per
key, a hidden unit costs a few additions and products and a division. Where exponentials might
overflow, or queries are too few to be worth the keys' exponentials, tanh itself is worked out, as a
quotient of polynomials.

A hidden unit lives in a register, and in the backward pass in a row of them that stays in the
first cache.
"""

from typing import TypeAlias

import numpy as np
from jaxtyping import Float32, UInt8

from regard.attention.engine.kernels.compiling import compiled, inlined
from regard.attention.engine.kernels.elementary import exp, tanh

# Batch row, head and query of a block's first; how many heads it has; batch row, head and key of
# the first of ``key``, ``rest`` and ``value``, and the key after the block's last.
Place: TypeAlias = tuple[int, int, int, int, int, int, int, int]

f32 = np.float32

# Keys whose gradients are summed up over a few queries before they join the whole sum: so many
# stay in the first cache, and a sum in two steps is rounded less.
_KEYS, _QUERIES = 16, 32
_LEAST = np.finfo(np.float32).min


@inlined
def _by_tanh(query, key, w):  # type: ignore[no-untyped-def]
    """``w · tanh(q + k)`` of one pair."""
    total = f32(0)
    for d in range(w.shape[0]):
        total += w[d] * tanh(query[d] + key[d])
    return total


@inlined
def _by_exponentials(query, key, rest, w):  # type: ignore[no-untyped-def]
    """The same from factors of ``u``."""
    total = f32(0)
    for d in range(w.shape[0]):
        u = query[d] * key[d] + rest[d]
        total += w[d] * (u / (u + f32(2)))
    return total


@inlined
def _score_all(query, key, rest, w, scores):  # type: ignore[no-untyped-def]
    """The scores of a query with all keys."""
    if rest is None:
        for m in range(scores.size):
            scores[m] = _by_tanh(query, key[m], w)
    else:
        for m in range(scores.size):
            scores[m] = _by_exponentials(query, key[m], rest[m], w)


@inlined
def _score_kept(query, key, rest, m, w, units):  # type: ignore[no-untyped-def]
    """The score of a query with one key; its hidden units are kept."""
    total = f32(0)
    if rest is None:
        for d in range(units.size):
            units[d] = tanh(query[d] + key[m, d])
            total += w[d] * units[d]
    else:
        for d in range(units.size):
            u = query[d] * key[m, d] + rest[m, d]
            t = u / (u + f32(2))
            units[d] = t
            total += w[d] * t
    return total


@inlined
def _row(of_pairs, b, h, n):  # type: ignore[no-untyped-def]
    """What (b or 1, h or 1, n, m) holds for a query, or nothing."""
    if of_pairs.size:
        return of_pairs[b % of_pairs.shape[0], h % of_pairs.shape[1], n]
    return of_pairs.reshape(-1)


@inlined
def _adjust(scores, bias, hidden):  # type: ignore[no-untyped-def]
    """Bias and mask applied to a query's scores."""
    for m in range(bias.size):
        scores[m] += bias[m]
    for m in range(hidden.size):
        if hidden[m]:
            scores[m] = -np.inf


@inlined
def _to_powers(scores):  # type: ignore[no-untyped-def]
    """Scores turned to ``e^(score − best)``: the best, and their sum, 0 where nothing is seen."""
    best, total = f32(_LEAST), f32(0)
    for m in range(scores.size):
        best = max(best, scores[m])
    for m in range(scores.size):
        power = exp(scores[m] - best)
        scores[m] = power
        total += power
    return best, total


@inlined
def _mix(powers, factor, total, value, out):  # type: ignore[no-untyped-def]
    """The values weighted by powers over their total, written to ``out``."""
    for m in range(factor.size):
        powers[m] *= factor[m]
    scale = f32(1) / total if total != 0 else f32(0)
    for e in range(out.size):
        out[e] = f32(0)
    for m in range(powers.size):
        if powers[m] != 0:  # a NaN in a value is not to reach who does not see it
            weight = powers[m] * scale
            for e in range(out.size):
                out[e] += weight * value[m, e]


@inlined
def _value_part(weight, d_out, value, of_values, m):  # type: ignore[no-untyped-def]
    """The gradient of a pair's weight; adds to that of its value."""
    slope = f32(0)
    for e in range(d_out.size):
        slope += d_out[e] * value[m, e]
        of_values[m, e] += weight * d_out[e]
    return slope


@inlined
def _unit_part(slope, units, of_query, of_keys, m, of_w):  # type: ignore[no-untyped-def]
    """Adds to the gradients of a pair's query, key and hidden units."""
    for d in range(units.size):
        t = units[d]
        change = slope - slope * t * t
        of_query[0, d] += change
        of_keys[m, d] += change
        of_w[0, d] += slope * t


@inlined
def _add_rows(total, part):  # type: ignore[no-untyped-def]
    for i in range(part.shape[0]):
        for d in range(part.shape[1]):
            total[i, d] += part[i, d]


@compiled
def forward(
    query: Float32[np.ndarray, "B H N D"],
    key: Float32[np.ndarray, "b h M D"],
    rest: Float32[np.ndarray, "b h M D"] | None,
    value: Float32[np.ndarray, "b h M E"],
    w: Float32[np.ndarray, "Hw D"],
    hidden: UInt8[np.ndarray, "..."],
    bias: Float32[np.ndarray, "..."],
    factor: Float32[np.ndarray, "..."],
    out: Float32[np.ndarray, "B H N E"],
    top: Float32[np.ndarray, "B H N"],
    total: Float32[np.ndarray, "B H N"],
    place: Place,
    lanes: tuple[int, int],
    rows: tuple[int, int],
) -> None:
    """Mixed values of some queries of some heads; the best score, and the sum of powers beside it.

    Args:
        query: What is multiplied by ``key`` to give ``u − rest``, or the queries themselves.
        key: See ``query``; or the keys themselves.
        rest: Of ``u``; None where queries and keys are themselves: their loops are others.
        value: The values of the same keys.
        w: Weights of the hidden units, of every head or of all.
        hidden: The block's pairs that are not seen, (b or 1, h or 1, n, m).
        bias: What is added to scores, in that shape.
        factor: What dropout multiplies weights by, in that shape.
        out: Written.
        top: Written.
        total: Written.
        place: Where the block is.
        lanes: The first to do of the block's batch rows and heads, and the one after the last.
        rows: The same of its queries.
    """
    b0, h0, n0, width, kb, kh, first, last = place
    scores = np.empty(last - first, f32)
    for lane in range(lanes[0], lanes[1]):
        b, h = lane // width, lane % width
        kept = (b0 + b - kb, h0 + h - kh)
        keys, values = key[kept][first:last], value[kept][first:last]
        others = None if rest is None else rest[kept][first:last]
        weights = w[(h0 + h) % w.shape[0]]
        for n in range(rows[0], rows[1]):
            asks = query[b0 + b, h0 + h, n0 + n]
            _score_all(asks, keys, others, weights, scores)
            _adjust(scores, _row(bias, b, h, n), _row(hidden, b, h, n))
            best, powers = _to_powers(scores)
            _mix(scores, _row(factor, b, h, n), powers, values, out[b0 + b, h0 + h, n0 + n])
            top[b0 + b, h0 + h, n0 + n], total[b0 + b, h0 + h, n0 + n] = best, powers


@compiled
def backward(
    query: Float32[np.ndarray, "B H N D"],
    key: Float32[np.ndarray, "b h M D"],
    rest: Float32[np.ndarray, "b h M D"] | None,
    value: Float32[np.ndarray, "b h M E"],
    w: Float32[np.ndarray, "Hw D"],
    hidden: UInt8[np.ndarray, "..."],
    bias: Float32[np.ndarray, "..."],
    factor: Float32[np.ndarray, "..."],
    top: Float32[np.ndarray, "B H N"],
    total: Float32[np.ndarray, "B H N"],
    d_out: Float32[np.ndarray, "B H N E"],
    mean: Float32[np.ndarray, "B H N"],
    d_query: Float32[np.ndarray, "B H N D"],
    d_key: Float32[np.ndarray, "b h M D"],
    d_value: Float32[np.ndarray, "b h M E"],
    d_w: Float32[np.ndarray, "B H D"],
    d_scores: Float32[np.ndarray, "..."],
    place: Place,
    lanes: tuple[int, int],
    rows: tuple[int, int],
) -> None:
    """The part that some queries of some heads have in all gradients, which it adds to.

    Those of queries and keys lack the factor ``w``.

    Args:
        query: As of ``forward``, and so are those up to ``total``.
        key: See there.
        rest: See there.
        value: See there.
        w: See there.
        hidden: See there.
        bias: See there.
        factor: See there.
        top: See there.
        total: See there.
        d_out: The gradient of the mixed values.
        mean: Of each query, its product with them, less the gradient of the log-sum-exp.
        d_query: Added to.
        d_key: Added to; where it is as ``key`` is, and is nobody else's meanwhile.
        d_value: The same.
        d_w: Added to.
        d_scores: Written, (b, h, n, m) of the block, where there is a bias that wants it.
        place: As of ``forward``.
        lanes: See there.
        rows: See there.
    """
    b0, h0, n0, width, kb, kh, first, last = place
    D, E = w.shape[1], value.shape[3]
    units, of_query, of_w = np.empty(D, f32), np.empty((1, D), f32), np.empty((1, D), f32)
    of_keys, of_values = np.empty((_KEYS, D), f32), np.empty((_KEYS, E), f32)
    for lane in range(lanes[0], lanes[1]):
        b, h = lane // width, lane % width
        kept = (b0 + b - kb, h0 + h - kh)
        weights, d_weights = w[(h0 + h) % w.shape[0]], d_w[b0 + b, h0 + h : h0 + h + 1]
        for m0 in range(first, last, _KEYS):
            some = slice(m0, min(last, m0 + _KEYS))
            keys, values = key[kept][some], value[kept][some]
            others = None if rest is None else rest[kept][some]
            for start in range(rows[0], rows[1], _QUERIES):
                of_w[:], of_keys[:], of_values[:] = f32(0), f32(0), f32(0)
                for n in range(start, min(start + _QUERIES, rows[1])):
                    at = (b0 + b, h0 + h, n0 + n)
                    if total[at] == 0:  # nothing is seen
                        continue
                    of_query[:] = f32(0)
                    unseen, added = _row(hidden, b, h, n), _row(bias, b, h, n)
                    times, slopes = _row(factor, b, h, n), _row(d_scores, b, h, n)
                    asks, given = query[at], d_out[at]
                    best, powers, common = top[at], total[at], mean[at]
                    for i in range(len(keys)):
                        m = m0 - first + i
                        if unseen.size and unseen[m]:
                            continue
                        score = _score_kept(asks, keys, others, i, weights, units)
                        score += added[m] if added.size else f32(0)
                        weight = exp(score - best) / powers
                        share = times[m] if times.size else f32(1)
                        part = _value_part(weight * share, given, values, of_values, i)
                        slope = weight * (part * share - common)
                        if slopes.size:
                            slopes[m] = slope
                        _unit_part(slope, units, of_query, of_keys, i, of_w)
                    _add_rows(d_query[b0 + b, h0 + h, n0 + n : n0 + n + 1], of_query)
                _add_rows(d_key[kept][some], of_keys[: len(keys)])
                _add_rows(d_value[kept][some], of_values[: len(keys)])
                _add_rows(d_weights, of_w)
