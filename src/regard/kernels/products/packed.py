"""Products of states with weights that lie as they are multiplied, in float32 or int8.

Panels of eight or sixteen outputs side by side, input after input: a sum needs no adding up of
lanes, and a tile of some states by some panels fills the registers. Each number of the result is
added up in the same order whatever the tile, so that a state's product does not depend on its
neighbours. Weights come from memory: tiles of some panels fetch those of the next.

``int8`` rounds states and weights that are multiplied in int8, and packs them. The gain of float32
over torch's BLAS is in ``benchmarks/records/decoding_speed.json``, the columns of float32.
"""

import os
from collections.abc import Callable, Sequence
from typing import NamedTuple

import llvmlite.binding
import numpy as np
from jaxtyping import Float32
from llvmlite import ir

from regard.kernels.compiling import cgutils, inlined, intrinsic, shared, types
from regard.kernels.elementary import copy
from regard.kernels.team import parallel

f32 = np.float32
# A number that is written out would make a function of its own of each that is called with it.
i64 = np.int64


def has(feature: str) -> bool:
    """Whether the processor has this: the one that NUMBA_CPU_FEATURES describes, or this one."""
    name, features = (os.environ.get(f"NUMBA_CPU_{suffix}", "") for suffix in ("NAME", "FEATURES"))
    if name or features:
        return f"+{feature}" in features.split(",")
    return bool(llvmlite.binding.get_host_cpu_features().get(feature))


# Outputs side by side in float32: as many as fill a register, of which such processors have 32.
OUTPUTS = 16 if has("avx512f") else 8

_SIZE, _FLOAT, _INT = ir.IntType(64), ir.FloatType(), ir.IntType(32)
# Eight sums, of two products each, from weights of sixteen bits.
_WHOLE, _PAIRS = ir.VectorType(_INT, 8), ir.VectorType(ir.IntType(16), 16)
# Whether the processor multiplies and adds sixteen pairs at once; else it is said in small steps.
_HAS_PAIRS = has("avx2")


