"""Attention over dot products: per tile, products by BLAS and one pass over each row.

A tile is some queries of a head and some of the keys they may see; its scores stay in the second
cache, a row of it in the first. For softmax, the best score and the sum of powers run along with
the tiles, as in Milakov & Gimelshein (2018), https://arxiv.org/abs/1805.02867; for other weightings
a tile has all the keys. The backward pass works the scores out again, as in Dao et al. (2022),
https://arxiv.org/abs/2205.14135.

Products are those of the BLAS that torch brings, on the thread that asks and without the
interpreter's lock; the module cannot be imported where ``threads.address_of_products`` is 0.

Queries, keys and values come as operands: all numbers of a storage, the first of a tensor, and the
steps from one batch row, head and position to the next.

Its speed beside torch's fused kernel with a dense mask: ``benchmarks/records/attention.json``.
"""

from typing import NamedTuple, TypeAlias

import llvmlite.binding
import numpy as np
from jaxtyping import Float32, Int32, Int64, UInt8
from llvmlite import ir

from regard.kernels.attention.dropout import factor
from regard.kernels.attention.weightings import slope, weigh
from regard.kernels.compiling import cgutils, compiled, inlined, intrinsic, types
from regard.kernels.elementary import add_scaled, exp, fill, largest, to_powers
from regard.kernels.team import parallel
from regard.kernels.threads import address_of_products

f32, i32, u32 = np.float32, np.int32, np.uint32

# Rows of a tile lie a little further apart than a power of two, or they would share cache lines.
_GAP = 16

_SYMBOL = "regard_sgemm"
PLAIN, TURNED = np.uint8(ord("N")), np.uint8(ord("T"))

llvmlite.binding.add_symbol(_SYMBOL, address_of_products())


@intrinsic
def _sgemm(typing, turn_a, turn_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc):
    """BLAS' own: columns stand one after the other, and all but addresses is given by reference."""

    def generate(context, builder, signature, arguments):
        byte = ir.IntType(8).as_pointer()
        kind = ir.FunctionType(ir.VoidType(), [byte] * 13)
        function = cgutils.get_or_insert_function(builder.module, kind, _SYMBOL)

        pointers = [
            builder.inttoptr(argument, byte)
            if index in (6, 8, 11)
            else builder.bitcast(cgutils.alloca_once_value(builder, argument), byte)
            for index, argument in enumerate(arguments)
        ]
        builder.call(function, pointers)
        return context.get_dummy_value()

    letter, size, number, address = types.uint8, types.int32, types.float32, types.intp
    kinds = (letter, letter, size, size, size, number, address, size, address, size, number)
    return types.void(*kinds, address, size), generate


@inlined
def multiply_at(turn_a, turn_b, m, n, k, scale, a, b, beta, c):
    """``c = scale · a @ b + beta · c`` as BLAS has it: each an address and the step of columns."""
    sizes, lda, ldb, ldc = (i32(m), i32(n), i32(k)), i32(a[1]), i32(b[1]), i32(c[1])
    _sgemm(turn_a, turn_b, *sizes, f32(scale), a[0], lda, b[0], ldb, f32(beta), c[0], ldc)


@inlined
def row_of(operand, b, h, n):
    """The address of a position of a head, and the step to the next."""
    numbers, (first, of_row, of_head, step) = operand
    at = first + b * of_row + h * of_head + n * step
    return numbers.ctypes.data + numbers.itemsize * at, step


@inlined
def all_of(tile):
    """The address of a tile, and the step from a row to the next."""
    return tile.ctypes.data, tile.shape[1]


@inlined
def _score_all(scale, query, n, key, m, width, scores):
    """``scale · query @ keyᵀ`` of so many positions, written to the first columns of ``scores``."""
    multiply_at(TURNED, PLAIN, m, n, width, scale, key, query, 0, all_of(scores))


