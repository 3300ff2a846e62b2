"""Products of states with weights that lie as they are multiplied, in float32 or int8.

Panels of eight or sixteen outputs side by side, input after input: a sum needs no adding up of
lanes, and a tile of some states by some panels fills the registers. Each number of the result is
added up in the same order whatever the tile, so that a state's product does not depend on its
neighbours. Weights come from memory: each tile fetches those of the next.

``int8`` rounds what is multiplied in int8, and packs its weights. Of float32, what this buys over
calls of torch's BLAS is in ``benchmarks/records/decoding_speed.json``, the columns of float32.
"""

import os
from collections.abc import Callable, Sequence

import llvmlite.binding
import numpy as np
from jaxtyping import Float32
from llvmlite import ir

from regard.kernels.compiling import cgutils, intrinsic, shared, types
from regard.kernels.elementary import copy
from regard.kernels.team import parallel

f32 = np.float32
# A number that is written out would make a function of its own of each that is called with it.
i64 = np.int64


def has(feature: str) -> bool:
    """Whether the processor has this: the one that NUMBA_CPU_FEATURES describes, or this one."""
    name, features = (os.environ.get(f"NUMBA_CPU_{each}", "") for each in ("NAME", "FEATURES"))
    if name or features:
        return f"+{feature}" in features.split(",")
    return bool(llvmlite.binding.get_host_cpu_features().get(feature))


# Outputs side by side in float32: as many as fill a register, of which such processors have 32.
OUTPUTS = 16 if has("avx512f") else 8

# Outputs side by side in int8, and weights of a pair of inputs.
PAIRED_OUTPUTS = 8
PAIRED_STEP = 2 * PAIRED_OUTPUTS
_SIZE = ir.IntType(64)
_WHOLE = ir.VectorType(ir.IntType(32), PAIRED_OUTPUTS)
_PAIRS = ir.VectorType(ir.IntType(16), PAIRED_STEP)
# Whether the processor multiplies and adds sixteen pairs at once; else it is said in small steps.
_HAS_PAIRS = has("avx2")


