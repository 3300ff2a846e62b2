"""Matrix products inside compiled loops, by the BLAS that torch brings.

They run on the thread that asks and let go of the interpreter's lock; in ``kernels.threads`` that
thread works alone. Matrices lie row after row. Nothing here may be imported where
``kernels.libraries.address_of_products`` finds none.
"""

import llvmlite.binding
import numpy as np
from llvmlite import ir

from regard.kernels.compiling import cgutils, inlined, intrinsic, types
from regard.kernels.libraries import address_of_products

f32, i32 = np.float32, np.int32

_SYMBOL = "regard_sgemm"
_NO, _YES = np.uint8(ord("N")), np.uint8(ord("T"))


llvmlite.binding.add_symbol(_SYMBOL, address_of_products())


@intrinsic
def _sgemm(typing, turn_a, turn_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc):  # type: ignore[no-untyped-def]
    """BLAS' own: columns stand one after the other, and all but addresses is given by reference."""

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        byte = ir.IntType(8).as_pointer()
        kind = ir.FunctionType(ir.VoidType(), [byte] * 13)
        of_module = builder.module
        function = cgutils.get_or_insert_function(of_module, kind, _SYMBOL)

        def by_reference(place):  # type: ignore[no-untyped-def]
            if place in (6, 8, 11):
                return builder.inttoptr(arguments[place], byte)
            kept = cgutils.alloca_once_value(builder, arguments[place])
            return builder.bitcast(kept, byte)

        given = [by_reference(place) for place in range(13)]  # type: ignore[no-untyped-call]
        builder.call(function, given)
        return context.get_dummy_value()

    letter, size, number, address = types.uint8, types.int32, types.float32, types.intp
    given = (letter, letter, size, size, size, number, address, size, address, size, number)
    return types.void(*given, address, size), generate


@inlined
def score_all(scale, query, key, scores):  # type: ignore[no-untyped-def]
    """``scale · query @ keyᵀ``, written to the first columns of ``scores``."""
    n, d = query.shape
    m = key.shape[0]
    _sgemm(
        _YES,
        _NO,
        i32(m),
        i32(n),
        i32(d),
        f32(scale),
        key.ctypes.data,
        i32(d),
        query.ctypes.data,
        i32(d),
        f32(0),
        scores.ctypes.data,
        i32(scores.shape[1]),
    )


@inlined
def mix_into(scale, weights, value, out):  # type: ignore[no-untyped-def]
    """Adds ``scale · weights @ value`` to ``out``; the first columns of ``weights`` count."""
    n, e = out.shape
    _sgemm(
        _NO,
        _NO,
        i32(e),
        i32(n),
        i32(value.shape[0]),
        f32(scale),
        value.ctypes.data,
        i32(e),
        weights.ctypes.data,
        i32(weights.shape[1]),
        f32(1),
        out.ctypes.data,
        i32(e),
    )


@inlined
def give_back(scale, weights, given, out):  # type: ignore[no-untyped-def]
    """Adds ``scale · weightsᵀ @ given`` to ``out``; the first columns of ``weights`` count."""
    m, e = out.shape
    _sgemm(
        _NO,
        _YES,
        i32(e),
        i32(m),
        i32(given.shape[0]),
        f32(scale),
        given.ctypes.data,
        i32(e),
        weights.ctypes.data,
        i32(weights.shape[1]),
        f32(1),
        out.ctypes.data,
        i32(e),
    )
