"""GPU kernels of ``additive_triton.py``: one program for a block of queries, or of keys.

``tanh(q + k) = −2c`` with ``c = 1 / x − 1/2`` and ``x = 1 + e^2q · e^2k``, so that a hidden unit
costs a few multiplications and, as two of them share one, half a reciprocal:
``w₀/x + w₁/y = (w₀ y + w₁ x) / (x y)``. Half is taken off at once, since sums without it are
smaller and lose less. Its derivative is ``tanh' = 4 (1/4 − c²)``. No program adds to what another
one writes, so that the same bits come out every time.

In every kernel b is the batch row, h the head, g its head of keys, and ``rows`` and ``keys`` are
positions of queries and keys; tensors are contiguous, but for those with strides in their tuple.

Their times on a GPU: ``benchmarks/records/gpu_attention.json``.
"""

# mypy: disable-error-code="untyped-decorator"

# Annotations stay text: without Triton the module can be read, though nothing in it can be run.
from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable
from typing import Any

try:
    import triton.language as tl
    from triton import jit
except ImportError:

    def jit(*args: Any, **options: Any) -> Callable[..., Any]:
        """In Triton's place: leaves functions as they are."""
        return args[0] if args else lambda function: function


# The sizes of a call: H, H / G, N, M, D (even) and E.
CallSizes = namedtuple("CallSizes", "heads repeats queries keys dim width")
# A tensor laid over (B, H, N, M), with zero strides where it does not differ.
Spread = namedtuple("Spread", "start b h n m")
# Keys ``first`` to before ``stop`` of each query; ``b`` is from one batch row to the next.
RangePointers = namedtuple("RangePointers", "first stop b")
# Blocks of queries from ``start`` on, with room for ``width`` keys of each.
Panel = namedtuple("Panel", "start blocks width")
# Dropout: the seed mixed once, the least bits that keep a weight, and the growth of kept weights.
Noise = namedtuple("Noise", "seed threshold growth")


@jit
def _reciprocal(x, IS_FAST: tl.constexpr):
    """``1 / x`` for 1 ≤ x ≤ 2^126, to a bit or two."""
    if IS_FAST:
        return tl.inline_asm_elementwise(
            "rcp.approx.ftz.f32 $0, $1;", "=f,f", [x], dtype=tl.float32, is_pure=True, pack=1
        )
    else:  # noqa: RET505 - both branches must return
        return 1.0 / x


@jit
def _grown(a, b, FORM: tl.constexpr):
    """``x = 1 + e^2(q + k)`` from the factors or terms of a query and a key."""
    if FORM == 2:
        most = 42.9
        return tl.exp(tl.minimum(a + b, most, propagate_nan=tl.PropagateNan.ALL)) + 1.0
    else:  # noqa: RET505
        return (tl.minimum(a * b, 4611686018427387904.0) if FORM == 1 else a * b) + 1.0


@jit
def _mixed(bits):
    """The mixer of ``kernels.attention.dropout``."""
    bits = (bits ^ (bits >> 16)) * 0x7FEB352D
    bits = (bits ^ (bits >> 15)) * 0x846CA68B
    return bits ^ (bits >> 16)


@jit
def _dropout_factors(noise, b, h, rows, keys):
    """Dropout factors of a tile, those of ``noise.kept``."""
    golden = 0x9E3779B9
    bits = noise.seed.to(tl.uint32, bitcast=True)
    bits = _mixed(bits + b.to(tl.uint32) * golden)
    bits = _mixed(bits + h.to(tl.uint32) * golden)
    bits = _mixed(bits + rows.to(tl.uint32) * golden)
    bits = _mixed(bits[:, None] ^ _mixed(keys.to(tl.uint32) * golden)[None, :])
    return tl.where(bits.to(tl.int32, bitcast=True) >= noise.threshold, noise.growth, 0.0)


