"""Training of recurrent layers: one step of all rows, and its gradients, between products.

Inputs and results of step ``t`` of row ``r`` lie at ``[r, t]`` of arrays of all steps, so that
weights' gradients are products of all steps at once. Loops are short: of more arrays in one
LLVM does not see that they are apart, and would work on one number at a time.

Its speed is a part of ``benchmarks/records/training_speed.json``.
"""

import numpy as np

from regard.kernels.compiling import inlined, uncounted_part
from regard.kernels.elementary import add_scaled, copy, dot, fill, tanh
from regard.kernels.recurrent import advance_row, attend_row, gates_of, mix_row
from regard.kernels.team import parallel

f32 = np.float32


@parallel
@uncounted_part
def advance(first, stop, kind, t, inputs, hidden, carried, gates):
    """``carried[r, t + 1]`` from gates of inputs and of ``carried[r, t]``; ``gates`` after them.

    ``kind`` is an index in ``recurrent.CELLS``; an LSTM's cell lies behind its state.
    """
    h = carried.shape[2] // 2 if kind == 3 else carried.shape[2]
    for r in range(first, stop):
        x, before, after = inputs[r, t], carried[r, t], carried[r, t + 1]
        states = (before[:h], before[h:], after[:h], after[h:])
        advance_row(kind, x, hidden[r], *states, gates[r, t])


@parallel
def advance_back(first, stop, kind, t, carried, gates, grad, slope, d_inputs, d_hidden):
    """Gradients of a step's gates, those of inputs and those of the state before.

    ``slope``, the gradient of ``carried[r, t + 1]`` by later steps, becomes with ``grad`` added
    that of ``carried[r, t]``, which lacks the part of ``d_hidden``.
    """
    h = grad.shape[2]
    for r in range(first, stop):
        before, after, of_state = carried[r, t], carried[r, t + 1], slope[r, :h]
        of_inputs, of_hidden = d_inputs[r, t], d_hidden[r, t]
        add_scaled(of_state, f32(1), grad[r, t])
        if kind == 2:
            reset, update, new, part = gates_of(h, gates[r, t])
            _gru_back(of_state, before, reset, update, new, part, of_inputs)
            copy(of_inputs, of_hidden[: 3 * h])
            of_new = of_hidden[2 * h : 3 * h]
            for i in range(h):
                of_new[i] *= reset[i]
            for i in range(h):
                of_state[i] *= update[i]
            continue
        if kind == 3:
            _lstm_back(of_state, before[h:], after[h:], gates[r, t], of_inputs, slope[r, h:])
        else:
            for i in range(h):
                of_tanh, of_relu = f32(1) - after[i] * after[i], f32(after[i] > f32(0))
                of_inputs[i] = of_state[i] * (of_tanh if kind == 0 else of_relu)
        copy(of_inputs, of_hidden[: of_inputs.size])
        fill(of_state, f32(0))


@inlined
def _gru_back(of_state, before, reset, update, new, part, of_inputs):
    of_reset, of_update, of_new, _ = gates_of(of_state.size, of_inputs)
    for i in range(of_state.size):
        of_new[i] = of_state[i] * (f32(1) - update[i]) * (f32(1) - new[i] * new[i])
    for i in range(of_state.size):
        of_update[i] = of_state[i] * (before[i] - new[i]) * update[i] * (f32(1) - update[i])
    for i in range(of_state.size):
        of_reset[i] = of_new[i] * part[i] * reset[i] * (f32(1) - reset[i])


@inlined
def _lstm_back(of_state, before, after, gates, of_inputs, of_cell):
    h = of_state.size
    keep_in, forget, show, new = gates_of(h, gates)
    of_keep, of_forget, of_show, of_new = gates_of(h, of_inputs)
    for i in range(h):
        of_show[i] = of_state[i] * tanh(after[i]) * show[i] * (f32(1) - show[i])
    for i in range(h):
        cell = tanh(after[i])
        of_cell[i] += of_state[i] * show[i] * (f32(1) - cell * cell)
    for i in range(h):
        of_keep[i] = of_cell[i] * new[i] * keep_in[i] * (f32(1) - keep_in[i])
    for i in range(h):
        of_forget[i] = of_cell[i] * before[i] * forget[i] * (f32(1) - forget[i])
    for i in range(h):
        of_new[i] = of_cell[i] * keep_in[i] * (f32(1) - new[i] * new[i])
    for i in range(h):
        of_cell[i] *= forget[i]


