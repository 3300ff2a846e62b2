"""The statistics of softmax, row by row of its scores: ``inspect.statistics`` says what they are.

A row is read three times while it is in the cache: for the best scores, for powers and their sums,
and for what keys receive.

Its time beside torch's fused kernel alone: ``benchmarks/records/inspection.json``.
"""

from math import exp as power_of
from math import log, log1p
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float32, Int32, Int64

from regard.kernels.compiling import compiled, inlined
from regard.kernels.elementary import exp, largest

f32, f64, i32, i64 = np.float32, np.float64, np.int32, np.int64

# Neighbouring keys of which the best is known before the best of all are looked for: fewer in rows
# up to so long.
_GROUP, _SMALL_GROUP, _SHORT = 32, 16, 1024
_LEAST = f32(np.finfo(np.float32).min)
_NOTHING = f32(-np.inf)
# The power of such a score is zero, and yet zero times it is not NaN.
_LOWEST = f32(-100.0)


class Visibility(NamedTuple):
    """Visible keys of queries, and the counted queries; an empty array stands for all."""

    first: Int32[np.ndarray, "b N"]
    stop: Int32[np.ndarray, "b N"]
    counted: Bool[np.ndarray, "b N"]  # queries whose weights keys receive
    sinks: Float32[np.ndarray, " H"]


class StatisticsOutput(NamedTuple):
    """Where statistics are written, in the order of ``inspect.statistics.Statistics``."""

    lse: Float32[np.ndarray, "B H N"]
    entropy: Float32[np.ndarray, "B H N"]
    distance: Float32[np.ndarray, "B H N"]
    first: Float32[np.ndarray, "B H N"]
    received: Float32[np.ndarray, "B H M"]
    pooled: Float32[np.ndarray, "B H R C"]
    top_weights: Float32[np.ndarray, "B H N K"]
    top_keys: Int64[np.ndarray, "B H N K"]


class StatisticsBlock(NamedTuple):
    """Where a block is in the grid, and where the grid is in the map."""

    batch: int
    head: int
    row: int
    shift: int  # position of query 0 among the keys
    rows: int  # position of query 0 from the first bucket
    row_width: int  # queries of a bucket
    keys: int  # position of key 0 from the first bucket
    key_width: int  # keys of a bucket


@inlined
def _within(index, low, high):
    """Clamp a position to a range."""
    index = low if index < low else index
    return high if index > high else index


@inlined
def _cut_to_visible(pieces, visibility, b, n, spans):
    """The columns that a query may see, from where to where in each piece."""
    for p in range(len(pieces)):
        start, stop = pieces[p, 1], pieces[p, 2]
        spans[p, 0], spans[p, 1] = start, stop
        if visibility.first.size:
            b = b % len(visibility.first)
            to_column = start - pieces[p, 0]
            spans[p, 0] = _within(i64(visibility.first[b, n]) + to_column, start, stop)
            spans[p, 1] = _within(i64(visibility.stop[b, n]) + to_column, spans[p, 0], stop)


@inlined
def _mask_row(row, masked):
    for m in range(masked.size):
        row[m] = _NOTHING if masked[m] else row[m]


@inlined
def _find_tops(row, spans, tops, group):
    """The best score, finite; that of each group is written to ``tops``."""
    best, at = _LEAST, i64(0)
    for p in range(len(spans)):
        start, stop = spans[p, 0], spans[p, 1]
        while start < stop:
            tops[at] = largest(row[start : _within(start + group, start, stop)])
            best = tops[at] if tops[at] > best else best
            start, at = start + group, at + 1
    return best, at


@inlined
def _insert_best(values, positions, best_values, start, stop, bound, ranked):
    """Insert a range's best values, equals in order, none below ``bound``; returns their number."""
    last = len(best_values) - 1
    for m in range(start, stop):
        if values[m] >= bound and values[m] > (best_values[last] if ranked > last else _NOTHING):
            at = ranked if ranked < last else last
            while at > 0 and best_values[at - 1] < values[m]:
                best_values[at], positions[at] = best_values[at - 1], positions[at - 1]
                at -= 1
            best_values[at], positions[at] = values[m], m
            ranked += i64(ranked <= last)
    return ranked


@inlined
def _rank(row, spans, tops, group, groups, values, columns):
    """Columns of the best scores, of equals the first; passes over groups whose top is too low."""
    last, none = len(values) - 1, i64(0)  # a plain 0 would be compiled apart
    count = _insert_best(tops, columns, values, none, groups, _NOTHING, none)
    bound = values[last] if count > last else _NOTHING
    count, at = none, 0
    for p in range(len(spans)):
        start, stop = spans[p, 0], spans[p, 1]
        while start < stop:
            if tops[at] >= bound:
                end = _within(start + group, start, stop)
                count = _insert_best(row, columns, values, start, end, bound, count)
            start, at = start + group, at + 1
    return count


