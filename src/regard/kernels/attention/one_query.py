"""Attention of one query over keys and values that lie anywhere in a store.

A head is some dozens of numbers wide, and there are few keys: of loops over slices of arrays, the
slices would take longer than the numbers. So these go by addresses, with as many numbers at a time
as a register holds.

It is part of every step of ``benchmarks/records/decoding_speed.json``; no record has it alone.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
from llvmlite import ir

from regard.kernels.compiling import cgutils, intrinsic, shared, types
from regard.kernels.elementary import to_weights
from regard.kernels.products.packed import OUTPUTS, fused, offset, read, read_everywhere

f32 = np.float32
_NUMBER, _SIZE = ir.FloatType(), ir.IntType(64)
_VECTOR = ir.VectorType(_NUMBER, OUTPUTS)
_NOTHING = ir.Constant(_VECTOR, [0.0] * OUTPUTS)
_HIDDEN = ir.Constant(_VECTOR, [float("-inf")] * OUTPUTS)
_WIDE = 4 * OUTPUTS


def _summed(builder: ir.IRBuilder, vector: ir.Value) -> ir.Value:
    """Sum of all lanes, one half to the other."""
    lanes = vector.type.count
    while lanes > 1:
        lanes //= 2
        kind = ir.VectorType(ir.IntType(32), lanes)
        low, high = (
            builder.shuffle_vector(
                vector, vector, ir.Constant(kind, list(range(first, first + lanes)))
            )
            for first in (0, lanes)
        )
        vector = builder.fadd(low, high)
    return builder.extract_element(vector, ir.Constant(ir.IntType(32), 0))


@contextmanager
def _heads(
    builder: ir.IRBuilder, key_heads: ir.Value, per: ir.Value
) -> Iterator[tuple[ir.Value, ir.Value]]:
    """Loop over heads: index of the query's head, and of the key's."""
    with (
        cgutils.for_range(builder, key_heads) as of_key,
        cgutils.for_range(builder, per) as of_query,
    ):
        yield builder.add(builder.mul(of_key.index, per), of_query.index), of_key.index


def _registers(builder: ir.IRBuilder, dim: ir.Value) -> tuple[ir.Value, ir.Value]:
    """Number of registers that a head fills, and of the numbers left over."""
    lanes = ir.Constant(_SIZE, OUTPUTS)
    return builder.sdiv(dim, lanes), builder.srem(dim, lanes)


def _offset_of(builder: ir.IRBuilder, rows: ir.Value, m: ir.Value, width: ir.Value) -> ir.Value:
    """Offset of a key or value in the store."""
    return builder.mul(read(builder, offset(builder, rows, 8, m), _SIZE), width)


def _write(builder: ir.IRBuilder, number: ir.Value, at: ir.Value) -> None:
    builder.store(number, builder.inttoptr(at, number.type.as_pointer()), align=4)


def _read_both(builder, heads, size: int, index, kind: ir.Type) -> list[ir.Value]:
    """Load the numbers of two heads at an index."""
    return [read(builder, offset(builder, head, size, index), kind) for head in heads]


@intrinsic
def _score(typing, query, keys, rows, count, width, key_heads, per, dim, scale, scores, row):
    """Scaled scores of each head, (H, M); pads the last SIMD register with −∞."""

    def generate(context, builder, signature, arguments):
        query, keys, rows, count, width, key_heads, per, dim, scale, scores, row = arguments
        steps, remainder = _registers(builder, dim)
        size = builder.mul(dim, ir.Constant(_SIZE, 4))
        last = builder.sdiv(builder.sub(count, ir.Constant(_SIZE, 1)), ir.Constant(_SIZE, OUTPUTS))
        with _heads(builder, key_heads, per) as (h, _):
            row_start = builder.add(scores, builder.mul(h, row))
            _write(builder, _HIDDEN, offset(builder, row_start, _WIDE, last))
        total = cgutils.alloca_once(builder, _VECTOR)
        more = cgutils.alloca_once(builder, _NUMBER)
        with cgutils.for_range(builder, count) as of_key:
            begin = builder.add(keys, _offset_of(builder, rows, of_key.index, width))
            with _heads(builder, key_heads, per) as (h, g):
                of_head, of_key_head = builder.mul(h, size), builder.mul(g, size)
                heads = (builder.add(query, of_head), builder.add(begin, of_key_head))
                builder.store(_NOTHING, total)
                with cgutils.for_range(builder, steps) as step:
                    pair = _read_both(builder, heads, _WIDE, step.index, _VECTOR)
                    builder.store(fused(builder, builder.load(total), *pair), total)
                builder.store(_summed(builder, builder.load(total)), more)
                behind = [offset(builder, head, _WIDE, steps) for head in heads]
                with cgutils.for_range(builder, remainder) as tail:
                    product = builder.fmul(*_read_both(builder, behind, 4, tail.index, _NUMBER))
                    builder.store(builder.fadd(builder.load(more), product), more)
                row_start = builder.add(scores, builder.mul(h, row))
                scaled = builder.fmul(builder.load(more), scale)
                _write(builder, scaled, offset(builder, row_start, 4, of_key.index))
        return context.get_dummy_value()

    return types.void(*[types.int64] * 8, types.float32, types.int64, types.int64), generate


@intrinsic
def _mix(typing, weights, row, values, rows, count, width, key_heads, per, dim, out):
    """Add each head's sum of values to (H D), by its weights, (H, M)."""

    def generate(context, builder, signature, arguments):
        weights, row, values, rows, count, width, key_heads, per, dim, out = arguments
        steps, remainder = _registers(builder, dim)
        size = builder.mul(dim, ir.Constant(_SIZE, 4))
        # Key by key, since values of keys lie apart: neighbours in memory are read together.
        with cgutils.for_range(builder, count) as of_key:
            begin = builder.add(values, _offset_of(builder, rows, of_key.index, width))
            with _heads(builder, key_heads, per) as (h, g):
                weight = offset(builder, builder.add(weights, builder.mul(h, row)), 4, of_key.index)
                value = builder.add(begin, builder.mul(g, size))
                both = (value, builder.add(out, builder.mul(h, size)))
                with cgutils.for_range(builder, steps) as step:
                    number, total = _read_both(builder, both, _WIDE, step.index, _VECTOR)
                    share = read_everywhere(builder, weight, _VECTOR)
                    added = fused(builder, total, share, number)
                    _write(builder, added, offset(builder, both[1], _WIDE, step.index))
                behind = [offset(builder, start, _WIDE, steps) for start in both]
                with cgutils.for_range(builder, remainder) as tail:
                    number, total = _read_both(builder, behind, 4, tail.index, _NUMBER)
                    product = builder.fmul(read(builder, weight, _NUMBER), number)
                    added = builder.fadd(total, product)
                    _write(builder, added, offset(builder, behind[1], 4, tail.index))
        return context.get_dummy_value()

    return types.void(*[types.int64] * 10), generate


@shared
def attend_one_query(query, store, flat_rows, count, first, stop, options, slopes, scores, out):
    """Attend over ``count`` keys and values in ``flat_rows`` of ``store``, (P, 2 G D).

    Key heads ``first`` to ``stop`` alone; ``scores`` has a row for each of their queries.
    """
    G, D = options.key_heads, options.head_dim
    per, heads = options.heads // G, stop - first
    width, row, before = store.shape[1] * 4, scores.shape[1] * 4, first * per * D
    keys, where, room = store.ctypes.data + first * D * 4, flat_rows.ctypes.data, scores.ctypes.data
    asking, to = query.ctypes.data + before * 4, out.ctypes.data + before * 4
    _score(asking, keys, where, count, width, heads, per, D, options.scale, room, row)
    # Numbers that are left over of registers would go one by one.
    padded = -(-count // OUTPUTS) * OUTPUTS
    for h in range(heads * per):
        if slopes.size:
            for m in range(count):
                scores[h, m] -= slopes[first * per + h] * f32(count - 1 - m)
        to_weights(scores[h, :padded])
    for c in range(before, stop * per * D):
        out[c] = f32(0)
    _mix(room, row, keys + G * D * 4, where, count, width, heads, per, D, to)
