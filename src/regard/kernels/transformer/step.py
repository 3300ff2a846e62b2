"""Decoding steps of all layers in one compiled loop, for a block of rows.

Threads of a team run it side by side: of each part, one after the other, they take panels of a
product, rows, or heads of a row, until there are none left. What is computed does not depend on
who takes it.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Int32

from regard.kernels.compiling import compiled, inlined, shared
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
from regard.kernels.team import Team, take, take_another, team_of
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
def _cut(room, begin, rows, width):  # type: ignore[no-untyped-def]
    """Rows of so many numbers from ``begin`` on, and where they end."""
    end = begin + rows * width
    return room[begin:end].reshape(rows, width), end


def step_team(threads: int, weights: Weights) -> Team:
    """Threads that run one step together."""
    return team_of(threads, 3 + 14 * len(weights.self_in.bias))


@inlined
def _chunks_of_rows(team, rows):  # type: ignore[no-untyped-def]
    """Chunks of rows of which each is little work."""
    return min(4 * team.threads, -(-rows // 4)) if team.threads > 1 else 1


@inlined
def _parts_of_heads(team, rows, options):  # type: ignore[no-untyped-def]
    """Parts into which the key heads of a row are cut, where rows are few."""
    return min(options.key_heads, team.threads) if rows < 2 * team.threads else 1


@shared
def _share_embedding(team, first, token, positions, weights, options, x, normed, rounded):  # type: ignore[no-untyped-def]
    """Vectors of the tokens, and their norms where those come first."""
    rows, phase = x.shape[0], i64(0)
    chunks = _chunks_of_rows(team, rows)
    chunk = take(team, phase, chunks)
    while chunk < chunks:
        begin, stop = chunk * rows // chunks, (chunk + 1) * rows // chunks
        for r in range(begin, stop):
            position = positions[first + r] if positions.shape[0] > 1 else positions[0]
            embed(weights.embedding, token[first + r], position, x[r])
        some = x[begin:stop]
        if weights.embedding_norm.size:
            norm_rows(some, weights.embedding_norm, weights.embedding_norm_bias, options, some)
        if options.is_pre:
            norm, bias = weights.norms[0], weights.norm_biases[0]
            norm_rows(some, norm, bias, options, normed[begin:stop])
        round_for(begin, stop, normed, normed.shape[1], weights.self_in, rounded)
        chunk = take_another(team, phase, chunks)


@shared
def _share_norm(team, phase, x, change, weight, bias, options, normed, maps, rounded):  # type: ignore[no-untyped-def]
    """Add the change to the states, and norm them for a map."""
    rows = x.shape[0]
    chunks = _chunks_of_rows(team, rows)
    chunk = take(team, phase, chunks)
    while chunk < chunks:
        first, stop = chunk * rows // chunks, (chunk + 1) * rows // chunks
        some, more = x[first:stop], change[first:stop]
        add_norm_rows(some, more, weight, bias, options, normed[first:stop])
        round_for(first, stop, normed, normed.shape[1], maps, rounded)
        chunk = take_another(team, phase, chunks)


@shared
def _share_activation(team, phase, inner, inputs, kind, maps, rounded):  # type: ignore[no-untyped-def]
    """Apply the activation, if ``kind`` is one, and round the rows for a map."""
    rows = inner.shape[0]
    chunks = _chunks_of_rows(team, rows) if kind >= 0 or maps.rounded.size else 0
    chunk = take(team, phase, chunks)
    while chunk < chunks:
        first, stop = chunk * rows // chunks, (chunk + 1) * rows // chunks
        if kind >= 0:
            activate(inner[first:stop], inputs, kind)
        round_for(first, stop, inner, inputs, maps, rounded)
        chunk = take_another(team, phase, chunks)


@shared
def _share_past(team, phase, first, projected, store, past, now, options, scores, out):  # type: ignore[no-untyped-def]
    """Attend to the past of rows from ``first`` on."""
    parts, G = _parts_of_heads(team, out.shape[0], options), options.key_heads
    chunks, flat_rows = parts * out.shape[0], np.empty(now + 1, np.int64)
    chunk = take(team, phase, chunks)
    while chunk < chunks:
        r, part = chunk // parts, chunk % parts
        begin, stop, row = part * G // parts, (part + 1) * G // parts, projected[r]
        attend_row_to_past(
            first + r, row, begin, stop, store, past, now, options, flat_rows, scores, out[r]
        )
        chunk = take_another(team, phase, chunks)


@shared
def _share_memory(team, phase, first, query, memory, past, options, scores, queries, out):  # type: ignore[no-untyped-def]
    """Attend to the memory of rows from ``first`` on, whose queries are copied."""
    parts, G = _parts_of_heads(team, out.shape[0], options), options.key_heads
    chunks, flat_rows = parts * out.shape[0], np.empty(memory.shape[1], np.int64)
    chunk = take(team, phase, chunks)
    while chunk < chunks:
        r, part = chunk // parts, chunk % parts
        begin, stop, row = part * G // parts, (part + 1) * G // parts, query[r]
        if part == 0:
            copy(row[: queries.shape[1]], queries[first + r])
        attend_row_to_memory(
            first + r, row, begin, stop, memory, past, options, flat_rows, scores, out[r]
        )
        chunk = take_another(team, phase, chunks)


@shared
def _share_ranking(team, phase, first, logits, outputs, banned, values, tokens):  # type: ignore[no-untyped-def]
    """``best_tokens`` of rows from ``first`` on."""
    chunks, tops = logits.shape[0], np.empty((outputs + GROUP - 1) // GROUP, np.float32)
    chunk = take(team, phase, chunks)
    while chunk < chunks:
        row, r = logits[chunk, :outputs], first + chunk
        best_of(row, banned, tops, values[r], tokens[r])
        chunk = take_another(team, phase, chunks)


@inlined
def _with_rotary(past, rotary):  # type: ignore[no-untyped-def]
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


@compiled
def decode_step(  # type: ignore[no-untyped-def]
    weights,
    options,
    first,
    token,
    positions,
    past,
    now,
    queries,
    banned,
    values,
    tokens,
    team,
    room,
    logits,
    going,
):
    """Steps of all layers, for a block of rows from ``first``: logits and the likeliest tokens.

    Each thread of a team calls it with the same ``room``, which has ``step_width`` numbers for each
    row; it does what the others leave. One thread may take several steps: ``positions`` and
    ``past.rotary`` then have a row for each of them.
    """
    rows, C = logits.shape[0], weights.norms.shape[1]
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
    keys = max(now + going.steps, past.memory.shape[2]) + OUTPUTS
    scores = np.empty((options.heads, keys), np.float32)
    several, added, rotary = going.slots.size > 0, positions, past.rotary
    for step in range(going.steps):
        if several:
            added, rotary = positions[step : step + 1], past.rotary[step : step + 1]
            team.taken[:] = 0
            team.done[:] = 0
        seen = _with_rotary(past, rotary)
        _share_embedding(team, first, token, added, weights, options, x, normed, rounded)
        phase, met = i64(1), i64(options.is_pre)
        for layer in range(layers):
            store = seen.store[layer]
            project_in_team(team, phase, normed, rounded, weights.self_in, layer, projected)
            _share_past(team, phase + 1, first, projected, store, seen, now, options, scores, mixed)
            width, nothing = mixed.shape[1], i64(-1)
            _share_activation(team, phase + 2, mixed, width, nothing, weights.self_out, rounded)
            project_in_team(team, phase + 3, mixed, rounded, weights.self_out, layer, change)
            phase += 4
            if weights.cross_in.outputs > 0:
                norm, bias, memory = norms[met], biases[met], seen.memory[layer]
                _share_norm(
                    team, phase, x, change, norm, bias, options, normed, weights.cross_in, rounded
                )
                met += 1
                project_in_team(
                    team, phase + 1, normed, rounded, weights.cross_in, layer, projected
                )
                asked = queries[layer]
                _share_memory(
                    team, phase + 2, first, projected, memory, seen, options, scores, asked, mixed
                )
                _share_activation(
                    team, phase + 3, mixed, width, nothing, weights.cross_out, rounded
                )
                project_in_team(team, phase + 4, mixed, rounded, weights.cross_out, layer, change)
                phase += 5
            norm, bias = norms[met], biases[met]
            _share_norm(team, phase, x, change, norm, bias, options, normed, weights.inner, rounded)
            met += 1
            project_in_team(team, phase + 1, normed, rounded, weights.inner, layer, inner)
            kind = options.activation
            width = activated_width(weights.inner.outputs, kind)
            _share_activation(team, phase + 2, inner, width, kind, weights.outer, rounded)
            project_in_team(team, phase + 3, inner, rounded, weights.outer, layer, change)
            norm, bias = norms[met], biases[met]
            _share_norm(
                team, phase + 4, x, change, norm, bias, options, normed, weights.self_in, rounded
            )
            met += 1
            phase += 5
        outputs = weights.table.outputs
        project_in_team(team, phase, normed, rounded, weights.table, i64(0), logits)
        if values.size:
            _share_ranking(team, phase + 1, first, logits, outputs, banned, values, tokens)
        if several:
            take_likeliest(going.position + step, values, tokens, going.written)
            going.written.counts[1] = step + 1
            for r in range(rows):
                past.ancestors[r, now] = going.slots[r]
                token[r] = tokens[r, 0]
            now += 1
            if going.written.counts[0] <= going.least:
                break
