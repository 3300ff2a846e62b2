"""An encoder's pass over texts, with a decoder's memory or a prompt's past, in one compiled loop.

Tokens of all texts stand row after row, without padding. The states of a text do not depend on the
others. Threads have a block of texts each, or share out each part of a layer: panels of a product,
rows, or heads of a text.

It reads the sources of ``benchmarks/records/decoding_speed.json`` and the texts of
``benchmarks/records/answering_speed.json``.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float32, Int64

from regard.kernels.compiling import inlined, shared, uncounted_part
from regard.kernels.elementary import copy, fill, to_weights
from regard.kernels.products.int8 import INPUTS, ROUNDED
from regard.kernels.products.packed import OUTPUTS, fetch_rows, plain_rows
from regard.kernels.products.projections import (
    NO_PROJECTIONS,
    EmbeddingTable,
    Projections,
    RoundedRows,
    embed,
    project_in_team,
    round_for,
)
from regard.kernels.team import parallel, shared_out
from regard.kernels.transformer.layers import (
    activate_in_team,
    activated_width,
    norm_in_team,
    norm_rows,
    rotate,
    round_in_team,
)

f32, i64 = np.float32, np.int64


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
    memory: Projections = NO_PROJECTIONS


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
    embedded: Float32[np.ndarray, "N C"] = np.zeros((0, 0), f32)  # in the place of tokens
    skipped: int = 0  # positions at the beginning of each source that a decoder does not see
    mixes_embeddings: bool = False  # values are made of embeddings, not of states


class Answers(NamedTuple):
    """Arrays that are written, of zeros before; those without entries are not asked for."""

    states: Float32[np.ndarray, "B N C"] = np.zeros((0, 0, 0), f32)
    memory: Float32[np.ndarray, "L B M W"] = np.zeros((0, 0, 0, 0), f32)
    # Keys and values of prompts, each in its slot at the last positions before ``stop``.
    past: Float32[np.ndarray, "L T S W"] = np.zeros((0, 0, 0, 0), f32)
    stop: int = 0
    slots: Int64[np.ndarray, " B"] = np.zeros(0, i64)


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


@shared_out
@uncounted_part
def _embed(first, stop, begins, sources, embeddings, states, norms, options, maps, rounded):
    """Vectors of some texts, their norms where those come first, and these rounded for a map."""
    (tokens, places, given), (x, embedded, normed), (weights, biases) = sources, states, norms
    for b in range(first, stop):
        for row in range(begins[b], begins[b + 1]):
            if given.size:
                copy(given[row], x[row])
            else:
                embed(embeddings.embedding, tokens[row], places[row - begins[b]], x[row])
            if embedded.size:
                fill(embedded[row], f32(0))
                embed(embeddings.embedding, tokens[row], embedded[row], embedded[row])
    at, to = begins[first], begins[stop]
    some, norm = x[at:to], embeddings.embedding_norm
    if norm.size and not given.size:
        norm_rows(some, norm, embeddings.embedding_norm_bias, options, some)
    if options.is_pre:
        norm_rows(some, weights[0], biases[0], options, normed[at:to])
    round_for(at, to, normed, normed.shape[1], maps, rounded)


@shared_out
@uncounted_part
def _rotate(first, stop, begins, rotary, options, projected):
    """Rotate queries and keys of rows ``first`` to ``stop`` by their positions in their texts."""
    b = 0
    for row in range(first, stop):
        while begins[b + 1] <= row:
            b += 1
        rotate(projected[row], options.heads + options.key_heads, rotary[row - begins[b]], options)


@inlined
def _fetch_head(h, projected, options):
    """Fetch query, key and value of a head."""
    H, G, D = options.heads, options.key_heads, options.head_dim
    (N, width), begin, g = projected.shape, projected.ctypes.data, H + h // (H // G)
    for head in (h, g, g + G):
        fetch_rows(begin + 4 * head * D, 4 * width, N, 4 * D)


@shared_out
def _attend(first, stop, begins, positions, options, projected, mixed):
    """Self-attention of heads ``first`` to ``stop``, those of a text one after the other."""
    length, heads = i64(0), options.heads
    room = _head_buffers(length, options)
    for task in range(first, stop):
        source, after, h = task // heads, (task + 1) // heads, task % heads
        at, to = begins[source], begins[source + 1]
        if task + 1 < stop:
            of_next = projected[begins[after] : begins[after + 1]]
            _fetch_head((task + 1) % heads, of_next, options)
        if to - at != length:
            length = to - at
            room = _head_buffers(length, options)
        if length:
            shares_key = task > first and h % (heads // options.key_heads) > 0
            seen = (projected[at:to], positions, options, room, mixed[at:to])
            _attend_head(h, shares_key, *seen)


@shared
def _keep_past(first, begins, numbers, column, answers, layer):
    """Write keys and values of prompts from ``first`` on to a layer's past."""
    past, width = answers.past[layer], answers.past.shape[3]
    for b in range(begins.size - 1):
        slot, length = answers.slots[first + b], begins[b + 1] - begins[b]
        for n in range(length):
            pairs = numbers[begins[b] + n, column : column + width]
            copy(pairs, past[answers.stop - length + n, slot])


