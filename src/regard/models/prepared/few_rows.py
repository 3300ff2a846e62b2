"""Products of a few states with weights as they lie, which cost what reading the weights costs.

A BLAS lays weights out anew for each product, which pays where many states share them. Here a tile
of up to four states by some rows of weights is added up side by side. Those rows lie far apart, and
those of the next tile behind them: memory is faster where several long stretches of it are read at
once. Each number of the result is added up in the same order whatever the tile, so that a state's
product does not depend on its neighbours.
"""

from collections.abc import Callable

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from regard.attention.engine.kernels.compiling import compiled, in_order

# Numbers that are added up side by side, and bytes of one.
_LANES, _BYTES = 8, 4
_VECTOR, _SIZE = ir.VectorType(ir.FloatType(), _LANES), ir.IntType(64)


def further(builder: ir.IRBuilder, begin: ir.Value, count: int, size: ir.Value) -> ir.Value:
    """The address ``count · size`` further on."""
    return builder.add(begin, builder.mul(size, ir.Constant(_SIZE, count)))


def summed(builder: ir.IRBuilder, vector: ir.Value) -> ir.Value:
    """All lanes added up, one half to the other."""
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


def _tile_of(rows: int, columns: int) -> Callable[..., None]:
    """Dot products of so many states with so many rows of weights, a multiple of lanes wide.

    What is made takes addresses and distances in bytes: states, and how wide a row of them is;
    weights, and how far apart their rows are; what is fetched for later; how many times all lanes
    are filled; and where the results go, how far those of two states and of two weights are apart.
    """

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        states, width, weights, apart, later, steps, out, out_width, out_apart = arguments
        byte = ir.IntType(8).as_pointer()
        name, module = f"llvm.fmuladd.v{_LANES}f32", builder.module
        kind = ir.FunctionType(_VECTOR, [_VECTOR] * 3)
        fused = cgutils.get_or_insert_function(module, kind, name)  # type: ignore[no-untyped-call]
        takes = ir.FunctionType(ir.VoidType(), [byte, *[ir.IntType(32)] * 3])
        fetch = module.declare_intrinsic("llvm.prefetch", [byte], takes)
        read_to_keep_in_level_two = [ir.Constant(ir.IntType(32), flag) for flag in (0, 2, 1)]
        zero = ir.Constant(_VECTOR, [0.0] * _LANES)

        def kept(number: ir.Value) -> ir.Value:
            return cgutils.alloca_once_value(builder, number)  # type: ignore[no-untyped-call]

        totals = [[kept(zero) for _ in range(columns)] for _ in range(rows)]
        with cgutils.for_range(builder, steps) as loop:

            def read(begin: ir.Value, row: int, distance: ir.Value) -> ir.Value:
                place = further(builder, begin, row, distance)
                place = further(builder, place, _LANES * _BYTES, loop.index)
                return builder.load(builder.inttoptr(place, _VECTOR.as_pointer()), align=_BYTES)

            known = [read(weights, column, apart) for column in range(columns)]
            next_line = further(builder, later, _LANES * _BYTES, loop.index)
            builder.call(fetch, [builder.inttoptr(next_line, byte), *read_to_keep_in_level_two])
            for row in range(rows):
                state = read(states, row, width)
                for weight, total in zip(known, totals[row], strict=True):
                    builder.store(builder.call(fused, [state, weight, builder.load(total)]), total)
        for row in range(rows):
            for column in range(columns):
                place = further(builder, out, row, out_width)
                place = further(builder, place, column, out_apart)
                found = summed(builder, builder.load(totals[row][column]))
                builder.store(found, builder.inttoptr(place, ir.FloatType().as_pointer()))
        return context.get_dummy_value()

    @intrinsic
    def tile(typing, states, width, weights, apart, later, steps, out, out_width, out_apart):  # type: ignore[no-untyped-def]
        return types.void(*[types.int64] * 9), generate

    return tile


# Rows of weights of a tile: more of them for one state, which leaves room for their sums.
_WIDTH, _WIDTH_OF_ONE = 3, 6
_ALONE, _ONE, _SINGLE = _tile_of(1, 1), _tile_of(1, _WIDTH_OF_ONE), _tile_of(1, _WIDTH)
_DOUBLE, _TRIPLE, _QUADRUPLE = (_tile_of(rows, _WIDTH) for rows in (2, 3, 4))
_AHEAD = 1024  # bytes


@in_order
def _by_tiles(first, stop, states, weight, out):  # type: ignore[no-untyped-def]
    """Columns of ``states @ weightᵀ``, what is beyond the last whole lanes left out."""
    rows, depth = states.shape
    width, out_width, steps = depth * _BYTES, out.shape[1] * _BYTES, depth // _LANES
    asked, given, made = states.ctypes.data, weight.ctypes.data, out.ctypes.data
    per_tile = _WIDTH_OF_ONE if rows == 1 else _WIDTH
    tiles = (stop - first) // per_tile
    apart, out_apart = tiles * width, tiles * _BYTES
    for o in range(first, first + tiles):
        weights, column = given + o * width, made + o * _BYTES
        if rows == 1:
            later = weights + _AHEAD
            _ONE(asked, width, weights, apart, later, steps, column, out_width, out_apart)
            continue
        for r in range(0, rows, 4):
            # Each group of states fetches the next row of one stretch.
            later = weights + width + (r // 4 % _WIDTH) * apart
            rest = (width, weights, apart, later, steps, column + r * out_width)
            begin = asked + r * width
            if rows - r >= 4:
                _QUADRUPLE(begin, *rest, out_width, out_apart)
            elif rows - r == 3:
                _TRIPLE(begin, *rest, out_width, out_apart)
            elif rows - r == 2:
                _DOUBLE(begin, *rest, out_width, out_apart)
            else:
                _SINGLE(begin, *rest, out_width, out_apart)
    for o in range(first + tiles * per_tile, stop):
        weights, column = given + o * width, made + o * _BYTES
        for r in range(rows):
            begin, target = asked + r * width, column + r * out_width
            _ALONE(begin, width, weights, 0, weights, steps, target, out_width, 0)


@in_order
def _add_rest(first, stop, states, weight, out):  # type: ignore[no-untyped-def]
    """Add what is beyond the last whole lanes."""
    depth = states.shape[1]
    for r in range(out.shape[0]):
        for o in range(first, stop):
            for c in range(depth - depth % _LANES, depth):
                out[r, o] += states[r, c] * weight[o, c]


@compiled
def few_rows(first, stop, states, weight, bias, out):  # type: ignore[no-untyped-def]
    """Columns ``first`` to ``stop`` of ``states @ weightᵀ + bias``; no entries are no bias."""
    _by_tiles(first, stop, states, weight, out)
    if states.shape[1] % _LANES:
        _add_rest(first, stop, states, weight, out)
    if bias.size:
        for r in range(out.shape[0]):
            for o in range(first, stop):
                out[r, o] += bias[o]
