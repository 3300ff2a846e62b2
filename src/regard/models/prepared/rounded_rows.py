"""Products of states with weights that were rounded to int8, added up in whole numbers.

States are rounded as they come, each by itself, to as many bits as the sum has room for, fourteen
at most: what is lost is lost by the weights. Sums of whole numbers are the same in any order, and
so a state's product does not depend on its neighbours, however many they are.

The processor multiplies pairs of sixteen bits and adds the two. Weights lie as it takes them: eight
outputs side by side, of each a pair of inputs, and behind them the next pair; so a sum needs no
adding up of lanes.
"""

from collections.abc import Callable

import llvmlite.binding
import numpy as np
from jaxtyping import Float32, Int8
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from regard.attention.engine.kernels.compiling import in_order, shared
from regard.attention.engine.kernels.elementary import largest_absolute, whole
from regard.attention.engine.kernels.vectors import copy
from regard.models.prepared.few_rows import further

f32 = np.float32

# Outputs side by side, and bytes of what is read of one step: a pair of weights of each.
OUTPUTS = 8
_STEP = 2 * OUTPUTS
_MOST = 2**14 - 1

_WHOLE = ir.VectorType(ir.IntType(32), OUTPUTS)
_PAIRS = ir.VectorType(ir.IntType(16), _STEP)
_FLOATS = ir.VectorType(ir.FloatType(), OUTPUTS)


# Whether the processor multiplies and adds sixteen pairs at once; else it is said in small steps.
_HAS_PAIRS = bool(llvmlite.binding.get_host_cpu_features().get("avx2"))