@shared
def _keep(first, begins, numbers, column, skipped, kept):
    """Write columns of texts' numbers, without skipped positions, as those from ``first`` on."""
    for b in range(begins.size - 1):
        for row in range(begins[b] + skipped, begins[b + 1]):
            position = row - begins[b] - skipped
            copy(numbers[row, column : kept.shape[2]], kept[first + b, position, column:])


@shared
def _keep_pairs(team, tasks, first, begins, states, maps, rounded, column, skipped, memory):
    """Keys and values of texts for every layer of a decoder, from a column on."""
    pairs = np.empty((states.shape[0], maps.bias.shape[1]), f32)
    round_in_team(team, tasks, states, maps, rounded)
    for layer in range(memory.shape[0]):
        project_in_team(team, states, rounded, maps, layer, pairs)
        _keep(first, begins, pairs, column, skipped, memory[layer])


@shared
def _read(first, stop, embeddings, layers, options, team, sources, positions, answers):
    """Read texts ``first`` to ``stop`` together."""
    begin, end, C = sources.begins[first], sources.begins[stop], layers.norms.shape[1]
    begins, rows, texts = sources.begins[first : stop + 1] - begin, end - begin, stop - first
    x, embedded = np.empty((rows, C), f32), np.empty((rows * sources.mixes_embeddings, C), f32)
    normed = np.empty((rows, C), f32) if options.is_pre else x
    projected = np.empty((rows, layers.self_in.bias.shape[1]), f32)
    mixed = np.empty((rows, options.heads * options.head_dim), f32)
    change = np.empty((rows, layers.self_out.bias.shape[1]), f32)
    inner = np.empty((rows, layers.inner.bias.shape[1]), f32)
    of_ins = max(layers.self_in.rounded.shape[2], layers.self_out.rounded.shape[2])
    steps = max(of_ins, layers.outer.rounded.shape[2])
    values = np.empty(INPUTS * steps * rows, ROUNDED)
    rounded = RoundedRows(values, np.empty(rows, np.int32), np.empty(rows, f32))
    norms, met, kind = (layers.norms, layers.norm_biases), i64(options.is_pre), options.activation
    of_texts, of_rows, of_heads = i64(1), i64(1), i64(1)
    if team.threads > 1:
        most = 4 * team.threads
        of_texts, of_rows = min(most, texts), min(most, -(-rows // 4))
        of_heads = min(2 * most, texts * options.heads)
    given = (sources.tokens[begin:end], sources.places, sources.embedded[begin:end])
    normed_for = ((x, embedded, normed), norms, options, layers.self_in, rounded)
    _embed(team, of_texts, 0, texts, (begins, given, embeddings, *normed_for))
    added_to, seen = (x, change, *norms, options, normed), (positions, options, projected, mixed)
    for layer in range(norms[0].shape[0] // 2):
        project_in_team(team, normed, rounded, layers.self_in, layer, projected)
        if positions.rotary.size:
            _rotate(team, of_rows, 0, rows, (begins, positions.rotary, options, projected))
        if answers.past.size:
            _keep_past(first, begins, projected, mixed.shape[1], answers, layer)
            if layer == answers.past.shape[0] - 1:
                return
        _attend(team, of_heads, 0, texts * options.heads, (begins, *seen))
        round_in_team(team, of_rows, mixed, layers.self_out, rounded)
        project_in_team(team, mixed, rounded, layers.self_out, layer, change)
        norm_in_team(team, of_rows, 0, rows, (added_to, met, layers.inner, rounded))
        project_in_team(team, normed, rounded, layers.inner, layer, inner)
        width = activated_width(layers.inner.outputs, kind)
        activate_in_team(team, of_rows, 0, rows, (inner, width, kind, layers.outer, rounded))
        project_in_team(team, inner, rounded, layers.outer, layer, change)
        norm_in_team(team, of_rows, 0, rows, (added_to, met + 1, layers.self_in, rounded))
        met += 2
    if answers.states.size:
        _keep(first, begins, normed, 0, 0, answers.states)
    here, of_memory = (team, of_rows, first, begins), (embeddings.memory, rounded)
    _keep_pairs(*here, normed, *of_memory, 0, sources.skipped, answers.memory)
    if sources.mixes_embeddings:
        values_from = answers.memory.shape[3] // 2
        _keep_pairs(*here, embedded, *of_memory, values_from, sources.skipped, answers.memory)


@parallel
def encode(first, stop, embeddings, layers, options, team, most, sources, positions, answers):
    """Read texts, as many together as have ``most`` tokens; the team's threads share each part."""
    begins = sources.begins
    while first < stop:
        last = first + 1
        while last < stop and begins[last + 1] - begins[first] <= most:
            last += 1
        if begins[last] > begins[first]:
            arguments = (embeddings, layers, options, team, sources, positions, answers)
            _read(first, last, *arguments)
        first = last
