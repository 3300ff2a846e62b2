"""Decoding steps of all layers in one compiled loop, for a block of rows.

Threads of a team share out each part, one after the other: panels of a product, rows, or heads of a
row. Results do not depend on the thread.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Int32

from regard.kernels.attention.one_query import attend_one_query
from regard.kernels.compiling import inlined, uncounted_part
from regard.kernels.elementary import copy
from regard.kernels.products.int8 import ROUNDED
from regard.kernels.products.packed import OUTPUTS
from regard.kernels.products.projections import (
    RoundedRows,
    embed,
    project_in_team,
    round_for,
    width_of_rounded,
)
from regard.kernels.search import Written, take_likeliest
from regard.kernels.team import parallel, shared_out
from regard.kernels.transformer.layers import (
    LayerOptions,
    Weights,
    activate_in_team,
    activated_width,
    best_in_team,
    norm_in_team,
    norm_rows,
    rotate,
    round_in_team,
)

f32, i64 = np.float32, np.int64


class Going(NamedTuple):
    """How a loop goes on by itself: so many steps, the likeliest token of each read by the next."""

    steps: int
    position: int  # of the first token that is written
    least: int  # open rows at which it ends, as those that are closed cost more than to drop them
    slots: Int32[np.ndarray, " R"]  # of the rows in the store; none where it is one step
    written: Written


def step_width(weights: Weights, options: LayerOptions) -> int:
    """Numbers that a row has between the parts of a step; projections fill whole panels."""
    kinds = (weights.self_in, weights.self_out, weights.inner)
    projected: int = sum(maps.bias.shape[1] for maps in kinds)
    rounded = width_of_rounded((*kinds[:2], weights.outer, weights.table))
    of_states: int = 2 * weights.norms.shape[1] + options.heads * options.head_dim
    return of_states + projected + 2 + rounded


@inlined
def _cut(room, begin, rows, width):
    """Rows of so many numbers from ``begin`` on, and where they end."""
    end = begin + rows * width
    return room[begin:end].reshape(rows, width), end


@shared_out
@uncounted_part
def _embed(
    begin, stop, first, token, added, table, table_norm, norms, options, x, normed, maps, rounded
):
    """Vectors of the tokens, and their norms where those come first."""
    for r in range(begin, stop):
        position = added[first + r] if added.shape[0] > 1 else added[0]
        embed(table, token[first + r], position, x[r])
    some, (norm, bias) = x[begin:stop], table_norm
    if norm.size:
        norm_rows(some, norm, bias, options, some)
    if options.is_pre:
        norm_rows(some, norms[0][0], norms[1][0], options, normed[begin:stop])
    round_for(begin, stop, normed, normed.shape[1], maps, rounded)


@shared_out
def _attend_to_past(begin, stop, first, parts, projected, store, past, rotary, now, options, out):
    """Store keys and values at position ``now``, and attend to the past and to it.

    Each of ``begin`` to ``stop`` is a part of the heads of a row, counted from ``first`` on. In the
    store, place t of a row's past is in the slot that its ancestor of that step had.
    """
    (places, slots, width), D = store.shape, options.head_dim
    H, G, flat = options.heads, options.key_heads, store.reshape(places * slots, width)
    flat_rows, scores = np.empty(now + 1, np.int64), np.empty((H, now + 1 + OUTPUTS), f32)
    for index in range(begin, stop):
        r, part, row = first + index // parts, index % parts, projected[index // parts]
        low, high = part * G // parts, (part + 1) * G // parts
        angles = rotary[min(r, len(rotary) - 1)]
        rotate(row[H // G * low * D :], H // G * (high - low), angles, options)
        rotate(row[(H + low) * D :], high - low, angles, options)
        for side in range(2):
            at, to = (side * G + low) * D, (side * G + high) * D
            copy(row[H * D + at : H * D + to], store[now, r, at:to])
        start = min(past.starts[r], now)
        for t in range(start, now):
            flat_rows[t - start] = t * slots + past.ancestors[r, t]
        flat_rows[now - start] = now * slots + r
        seen, biased = (flat, flat_rows, now - start + 1), (options, options.slopes)
        attend_one_query(row, *seen, low, high, *biased, scores, out[index // parts])


@shared_out
def _attend_to_memory(begin, stop, first, parts, query, memory, past, options, queries, out):
    """Attend to the memory of each row's sentence, (B, M, W), by parts as above; copies queries."""
    (B, M, width), G, slopes = memory.shape, options.key_heads, options.slopes[:0]
    flat, flat_rows = memory.reshape(B * M, width), np.empty(M, np.int64)
    scores = np.empty((options.heads, M + OUTPUTS), f32)
    for index in range(begin, stop):
        r, part = index // parts, index % parts
        if part == 0:
            copy(query[r, : queries.shape[1]], queries[first + r])
        sentence = past.sentences[first + r]
        count = past.lengths[sentence]
        for m in range(count):
            flat_rows[m] = sentence * M + m
        heads, seen = (part * G // parts, (part + 1) * G // parts), (flat, flat_rows, count)
        attend_one_query(query[r], *seen, *heads, options, slopes, scores, out[r])


@parallel
@uncounted_part
def decode_step(first, stop, weights, options, team, inputs, queries, ranking, room, logits, going):
    """Steps of all layers for rows ``first`` to ``stop``: logits and the likeliest tokens.

    The threads of the team share out each part of a step. ``room`` has ``step_width`` numbers for
    each row; ``inputs`` are tokens, their positions, the past, and the position written now. Of
    several steps, positions and ``past.rotary`` have a row for each.
    """
    logits, rows, C = logits[first:stop], stop - first, weights.norms.shape[1]
    (token, positions, past, now), (banned, values, tokens) = inputs, ranking
    room = room[first:stop].reshape(rows * room.shape[1])
    x, at = _cut(room, i64(0), rows, C)
    normed, at = _cut(room, at, rows, C)
    projected, at = _cut(room, at, rows, weights.self_in.bias.shape[1])
    mixed, at = _cut(room, at, rows, options.heads * options.head_dim)
    change, at = _cut(room, at, rows, weights.self_out.bias.shape[1])
    inner, at = _cut(room, at, rows, weights.inner.bias.shape[1])
    begins, sizes = room[at : at + rows].view(np.int32), room[at + rows : at + 2 * rows]
    rounded = RoundedRows(room[at + 2 * rows :].view(ROUNDED), begins, sizes)
    normed = normed if options.is_pre else x
    norms, biases, layers = weights.norms, weights.norm_biases, past.store.shape[0]
    several, added, rotary = going.slots.size > 0, positions, past.rotary
    added_to = (x, change, norms, biases, options, normed)
    # Tasks of rows, of which each is little work; parts of a row's heads, where rows are few.
    of_rows = min(4 * team.threads, -(-rows // 4)) if team.threads > 1 else 1
    parts = min(options.key_heads, team.threads) if rows < 2 * team.threads else 1
    heads, kind = parts * rows, options.activation
    of_heads = min(4 * team.threads, heads) if team.threads > 1 else 1
    for step in range(going.steps):
        if several:
            added, rotary = positions[step : step + 1], past.rotary[step : step + 1]
        table = (weights.embedding, (weights.embedding_norm, weights.embedding_norm_bias))
        normed_for = ((norms, biases), options, x, normed, weights.self_in, rounded)
        _embed(team, of_rows, 0, rows, (first, token, added, *table, *normed_for))
        met = i64(options.is_pre)
        for layer in range(layers):
            project_in_team(team, normed, rounded, weights.self_in, layer, projected)
            seen = (projected, past.store[layer], past, rotary, now, options, mixed)
            _attend_to_past(team, of_heads, 0, heads, (first, parts, *seen))
            round_in_team(team, of_rows, mixed, weights.self_out, rounded)
            project_in_team(team, mixed, rounded, weights.self_out, layer, change)
            if weights.cross_in.outputs > 0:
                norm_in_team(team, of_rows, 0, rows, (added_to, met, weights.cross_in, rounded))
                met += 1
                project_in_team(team, normed, rounded, weights.cross_in, layer, projected)
                memory = (projected, past.memory[layer], past, options, queries[layer], mixed)
                _attend_to_memory(team, of_heads, 0, heads, (first, parts, *memory))
                round_in_team(team, of_rows, mixed, weights.cross_out, rounded)
                project_in_team(team, mixed, rounded, weights.cross_out, layer, change)
            norm_in_team(team, of_rows, 0, rows, (added_to, met, weights.inner, rounded))
            met += 1
            project_in_team(team, normed, rounded, weights.inner, layer, inner)
            width = activated_width(weights.inner.outputs, kind)
            activate_in_team(team, of_rows, 0, rows, (inner, width, kind, weights.outer, rounded))
            project_in_team(team, inner, rounded, weights.outer, layer, change)
            norm_in_team(team, of_rows, 0, rows, (added_to, met, weights.self_in, rounded))
            met += 1
        project_in_team(team, normed, rounded, weights.table, i64(0), logits)
        if values.size:
            best = (values[first:stop], tokens[first:stop])
            ranked = (logits, weights.table.outputs, banned, *best)
            best_in_team(team, rows if team.threads > 1 else 1, 0, rows, ranked)
        if several:
            take_likeliest(going.position + step, values, tokens, going.written)
            going.written.counts[1] = step + 1
            for r in range(rows):
                past.ancestors[r, now] = going.slots[r]
                token[r] = tokens[r, 0]
            now += 1
            if going.written.counts[0] <= going.least:
                break