@jit
def _scores(
    query, key, w, bias, mask, ranges, b, h, rows, keys, sizes,
    FORM: tl.constexpr, IS_FAST: tl.constexpr,
):  # fmt: skip
    """``Σ w tanh(q + k)`` and the bias, −inf where masked; also returns the visible pairs.

    Queries are (D, N) here, keys (D, M).
    """
    # Never loads anything: the compiler gives each thread as many rows as neighbouring keys, as it
    # does for loads, where zeros would have left it with one key and a column of rows to read.
    scores = tl.load(key + keys[None, :] + 0 * rows[:, None], mask=rows[:, None] < 0, other=0.0)
    is_row, is_key = rows < sizes.queries, keys < sizes.keys
    for d in range(0, sizes.dim, 2):
        a0 = tl.load(query + d * sizes.queries + rows, mask=is_row, other=0.0)
        a1 = tl.load(query + (d + 1) * sizes.queries + rows, mask=is_row, other=0.0)
        b0 = tl.load(key + d * sizes.keys + keys, mask=is_key, other=0.0)
        b1 = tl.load(key + (d + 1) * sizes.keys + keys, mask=is_key, other=0.0)
        x = _grown(a0[:, None], b0[None, :], FORM)
        y = _grown(a1[:, None], b1[None, :], FORM)
        w0, w1 = tl.load(w + d), tl.load(w + d + 1)
        scores += (w0 * y + w1 * x) * _reciprocal(x * y, IS_FAST) - 0.5 * (w0 + w1)
    scores = -2.0 * scores
    inside = is_row[:, None] & is_key[None, :]
    at_row, at_key = rows.to(tl.int64)[:, None], keys.to(tl.int64)[None, :]
    visible = inside
    if bias is not None:
        pointers = bias.start + b * bias.b + h * bias.h + (at_row * bias.n + at_key * bias.m)
        scores += tl.load(pointers, mask=inside, other=0.0).to(tl.float32)
    if ranges is not None:
        first, stop = _ranges_of(ranges, b, rows, sizes)
        visible &= (keys[None, :] >= first[:, None]) & (keys[None, :] < stop[:, None])
    if mask is not None:
        pointers = mask.start + b * mask.b + h * mask.h + (at_row * mask.n + at_key * mask.m)
        visible &= tl.load(pointers, mask=inside, other=0) != 0
    return tl.where(visible, scores, float("-inf")), visible


@jit
def _ranges_of(ranges, b, rows, sizes):
    """The first key and the one after the last of each query; none of a row that is not there."""
    offsets = b * ranges.b + rows
    first = tl.load(ranges.first + offsets, mask=rows < sizes.queries, other=2147483647)
    stop = tl.load(ranges.stop + offsets, mask=rows < sizes.queries, other=0)
    return first, stop


@jit
def _keys_of(ranges, b, rows, sizes, KEYS: tl.constexpr):
    """From which block of keys to which place a block of queries has to look."""
    start, stop = 0, sizes.keys
    if ranges is not None:
        first, last = _ranges_of(ranges, b, rows, sizes)
        start = tl.maximum(tl.min(first, axis=0), 0) // KEYS * KEYS
        stop = tl.minimum(tl.max(last, axis=0), sizes.keys)
    return start, stop


