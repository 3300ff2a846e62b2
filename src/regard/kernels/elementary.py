"""Functions of one number or one row that run eight or sixteen at a time in compiled loops."""

import numpy as np
from llvmlite import ir

from regard.kernels.compiling import in_order, inlined, intrinsic, types

f32, i32 = np.float32, np.int32

_LOG2_E = f32(1.44269504088896341)
# ln 2 in two parts, the first with few digits, so that its products with integers are exact.
_LN2_HIGH, _LN2_LOW = f32(0.693359375), f32(-2.12194440e-4)
# Added and taken off again, it rounds to an integer, and leaves that integer in the last bits.
_ROUNDER = f32(12582912.0)
_LEAST = f32(-87.0)
# The best score of a row that sees nothing, whose powers are zero; and a sum that divides them.
LOWEST, _TINY = np.finfo(f32).min, np.finfo(f32).tiny


@intrinsic
def _bits(typing, number):
    """The bits of a float32 as an integer."""

    def generate(context, builder, signature, arguments):
        return builder.bitcast(arguments[0], ir.IntType(32))

    return types.int32(types.float32), generate


@intrinsic
def _float_of(typing, bits):
    """The float32 that has these bits."""

    def generate(context, builder, signature, arguments):
        return builder.bitcast(arguments[0], ir.FloatType())

    return types.float32(types.int32), generate


@intrinsic
def widest_vectors(typing):
    """Let the loops of a function use vectors of 512 bits where there are any."""

    def generate(context, builder, signature, arguments):
        # LLVM takes half of that on most processors; the set's own method knows no such names.
        set.add(builder.function.attributes, '"prefer-vector-width"="512"')
        return context.get_dummy_value()

    return types.void(), generate


@in_order
def exp(x):
    """``e^x`` of a float32 up to 0, to about one unit in the last place (Cephes); 0 below −87."""
    t = x * _LOG2_E + _ROUNDER
    n = t - _ROUNDER
    r = x - n * _LN2_HIGH
    r = r - n * _LN2_LOW
    p = f32(1.9875691500e-4)
    p = p * r + f32(1.3981999507e-3)
    p = p * r + f32(8.3334519073e-3)
    p = p * r + f32(4.1665795894e-2)
    p = p * r + f32(1.6666665459e-1)
    p = p * r + f32(5.0000001201e-1)
    p = p * r * r + r + f32(1.0)
    exponent = _bits(t) + i32(127)
    power = p * _float_of(i32(exponent << i32(23)))
    return f32(0) if x < _LEAST else power


@in_order
def tanh(x):
    """Tanh to 4 units in the last place: the quotient of degrees 13 and 6 of Eigen and XLA."""
    x = min(max(x, f32(-7.90531110763549805)), f32(7.90531110763549805))
    y = x * x
    p = f32(-2.76076847742355e-16)
    p = p * y + f32(2.00018790482477e-13)
    p = p * y + f32(-8.60467152213735e-11)
    p = p * y + f32(5.12229709037114e-08)
    p = p * y + f32(1.48572235717979e-05)
    p = p * y + f32(6.37261928875436e-04)
    p = p * y + f32(4.89352455891786e-03)
    q = f32(1.19825839466702e-06)
    q = q * y + f32(1.18534705686654e-04)
    q = q * y + f32(2.26843463243900e-03)
    q = q * y + f32(4.89352518554385e-03)
    return x * p / q


@in_order
def sigmoid(x):
    """``1 / (1 + e^(−x))``."""
    small = exp(-abs(x))
    share = f32(1) / (f32(1) + small)
    return share if x >= f32(0) else small * share


@in_order
def _order(bits):
    """Integers in the order of the floats whose bits are given; turns them back as well."""
    return bits ^ ((bits >> i32(31)) & i32(0x7FFFFFFF))


@in_order
def largest(numbers):
    """The largest of some numbers, −∞ of none; a NaN is larger than all."""
    # As integers: a loop over floats is not vectorised, because of NaN.
    top = _order(_bits(f32(-np.inf)))
    for m in range(numbers.size):
        top = max(top, _order(_bits(numbers[m])))
    return _float_of(_order(top))


@in_order
def largest_absolute(numbers):
    """The largest absolute value of some numbers, 0 of none; a NaN is larger than all."""
    top = i32(0)
    for m in range(numbers.size):
        top = max(top, _bits(numbers[m]) & i32(0x7FFFFFFF))
    return _float_of(top)


@in_order
def whole(x):
    """The nearest integer to a float32 of up to 22 bits, of two as near the even one."""
    return _bits(x + _ROUNDER) - _bits(_ROUNDER)


@inlined
def copy(row, out):
    """Copy a row: compiles faster than ``out[:] = row``."""
    for d in range(out.size):
        out[d] = row[d]


@inlined
def fill(out, number):
    """Write one number everywhere."""
    for d in range(out.size):
        out[d] = number


@inlined
def dot(left, right):
    """``Σ_d left_d · right_d``."""
    total = f32(0)
    for d in range(left.size):
        total += left[d] * right[d]
    return total


@inlined
def add_scaled(out, share, value):
    """Adds ``share · value`` to ``out``."""
    for d in range(out.size):
        out[d] += share * value[d]


@inlined
def to_powers(scores, top):
    """Turn scores to ``e^(score − top)``; returns their sum."""
    total = f32(0)
    for m in range(scores.size):
        power = exp(scores[m] - top)
        scores[m] = power
        total += power
    return total


@inlined
def to_weights(scores):
    """Softmax in place; of a row that sees nothing, zeros."""
    total = to_powers(scores, max(largest(scores), LOWEST))
    share = f32(1) / max(total, _TINY)
    for m in range(scores.size):
        scores[m] *= share