@inlined
def _mix_into(scale, weights, value, m, out):
    """Adds ``scale · weights @ value`` to ``out``; the first columns of ``weights`` count."""
    n, e = out.shape
    multiply_at(PLAIN, PLAIN, e, n, m, scale, value, all_of(weights), 1, all_of(out))


@inlined
def _add_transposed(scale, weights, rows, n, out):
    """Adds ``scale · weightsᵀ @ rows`` to ``out``; the first columns of ``weights`` count."""
    m, e = out.shape
    multiply_at(PLAIN, TURNED, e, m, n, scale, rows, all_of(weights), 1, all_of(out))


Operand: TypeAlias = tuple[np.ndarray, tuple[int, int, int, int]]


class Sizes(NamedTuple):
    """Sizes of operands: queries of a head, heads that share a key, widths of keys and values."""

    queries: int
    repeats: int
    width: int
    value_width: int


class PairTerms(NamedTuple):
    """Bias, mask and dropout of the pairs; an empty array stands for none."""

    first: Int32[np.ndarray, "b N"]
    stop: Int32[np.ndarray, "b N"]
    hidden: UInt8[np.ndarray, "b h n m"]
    bias: Float32[np.ndarray, "b h n M"]
    steps: Float32[np.ndarray, "b H S"]  # bias by distance: of the pair (n, m) at N − 1 − n + m
    row_bits: Int32[np.ndarray, "B H N"]
    key_bits: Int32[np.ndarray, " M"]
    threshold: int  # weights whose joined bits are below are dropped
    growth: float


class GridBlock(NamedTuple):
    """The block of the grid to compute: its first indices, its size, and that of a tile."""

    batch: int
    head: int
    row: int
    key: int
    stop: int
    heads: int
    tile: int  # queries of a tile
    width: int  # keys of a tile


@inlined
def _tile_range(first, stop, n0, n1):
    """End of a tile, and the range of its keys; it ends before queries with disjoint keys."""
    low, high = first[n0], stop[n0]
    for n in range(n0 + 1, n1):
        if stop[n] <= first[n]:
            continue
        if low < high and (first[n] >= high or stop[n] <= low):
            return n, low, high
        if low < high:
            low, high = min(low, first[n]), max(high, stop[n])
        else:
            low, high = first[n], stop[n]
    return n1, low, high


@inlined
def _tile_of(pairs, block, b, n0, last):
    """End of the tile that begins at ``n0``, and the range of its keys."""
    n1 = min(n0 + block.tile, last)
    if pairs.first.size:
        b = b % pairs.first.shape[0]
        n1, low, high = _tile_range(pairs.first[b], pairs.stop[b], n0, n1)
        return n1, max(block.key, low), min(block.stop, high)
    return n1, block.key, block.stop


@inlined
def _visible_range(pairs, b, n, m0, m1):
    """Visible range of keys ``m0`` to ``m1``, counted from ``m0``."""
    if pairs.first.size:
        b = b % pairs.first.shape[0]
        low = min(max(pairs.first[b, n], m0), m1)
        return low - m0, max(min(pairs.stop[b, n], m1), low) - m0
    return 0, m1 - m0


@inlined
def _adjust(row, pairs, block, b, h, n, m0, N):
    """Add bias and mask to a query's scores with keys from ``m0`` on."""
    if pairs.bias.size:
        bias = pairs.bias
        at = (b % bias.shape[0], h % bias.shape[1], n % bias.shape[2])
        add_scaled(row, f32(1), bias[at][m0:])
    if pairs.steps.size:
        steps = pairs.steps
        add_scaled(row, f32(1), steps[b % steps.shape[0], h % steps.shape[1], N - 1 - n + m0 :])
    if pairs.hidden.size:
        hidden = pairs.hidden
        b, h, n = b - block.batch, h - block.head, n - block.row
        at = (b % hidden.shape[0], h % hidden.shape[1], n % hidden.shape[2])
        masked = hidden[at][m0 - block.key :]
        for m in range(row.size):
            row[m] = f32(-np.inf) if masked[m] else row[m]