@jit
def _rows_of(panel, sizes, ROWS: tl.constexpr):
    """The batch row, the head, both as one number for queries and for keys, and the queries."""
    lane = tl.program_id(0) // panel.blocks
    b, h = (lane // sizes.heads).to(tl.int64), (lane % sizes.heads).to(tl.int64)
    bg = b * (sizes.heads // sizes.repeats) + h // sizes.repeats
    rows = panel.start + tl.program_id(0) % panel.blocks * ROWS + tl.arange(0, ROWS)
    return b, h, b * sizes.heads + h, bg, rows


@jit(do_not_specialize=["noise"])
def forward(
    query, key, value, w, bias, mask, ranges, noise, out, lse, panel, sizes,
    FORM: tl.constexpr, IS_FAST: tl.constexpr, PRECISION: tl.constexpr,
    ROWS: tl.constexpr, KEYS: tl.constexpr, WIDTH: tl.constexpr,
):  # fmt: skip
    """Mixed values, and the log-sum-exp, of a block of queries; WIDTH columns of the values."""
    b, h, bh, bg, rows = _rows_of(panel, sizes, ROWS)
    columns = tl.program_id(1) * WIDTH + tl.arange(0, WIDTH)
    query += bh * sizes.dim * sizes.queries
    key += bg * sizes.dim * sizes.keys
    value += bg * sizes.keys * sizes.width
    w += h * sizes.dim

    top = tl.full([ROWS], float("-inf"), dtype=tl.float32)
    mass, mixed = tl.zeros([ROWS], tl.float32), tl.zeros([ROWS, WIDTH], tl.float32)
    begin, end = _keys_of(ranges, b, rows, sizes, KEYS)
    for start in range(begin, end, KEYS):
        keys = start + tl.arange(0, KEYS)
        scores, visible = _scores(
            query, key, w, bias, mask, ranges, b, h, rows, keys, sizes, FORM, IS_FAST
        )
        higher = tl.maximum(top, tl.max(scores, axis=1))
        pivot = tl.where(higher == float("-inf"), 0.0, higher)
        weights = tl.exp(scores - pivot[:, None])
        shrunk = tl.exp(top - pivot)
        mass = mass * shrunk + tl.sum(weights, axis=1)
        mixed = mixed * shrunk[:, None]
        top = higher
        if noise is not None:
            weights *= _dropout_factors(noise, b, h, rows, keys)
        pointers = value + keys[:, None] * sizes.width + columns[None, :]
        within = (keys < sizes.keys)[:, None] & (columns < sizes.width)[None, :]
        values = tl.load(pointers, mask=within, other=0.0)
        if ranges is not None or mask is not None:
            # 0 · NaN is NaN: a value that is not finite must reach only queries that see it.
            is_bad = ~(tl.abs(values) < float("inf"))
            if tl.max(tl.max(is_bad.to(tl.int32), axis=1), axis=0) > 0:
                reached = tl.dot(visible.to(tl.float32), is_bad.to(tl.float32))
                mixed = tl.where(reached > 0, float("nan"), mixed)
                values = tl.where(is_bad, 0.0, values)
        mixed = tl.dot(weights, values, acc=mixed, input_precision=PRECISION)

    is_empty, is_row = mass == 0, rows < sizes.queries
    mass = tl.where(is_empty, 1.0, mass)
    pointers = out + (bh * sizes.queries + rows)[:, None] * sizes.width + columns[None, :]
    within = is_row[:, None] & (columns < sizes.width)[None, :]
    tl.store(pointers, mixed / mass[:, None], mask=within)
    if tl.program_id(1) == 0:
        sums = tl.where(is_empty, float("-inf"), top + tl.log(mass))
        tl.store(lse + bh * sizes.queries + rows, sums, mask=is_row)


@jit
def _row_offsets(panel, bh, rows, ROWS: tl.constexpr):
    """Offsets of the rows of a panel in its buffer."""
    return (bh * panel.blocks * ROWS + (rows - panel.start)) * panel.width


@jit(do_not_specialize=["noise"])
def score_gradient(
    query, key, value, w, bias, mask, ranges, noise, lse, d_out, delta,
    weights, d_scores, panel, sizes,
    FORM: tl.constexpr, IS_FAST: tl.constexpr, PRECISION: tl.constexpr,
    ROWS: tl.constexpr, KEYS: tl.constexpr, WIDTH: tl.constexpr,
):  # fmt: skip
    """The weights that mixed the values, and the gradient of the scores: a tile of a panel."""
    b, h, bh, bg, rows = _rows_of(panel, sizes, ROWS)
    begin, end = _keys_of(ranges, b, rows, sizes, KEYS)
    column = tl.program_id(1) * KEYS
    if begin + column < end:
        keys = begin + column + tl.arange(0, KEYS)
        scores, visible = _scores(
            query + bh * sizes.dim * sizes.queries, key + bg * sizes.dim * sizes.keys,
            w + h * sizes.dim, bias, mask, ranges, b, h, rows, keys, sizes, FORM, IS_FAST,
        )  # fmt: skip
        is_row, is_key = rows < sizes.queries, keys < sizes.keys
        # Rows that see nothing get a pivot that makes every weight zero.
        pivot = tl.load(lse + bh * sizes.queries + rows, mask=is_row, other=float("inf"))
        pivot = tl.where(pivot == float("-inf"), float("inf"), pivot)
        mixing = tl.exp(scores - pivot[:, None])
        slopes = tl.zeros([ROWS, KEYS], dtype=tl.float32)
        d_out += bh * sizes.queries * sizes.width
        value += bg * sizes.keys * sizes.width
        for start in range(0, sizes.width, WIDTH):
            columns = start + tl.arange(0, WIDTH)
            is_column = columns < sizes.width
            pointers = d_out + rows[:, None] * sizes.width + columns[None, :]
            d_outs = tl.load(pointers, mask=is_row[:, None] & is_column[None, :], other=0.0)
            pointers = value + keys[None, :] * sizes.width + columns[:, None]
            values = tl.load(pointers, mask=is_key[None, :] & is_column[:, None], other=0.0)
            slopes = tl.dot(d_outs, values, acc=slopes, input_precision=PRECISION)
        deltas = tl.load(delta + bh * sizes.queries + rows, mask=is_row, other=0.0)
        factor = 1.0
        if noise is not None:
            factor = _dropout_factors(noise, b, h, rows, keys)
        slopes = mixing * (slopes * factor - deltas[:, None])
        mixing *= factor
        pointers = _row_offsets(panel, bh, rows, ROWS)[:, None]
        pointers += column + tl.arange(0, KEYS)[None, :]
        tl.store(weights + pointers, mixing)
        tl.store(d_scores + pointers, tl.where(visible, slopes, 0.0))


@jit
def _add_slopes(
    slopes, sums, vectors, one, two, d_one, d_two, FORM: tl.constexpr, IS_FAST: tl.constexpr
):  # fmt: skip
    """``slopes + Σ ds (1/4 − c²)`` over two vectors, and ``sums + Σ ds c``."""
    x, y = _grown(vectors, one[None, :], FORM), _grown(vectors, two[None, :], FORM)
    inverse = _reciprocal(x * y, IS_FAST)
    c, e = y * inverse - 0.5, x * inverse - 0.5
    slopes += d_one[:, None] * (0.25 - c * c)
    slopes += d_two[:, None] * (0.25 - e * e)
    sums += d_one[:, None] * c
    sums += d_two[:, None] * e
    return slopes, sums


@jit
def query_gradient(
    query, key, w, ranges, d_scores, d_query, d_w, panel, sizes,
    FORM: tl.constexpr, IS_FAST: tl.constexpr,
    ROWS: tl.constexpr, KEYS: tl.constexpr, DIMS: tl.constexpr,
):  # fmt: skip
    """Gradient of DIMS units of a block of queries, (N, D), and its part in the gradient of w."""
    b, h, bh, bg, rows = _rows_of(panel, sizes, ROWS)
    dims = tl.program_id(1) * DIMS + tl.arange(0, DIMS)
    is_dim = dims < sizes.dim
    pointers = (bh * sizes.queries + rows)[:, None] * sizes.dim + dims[None, :]
    within = (rows < sizes.queries)[:, None] & is_dim[None, :]
    mine = tl.load(query + pointers, mask=within, other=0.0)
    key += bg * sizes.keys * sizes.dim
    d_scores += _row_offsets(panel, bh, rows, ROWS)
    slopes, sums = tl.zeros([ROWS, DIMS], tl.float32), tl.zeros([ROWS, DIMS], tl.float32)
    begin, end = _keys_of(ranges, b, rows, sizes, KEYS)
    for first in range(begin, end, 2):
        # The last of an odd number comes twice: as the other one, its gradient is zero.
        second = tl.minimum(first + 1, end - 1)
        d_one = tl.load(d_scores + (first - begin))
        d_two = tl.load(d_scores + (first - begin + 1))
        one = tl.load(key + first * sizes.dim + dims, mask=is_dim, other=0.0)
        two = tl.load(key + second * sizes.dim + dims, mask=is_dim, other=0.0)
        slopes, sums = _add_slopes(slopes, sums, mine, one, two, d_one, d_two, FORM, IS_FAST)
    factor = 4.0 * tl.load(w + h * sizes.dim + dims, mask=is_dim, other=0.0)
    tl.store(d_query + pointers, slopes * factor[None, :], mask=within)
    block = bh * tl.cdiv(sizes.queries, ROWS) + panel.start // ROWS
    block += tl.program_id(0) % panel.blocks
    tl.store(d_w + block * sizes.dim + dims, -2.0 * tl.sum(sums, axis=0), mask=is_dim)


@jit
def _block_of_keys(row_ranges, panel, sizes, ROWS: tl.constexpr, KEYS: tl.constexpr):
    """Batch row, head of keys, both as one, the first key, and the panel's rows that look at it."""
    blocks = tl.cdiv(sizes.keys, KEYS)
    lane, block = tl.program_id(0) // blocks, tl.program_id(0) % blocks
    groups = sizes.heads // sizes.repeats
    b, g = (lane // groups).to(tl.int64), (lane % groups).to(tl.int64)
    begin, end = panel.start, tl.minimum(panel.start + panel.blocks * ROWS, sizes.queries)
    if row_ranges is not None:
        begin = tl.maximum(begin, tl.load(row_ranges.first + b * row_ranges.b + block))
        end = tl.minimum(end, tl.load(row_ranges.stop + b * row_ranges.b + block))
    return b, g, lane.to(tl.int64), block * KEYS, begin, end


@jit
def key_gradient(
    query, key, w, ranges, row_ranges, d_scores, d_key, panel, sizes,
    FORM: tl.constexpr, IS_FAST: tl.constexpr,
    ROWS: tl.constexpr, KEYS: tl.constexpr, DIMS: tl.constexpr,
):  # fmt: skip
    """Add a panel's part to the gradient of DIMS units of keys, (M, D), over their heads."""
    b, g, bg, first_key, begin, end = _block_of_keys(row_ranges, panel, sizes, ROWS, KEYS)
    keys = first_key + tl.arange(0, KEYS)
    dims = tl.program_id(1) * DIMS + tl.arange(0, DIMS)
    is_dim = dims < sizes.dim
    pointers = (bg * sizes.keys + keys)[:, None] * sizes.dim + dims[None, :]
    within = (keys < sizes.keys)[:, None] & is_dim[None, :]
    mine = tl.load(key + pointers, mask=within, other=0.0)
    total = tl.load(d_key + pointers, mask=within, other=0.0)
    for repeat in range(0, sizes.repeats):
        h = g * sizes.repeats + repeat
        bh = b * sizes.heads + h
        slopes = tl.zeros([KEYS, DIMS], dtype=tl.float32)
        for start in range(begin, end, ROWS):
            rows = start + tl.arange(0, ROWS)
            first, stop = _keys_of(ranges, b, rows, sizes, KEYS)
            if (first_key >= first) & (first_key < stop):
                queries = query + (bh * sizes.queries + start) * sizes.dim + dims
                d_rows = d_scores + _row_offsets(panel, bh, start, ROWS) + (keys - first)
                limit = tl.minimum(sizes.queries - start, ROWS)
                for row in range(0, limit, 2):
                    second = tl.minimum(row + 1, limit - 1)
                    d_one = tl.load(d_rows + row * panel.width)
                    d_two = tl.load(d_rows + (row + 1) * panel.width)
                    one = tl.load(queries + row * sizes.dim, mask=is_dim, other=0.0)
                    two = tl.load(queries + second * sizes.dim, mask=is_dim, other=0.0)
                    slopes, _ = _add_slopes(
                        slopes, slopes, mine, one, two, d_one, d_two, FORM, IS_FAST
                    )
        factor = 4.0 * tl.load(w + h * sizes.dim + dims, mask=is_dim, other=0.0)
        total += slopes * factor[None, :]
    tl.store(d_key + pointers, total, mask=within)


@jit
def value_gradient(
    ranges, row_ranges, d_out, weights, d_value, panel, sizes,
    PRECISION: tl.constexpr, ROWS: tl.constexpr, KEYS: tl.constexpr, WIDTH: tl.constexpr,
):  # fmt: skip
    """Accumulate a panel's part of the gradient of a block of values, WIDTH columns of it."""
    b, g, bg, first_key, begin, end = _block_of_keys(row_ranges, panel, sizes, ROWS, KEYS)
    keys = first_key + tl.arange(0, KEYS)
    columns = tl.program_id(1) * WIDTH + tl.arange(0, WIDTH)
    is_column = (columns < sizes.width)[None, :]
    pointers = (bg * sizes.keys + keys)[:, None] * sizes.width + columns[None, :]
    within = (keys < sizes.keys)[:, None] & is_column
    total = tl.load(d_value + pointers, mask=within, other=0.0)
    for repeat in range(0, sizes.repeats):
        bh = b * sizes.heads + g * sizes.repeats + repeat
        for start in range(begin, end, ROWS):
            rows = start + tl.arange(0, ROWS)
            first, stop = _keys_of(ranges, b, rows, sizes, KEYS)
            if (first_key >= first) & (first_key < stop):
                mixing = tl.load(
                    weights + _row_offsets(panel, bh, rows, ROWS)[None, :] + (keys - first)[:, None]
                )
                from_rows = d_out + (bh * sizes.queries + rows)[:, None] * sizes.width
                is_there = (rows < sizes.queries)[:, None] & is_column
                d_mixed = tl.load(from_rows + columns[None, :], mask=is_there, other=0.0)
                total = tl.dot(mixing, d_mixed, acc=total, input_precision=PRECISION)
    tl.store(d_value + pointers, total, mask=within)
