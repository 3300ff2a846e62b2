"""An encoder's pass over texts, and the memory of a decoder, in one compiled loop.

Tokens of all sources stand row after row, without padding. The states of a source do not depend
on the others.

It reads the sources of ``benchmarks/records/decoding_speed.json``; no record has it alone.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float32, Int64

from regard.kernels.compiling import inlined, shared
from regard.kernels.elementary import copy, fill, to_weights
from regard.kernels.products.packed import OUTPUTS, fetch_rows, plain_rows
from regard.kernels.products.projections import (
    NO_PROJECTIONS,
    EmbeddingTable,
    Projections,
    embed,
    project,
)
from regard.kernels.team import parallel
from regard.kernels.transformer.layers import (
    activate,
    activated_width,
    add_norm_rows,
    norm_rows,
    rotate,
)

f32, i64 = np.float32, np.int64
# Tokens that go through all layers together, where they are many texts.
_ROWS = 256


class Layers(NamedTuple):
    """The weights of all layers, norms in the order they are applied."""

    self_in: Projections
    self_out: Projections
    inner: Projections
    outer: Projections
    norms: Float32[np.ndarray, "n C"]
    norm_biases: Float32[np.ndarray, "n C"]


class Embeddings(NamedTuple):
    """Weights before the layers, and keys and values of a decoder behind them, if there is one."""

    embedding: EmbeddingTable
    embedding_norm: Float32[np.ndarray, " C"]
    embedding_norm_bias: Float32[np.ndarray, " C"]
    key: Projections = NO_PROJECTIONS
    value: Projections = NO_PROJECTIONS


class EncoderPositions(NamedTuple):
    """Rotary angles, and the window of a token."""

    rotary: Float32[np.ndarray, "P 2 p"]
    before: int  # positions that a token sees before itself
    after: int


class Sources(NamedTuple):
    """Inputs of an encoder, with a decoder or alone."""

    tokens: Int64[np.ndarray, " N"]
    begins: Int64[np.ndarray, " B+1"]
    places: Float32[np.ndarray, "P C"]
    skipped: int = 0  # positions at the beginning of each source that a decoder does not see
    mixes_embeddings: bool = False  # values are made of embeddings, not of states


@shared
def _weigh(scores, N, slope, seen):
    """Turn scores to weights, row by row; whole registers, with −∞ behind the last key."""
    for n in range(N):
        row = scores[n]
        if slope != f32(0):
            for m in range(N):
                row[m] -= slope * f32(abs(n - m))
        if min(seen.before, seen.after) < N - 1:
            _weigh_near(row, max(0, n - seen.before), min(N, n + seen.after + 1))
        else:
            to_weights(row)


@shared
def _weigh_near(row, begin, stop):
    """Attention weights of one row on the keys from ``begin`` to ``stop``."""
    first, last = begin // OUTPUTS * OUTPUTS, -(-stop // OUTPUTS) * OUTPUTS
    fill(row[first:begin], f32(-np.inf))
    fill(row[stop:last], f32(-np.inf))
    to_weights(row[first:last])
    fill(row[:first], f32(0))
    fill(row[last:], f32(0))


@inlined
def _in_panels(rows, panels):
    """Pack rows, with zeros where rows are missing; see ``products.packed``."""
    for n in range(panels.shape[0] * OUTPUTS):
        panel, lane = panels[n // OUTPUTS], n % OUTPUTS
        for d in range(panel.shape[0]):
            panel[d, lane] = rows[n, d] if n < rows.shape[0] else f32(0)


@inlined
def _across_panels(rows, panels):
    """Pack a weight matrix of (inputs, outputs)."""
    for p in range(panels.shape[0]):
        begin = p * OUTPUTS
        there = min(OUTPUTS, rows.shape[1] - begin)
        for n in range(rows.shape[0]):
            copy(rows[n, begin : begin + there], panels[p, n, :there])
            fill(panels[p, n, there:], f32(0))


@inlined
def _head_buffers(N, options):
    """Buffers of a head: query, key, value, scores, answer, and the biases of both products."""
    D = options.head_dim
    across, along = -(-N // OUTPUTS), -(-D // OUTPUTS)
    key, value = np.empty((across, D, OUTPUTS), f32), np.empty((along, N, OUTPUTS), f32)
    hidden, nothing = np.zeros(across * OUTPUTS, f32), np.zeros(along * OUTPUTS, f32)
    for lane in range(N, hidden.size):
        hidden[lane] = f32(-np.inf)
    scores = np.empty((N, across * OUTPUTS), f32)
    return np.empty((N, D), f32), key, value, scores, np.empty((N, D), f32), hidden, nothing


@shared
def _attend_head(h, shares_key, projected, seen, options, room, mixed):
    """Attention of one head; its key and value may be there, of the head before."""
    H, G, D = options.heads, options.key_heads, options.head_dim
    query, key, value, scores, out, hidden, nothing = room
    N, g = projected.shape[0], H + h // (H // G)
    for n in range(N):
        for d in range(D):
            query[n, d] = projected[n, h * D + d] * options.scale
    if not shares_key:
        _in_panels(projected[:, g * D : (g + 1) * D], key)
        _across_panels(projected[:, (g + G) * D : (g + G + 1) * D], value)
    plain_rows(query, key, hidden, scores)
    _weigh(scores, N, options.slopes[h] if options.slopes.size else f32(0), seen)
    plain_rows(scores, value, nothing, out)
    for n in range(N):
        copy(out[n], mixed[n, h * D : (h + 1) * D])


@inlined
def _rotate_source(projected, rotary, options):
    """Rotate queries and keys of one source."""
    for n in range(projected.shape[0]):
        rotate(projected[n], options.heads + options.key_heads, rotary[n], options)


@shared
def _attend_source(projected, positions, options, mixed):
    """All heads of one source: queries, keys and values side by side, (N, W), to (N, H D)."""
    room = _head_buffers(projected.shape[0], options)
    _rotate_source(projected, positions.rotary, options)
    for h in range(options.heads):
        shares_key = h % (options.heads // options.key_heads) > 0
        _attend_head(h, shares_key, projected, positions, options, room, mixed)


@shared
def _embed_all(first, stop, sources, embeddings, options, x, embedded):
    """Vectors of a block's tokens, with positions and without."""
    begins, row = sources.begins, 0
    for b in range(first, stop):
        for n in range(begins[b], begins[b + 1]):
            token, position = sources.tokens[n], sources.places[n - begins[b]]
            embed(embeddings.embedding, token, position, x[row])
            if sources.mixes_embeddings:
                embed(embeddings.embedding, token, embedded[row], embedded[row])
            row += 1
    if embeddings.embedding_norm.size:
        norm_rows(x, embeddings.embedding_norm, embeddings.embedding_norm_bias, options, x)


