"""Dropout factors of a block's weights, from random bits of each (seed, batch, head, query, key).

The same bits as those of ``engine.numerics``, which has the source of the mixer. Nothing of a
pattern is stored: who knows the place works it out again.
"""

import numpy as np

from regard.kernels.compiling import compiled, inlined

f32, u32 = np.float32, np.uint32

_ONE, _TWO, _GOLDEN = u32(0x7FEB352D), u32(0x846CA68B), u32(0x9E3779B9)


@compiled
def write_factors(seed, firsts, threshold, growth, out):
    """Factors, 0 or ``growth``, of weights (b, h, n, m), whose first places are ``firsts``."""
    of_keys = np.empty(out.shape[3], u32)
    for m in range(of_keys.size):
        of_keys[m] = bits_of_key(firsts[3] + m)
    for b in range(out.shape[0]):
        for h in range(out.shape[1]):
            of_head = bits_of_head(seed, firsts[0] + b, firsts[1] + h)
            for n in range(out.shape[2]):
                of_row = bits_of_row(of_head, firsts[2] + n)
                row = out[b, h, n]
                for m in range(row.size):
                    row[m] = factor(of_row, of_keys[m], u32(threshold), f32(growth))


@inlined
def bits_of_head(seed, b, h):
    """Random bits of a head of a batch row."""
    return _mix(_mix(u32(seed) + u32(b) * _GOLDEN) + u32(h) * _GOLDEN)


@inlined
def bits_of_row(of_head, n):
    """Random bits of a query of a head."""
    return _mix(of_head + u32(n) * _GOLDEN)


@inlined
def bits_of_key(m):
    """Random bits of a key."""
    return _mix(u32(m) * _GOLDEN)


@inlined
def factor(row_bits, key_bits, threshold, growth):
    """Dropout factor of a weight."""
    return growth if _mix(row_bits ^ key_bits) ^ u32(0x80000000) >= threshold else f32(0)


@inlined
def _mix(bits):
    """Every bit of the result depends on every bit of a 32-bit number."""
    bits = u32(bits)
    bits = u32(bits ^ (bits >> u32(16)))
    bits = u32(bits * _ONE)
    bits = u32(bits ^ (bits >> u32(15)))
    bits = u32(bits * _TWO)
    return u32(bits ^ (bits >> u32(16)))