@inlined
def _write_factors(out, pairs, b, h, n, m0, count):
    """Dropout factors of a query's weights with so many keys from ``m0`` on."""
    of_row, of_keys = pairs.row_bits[b, h, n], pairs.key_bits[m0:]
    threshold, growth = u32(pairs.threshold), f32(pairs.growth)
    for m in range(count):
        out[m] = factor(u32(of_row), u32(of_keys[m]), threshold, growth)


@inlined
def _scale(row, factors):
    for m in range(row.size):
        row[m] *= factors[m]


@inlined
def _zero_outside(row, low, high):
    """Zero the masked keys on both sides."""
    fill(row[:low], f32(0))
    fill(row[high:], f32(0))


@inlined
def _to_powers(row, best, total, mixed):
    """Turn scores to powers of e; rescale earlier sums to the new best. Returns best and sum."""
    top = max(best, largest(row))
    if top > best:
        shrink = exp(best - top)
        total *= shrink
        for e in range(mixed.size):
            mixed[e] *= shrink
    return top, total + to_powers(row, top)


@inlined
def _divide(mixed, total):
    """Turn sums of powers times values to means."""
    for n in range(total.size):
        if total[n] != 0:
            part = f32(1) / total[n]
            for e in range(mixed.shape[1]):
                mixed[n, e] *= part


@parallel
def forward(
    first_task: int,
    last_task: int,
    tasks: Int64[np.ndarray, "T 4"],
    sizes: Sizes,
    query: Operand,
    key: Operand,
    value: Operand,
    scale: float,
    weighting: int | None,
    pairs: PairTerms,
    out: Float32[np.ndarray, "B H N E"],
    top: Float32[np.ndarray, "B H N"],
    total: Float32[np.ndarray, "B H N"],
    block: GridBlock,
    is_last: bool,
) -> None:
    """Mixed values of queries, the best score of each, and the sum of powers over it.

    Each of the tasks has its first head and the one after its last, and its queries likewise.
    """
    scores = np.empty((block.tile, block.width + _GAP), f32)
    kept = np.empty(block.width, f32)
    for task in range(first_task, last_task):
        lane0, lane1, row0, row1 = tasks[task]
        for lane in range(lane0, lane1):
            b, h = block.batch + lane // block.heads, block.head + lane % block.heads
            g, mixed = h // sizes.repeats, out[b, h]
            n0 = row0
            while n0 < row1:
                n1, low, high = _tile_of(pairs, block, b, n0, row1)
                for m0 in range(low, high, block.width):
                    m1 = min(high, m0 + block.width)
                    queries, keys = row_of(query, b, h, n0), row_of(key, b, g, m0)
                    _score_all(scale, queries, n1 - n0, keys, m1 - m0, sizes.width, scores)
                    for n in range(n0, n1):
                        first, stop = _visible_range(pairs, b, n, m0, m1)
                        _zero_outside(scores[n - n0, : m1 - m0], first, stop)
                        row = scores[n - n0, first:stop]
                        _adjust(row, pairs, block, b, h, n, m0 + first, sizes.queries)
                        at = (b, h, n)
                        if weighting is None:
                            top[at], total[at] = _to_powers(row, top[at], total[at], mixed[n])
                        else:
                            weigh(weighting, row)
                        if pairs.key_bits.size:
                            _write_factors(kept, pairs, b, h, n, m0 + first, row.size)
                            _scale(row, kept)
                    _mix_into(1.0, scores, row_of(value, b, g, m0), m1 - m0, mixed[n0:n1])
                if is_last:
                    _divide(mixed[n0:n1], total[b, h, n0:n1])
                n0 = n1


@inlined
def _slopes(weights, slopes, mean):
    """Turn gradients of weights to those of scores."""
    for m in range(weights.size):
        slopes[m] = weights[m] * (slopes[m] - mean) if weights[m] != 0 else f32(0)