@shared
def _store(first, stop, sources, numbers, side, memory):
    """Write keys (side 0) or values (1) of a layer to the memory, (B, M, W)."""
    width, row = numbers.shape[1], 0
    for b in range(first, stop):
        for position in range(sources.begins[b + 1] - sources.begins[b]):
            if position >= sources.skipped:
                row_of_memory = memory[b, position - sources.skipped]
                copy(numbers[row], row_of_memory[side * width : (side + 1) * width])
            row += 1


@shared
def _project(first, stop, states, embedded, sources, embeddings, memory):
    """Keys and values of the memory for every decoder layer."""
    (rows, C), values = states.shape, embedded if sources.mixes_embeddings else states
    projected = np.empty((rows, embeddings.key.outputs), np.float32)
    for layer in range(memory.shape[0]):
        project(states, C, embeddings.key, layer, projected)
        _store(first, stop, sources, projected, 0, memory[layer])
        project(values, C, embeddings.value, layer, projected)
        _store(first, stop, sources, projected, 1, memory[layer])


@shared
def _apply_layers(first, stop, begins, positions, layers, options, x):
    """Apply all layers to a block's vectors, in place."""
    begin, rows, C = begins[first], x.shape[0], x.shape[1]
    normed = np.empty((rows, C), np.float32) if options.is_pre else x
    projected = np.empty((rows, layers.self_in.outputs), np.float32)
    mixed = np.empty((rows, options.heads * options.head_dim), np.float32)
    change = np.empty((rows, C), np.float32)
    inner = np.empty((rows, layers.inner.outputs), np.float32)
    width = activated_width(inner.shape[1], options.activation)
    norms, biases, norm = layers.norms, layers.norm_biases, 0
    if options.is_pre:
        norm_rows(x, norms[0], biases[0], options, normed)
        norm = 1
    for layer in range(norms.shape[0] // 2):
        project(normed, C, layers.self_in, layer, projected)
        for b in range(first, stop):
            at, to = begins[b] - begin, begins[b + 1] - begin
            if to > at:
                _attend_source(projected[at:to], positions, options, mixed[at:to])
        project(mixed, mixed.shape[1], layers.self_out, layer, change)
        add_norm_rows(x, change, norms[norm], biases[norm], options, normed)
        project(normed, C, layers.inner, layer, inner)
        activate(inner, width, options.activation)
        project(inner, width, layers.outer, layer, change)
        norm += 1
        add_norm_rows(x, change, norms[norm], biases[norm], options, normed)
        norm += 1
    return normed


@parallel
def encode_sources(first, stop, sources, positions, embeddings, layers, options, memory):
    """Read a block of sources, and project them for every layer of the decoder."""
    begins = sources.begins
    rows, C = begins[stop] - begins[first], layers.norms.shape[1]
    if rows == 0:
        return
    x, embedded = np.empty((rows, C), np.float32), np.zeros((rows, C), np.float32)
    _embed_all(first, stop, sources, embeddings, options, x, embedded)
    states = _apply_layers(first, stop, begins, positions, layers, options, x)
    _project(first, stop, states, embedded, sources, embeddings, memory)


@parallel
def encode_texts(first, stop, texts, embedded, positions, embeddings, layers, options, states):
    """Read a block of texts, a few at a time, whose states stay in the cache of a core."""
    begins, C = texts.begins, layers.norms.shape[1]
    while first < stop:
        last = first + 1
        while last < stop and begins[last + 1] - begins[first] <= _ROWS:
            last += 1
        begin, rows = begins[first], begins[last] - begins[first]
        x = np.empty((rows, C), np.float32)
        if embedded.size:
            for n in range(rows):
                copy(embedded[begin + n], x[n])
        else:
            _embed_all(first, last, texts, embeddings, options, x, x)
        normed_states = _apply_layers(first, last, begins, positions, layers, options, x)
        for b in range(first, last):
            at, length = begins[b] - begin, begins[b + 1] - begins[b]
            for n in range(length):
                copy(normed_states[at + n], states[b, n])
            states[b, length:] = f32(0)
        first = last


@parallel
def embed_sources(first, stop, sources, embeddings, options, x, embedded):
    """``_embed_all`` of sources ``first`` to ``stop``."""
    at, to = sources.begins[first], sources.begins[stop]
    _embed_all(first, stop, sources, embeddings, options, x[at:to], embedded[at:to])


@parallel
def rotate_sources(first, stop, begins, positions, options, projected):
    """Queries and keys of some sources turned by their places."""
    for b in range(first, stop):
        _rotate_source(projected[begins[b] : begins[b + 1]], positions.rotary, options)


@inlined
def _fetch_head(h, projected, options):
    """Fetch query, key and value of a head."""
    H, G, D = options.heads, options.key_heads, options.head_dim
    (N, width), begin, g = projected.shape, projected.ctypes.data, H + h // (H // G)
    for head in (h, g, g + G):
        fetch_rows(begin + 4 * head * D, 4 * width, N, 4 * D)


@parallel
def attend_by_heads(first, stop, begins, positions, options, projected, mixed):
    """Self-attention of heads ``first`` to ``stop``, those of a source one after the other."""
    length, heads = i64(0), options.heads
    room = _head_buffers(length, options)
    for task in range(first, stop):
        source, after = task // heads, (task + 1) // heads
        at, to = begins[source], begins[source + 1]
        if task + 1 < stop:
            of_next = projected[begins[after] : begins[after + 1]]
            _fetch_head((task + 1) % heads, of_next, options)
        if to - at != length:
            length = to - at
            room = _head_buffers(length, options)
        if length:
            seen = (projected[at:to], positions, options, room, mixed[at:to])
            _attend_head(task % heads, False, *seen)
