"""Norms, activations and choices of Transformer layers, and their settings, between products.

A row is a token's state, in a decoding step that of one beginning that a search continues. Each
loop does rows ``first`` to ``stop``; its result for a row does not depend on the others.

Its tokens per second, with ``products``, stand beside those of CTranslate2 in
``benchmarks/records/decoding_speed.json``.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float32, Int32, Int64

from regard.kernels.compiling import inlined, shared, uncounted_part
from regard.kernels.elementary import copy, exp, largest, sigmoid
from regard.kernels.products.projections import EmbeddingTable, Projections, round_for
from regard.kernels.team import parallel, shared_out

f32, i64 = np.float32, np.int64

# Neighbouring tokens of which the best is known before the best of all are looked for.
_GROUP = 32


class Weights(NamedTuple):
    """The weights of all layers, norms in the order they are applied; without entries, none."""

    self_in: Projections
    self_out: Projections
    cross_in: Projections
    cross_out: Projections
    inner: Projections
    outer: Projections
    norms: Float32[np.ndarray, "n C"]
    norm_biases: Float32[np.ndarray, "n C"]
    table: Projections
    embedding: EmbeddingTable
    embedding_norm: Float32[np.ndarray, " C"]
    embedding_norm_bias: Float32[np.ndarray, " C"]


class LayerOptions(NamedTuple):
    """Settings that all layers of an encoder or a decoder share."""

    heads: int
    key_heads: int
    head_dim: int
    scale: np.float32
    slopes: Float32[np.ndarray, " H"]  # ALiBi's, or without entries
    eps: np.float32  # of the norms
    is_rms: bool
    is_pre: bool
    activation: int  # index in ``ACTIVATIONS``
    pair_apart: int  # distance between the two numbers of a rotary pair


class DecoderCache(NamedTuple):
    """Cached keys and values of rows."""

    store: Float32[np.ndarray, "L T S W"]
    ancestors: Int32[np.ndarray, "R T"]  # the slot of each row at each position
    starts: Int32[np.ndarray, " R"]  # the first position that each row sees
    memory: Float32[np.ndarray, "L B M W"]
    lengths: Int64[np.ndarray, " B"]
    sentences: Int64[np.ndarray, " R"]
    rotary: Float32[np.ndarray, "r 2 P"]  # sines and cosines, of each row or of all


# In the order of ``Options.activation``; the last makes one half of a row the other's gate.
ACTIVATIONS = ("relu", "silu", "gelu_tanh", "gelu", "swiglu")
_GATED = ACTIVATIONS.index("swiglu")


@inlined
def rotate(heads, count, rotary, options):
    """Rotate the pairs of ``count`` heads side by side by this position's angles."""
    apart, D = options.pair_apart, options.head_dim
    step = 2 if apart == 1 else 1
    for h in range(count):
        head = heads[h * D : (h + 1) * D]
        for i in range(rotary.shape[1]):
            sine, cosine = rotary[0, i], rotary[1, i]
            x, y = head[i * step], head[i * step + apart]
            head[i * step] = x * cosine - y * sine
            head[i * step + apart] = y * cosine + x * sine


@inlined
def _norm(row, weight, bias, eps, is_rms, out):
    """The norm of one row; ``bias`` has no entries where the norm has none."""
    width = row.size
    mean = f32(0)
    if not is_rms:
        for c in range(width):
            mean += row[c]
        mean /= f32(width)
    square = f32(0)
    for c in range(width):
        x = row[c] - mean
        square += x * x
    scale = f32(1) / np.sqrt(square / f32(width) + eps)
    if bias.size:
        for c in range(width):
            out[c] = (row[c] - mean) * scale * weight[c] + bias[c]
    else:
        for c in range(width):
            out[c] = (row[c] - mean) * scale * weight[c]


@shared
def norm_rows(states, weight, bias, options, normed):
    """The norm of each row."""
    for r in range(states.shape[0]):
        _norm(states[r], weight, bias, options.eps, options.is_rms, normed[r])


@shared
def add_norm_rows(states, change, weight, bias, options, normed):
    """Add the change to the states, and norm them; post-norm in place."""
    for r in range(states.shape[0]):
        for c in range(states.shape[1]):
            states[r, c] += change[r, c]
        target = normed[r] if options.is_pre else states[r]
        _norm(states[r], weight, bias, options.eps, options.is_rms, target)