def pack(weight: Float32[np.ndarray, "O I"]) -> Float32[np.ndarray, "o I p"]:
    """Packed weights, padded with zeros."""
    outputs, inputs = weight.shape
    panels = -(-outputs // OUTPUTS)
    room = np.zeros((panels * OUTPUTS, inputs), f32)
    room[:outputs] = weight
    return np.ascontiguousarray(room.reshape(panels, OUTPUTS, inputs).transpose(0, 2, 1))


def pack_each(
    weights: Sequence[Float32[np.ndarray, "O I"]], inputs: int = 0
) -> Float32[np.ndarray, "L o I p"]:
    """Stack packed weights; of none, an array of ``inputs`` inputs without entries."""
    if not weights:
        return np.zeros((0, 0, inputs, OUTPUTS), f32)
    return np.stack([pack(weight) for weight in weights])


def pad_each(
    numbers: Sequence[Float32[np.ndarray, " O"]], outputs: int = OUTPUTS
) -> Float32[np.ndarray, "L op"]:
    """Stack padded vectors."""
    return np.stack([pad(each, outputs) for each in numbers])


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


def read_everywhere(
    builder: ir.IRBuilder, at: ir.Value, number: ir.Type, kind: ir.Type
) -> ir.Value:
    """One number in all lanes."""
    nothing, first = ir.Constant(kind, ir.Undefined), ir.Constant(ir.IntType(32), 0)
    alone = builder.insert_element(nothing, read(builder, at, number), first)
    lanes = ir.Constant(ir.VectorType(ir.IntType(32), kind.count), [0] * kind.count)
    return builder.shuffle_vector(alone, nothing, lanes)


def fused(builder: ir.IRBuilder, one: ir.Value, other: ir.Value, addend: ir.Value) -> ir.Value:
    """``one · other + added``, rounded once, in every tile alike."""
    kind = ir.FunctionType(addend.type, [addend.type] * 3)
    name = f"llvm.fma.v{addend.type.count}f32"
    fused = cgutils.get_or_insert_function(builder.module, kind, name)
    return builder.call(fused, [one, other, addend])


class _Plain:
    """Weights in float32, an input a step of so many bytes; tiles are ``heights`` by ``panels``."""

    sums, step = ir.VectorType(ir.FloatType(), OUTPUTS), 4 * OUTPUTS
    heights, panels, block = (8, 5, 4, 2, 1) if OUTPUTS == 16 else (4, 2, 1), 3, 256

    @classmethod
    def initial(cls, builder: ir.IRBuilder, begin: ir.Value) -> ir.Value:
        return ir.Constant(cls.sums, [0.0] * cls.sums.count)

    @classmethod
    def weights(cls, builder: ir.IRBuilder, at: ir.Value) -> ir.Value:
        return read(builder, at, cls.sums)

    @classmethod
    def state(cls, builder: ir.IRBuilder, at: ir.Value) -> ir.Value:
        return read_everywhere(builder, at, ir.FloatType(), cls.sums)

    @classmethod
    def accumulate(
        cls, builder: ir.IRBuilder, total: ir.Value, state: ir.Value, weights: ir.Value
    ) -> ir.Value:
        return fused(builder, state, weights, total)

    @classmethod
    def finish(
        cls, builder: ir.IRBuilder, total: ir.Value, size: ir.Value, scale: ir.Value, bias: ir.Value
    ) -> ir.Value:
        return builder.fadd(total, read(builder, bias, cls.sums))


class Pairs:
    """Weights in int8; a pair of inputs is a step."""

    sums, step = _WHOLE, PAIRED_STEP
    # The product of a pair needs a register before it is added: one panel less than in float32.
    heights: tuple[int, ...] = (4, 2, 1)
    panels, block = 2, 256

    @staticmethod
    def initial(builder: ir.IRBuilder, begin: ir.Value) -> ir.Value:
        """The sums before the first step."""
        return ir.Constant(_WHOLE, [0] * PAIRED_OUTPUTS)

    @staticmethod
    def weights(builder: ir.IRBuilder, at: ir.Value) -> ir.Value:
        """Weights of one step, in sixteen bits."""
        return builder.sext(read(builder, at, ir.VectorType(ir.IntType(8), PAIRED_STEP)), _PAIRS)

    @staticmethod
    def state(builder: ir.IRBuilder, at: ir.Value) -> ir.Value:
        """The pair that they are multiplied by."""
        return builder.bitcast(read_everywhere(builder, at, ir.IntType(32), _WHOLE), _PAIRS)

    @staticmethod
    def accumulate(
        builder: ir.IRBuilder, total: ir.Value, state: ir.Value, weights: ir.Value
    ) -> ir.Value:
        """The sums after a step: products, each added to its neighbour's."""
        if _HAS_PAIRS:
            kind = ir.FunctionType(_WHOLE, [_PAIRS, _PAIRS])
            name = "llvm.x86.avx2.pmadd.wd"
            multiply = cgutils.get_or_insert_function(builder.module, kind, name)
            return builder.add(builder.call(multiply, [state, weights]), total)
        wide = ir.VectorType(ir.IntType(32), PAIRED_STEP)
        products = builder.mul(builder.sext(state, wide), builder.sext(weights, wide))
        left, right = (
            builder.shuffle_vector(
                products, products, ir.Constant(_WHOLE, list(range(side, PAIRED_STEP, 2)))
            )
            for side in (0, 1)
        )
        return builder.add(builder.add(left, right), total)

    @staticmethod
    def finish(
        builder: ir.IRBuilder, total: ir.Value, size: ir.Value, scale: ir.Value, bias: ir.Value
    ) -> ir.Value:
        """Dequantize the sums."""
        floats = ir.VectorType(ir.FloatType(), total.type.count)
        times = read_everywhere(builder, size, ir.FloatType(), floats)
        scaled = builder.fmul(builder.sitofp(total, floats), times)
        return fused(builder, scaled, read(builder, scale, floats), read(builder, bias, floats))


class Bytes(Pairs):
    """Packed int8 product with VNNI: four products of bytes at once, in sixteen lanes."""

    sums, step = ir.VectorType(ir.IntType(32), 16), 64
    heights, panels, block = (8, 4, 2, 1), 3, 96

    @classmethod
    def initial(cls, builder: ir.IRBuilder, begin: ir.Value) -> ir.Value:
        """The sums before the first step."""
        return read_everywhere(builder, begin, ir.IntType(32), cls.sums)

    @classmethod
    def weights(cls, builder: ir.IRBuilder, at: ir.Value) -> ir.Value:
        """Weights of one step, four inputs of sixteen outputs."""
        return read(builder, at, cls.sums)

    @classmethod
    def state(cls, builder: ir.IRBuilder, at: ir.Value) -> ir.Value:
        """The four inputs that they are multiplied by."""
        return read_everywhere(builder, at, ir.IntType(32), cls.sums)

    @classmethod
    def accumulate(
        cls, builder: ir.IRBuilder, total: ir.Value, state: ir.Value, weights: ir.Value
    ) -> ir.Value:
        """The sums after a step."""
        kind, name = ir.FunctionType(cls.sums, [cls.sums] * 3), "llvm.x86.avx512.vpdpbusd.512"
        multiply = cgutils.get_or_insert_function(builder.module, kind, name)
        return builder.call(multiply, [total, weights, state])


Kind = type[_Plain] | type[Pairs] | type[Bytes]

# Panels of a tile of one state, which leaves room for their sums.
_PANELS_OF_ONE = 4
# Bytes of a cache line.
_LINE = 64


class _Tile:
    """Sums of some states by some panels, by addresses and distances in bytes."""

    def __init__(
        self, builder: ir.IRBuilder, kind: Kind, totals: list[list[ir.Value]], *where: ir.Value
    ) -> None:
        self.builder, self.kind, self.totals = builder, kind, totals
        self.states, self.width, self.weights, self.stride = where

    def add_step(self, index: ir.Value, *, fetches: bool) -> None:
        """Add the products of one step; fetch those weights of the tile that follows."""
        builder, kind, loaded = self.builder, self.kind, []
        panels = len(self.totals[0])
        for panel in range(panels):
            begin = offset(builder, self.weights, panel, self.stride)
            at = offset(builder, begin, kind.step, index)
            loaded.append(kind.weights(builder, at))
            if fetches:
                _fetch(builder, offset(builder, at, panels, self.stride))
        for row, totals in enumerate(self.totals):
            begin = offset(builder, self.states, row, self.width)
            state = kind.state(builder, offset(builder, begin, 4, index))
            for weight, total in zip(loaded, totals, strict=True):
                added = kind.accumulate(builder, builder.load(total), state, weight)
                builder.store(added, total)

    def add_all(self, steps: ir.Value) -> None:
        """Add the products of all steps."""
        # Where a tile is little work, the steps of a cache line together, which need one fetch.
        count = max(1, _LINE // self.kind.step) if len(self.totals) < 4 else 1
        builder, together = self.builder, ir.Constant(_SIZE, count)
        lines = builder.udiv(steps, together)
        with cgutils.for_range(builder, lines) as loop:
            begin = builder.mul(loop.index, together)
            for index in range(count):
                self.add_step(builder.add(begin, ir.Constant(_SIZE, index)), fetches=index == 0)
        begin = builder.mul(lines, together)
        with cgutils.for_range(builder, builder.sub(steps, begin)) as loop:
            self.add_step(builder.add(begin, loop.index), fetches=False)


def _fetch(builder: ir.IRBuilder, address: ir.Value) -> None:
    """Fetch a cache line to be read, into level two."""
    byte, number = ir.IntType(8).as_pointer(), ir.IntType(32)
    takes = ir.FunctionType(ir.VoidType(), [byte, number, number, number])
    fetch = builder.module.declare_intrinsic("llvm.prefetch", [byte], takes)
    flags = [ir.Constant(number, flag) for flag in (0, 2, 1)]
    builder.call(fetch, [builder.inttoptr(address, byte), *flags])


def _in_tiles(kind: Kind, panels: int, heights: Sequence[int]) -> Callable[..., None]:
    """Multiply states ``first`` to ``stop`` with ``panels`` panels, in tiles as high as possible.

    Takes addresses, and distances in bytes. All heights are one piece of code, which is compiled
    once for each loop that it becomes a part of.
    """

    def generate(context, builder, signature, arguments):
        first, stop, states, width, begins, sizes, *of_panels, out, out_width = arguments
        weights, stride, steps, scales, biases = of_panels
        row, wide = first, ir.Constant(_SIZE, 4 * kind.sums.count)
        for height in heights:
            count = builder.udiv(builder.sub(stop, row), ir.Constant(_SIZE, height))
            with cgutils.for_range(builder, count) as loop:
                at = offset(builder, row, height, loop.index)
                rows = [builder.add(at, ir.Constant(_SIZE, each)) for each in range(height)]
                initial = [kind.initial(builder, offset(builder, begins, 4, each)) for each in rows]
                totals = [
                    [cgutils.alloca_once_value(builder, begin) for _ in range(panels)]
                    for begin in initial
                ]
                some = builder.add(states, builder.mul(at, width))
                _Tile(builder, kind, totals, some, width, weights, stride).add_all(steps)
                for each, of_row in zip(rows, totals, strict=True):
                    target = builder.add(out, builder.mul(each, out_width))
                    size = offset(builder, sizes, 4, each)
                    for panel, total in enumerate(of_row):
                        begins_at = (scales, biases, target)
                        scale, bias, to = (offset(builder, p, panel, wide) for p in begins_at)
                        scaled = kind.finish(builder, builder.load(total), size, scale, bias)
                        to = builder.inttoptr(to, scaled.type.as_pointer())
                        builder.store(scaled, to, align=4)
            row = offset(builder, row, height, count)
        return context.get_dummy_value()

    @intrinsic
    def in_tiles(
        typing,
        first,
        stop,
        states,
        width,
        begins,
        sizes,
        weights,
        stride,
        steps,
        scales,
        biases,
        out,
        out_width,
    ):
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
                to = out.ctypes.data + panel * wide
                of_panels = (
                    weight.ctypes.data + panel * stride,
                    stride,
                    steps,
                    scales.ctypes.data + panel * wide,
                    bias.ctypes.data + panel * wide,
                )
                if rows == 1 and stop - panel >= _PANELS_OF_ONE:
                    of_one(block, end, *of_rows, *of_panels, to, out_width)
                    panel += _PANELS_OF_ONE
                elif stop - panel >= panels:
                    several(block, end, *of_rows, *of_panels, to, out_width)
                    panel += panels
                else:
                    single(block, end, *of_rows, *of_panels, to, out_width)
                    panel += 1

    return by_tiles


_by_tiles = tiling(_Plain)


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
