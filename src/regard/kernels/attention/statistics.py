"""The statistics of softmax, row by row of its scores: ``inspect.statistics`` defines them.

A row is read three times while it is in the cache: for the best scores, for powers and their sums,
and for the mass that keys receive. Powers replace scores, so that values can be mixed by them.

Its time beside torch's fused kernel alone: ``benchmarks/records/inspection.json``.
"""

from math import exp as power_of
from math import log, log1p
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float32, Int32, Int64

from regard.kernels.compiling import compiled, inlined
from regard.kernels.elementary import LOWEST, add_scaled, copy, exp, fill, largest, widest_vectors

f32, f64, i32, i64 = np.float32, np.float64, np.int32, np.int64

# Keys of which the best is known before the best of all are looked for: fewer in rows up to so
# long. They lie as far apart as there are groups, so that groups are next to each other.
_GROUP, _SMALL_GROUP, _SHORT = 32, 16, 1024
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
def _fold(row, width, tops):
    """The best of every ``width``-th number, from each of the first on."""
    copy(row[:width], tops)
    start = width
    while start < row.size:
        part = row[start : _within(start + width, start, row.size)]
        for m in range(part.size):
            tops[m] = part[m] if part[m] > tops[m] else tops[m]
        start += width


@inlined
def _find_tops(row, spans, tops, group):
    """The best score, finite; that of each group is written to ``tops``."""
    groups = i64(0)
    for p in range(len(spans)):
        start, stop = spans[p, 0], spans[p, 1]
        width = (stop - start + group - 1) // group
        _fold(row[start:stop], width, tops[groups : groups + width])
        groups += width
    best = largest(tops[:groups])
    return best if best > LOWEST else LOWEST, groups


@inlined
def _insert(value, position, values, positions, ranked):
    """Insert a value among the best, equals by their positions; returns their number."""
    last = len(values) - 1
    at = _within(ranked, i64(0), i64(last + 1))
    while at > 0 and (
        values[at - 1] < value or (values[at - 1] == value and positions[at - 1] > position)
    ):
        at -= 1
        if at < last:
            values[at + 1], positions[at + 1] = values[at], positions[at]
    if at <= last:
        values[at], positions[at] = value, position
    return ranked + i64(ranked <= last)


@inlined
def _bound_of(tops, count, few, better):
    """A score that at least so many tops reach, and few more; −∞ where they are fewer."""
    width = _within(tops.size, i64(0), i64(few.size))
    few, better, bound = few[:width], better[:width], f32(np.inf)
    _fold(tops, width, few)
    for m in range(width):
        better[m] = i32(0)
    for n in range(width):
        top = few[n]
        for m in range(width):
            better[m] += i32(top > few[m])
    for m in range(width):
        bound = few[m] if better[m] < count and few[m] < bound else bound
    return bound if width >= count else _NOTHING


@inlined
def _rank(row, spans, tops, group, few, better, values, columns):
    """Columns of the best scores, of equals the first; passes over groups whose top is too low."""
    bound = _bound_of(tops, len(values), few, better)
    ranked, at = i64(0), i64(0)  # a plain 0 would be compiled apart
    for p in range(len(spans)):
        start, stop = spans[p, 0], spans[p, 1]
        width = (stop - start + group - 1) // group
        for m in range(width):
            if tops[at + m] >= bound:
                for column in range(start + m, stop, width):
                    if row[column] >= bound and row[column] > _NOTHING:
                        ranked = _insert(row[column], column, values, columns, ranked)
        at += width
    return ranked


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
    log_total = log(total)
    if sink == -np.inf:
        return log_total
    if sink > log_total:
        return sink + log1p(power_of(log_total - sink))
    return log_total + log1p(power_of(sink - log_total))


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
    log_total = _log_of(
        f64(total), f64(visibility.sinks[at[1] % len(visibility.sinks)]) - f64(best)
    )
    scale = f32(power_of(-log_total))
    entropy = (log_total * total - energy) * scale
    output.lse[at] = best + log_total
    output.entropy[at] = 0.0 if entropy < 0 else entropy
    output.distance[at] = distance * scale
    if pieces[0, 0] == 0 and spans[0, 0] == 0 and spans[0, 1] > 0:
        output.first[at] = row[0] * scale
    return scale


@inlined
def _zero_hidden(row, pieces, spans):
    """Zero the scores of masked keys."""
    for p in range(len(pieces)):
        fill(row[pieces[p, 1] : spans[p, 0]], f32(0))
        fill(row[spans[p, 1] : pieces[p, 2]], f32(0))


@inlined
def _gather(row, spans, scale, sums):
    for p in range(len(spans)):
        part = slice(spans[p, 0], spans[p, 1])
        add_scaled(sums[part], scale, row[part])


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
    factors: Float32[np.ndarray, "b h n"],
) -> None:
    """Write the statistics of some rows of scores, and add to the mass that keys receive.

    Scores become powers, and ``factors``, if it has entries, those that make weights of them.
    """
    widest_vectors()
    lanes, heads, rows, width = scores.shape
    spans = np.zeros((len(pieces), 2), np.int64)
    group = _SMALL_GROUP if width <= _SHORT else _GROUP
    tops = np.empty(width // group + len(pieces), f32)
    best_count = output.top_keys.shape[3]
    few, better = np.empty(2 * best_count, f32), np.empty(2 * best_count, i32)
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
            count = i64(0)
            if best_count:
                count = _rank(row, spans, tops[:groups], group, few, better, values, columns)
            scale = _of_row(row, pieces, spans, best, visibility, output, block, (b, h, n))
            if factors.size:
                _zero_hidden(row, pieces, spans)
                factors[i, j, r] = scale
            for k in range(count):
                output.top_weights[b, h, n, k] = row[columns[k]] * scale
                output.top_keys[b, h, n, k] = _key_of(pieces, columns[k])
            counted = visibility.counted
            if scale == 0 or (counted.size and not counted[b % len(counted), n]):
                continue
            row_bucket = (block.rows + n) // block.row_width
            if row_bucket != bucket and bucket >= 0:
                _flush(pieces, sums, received, pooled[bucket], block)
            bucket = row_bucket
            _gather(row, spans, scale, sums)
        if bucket >= 0:
            _flush(pieces, sums, received, pooled[bucket], block)