def pack(weight: Float32[np.ndarray, "O I"]) -> Float32[np.ndarray, "o I p"]:
    """Packed weights, padded with zeros."""
    outputs, inputs = weight.shape
    panels = -(-outputs // OUTPUTS)
    room = np.zeros((panels * OUTPUTS, inputs), f32)
    room[:outputs] = weight
    return np.ascontiguousarray(room.reshape(panels, OUTPUTS, inputs).transpose(0, 2, 1))


def stack_packed(
    weights: Sequence[Float32[np.ndarray, "O I"]], inputs: int = 0
) -> Float32[np.ndarray, "L o I p"]:
    """Stack packed weights; of none, an array of ``inputs`` inputs without entries."""
    if not weights:
        return np.zeros((0, 0, inputs, OUTPUTS), f32)
    return np.stack([pack(weight) for weight in weights])


def stack_padded(
    numbers: Sequence[Float32[np.ndarray, " O"]], outputs: int = OUTPUTS
) -> Float32[np.ndarray, "L op"]:
    """Stack padded vectors."""
    return np.stack([pad(vector, outputs) for vector in numbers])


def pad(numbers: Float32[np.ndarray, " O"], outputs: int = OUTPUTS) -> Float32[np.ndarray, " op"]:
    """Pad a vector of outputs with zeros to whole panels."""
    missing = -len(numbers) % outputs
    return np.pad(numbers, (0, missing)) if missing else numbers


def offset(builder: ir.IRBuilder, begin: ir.Value, count: int, size: ir.Value) -> ir.Value:
    """The address ``count · size`` further on."""
    return builder.add(begin, builder.mul(size, ir.Constant(_SIZE, count)))


def read(builder: ir.IRBuilder, at: ir.Value, kind: ir.Type) -> ir.Value:
    """Load a value from an unaligned address."""
    return builder.load(builder.inttoptr(at, kind.as_pointer()), align=1)


def read_everywhere(builder: ir.IRBuilder, at: ir.Value, kind: ir.VectorType) -> ir.Value:
    """One number in all lanes."""
    nothing = ir.Constant(kind, ir.Undefined)
    alone = builder.insert_element(nothing, read(builder, at, kind.element), ir.Constant(_INT, 0))
    lanes = ir.Constant(ir.VectorType(_INT, kind.count), [0] * kind.count)
    return builder.shuffle_vector(alone, nothing, lanes)


def _call(builder: ir.IRBuilder, name: str, kind: ir.Type, *arguments: ir.Value) -> ir.Value:
    """Call a function of LLVM that returns this kind."""
    takes = ir.FunctionType(kind, [argument.type for argument in arguments])
    function = cgutils.get_or_insert_function(builder.module, takes, name)
    return builder.call(function, arguments)


def fused(builder: ir.IRBuilder, total: ir.Value, left: ir.Value, right: ir.Value) -> ir.Value:
    """``total + left · right``, rounded once, in every tile alike."""
    return _call(builder, f"llvm.fma.v{total.type.count}f32", total.type, left, right, total)


def _add_pairs(builder, total, state, weights) -> ir.Value:
    """Add products of sixteen bits, each with its neighbour's."""
    pair, weights = builder.bitcast(state, _PAIRS), builder.sext(weights, _PAIRS)
    if _HAS_PAIRS:
        return builder.add(_call(builder, "llvm.x86.avx2.pmadd.wd", _WHOLE, pair, weights), total)
    wide = ir.VectorType(_INT, _PAIRS.count)
    products = builder.mul(builder.sext(pair, wide), builder.sext(weights, wide))
    sides = (ir.Constant(_WHOLE, list(range(side, wide.count, 2))) for side in (0, 1))
    left, right = (builder.shuffle_vector(products, products, side) for side in sides)
    return builder.add(builder.add(left, right), total)


def _add_bytes(builder, total, state, weights) -> ir.Value:
    """Add four products of bytes at once, in sixteen lanes, by VNNI."""
    return _call(builder, "llvm.x86.avx512.vpdpbusd.512", total.type, total, weights, state)


class Kind(NamedTuple):
    """How numbers of one precision are multiplied; tiles are ``heights`` by ``panels``."""

    add: Callable[..., ir.Value]  # of (builder, sums, state, weights), the sums after a step
    sums: ir.VectorType
    weights: ir.VectorType  # of a step, in which states have four bytes
    step: int  # bytes of weights
    heights: tuple[int, ...]
    panels: int
    block: int  # states that go through all panels together


_FLOATS, _FOURS = ir.VectorType(_FLOAT, OUTPUTS), ir.VectorType(_INT, 16)
_HEIGHTS = (8, 5, 4, 2, 1) if OUTPUTS == 16 else (4, 2, 1)
PLAIN = Kind(fused, _FLOATS, _FLOATS, 4 * OUTPUTS, _HEIGHTS, 3, 256)
# The product of a pair needs a register before it is added: one panel less than in float32.
PAIRS = Kind(_add_pairs, _WHOLE, ir.VectorType(ir.IntType(8), 16), 16, (4, 2, 1), 2, 256)
BYTES = Kind(_add_bytes, _FOURS, _FOURS, 64, (8, 4, 2, 1), 3, 96)

# Panels of a tile of one state, which leaves room for their sums.
_PANELS_OF_ONE = 4
# Bytes of a cache line.
_LINE = 64


def _add_step(builder, kind, totals, index, states, width, weights, stride) -> None:
    """Add the products of one step to the sums of a tile."""
    loaded = []
    for panel in range(len(totals[0])):
        at = offset(builder, offset(builder, weights, panel, stride), kind.step, index)
        loaded.append(read(builder, at, kind.weights))
    for row, of_row in enumerate(totals):
        at = offset(builder, offset(builder, states, row, width), 4, index)
        state = read_everywhere(builder, at, kind.sums)
        for weight, total in zip(loaded, of_row, strict=True):
            builder.store(kind.add(builder, builder.load(total), state, weight), total)


def _add_steps(builder, kind, totals, steps, ahead, share, *where) -> None:
    """Add the products of all steps, each of which fetches a share of the bytes ``ahead``.

    ``where`` are addresses and distances in bytes.
    """
    # Where a tile is little work, the steps of a cache line together, which need one fetch.
    count = max(1, _LINE // kind.step) if len(totals) < 4 else 1
    together, some = ir.Constant(_SIZE, count), builder.mul(share, ir.Constant(_SIZE, count))
    lines = builder.udiv(steps, together)
    with cgutils.for_range(builder, lines) as loop:
        begin, at = builder.mul(loop.index, together), builder.mul(loop.index, some)
        for panel in range(len(totals[0])):
            _fetch(builder, offset(builder, builder.add(ahead, at), panel, where[-1]))
        for line_step in range(count):
            index = builder.add(begin, ir.Constant(_SIZE, line_step))
            _add_step(builder, kind, totals, index, *where)
    begin = builder.mul(lines, together)
    with cgutils.for_range(builder, builder.sub(steps, begin)) as loop:
        _add_step(builder, kind, totals, builder.add(begin, loop.index), *where)


def _finish(builder, total, size, scale, bias) -> ir.Value:
    """Add the bias, to dequantized sums if they are whole numbers."""
    floats = ir.VectorType(_FLOAT, total.type.count)
    added = read(builder, bias, floats)
    if total.type == floats:
        return builder.fadd(total, added)
    scaled = builder.fmul(builder.sitofp(total, floats), read_everywhere(builder, size, floats))
    return fused(builder, added, scaled, read(builder, scale, floats))


def _fetch(builder: ir.IRBuilder, address: ir.Value) -> None:
    """Fetch a cache line to be read, into level two."""
    byte, number = ir.IntType(8).as_pointer(), ir.IntType(32)
    takes = ir.FunctionType(ir.VoidType(), [byte, number, number, number])
    fetch = builder.module.declare_intrinsic("llvm.prefetch", [byte], takes)
    flags = [ir.Constant(number, flag) for flag in (0, 2, 1)]
    builder.call(fetch, [builder.inttoptr(address, byte), *flags])


@intrinsic
def _fetch_line(typing, address):
    def generate(context, builder, signature, arguments):
        _fetch(builder, arguments[0])
        return context.get_dummy_value()

    return types.void(types.int64), generate


@inlined
def fetch_rows(begin, step, rows, size):
    """Fetch ``size`` bytes of each row, ``step`` bytes apart: too far for the processor to guess.

    Of a head they are few, and to wait for each would take longer than its products.
    """
    for row in range(rows):
        for line in range(-(-size // _LINE)):
            _fetch_line(begin + row * step + line * _LINE)


def _in_tiles(kind: Kind, panels: int, heights: Sequence[int]) -> Callable[..., None]:
    """Multiply states ``first`` to ``stop`` with ``panels`` panels, in tiles as high as possible.

    Takes addresses, and distances in bytes. All heights are one piece of code, which is compiled
    once for each loop that it becomes a part of. Sums in int8 begin with ``begins``.
    """

    def generate(context, builder, signature, arguments):
        first, stop, states, width, begins, sizes, *of_panels, out, out_width = arguments
        weights, stride, steps, scales, biases = of_panels
        row, wide = first, ir.Constant(_SIZE, 4 * kind.sums.count)
        of_step, one = (ir.Constant(_SIZE, size) for size in (kind.step - 1, 1))
        initial = ir.Constant(kind.sums, None)  # zeros
        for height in heights:
            count = builder.udiv(builder.sub(stop, row), ir.Constant(_SIZE, height))
            with cgutils.for_range(builder, count) as loop:
                at = offset(builder, row, height, loop.index)
                rows = [builder.add(at, ir.Constant(_SIZE, in_tile)) for in_tile in range(height)]
                totals = []
                for row_index in rows:
                    begin = offset(builder, begins, 4, row_index)
                    if kind.sums.element == _INT:
                        initial = read_everywhere(builder, begin, kind.sums)
                    sums = [cgutils.alloca_once_value(builder, initial) for _ in range(panels)]
                    totals.append(sums)
                some = builder.add(states, builder.mul(at, width))
                # Each tile fetches its share of the next panels, at an even pace.
                share = builder.add(builder.udiv(of_step, count), one)
                begin = builder.mul(loop.index, builder.mul(share, steps))
                ahead = builder.add(offset(builder, weights, panels, stride), begin)
                where = (some, width, weights, stride)
                _add_steps(builder, kind, totals, steps, ahead, share, *where)
                for row_index, of_row in zip(rows, totals, strict=True):
                    target = builder.add(out, builder.mul(row_index, out_width))
                    size = offset(builder, sizes, 4, row_index)
                    for panel, total in enumerate(of_row):
                        begins_at = (scales, biases, target)
                        scale, bias, to = (offset(builder, p, panel, wide) for p in begins_at)
                        scaled = _finish(builder, builder.load(total), size, scale, bias)
                        to = builder.inttoptr(to, scaled.type.as_pointer())
                        builder.store(scaled, to, align=4)
            row = offset(builder, row, height, count)
        return context.get_dummy_value()

    @intrinsic
    def in_tiles(
        typing, first, stop, states, width, begins, sizes,
        weights, stride, steps, scales, biases, out, out_width,
    ):  # fmt: skip
        return types.void(*[types.int64] * 13), generate

    return in_tiles


def tiling(kind: Kind) -> Callable[..., None]:
    """Loop over panels ``first`` to ``stop``, a few at a time; ``out`` has whole panels."""
    of_one = _in_tiles(kind, _PANELS_OF_ONE, (1,))
    several, single = _in_tiles(kind, kind.panels, kind.heights), _in_tiles(kind, 1, (4, 1))
    wide, panels, most = 4 * kind.sums.count, kind.panels, kind.block

    @shared
    def by_tiles(first, stop, states, weight, begins, sizes, scales, bias, out):
        rows, steps = states.shape[0], weight.shape[1]
        width, out_width = states.shape[1] * states.itemsize, out.shape[1] * 4
        stride = steps * weight.shape[2] * weight.itemsize
        of_rows = (states.ctypes.data, width, begins.ctypes.data, sizes.ctypes.data)
        for block in range(0, rows, most):
            end, panel = min(rows, block + most), first
            while panel < stop:
                at = panel * wide
                of_panels = (weight.ctypes.data + panel * stride, stride, steps)
                columns = (scales.ctypes.data + at, bias.ctypes.data + at, out.ctypes.data + at)
                if rows == 1 and stop - panel >= _PANELS_OF_ONE:
                    of_one(block, end, *of_rows, *of_panels, *columns, out_width)
                    panel += _PANELS_OF_ONE
                elif stop - panel >= panels:
                    several(block, end, *of_rows, *of_panels, *columns, out_width)
                    panel += panels
                else:
                    single(block, end, *of_rows, *of_panels, *columns, out_width)
                    panel += 1

    return by_tiles


_by_tiles = tiling(PLAIN)


@shared
def plain_panels(first, stop, states, weight, bias, out):
    """Panels ``first`` to ``stop`` of ``plain_rows``."""
    rows, outputs = out.shape
    whole = min(stop, outputs // OUTPUTS)
    _by_tiles(first, whole, states, weight, bias, bias, bias, bias, out)
    if whole < stop:  # the last has more outputs than there are
        target = np.empty((rows, OUTPUTS), np.float32)
        biases = bias[whole * OUTPUTS :]
        _by_tiles(i64(0), i64(1), states, weight[whole:], biases, biases, biases, biases, target)
        for r in range(rows):
            copy(target[r, : outputs - whole * OUTPUTS], out[r, whole * OUTPUTS :])


@shared
def plain_rows(states, weight, bias, out):
    """``states @ weightᵀ + bias``, of packed weight and padded bias."""
    plain_panels(i64(0), weight.shape[0], states, weight, bias, out)


@parallel
def multiply_panels(first, stop, states, weight, bias, out):
    """Panels ``first`` to ``stop`` of ``plain_rows``."""
    plain_panels(first, stop, states, weight, bias, out)