def in_pairs(values: Int8[np.ndarray, "O I"]) -> Int8[np.ndarray, "o i 16"]:
    """Weights as they are multiplied, with zeros where outputs or inputs are missing."""
    outputs, inputs = values.shape
    o, i = -(-outputs // OUTPUTS), -(-inputs // 2)
    room = np.zeros((o * OUTPUTS, i * 2), np.int8)
    room[:outputs, :inputs] = values
    paired: np.ndarray = room.reshape(o, OUTPUTS, i, 2).transpose(0, 2, 1, 3).reshape(o, i, _STEP)
    return np.ascontiguousarray(paired)


def in_groups(numbers: Float32[np.ndarray, " O"]) -> Float32[np.ndarray, " o8"]:
    """A number of each output, with zeros where outputs are missing."""
    return np.pad(numbers, (0, -len(numbers) % OUTPUTS))


def _added_products(builder: ir.IRBuilder, one: ir.Value, other: ir.Value) -> ir.Value:
    """The products of sixteen pairs, each added to its neighbour's."""
    if _HAS_PAIRS:
        kind = ir.FunctionType(_WHOLE, [_PAIRS, _PAIRS])
        name = "llvm.x86.avx2.pmadd.wd"
        multiply = cgutils.get_or_insert_function(builder.module, kind, name)  # type: ignore[no-untyped-call]
        return builder.call(multiply, [one, other])
    wide = ir.VectorType(ir.IntType(32), _STEP)
    products = builder.mul(builder.sext(one, wide), builder.sext(other, wide))
    left, right = (
        builder.shuffle_vector(products, products, ir.Constant(_WHOLE, list(range(side, _STEP, 2))))
        for side in (0, 1)
    )
    return builder.add(left, right)


def _tile_of(rows: int, groups: int) -> Callable[..., None]:
    """Products of so many states with so many groups of eight outputs.

    What is made takes addresses and distances in bytes: states, and how wide a row of them is;
    weights, and how far apart their groups are; how many pairs there are; what each state's sums
    are multiplied by, what each output's, and what is added; where results go, and how wide a row
    of them is.
    """

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        states, width, weights, apart, steps, sizes, scales, biases, out, out_width = arguments
        size, number = ir.IntType(64), ir.FloatType()
        kind = ir.FunctionType(_FLOATS, [_FLOATS] * 3)
        fused = cgutils.get_or_insert_function(builder.module, kind, "llvm.fma.v8f32")  # type: ignore[no-untyped-call]

        def read(begin: ir.Value, kind: ir.Type, distance: int, place: ir.Value) -> ir.Value:
            at = further(builder, begin, distance, place)
            return builder.load(builder.inttoptr(at, kind.as_pointer()), align=1)

        def everywhere(value: ir.Value, kind: ir.Type) -> ir.Value:
            lanes = ir.Constant(ir.VectorType(ir.IntType(32), OUTPUTS), [0] * OUTPUTS)
            first = builder.insert_element(
                ir.Constant(kind, ir.Undefined), value, ir.Constant(ir.IntType(32), 0)
            )
            return builder.shuffle_vector(first, ir.Constant(kind, ir.Undefined), lanes)

        zero = ir.Constant(_WHOLE, [0] * OUTPUTS)
        totals = [
            [cgutils.alloca_once_value(builder, zero) for _ in range(groups)]  # type: ignore[no-untyped-call]
            for _ in range(rows)
        ]
        with cgutils.for_range(builder, steps) as loop:
            known = []
            for group in range(groups):
                begin = further(builder, weights, group, apart)
                given = read(begin, ir.VectorType(ir.IntType(8), _STEP), _STEP, loop.index)
                known.append(builder.sext(given, _PAIRS))
            for row in range(rows):
                begin = further(builder, states, row, width)
                pair = everywhere(read(begin, ir.IntType(32), 4, loop.index), _WHOLE)
                pairs = builder.bitcast(pair, _PAIRS)
                for weight, total in zip(known, totals[row], strict=True):
                    product = _added_products(builder, pairs, weight)
                    builder.store(builder.add(product, builder.load(total)), total)
        for row in range(rows):
            times = everywhere(read(sizes, number, 4, ir.Constant(size, row)), _FLOATS)
            target = further(builder, out, row, out_width)
            for group in range(groups):
                place = ir.Constant(size, group)
                scale, bias = (read(each, _FLOATS, 32, place) for each in (scales, biases))
                found = builder.sitofp(builder.load(totals[row][group]), _FLOATS)
                # Rounded once, in every tile, whatever a compiler would make of it elsewhere.
                found = builder.call(fused, [builder.fmul(found, times), scale, bias])
                to = builder.inttoptr(further(builder, target, 32, place), _FLOATS.as_pointer())
                builder.store(found, to, align=4)
        return context.get_dummy_value()

    @intrinsic
    def tile(typing, states, width, weights, apart, steps, sizes, scales, biases, out, out_width):  # type: ignore[no-untyped-def]
        return types.void(*[types.int64] * 10), generate

    return tile


# Groups of a tile: more of them for one state, which leaves room for their sums.
_GROUPS, _GROUPS_OF_ONE = 3, 6
_ONE = _tile_of(1, _GROUPS_OF_ONE)
_SINGLE, _DOUBLE, _TRIPLE, _QUADRUPLE = (_tile_of(rows, _GROUPS) for rows in range(1, 5))
_SINGLE_REST, _DOUBLE_REST, _TRIPLE_REST, _QUADRUPLE_REST = (
    _tile_of(rows, 1) for rows in range(1, 5)
)


@in_order
def _several_groups(rows, states, rest, out, out_width):  # type: ignore[no-untyped-def]
    """A tile's worth of groups for up to four states."""
    if rows >= 4:
        _QUADRUPLE(states, *rest, out, out_width)
    elif rows == 3:
        _TRIPLE(states, *rest, out, out_width)
    elif rows == 2:
        _DOUBLE(states, *rest, out, out_width)
    else:
        _SINGLE(states, *rest, out, out_width)


@in_order
def _one_group(rows, states, rest, out, out_width):  # type: ignore[no-untyped-def]
    """One group for up to four states."""
    if rows >= 4:
        _QUADRUPLE_REST(states, *rest, out, out_width)
    elif rows == 3:
        _TRIPLE_REST(states, *rest, out, out_width)
    elif rows == 2:
        _DOUBLE_REST(states, *rest, out, out_width)
    else:
        _SINGLE_REST(states, *rest, out, out_width)


@shared
def _by_tiles(states, weight, sizes, scales, bias, out):  # type: ignore[no-untyped-def]
    """All groups of outputs, a few at a time of all states."""
    rows, groups, steps = states.shape[0], weight.shape[0], weight.shape[1]
    width, apart, out_width = states.shape[1] * 2, steps * _STEP, out.shape[1] * 4
    group = 0
    while group < groups:
        weights, made = weight.ctypes.data + group * apart, out.ctypes.data + group * 32
        scaled, added = scales.ctypes.data + group * 32, bias.ctypes.data + group * 32
        given, size = states.ctypes.data, sizes.ctypes.data
        if rows == 1 and groups - group >= _GROUPS_OF_ONE:
            _ONE(given, width, weights, apart, steps, size, scaled, added, made, out_width)
            group += _GROUPS_OF_ONE
            continue
        is_whole = groups - group >= _GROUPS
        for r in range(0, rows, 4):
            asked, to = given + r * width, made + r * out_width
            rest = (width, weights, apart, steps, size + r * 4, scaled, added)
            if is_whole:
                _several_groups(rows - r, asked, rest, to, out_width)
            else:
                _one_group(rows - r, asked, rest, to, out_width)
        group += _GROUPS if is_whole else 1


@in_order
def _round_rows(states, most, out, sizes):  # type: ignore[no-untyped-def]
    """Each row as whole numbers up to ``most``, and what gives it back."""
    inputs = states.shape[1]
    for r in range(states.shape[0]):
        row, target = states[r], out[r]
        size = largest_absolute(row)
        sizes[r] = size / most
        share = most / size if size > f32(0) else f32(0)
        for c in range(inputs):
            target[c] = whole(row[c] * share)
        for c in range(inputs, target.size):
            target[c] = 0


@shared
def rounded_rows(states, weight, scales, bias, out):  # type: ignore[no-untyped-def]
    """``states @ weightᵀ + bias``.

    Args:
        states: (R, I).
        weight: Of ``in_pairs``.
        scales: What gives back each output's weights, ``in_groups``.
        bias: Zeros where there is none, ``in_groups``.
        out: (R, O).
    """
    rows, outputs = out.shape
    most = min(_MOST, (2**31 - 1) // (127 * states.shape[1]))
    given = np.empty((rows, 2 * weight.shape[1]), np.int16)
    sizes = np.empty(rows, np.float32)
    _round_rows(states, f32(most), given, sizes)
    made = out
    if outputs % OUTPUTS:
        made = np.empty((rows, weight.shape[0] * OUTPUTS), np.float32)
    _by_tiles(given, weight, sizes, scales, bias, made)
    if outputs % OUTPUTS:
        for r in range(rows):
            copy(made[r], out[r])