@inlined
def _to_powers(scores, best, middle):
    """Turn scores to powers; returns their sum, that times scores, and times distances."""
    total, energy, distance = f32(0), f32(0), f32(0)
    middle = i32(middle)
    for m in range(scores.size):
        score = scores[m] - best
        score = _LOWEST if score < _LOWEST else score
        power = exp(score)
        scores[m] = power
        total += power
        energy += power * score
        distance += power * abs(f32(i32(m) - middle))
    return total, energy, distance


@inlined
def _log_of(total, sink):
    """Logarithm of a sum to which ``e^sink`` is added."""
    rest = log(total)
    if sink > rest:
        return sink + log1p(power_of(rest - sink))
    return rest + log1p(power_of(sink - rest))


@inlined
def _of_row(row, pieces, spans, best, visibility, output, block, at):
    """Statistics of a row; returns the factor of its exponentials, 0 where no key is visible."""
    total, energy, distance = f32(0), f32(0), f32(0)
    for p in range(len(pieces)):
        start, stop = spans[p, 0], spans[p, 1]
        middle = at[2] + block.shift - (pieces[p, 0] + start - pieces[p, 1])
        some = _to_powers(row[start:stop], best, middle)
        total, energy, distance = total + some[0], energy + some[1], distance + some[2]
    if total == 0:
        return f32(0)
    # A sink far above the best score would lose its digits in float32.
    rest = _log_of(f64(total), f64(visibility.sinks[at[1] % len(visibility.sinks)]) - f64(best))
    scale = f32(power_of(-rest))
    entropy = (rest * total - energy) * scale
    output.lse[at] = best + rest
    output.entropy[at] = 0.0 if entropy < 0 else entropy
    output.distance[at] = distance * scale
    if pieces[0, 0] == 0 and spans[0, 0] == 0 and spans[0, 1] > 0:
        output.first[at] = row[0] * scale
    return scale


@inlined
def _gather(row, spans, scale, sums):
    for p in range(len(spans)):
        part, total = row[spans[p, 0] : spans[p, 1]], sums[spans[p, 0] : spans[p, 1]]
        for m in range(part.size):
            total[m] += part[m] * scale


@inlined
def _flush(pieces, sums, received, pooled, block):
    """Add the sums of columns to the keys and to a row of the map, and zero them."""
    for p in range(len(pieces)):
        start, stop = pieces[p, 1], pieces[p, 2]
        key, width = pieces[p, 0] - start, block.key_width
        while start < stop:
            bucket = (start + key + block.keys) // width
            end = _within((bucket + 1) * width - block.keys - key, start, stop)
            total, part, keys = f32(0), sums[start:end], received[key + start : key + end]
            for m in range(part.size):
                total += part[m]
                keys[m] += part[m]
                part[m] = f32(0)
            pooled[bucket] += total
            start = end


@inlined
def _key_of(pieces, column):
    for p in range(len(pieces)):
        if column < pieces[p, 2]:
            break
    return pieces[p, 0] + column - pieces[p, 1]


@compiled
def summarize(
    scores: Float32[np.ndarray, "b h n m"],
    pieces: Int64[np.ndarray, "P 3"],
    masked: Bool[np.ndarray, "..."],
    visibility: Visibility,
    output: StatisticsOutput,
    block: StatisticsBlock,
) -> None:
    """Write the statistics of some rows of scores, and add to the mass that keys receive."""
    lanes, heads, rows, width = scores.shape
    spans = np.zeros((len(pieces), 2), np.int64)
    group = _SMALL_GROUP if width <= _SHORT else _GROUP
    tops = np.empty(width // group + len(pieces), f32)
    best_count = output.top_keys.shape[3]
    values, columns = np.empty(best_count, f32), np.empty(best_count, np.int64)
    sums = np.zeros(width, f32)
    for lane in range(lanes * heads):
        i, j = lane // heads, lane % heads
        b, h = block.batch + i, block.head + j
        received, pooled = output.received[b, h], output.pooled[b, h]
        bucket = -1
        for r in range(rows):
            n, row = block.row + r, scores[i, j, r]
            _cut_to_visible(pieces, visibility, b, n, spans)
            if masked.size:
                of_row = (i % masked.shape[0], j % masked.shape[1], r % masked.shape[2])
                _mask_row(row, masked[of_row])
            best, groups = _find_tops(row, spans, tops, group)
            count = _rank(row, spans, tops, group, groups, values, columns) if best_count else 0
            scale = _of_row(row, pieces, spans, best, visibility, output, block, (b, h, n))
            for k in range(count):
                output.top_weights[b, h, n, k] = row[columns[k]] * scale
                output.top_keys[b, h, n, k] = _key_of(pieces, columns[k])
            if scale == 0 or (
                visibility.counted.size and not visibility.counted[b % len(visibility.counted), n]
            ):
                continue
            own = (block.rows + n) // block.row_width
            if own != bucket and bucket >= 0:
                _flush(pieces, sums, received, pooled[bucket], block)
            bucket = own
            _gather(row, spans, scale, sums)
        if bucket >= 0:
            _flush(pieces, sums, received, pooled[bucket], block)