@inlined
def _insert(values, tokens, value, token):
    """Insert a value among the best, after those equal to it."""
    k = values.size - 1
    while k > 0 and values[k - 1] < value:
        values[k] = values[k - 1]
        tokens[k] = tokens[k - 1]
        k -= 1
    values[k] = value
    tokens[k] = token


@shared
def _best_of(row, banned, tops, values, tokens):
    """``best_tokens`` of one row."""
    V, K, groups = row.size, values.size, tops.size
    top = f32(-np.inf)
    for g in range(groups):
        tops[g] = largest(row[g * _GROUP : min(V, (g + 1) * _GROUP)])
        top = max(top, tops[g])
    total = f32(0)
    for v in range(V):
        total += exp(row[v] - top)
    normaliser = top + np.log(total)
    for j in range(banned.size):
        row[banned[j]] = f32(-np.inf)
    for k in range(K):
        values[k] = f32(-np.inf)
        tokens[k] = 0
    worst = f32(-np.inf)
    for g in range(groups):
        if tops[g] > worst:
            for v in range(g * _GROUP, min(V, (g + 1) * _GROUP)):
                x = row[v]
                if x > worst:
                    _insert(values, tokens, x, v)
                    worst = values[K - 1]
    for k in range(K):
        values[k] -= normaliser


@shared_out
@uncounted_part
def norm_in_team(first, stop, states, norm, maps, rounded):
    """Add the change to the states, norm them, post-norm in place, and round them for a map."""
    x, change, weights, biases, options, normed = states
    some, more, out = x[first:stop], change[first:stop], normed[first:stop]
    add_norm_rows(some, more, weights[norm], biases[norm], options, out)
    round_for(first, stop, normed, normed.shape[1], maps, rounded)


@shared
def _best_part(first, stop, logits, outputs, banned, values, tokens):
    """Log-probabilities and ids of each row's likeliest tokens, of equals the lowest id first."""
    tops = np.empty((outputs + _GROUP - 1) // _GROUP, np.float32)
    for r in range(first, stop):
        _best_of(logits[r, :outputs], banned, tops, values[r], tokens[r])


best_tokens, best_in_team = parallel(_best_part), shared_out(_best_part)


@inlined
def activated_width(width, kind):
    """Columns that an activation leaves."""
    return width // 2 if kind == _GATED else width


@shared
def activate(inner, width, kind):
    """Apply an activation in place, to ``width`` columns; ``kind`` indexes ``ACTIVATIONS``."""
    gates = width * (kind == _GATED)
    for r in range(inner.shape[0]):
        row = inner[r]
        if kind == 0:
            for c in range(width):
                row[c] = max(row[c], f32(0))
        elif kind == 2:
            for c in range(width):
                x = row[c]
                row[c] = x * sigmoid(f32(1.5957691216) * (x + f32(0.044715) * x * x * x))
        elif kind == 3:
            for c in range(width):
                row[c] = _gelu(row[c])
        else:
            for c in range(width):
                row[c] = row[c] * sigmoid(row[c])
        for c in range(gates):
            row[c] *= row[width + c]


@inlined
def _gelu(x):
    """``x · Φ(x)``, erf to 1.5e-7: Abramowitz & Stegun, 7.1.26."""
    z = abs(x) * f32(0.70710678)
    t = f32(1) / (f32(1) + f32(0.3275911) * z)
    p = f32(1.061405429) * t - f32(1.453152027)
    p = p * t + f32(1.421413741)
    p = p * t - f32(0.284496736)
    p = p * t + f32(0.254829592)
    tail = f32(0.5) * p * t * exp(-z * z)
    return x * (f32(1) - tail) if x >= f32(0) else x * tail


@shared_out
@uncounted_part
def activate_in_team(first, stop, inner, inputs, kind, maps, rounded):
    """Apply the activation, if ``kind`` is one, and round the rows for a map."""
    if kind >= 0:
        activate(inner[first:stop], inputs, kind)
    round_for(first, stop, inner, inputs, maps, rounded)


@inlined
def round_in_team(team, tasks, states, maps, rounded):
    """Round the rows for a map in int8."""
    if maps.rounded.size:
        arguments = (states, states.shape[1], i64(-1), maps, rounded)
        activate_in_team(team, tasks, 0, states.shape[0], arguments)


@parallel
def gather(first, stop, cache, ancestors, copied):
    """Copy the past of each row, by its ancestors, into a slot of its own."""
    for layer in range(cache.shape[0]):
        for t in range(ancestors.shape[1]):
            for r in range(first, stop):
                copy(cache[layer, t, ancestors[r, t]], copied[layer, t, r])
