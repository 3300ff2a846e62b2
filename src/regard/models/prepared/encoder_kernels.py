"""An encoder's pass over sources, and what a decoder looks at of them, in one compiled loop.

Tokens of all sources stand row after row, without padding. What a source gets does not depend on
the others.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float32, Int64

from regard.attention.engine.kernels.compiling import compiled, shared
from regard.attention.engine.kernels.products import mix_into, score_all
from regard.attention.engine.kernels.vectors import copy, to_weights
from regard.models.prepared.kernels import activate, add_norm_rows, norm_rows, turn
from regard.models.prepared.maps import Map, Table, embed, mapped

f32 = np.float32


class Weights(NamedTuple):
    """The weights of all layers; what there is none of has no entries.

    Attributes:
        own: Queries, keys and values of self-attention side by side.
        norms: In the order in which they are met.
        norm_biases: Of those, if they have any.
        key: Of the decoder's layers: what its queries are matched with.
        value: Of those: what is mixed.
        embedding: Of tokens.
        embedding_norm: Of the sum of embedding and position, if there is one.
        embedding_norm_bias: Of that.
    """

    own: Map
    own_out: Map
    inner: Map
    outer: Map
    norms: Float32[np.ndarray, "n C"]
    norm_biases: Float32[np.ndarray, "n C"]
    key: Map
    value: Map
    embedding: Table
    embedding_norm: Float32[np.ndarray, " C"]
    embedding_norm_bias: Float32[np.ndarray, " C"]


class Sources(NamedTuple):
    """What is read.

    Attributes:
        tokens: Of all sources, one after the other.
        begins: Where those of each source begin, and where the last end.
        unseen: How many places at the beginning of each source the decoder does not look at.
        places: What is added to embeddings at each place.
        waves: Sines and cosines of each place's angles, one for each pair that is turned.
        reach: Places on each side that a token sees.
        mixes_embeddings: Whether values are made of embeddings, and not of states.
    """

    tokens: Int64[np.ndarray, " N"]
    begins: Int64[np.ndarray, " B+1"]
    unseen: int
    places: Float32[np.ndarray, "P C"]
    waves: Float32[np.ndarray, "P 2 p"]
    reach: int
    mixes_embeddings: bool


@shared
def _weigh(scores, slope, reach):  # type: ignore[no-untyped-def]
    """Scores turned to weights, row by row, over what is near; ``slope`` is ALiBi's."""
    N = scores.shape[0]
    for n in range(N):
        row, begin, stop = scores[n], max(0, n - reach), min(N, n + reach + 1)
        for m in range(begin, stop):
            row[m] -= slope * f32(abs(n - m))
        to_weights(row[begin:stop])
        for m in range(begin):
            row[m] = f32(0)
        for m in range(stop, N):
            row[m] = f32(0)


@shared
def _look_around(projected, waves, reach, options, mixed):  # type: ignore[no-untyped-def]
    """All heads of one source: queries, keys and values side by side, (N, W), to (N, H D)."""
    H, G, D = options.heads, options.key_heads, options.head_dim
    N = projected.shape[0]
    query, key = np.empty((N, D), np.float32), np.empty((N, D), np.float32)
    value, out = np.empty((N, D), np.float32), np.empty((N, D), np.float32)
    scores = np.empty((N, N), np.float32)
    for n in range(N):
        turn(projected[n], H + G, waves[n], options)
    for h in range(H):
        g = H + h // (H // G)
        for n in range(N):
            row = projected[n]
            copy(row[h * D :], query[n])
            copy(row[g * D :], key[n])
            copy(row[(g + G) * D :], value[n])
            for d in range(D):
                out[n, d] = f32(0)
        score_all(options.scale, query, key, scores)
        _weigh(scores, options.slopes[h] if options.slopes.size else f32(0), reach)
        mix_into(f32(1), scores, value, out)
        for n in range(N):
            copy(out[n], mixed[n, h * D : (h + 1) * D])


@shared
def _embed_all(first, stop, sources, weights, options, x, embedded):  # type: ignore[no-untyped-def]
    """The vectors of a block's tokens, with their places and without."""
    begins, row = sources.begins, 0
    for b in range(first, stop):
        for n in range(begins[b], begins[b + 1]):
            token, place = sources.tokens[n], sources.places[n - begins[b]]
            embed(weights.embedding, token, place, x[row])
            if sources.mixes_embeddings:
                embed(weights.embedding, token, embedded[row], embedded[row])
            row += 1
    if weights.embedding_norm.size:
        norm_rows(x, weights.embedding_norm, weights.embedding_norm_bias, options, x)


@shared
def _keep(first, stop, sources, numbers, side, memory):  # type: ignore[no-untyped-def]
    """Put keys (side 0) or values (1) of a layer where the decoder looks, (B, M, W)."""
    width, row = numbers.shape[1], 0
    for b in range(first, stop):
        for place in range(sources.begins[b + 1] - sources.begins[b]):
            if place >= sources.unseen:
                kept = memory[b, place - sources.unseen]
                copy(numbers[row], kept[side * width : (side + 1) * width])
            row += 1


@shared
def _project(first, stop, states, embedded, sources, weights, memory):  # type: ignore[no-untyped-def]
    """What the decoder looks at, of every layer."""
    seen = np.empty((states.shape[0], weights.key.outputs), np.float32)
    for layer in range(memory.shape[0]):
        for side in range(2):
            if side == 0:
                mapped(states, weights.key, layer, seen)
            elif sources.mixes_embeddings:
                mapped(embedded, weights.value, layer, seen)
            else:
                mapped(states, weights.value, layer, seen)
            _keep(first, stop, sources, seen, side, memory[layer])


@compiled
def read_sources(first, stop, sources, weights, options, memory):  # type: ignore[no-untyped-def]
    """Read a block of sources, and project them for every layer of the decoder.

    Args:
        first: The first source.
        stop: The source after the last.
        sources: All of them.
        weights: Of all layers.
        options: Of the encoder.
        memory: What the decoder looks at, (L, B, M, W); padding is left alone.
    """
    begins, begin = sources.begins, sources.begins[first]
    rows, C = begins[stop] - begin, weights.norms.shape[1]
    if rows == 0:
        return
    x, embedded = np.empty((rows, C), np.float32), np.zeros((rows, C), np.float32)
    _embed_all(first, stop, sources, weights, options, x, embedded)
    normed = np.empty((rows, C), np.float32) if options.is_pre else x
    projected = np.empty((rows, weights.own.outputs), np.float32)
    mixed = np.empty((rows, options.heads * options.head_dim), np.float32)
    change = np.empty((rows, C), np.float32)
    inner = np.empty((rows, weights.inner.outputs), np.float32)
    met = 0
    if options.is_pre:
        norm_rows(x, weights.norms[0], weights.norm_biases[0], options, normed)
        met = 1
    for layer in range(weights.norms.shape[0] // 2):
        mapped(normed, weights.own, layer, projected)
        for b in range(first, stop):
            at, to = begins[b] - begin, begins[b + 1] - begin
            if to > at:
                _look_around(projected[at:to], sources.waves, sources.reach, options, mixed[at:to])
        mapped(mixed, weights.own_out, layer, change)
        add_norm_rows(x, change, weights.norms[met], weights.norm_biases[met], options, normed)
        mapped(normed, weights.inner, layer, inner)
        activate(inner, options.activation)
        mapped(inner, weights.outer, layer, change)
        met += 1
        add_norm_rows(x, change, weights.norms[met], weights.norm_biases[met], options, normed)
        met += 1
    _project(first, stop, normed, embedded, sources, weights, memory)
