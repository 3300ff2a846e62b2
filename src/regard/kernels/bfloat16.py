"""Numbers of bfloat16 in compiled loops, by their bits as int16: numpy has no bfloat16."""

from llvmlite import ir

from regard.kernels.compiling import intrinsic, types


@intrinsic
def widened(typing, number):
    """A float32 as it is, or the float32 of the bits of a bfloat16 (an int16)."""

    def generate(context, builder, signature, arguments):
        if number == types.float32:
            return arguments[0]
        whole = builder.zext(arguments[0], ir.IntType(32))
        return builder.bitcast(builder.shl(whole, ir.Constant(whole.type, 16)), ir.FloatType())

    return types.float32(number), generate


@intrinsic
def narrowed(typing, number, like):
    """A float32 as it is, or as bits of the nearest bfloat16, as ``like`` is; of two the even."""

    def generate(context, builder, signature, arguments):
        if like == types.float32:
            return arguments[0]
        bits = builder.bitcast(arguments[0], ir.IntType(32))
        half, one, shift = (ir.Constant(bits.type, literal) for literal in (0x7FFF, 1, 16))
        is_odd = builder.and_(builder.lshr(bits, shift), one)
        rounded = builder.add(bits, builder.add(half, is_odd))
        return builder.trunc(builder.lshr(rounded, shift), ir.IntType(16))

    return like(types.float32, like), generate
