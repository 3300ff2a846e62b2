"""A step of a convolutional decoder, in compiled loops over rows.

What later places see of a row, the inputs of its convolutions, stands where keys and values of
self-attention would: in the store, so that a search may reorder rows without moving them.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float32

from regard.kernels.compiling import compiled, inlined
from regard.kernels.elementary import sigmoid
from regard.kernels.products.packed import OUTPUTS, plain_rows
from regard.kernels.transformer.decoder import look_at_memory
from regard.kernels.vectors import copy

f32 = np.float32

# The sum of two numbers of one variance has twice that: halve it again.
_HALF = f32(0.5**0.5)


class Weights(NamedTuple):
    """The weights of a decoder, its layers one on the other: in panels, biases in lanes.

    Attributes:
        embedding: Of tokens.
        places: What is added to embeddings at each place.
        begin: From embeddings to states.
        convolution: Its places side by side, the earliest first; halves, then what gates them.
        ask: From states to queries.
        tell: From what was mixed to states.
        end: From states to embeddings.
        table: Of the output; empty where that is done elsewhere.
    """

    embedding: Float32[np.ndarray, "V E"]
    places: Float32[np.ndarray, "P E"]
    begin: Float32[np.ndarray, "c E p"]
    begin_bias: Float32[np.ndarray, " cp"]
    convolution: Float32[np.ndarray, "L g kC p"]
    convolution_bias: Float32[np.ndarray, "L gp"]
    ask: Float32[np.ndarray, "L e C p"]
    ask_bias: Float32[np.ndarray, "L ep"]
    tell: Float32[np.ndarray, "L c E p"]
    tell_bias: Float32[np.ndarray, "L cp"]
    end: Float32[np.ndarray, "e C p"]
    end_bias: Float32[np.ndarray, " ep"]
    table: Float32[np.ndarray, "v E p"]
    table_bias: Float32[np.ndarray, " vp"]


@inlined
def _keep_and_see(first, states, store, ancestors, now, seen):  # type: ignore[no-untyped-def]
    """Keep what goes into a convolution, and lay beside it what went in at the places before."""
    rows, C = states.shape
    before = seen.shape[1] // C - 1
    for r in range(rows):
        copy(states[r], store[first + r, now])
        copy(states[r], seen[r, before * C :])
        for back in range(1, before + 1):
            begin = (before - back) * C
            target = seen[r, begin : begin + C]
            if back > now:
                for c in range(C):
                    target[c] = f32(0)
            else:
                copy(store[ancestors[first + r, now - back], now - back], target)


@inlined
def _gate(gates, out):  # type: ignore[no-untyped-def]
    """Each half of a row gated by the other."""
    rows, C = out.shape
    for r in range(rows):
        for c in range(C):
            out[r, c] = gates[r, c] * sigmoid(gates[r, C + c])


@inlined
def _halve_sum(added, out):  # type: ignore[no-untyped-def]
    """The sum of both, times √½, in the place of the second."""
    rows, C = out.shape
    for r in range(rows):
        for c in range(C):
            out[r, c] = (out[r, c] + added[r, c]) * _HALF


@compiled
def step(first, stop, token, weights, past, now, options, queries, mixed, answers, logits):  # type: ignore[no-untyped-def]
    """A step of all layers, for a block of rows.

    Args:
        first: The first row.
        stop: The row after the last.
        token: The last of each row, (R,).
        weights: Of all layers and the output.
        past: What the rows have seen; the store gets this step's place. Memory is one for all.
        now: The place of this step.
        options: One head as wide as embeddings.
        queries: What each layer asks the sources, (L, R, E).
        mixed: Room to work in, (R, E).
        answers: What predicts the next token, (R, E).
        logits: How well each token fits, (R, V); without columns nobody asks.
    """
    rows, E = stop - first, weights.embedding.shape[1]
    L, _, C, _ = weights.ask.shape
    embedded, states = np.empty((rows, E), np.float32), np.empty((rows, C), np.float32)
    seen = np.empty((rows, weights.convolution.shape[2]), np.float32)
    gates, changed = np.empty((rows, 2 * C), np.float32), np.empty((rows, C), np.float32)
    context = np.empty((rows, C), np.float32)
    scores = np.empty((1, past.memory.shape[2] + OUTPUTS), np.float32)
    place, memory = weights.places[now], past.memory[0]
    for r in range(rows):
        table = weights.embedding[token[first + r]]
        for c in range(E):
            embedded[r, c] = table[c] + place[c]
    plain_rows(embedded, weights.begin, weights.begin_bias, states)
    for layer in range(L):
        _keep_and_see(first, states, past.store[layer], past.ancestors, now, seen)
        plain_rows(seen, weights.convolution[layer], weights.convolution_bias[layer], gates)
        _gate(gates, changed)
        asked, found = queries[layer, first:stop], mixed[first:stop]
        plain_rows(changed, weights.ask[layer], weights.ask_bias[layer], asked)
        _halve_sum(embedded, asked)
        look_at_memory(first, stop, queries[layer], memory, past, now, options, scores, mixed)
        for r in range(rows):
            scale = np.sqrt(f32(past.lengths[past.sentences[first + r]]))
            for c in range(E):
                found[r, c] *= scale
        plain_rows(found, weights.tell[layer], weights.tell_bias[layer], context)
        _halve_sum(changed, context)
        _halve_sum(context, states)
    plain_rows(states, weights.end, weights.end_bias, answers[first:stop])
    if logits.shape[1]:
        plain_rows(answers[first:stop], weights.table, weights.table_bias, logits[first:stop])