@inlined
def _to_weights(row, best, part):
    for m in range(row.size):
        row[m] = exp(row[m] - best) * part


@inlined
def _collect(slopes, of_pairs, of_steps, b, h, n, m0, N):
    """Add the gradients of a query's scores to those of biases."""
    if of_pairs.size:
        at = (b % of_pairs.shape[0], h % of_pairs.shape[1], n % of_pairs.shape[2])
        add_scaled(of_pairs[at][m0 : m0 + slopes.size], f32(1), slopes)
    if of_steps.size:
        begin = N - 1 - n + m0
        add_scaled(of_steps[b, h, begin : begin + slopes.size], f32(1), slopes)


@compiled
def backward(
    sizes: Sizes,
    query: Operand,
    key: Operand,
    value: Operand,
    scale: float,
    weighting: int | None,
    pairs: PairTerms,
    top: Float32[np.ndarray, "B H N"],
    total: Float32[np.ndarray, "B H N"],
    d_out: Operand,
    mean: Float32[np.ndarray, "B H N"],
    d_query: Float32[np.ndarray, "B H N D"],
    d_key: Float32[np.ndarray, "B G m D"],
    d_value: Float32[np.ndarray, "B G m E"],
    d_bias: Float32[np.ndarray, "b h n M"],
    d_steps: Float32[np.ndarray, "B H S"],
    origin: tuple[int, int],
    block: GridBlock,
    lanes: tuple[int, int],
    rows: tuple[int, int],
) -> None:
    """Add some queries' part to all gradients."""
    scores = np.empty((block.tile, block.width + _GAP), f32)
    slopes = np.empty((block.tile, block.width + _GAP), f32)
    kept = np.empty(block.width, f32)
    for lane in range(lanes[0], lanes[1]):
        b, h = block.batch + lane // block.heads, block.head + lane % block.heads
        g = h // sizes.repeats
        n0 = rows[0]
        while n0 < rows[1]:
            n1, low, high = _tile_of(pairs, block, b, n0, rows[1])
            queries, grads = row_of(query, b, h, n0), row_of(d_out, b, h, n0)
            for m0 in range(low, high, block.width):
                m1 = min(high, m0 + block.width)
                keys, values = row_of(key, b, g, m0), row_of(value, b, g, m0)
                _score_all(scale, queries, n1 - n0, keys, m1 - m0, sizes.width, scores)
                _score_all(1.0, grads, n1 - n0, values, m1 - m0, sizes.value_width, slopes)
                for n in range(n0, n1):
                    first, stop = _visible_range(pairs, b, n, m0, m1)
                    _zero_outside(scores[n - n0, : m1 - m0], first, stop)
                    _zero_outside(slopes[n - n0, : m1 - m0], first, stop)
                    row, grad = scores[n - n0, first:stop], slopes[n - n0, first:stop]
                    at = (b, h, n)
                    _adjust(row, pairs, block, b, h, n, m0 + first, sizes.queries)
                    if pairs.key_bits.size:
                        _write_factors(kept, pairs, b, h, n, m0 + first, row.size)
                        _scale(grad, kept)
                    if weighting is None:
                        part = f32(1) / total[at] if total[at] != 0 else f32(0)
                        _to_weights(row, top[at], part)
                        _slopes(row, grad, mean[at])
                    else:
                        weigh(weighting, row)
                        slope(weighting, row, grad)
                    if pairs.key_bits.size:
                        _scale(row, kept)
                    _collect(grad, d_bias, d_steps, b, h, n, m0 + first, sizes.queries)
                here = slice(m0 - origin[1], m1 - origin[1])
                of_values, of_keys = d_value[b - origin[0], g, here], d_key[b - origin[0], g, here]
                _add_transposed(1.0, scores, grads, n1 - n0, of_values)
                _add_transposed(scale, slopes, queries, n1 - n0, of_keys)
                _mix_into(scale, slopes, keys, m1 - m0, d_query[b, h, n0:n1])
            n0 = n1