@parallel
@uncounted_part
def attend(first, stop, t, begin, queries, memory, weights, past, contexts):
    """Context of ``queries[r, begin:]``, and its weights over a row's keys.

    With a coverage, ``past[r, t]`` are the sums of a row's weights before step ``t``.
    """
    w, coverage, keys, values, lengths = memory
    for r in range(first, stop):
        row, count, query, context = weights[r, t], lengths[r], queries[r, begin:], contexts[r, t]
        fill(row[count:], f32(0))
        if not coverage.size:
            attend_row(query, keys[r], values[r], w, row[:count], context)
            continue
        for m in range(count):
            row[m] = _covered_score(query, keys[r, m], w, coverage, past[r, t, m])
        mix_row(values[r], row[:count], context)
        for m in range(count):
            past[r, t + 1, m] = past[r, t, m] + row[m]


@inlined
def _covered_score(query, key, w, coverage, past):
    """Score of a key whose weights before sum up to ``past``: See et al. (2017), equation 11."""
    total = f32(0)
    for a in range(w.size):
        total += w[a] * tanh(query[a] + key[a] + coverage[a] * past)
    return total


@parallel
def attend_back(first, stop, t, begin, queries, memory, weights, past, given, written):
    """Gradients of a step's queries, ``d_query[r, t, begin:]``; adds those of keys and of ``w``.

    Those of keys lack the factor ``w``; ``sums[r]`` are those of ``w``, and of ``coverage`` without
    that factor. ``d_past[r]`` are those of the weights by the coverage of later steps.
    """
    w, coverage, keys, values, lengths = memory
    d_weights, d_contexts = given
    d_query, d_keys, d_past, sums = written
    slopes, hidden = np.empty(keys.shape[1], f32), np.empty(w.size, f32)
    for r in range(first, stop):
        query, of_query, count = queries[r, t], d_query[r, t, begin:], lengths[r]
        row, of_units, of_coverage = weights[r, t, :count], sums[r, 0], sums[r, 1]
        mean = _slopes(row, d_contexts[r, t], values[r], d_weights[r, t], d_past[r], slopes)
        fill(of_query, f32(0))
        for m in range(count):
            key, of_key, slope = keys[r, m], d_keys[r, m], slopes[m] - row[m] * mean
            if not w.size:
                add_scaled(of_query, slope, key)
                add_scaled(of_key, slope, query)
                continue
            for a in range(w.size):
                hidden[a] = query[a] + key[a]
            if coverage.size:
                add_scaled(hidden, past[r, t, m], coverage)
            for a in range(w.size):
                hidden[a] = tanh(hidden[a])
            for a in range(w.size):
                of_units[a] += slope * hidden[a]
                part = slope - slope * hidden[a] * hidden[a]
                of_key[a] += part
                of_query[a] += part
                hidden[a] = part
            if coverage.size:
                d_past[r, m] += _past_back(hidden, w, coverage, past[r, t, m], of_coverage)
        for a in range(w.size):
            of_query[a] *= w[a]


@inlined
def _slopes(row, of_context, values, of_weights, of_past, slopes):
    """Weights times their gradients, and the sum of these."""
    total = f32(0)
    for m in range(row.size):
        slopes[m] = row[m] * (dot(of_context, values[m]) + of_weights[m] + of_past[m])
        total += slopes[m]
    return total


@inlined
def _past_back(parts, w, coverage, past, of_coverage):
    """Gradient of the sum of a key's weights before a step; adds that of ``coverage``."""
    total = f32(0)
    for a in range(w.size):
        of_coverage[a] += past * parts[a]
    for a in range(w.size):
        total += parts[a] * w[a] * coverage[a]
    return total
