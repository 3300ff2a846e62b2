"""Decoding steps of all layers in one compiled loop, for a block of rows.

Threads of a team share out each part, one after the other: panels of a product, rows, or heads of a
row. What is computed does not depend on who does it.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Int32

from regard.kernels.compiling import inlined, uncounted_part
from regard.kernels.elementary import copy
from regard.kernels.products.int8 import (
    ROUNDED,
    RoundedRows,
    embed,
    project_in_team,
    round_for,
    width_of_rounded,
)
from regard.kernels.products.packed import OUTPUTS
from regard.kernels.search import Written, take_likeliest
from regard.kernels.team import parallel, shared_out
from regard.kernels.transformer.decoder import (
    GROUP,
    DecoderCache,
    DecoderOptions,
    Weights,
    activate,
    activated_width,
    add_norm_rows,
    attend_row_to_memory,
    attend_row_to_past,
    best_of,
    norm_rows,
)

f32, i64 = np.float32, np.int64


class Going(NamedTuple):
    """How a loop goes on by itself: so many steps, the likeliest token of each read by the next."""

    steps: int
    position: int  # of the first token that is written
    least: int  # open rows at which it ends, as those that are closed cost more than to drop them
    slots: Int32[np.ndarray, " R"]  # of the rows in the store; none where it is one step
    written: Written


def step_width(weights: Weights, options: DecoderOptions) -> int:
    """Numbers that a row has between the parts of a step; what is projected fills whole panels."""
    projected: int = sum(
        each.bias.shape[1] for each in (weights.self_in, weights.self_out, weights.inner)
    )
    rounded = width_of_rounded((weights.self_in, weights.self_out, weights.outer, weights.table))
    of_states: int = 2 * weights.norms.shape[1] + options.heads * options.head_dim
    return of_states + projected + 2 + rounded


@inlined
def _cut(room, begin, rows, width):
    """Rows of so many numbers from ``begin`` on, and where they end."""
    end = begin + rows * width
    return room[begin:end].reshape(rows, width), end


@inlined
def _tasks_of_rows(team, rows):
    """Tasks of rows of which each is little work."""
    return min(4 * team.threads, -(-rows // 4)) if team.threads > 1 else 1


@inlined
def _parts_of_heads(team, rows, options):
    """Parts into which the key heads of a row are cut, where rows are few."""
    return min(options.key_heads, team.threads) if rows < 2 * team.threads else 1


@shared_out
@uncounted_part
def _embed(
    begin,
    stop,
    first,
    token,
    positions,
    table,
    table_norm,
    norms,
    options,
    x,
    normed,
    maps,
    rounded,
):
    """Vectors of the tokens, and their norms where those come first."""
    for r in range(begin, stop):
        position = positions[first + r] if positions.shape[0] > 1 else positions[0]
        embed(table, token[first + r], position, x[r])
    some, (norm, bias) = x[begin:stop], table_norm
    if norm.size:
        norm_rows(some, norm, bias, options, some)
    if options.is_pre:
        norm_rows(some, norms[0][0], norms[1][0], options, normed[begin:stop])
    round_for(begin, stop, normed, normed.shape[1], maps, rounded)


@shared_out
@uncounted_part
def _norm(first, stop, x, change, weight, bias, options, normed, maps, rounded):
    """Add the change to the states, and norm them for a map."""
    some, more = x[first:stop], change[first:stop]
    add_norm_rows(some, more, weight, bias, options, normed[first:stop])
    round_for(first, stop, normed, normed.shape[1], maps, rounded)


@shared_out
@uncounted_part
def _activate(first, stop, inner, inputs, kind, maps, rounded):
    """Apply the activation, if ``kind`` is one, and round the rows for a map."""
    if kind >= 0:
        activate(inner[first:stop], inputs, kind)
    round_for(first, stop, inner, inputs, maps, rounded)


@inlined
def _round(team, tasks, states, maps, rounded):
    """Round the rows for a map in int8."""
    if maps.rounded.size:
        rest = (states, states.shape[1], i64(-1), maps, rounded)
        _activate(team, tasks, 0, states.shape[0], rest)


@shared_out
def _attend_to_past(begin, stop, first, parts, projected, store, past, now, options, out):
    """Attend to the past of parts of rows, counted from ``first`` on."""
    G, flat_rows = options.key_heads, np.empty(now + 1, np.int64)
    scores = np.empty((options.heads, now + 1 + OUTPUTS), np.float32)
    for index in range(begin, stop):
        r, part = index // parts, index % parts
        heads, row = (part * G // parts, (part + 1) * G // parts), projected[r]
        attend_row_to_past(
            first + r, row, *heads, store, past, now, options, flat_rows, scores, out[r]
        )


@shared_out
def _attend_to_memory(begin, stop, first, parts, query, memory, past, options, queries, out):
    """Attend to the memory of parts of rows, counted from ``first`` on; queries are copied."""
    G, flat_rows = options.key_heads, np.empty(memory.shape[1], np.int64)
    scores = np.empty((options.heads, memory.shape[1] + OUTPUTS), np.float32)
    for index in range(begin, stop):
        r, part = index // parts, index % parts
        heads, row = (part * G // parts, (part + 1) * G // parts), query[r]
        if part == 0:
            copy(row[: queries.shape[1]], queries[first + r])
        attend_row_to_memory(
            first + r, row, *heads, memory, past, options, flat_rows, scores, out[r]
        )


@shared_out
def _rank(begin, stop, first, logits, outputs, banned, values, tokens):
    """``best_tokens`` of rows, counted from ``first`` on."""
    tops = np.empty((outputs + GROUP - 1) // GROUP, np.float32)
    for r in range(begin, stop):
        best_of(logits[r, :outputs], banned, tops, values[first + r], tokens[first + r])


@inlined
def _with_rotary(past, rotary):
    """The cache for a step of which the rotation is known."""
    return DecoderCache(
        past.store,
        past.ancestors,
        past.starts,
        past.memory,
        past.lengths,
        past.sentences,
        rotary,
    )


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
    of_rows, parts = _tasks_of_rows(team, rows), _parts_of_heads(team, rows, options)
    heads, kind = parts * rows, options.activation
    of_heads = min(4 * team.threads, heads) if team.threads > 1 else 1
    for step in range(going.steps):
        if several:
            added, rotary = positions[step : step + 1], past.rotary[step : step + 1]
        seen = _with_rotary(past, rotary)
        table = (weights.embedding, (weights.embedding_norm, weights.embedding_norm_bias))
        normed_for = ((norms, biases), options, x, normed, weights.self_in, rounded)
        _embed(team, of_rows, 0, rows, (first, token, added, *table, *normed_for))
        met = i64(options.is_pre)
        for layer in range(layers):
            project_in_team(team, normed, rounded, weights.self_in, layer, projected)
            seeing = (first, parts, projected, seen.store[layer], seen, now, options, mixed)
            _attend_to_past(team, of_heads, 0, heads, seeing)
            _round(team, of_rows, mixed, weights.self_out, rounded)
            project_in_team(team, mixed, rounded, weights.self_out, layer, change)
            if weights.cross_in.outputs > 0:
                norm = (norms[met], biases[met], options, normed, weights.cross_in, rounded)
                _norm(team, of_rows, 0, rows, (x, change, *norm))
                met += 1
                project_in_team(team, normed, rounded, weights.cross_in, layer, projected)
                memory = (projected, seen.memory[layer], seen, options, queries[layer], mixed)
                _attend_to_memory(team, of_heads, 0, heads, (first, parts, *memory))
                _round(team, of_rows, mixed, weights.cross_out, rounded)
                project_in_team(team, mixed, rounded, weights.cross_out, layer, change)
            norm = (norms[met], biases[met], options, normed, weights.inner, rounded)
            _norm(team, of_rows, 0, rows, (x, change, *norm))
            met += 1
            project_in_team(team, normed, rounded, weights.inner, layer, inner)
            width = activated_width(weights.inner.outputs, kind)
            _activate(team, of_rows, 0, rows, (inner, width, kind, weights.outer, rounded))
            project_in_team(team, inner, rounded, weights.outer, layer, change)
            norm = (norms[met], biases[met], options, normed, weights.self_in, rounded)
            _norm(team, of_rows, 0, rows, (x, change, *norm))
            met += 1
        project_in_team(team, normed, rounded, weights.table, i64(0), logits)
        if values.size:
            ranking = (first, logits, weights.table.outputs, banned, values, tokens)
            _rank(team, rows if team.threads > 1 else 1, 0, rows, ranking)
        if several:
            take_likeliest(going.position + step, values, tokens, going.written)
            going.written.counts[1] = step + 1
            for r in range(rows):
                past.ancestors[r, now] = going.slots[r]
                token[r] = tokens[r, 0]
            now += 1
            if going.written.counts[0] <= going.least:
                break
