"""A step of a recurrent decoder, and a pass of an encoder, each in one compiled loop over rows.

The state of a row of a decoder lies in one row of a table: the state of each layer, an LSTM's cell
behind it, and the last answer where the next step reads it. A step reads rows of one table, by
their places, and writes another: a search reorders its beginnings by reordering places.

No record holds its figure.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float32, Int64

from regard.kernels.compiling import inlined, shared, uncounted_part
from regard.kernels.elementary import add_scaled, copy, dot, fill, sigmoid, tanh, to_weights
from regard.kernels.products.packed import OUTPUTS, plain_rows
from regard.kernels.team import parallel

f32 = np.float32

# In the order of ``Options.cell``, as torch calls them.
CELLS = ("RNN_TANH", "RNN_RELU", "GRU", "LSTM")

_NOTHING = np.zeros((0, 0, 0), f32)


class LayerWeights(NamedTuple):
    """Packed weights of layers; of an encoder, those of its two directions one on the other."""

    first: Float32[np.ndarray, "*way g I p"]  # of embedding and context, or the last answer
    later: Float32[np.ndarray, "*way L-1 g i p"]
    input_biases: Float32[np.ndarray, "*way L gp"]
    hidden: Float32[np.ndarray, "*way L g h p"]
    hidden_biases: Float32[np.ndarray, "*way L gp"]


class RecurrentWeights(NamedTuple):
    """Packed weights of layers, embedding, attention and output; without entries, none."""

    embedding: Float32[np.ndarray, "V X"]
    embedding_scale: np.float32
    layers: LayerWeights
    query_map: Float32[np.ndarray, "a h p"]
    units: Float32[np.ndarray, " A"]  # of an additive score; else the score is a dot product
    readout: Float32[np.ndarray, "o J p"]  # of state, embedding (Bahdanau) and context
    readout_bias: Float32[np.ndarray, " op"]
    table: Float32[np.ndarray, "v C p"] = np.zeros((0, 0, OUTPUTS), f32)
    table_bias: Float32[np.ndarray, " vp"] = np.zeros(0, f32)


class RecurrentOptions(NamedTuple):
    """Kind of the decoder."""

    cell: int  # index in ``CELLS``
    attends_before: bool  # the state before the token is the query (Bahdanau)
    attends_after: bool  # the state after it is, and the answer an input of the next step (Luong)


class Memory(NamedTuple):
    """Memory of the sources, constant over the steps; without entries, none."""

    keys: Float32[np.ndarray, "B M A"] = _NOTHING  # projected for the score
    values: Float32[np.ndarray, "B M E"] = _NOTHING  # without width, nothing is attended to
    lengths: Int64[np.ndarray, " B"] = np.zeros(0, np.int64)


@inlined
def _copy_all(rows, out):
    for r in range(len(rows)):
        copy(rows[r], out[r])


@inlined
def _width(kind, h):
    """Width of a layer's state: an LSTM's has its cell too."""
    return 2 * h if kind == 3 else h


@inlined
def _score(query, key, units):
    """``units · tanh(query + key)``, or without units the dot product."""
    if not units.size:
        return dot(query, key)
    total = f32(0)
    for a in range(units.size):
        total += units[a] * tanh(query[a] + key[a])
    return total


@uncounted_part
def attend_row(query, keys, values, units, weights, context):
    """Context of one query, and its weights over the keys."""
    for m in range(weights.size):
        weights[m] = _score(query, keys[m], units)
    mix_row(values, weights, context)


@uncounted_part
def mix_row(values, weights, context):
    """Context of a row of scores, which become its weights in place."""
    to_weights(weights)
    fill(context, f32(0))
    for m in range(weights.size):
        add_scaled(context, weights[m], values[m])


@shared
def _attend(queries, weights, memory, sentences, contexts):
    """Context of each row's query, over the source that is its sentence."""
    projected = queries
    if weights.query_map.size:
        projected = np.empty((queries.shape[0], memory.keys.shape[2]), np.float32)
        nothing = np.zeros(weights.query_map.shape[0] * OUTPUTS, np.float32)
        plain_rows(queries, weights.query_map, nothing, projected)
    scores = np.empty(memory.keys.shape[1], np.float32)
    for r in range(queries.shape[0]):
        sentence = sentences[r]
        keys, values = memory.keys[sentence], memory.values[sentence]
        row = scores[: memory.lengths[sentence]]
        attend_row(projected[r], keys, values, weights.units, row, contexts[r])


@inlined
def gates_of(h, row):
    """The four gates that lie side by side in a row."""
    return row[:h], row[h : 2 * h], row[2 * h : 3 * h], row[3 * h :]


@inlined
def _sigmoids(x, y, out):
    for i in range(out.size):
        out[i] = sigmoid(x[i] + y[i])


@uncounted_part
def advance_row(kind, x, y, state, cell, after, cell_after, gates):
    """One row's state, and an LSTM's cell, after a step; ``x`` and ``y`` are of input and state.

    Leaves the ``gates``. Of a GRU, the candidate's hidden part is the fourth. Loops are short: of
    more arrays in one LLVM does not see that they are apart, and would take a number at a time.
    """
    h = state.size
    keep_in, forget, show, new = gates_of(h, gates)
    if kind < 2:
        for i in range(h):
            total = x[i] + y[i]
            after[i] = tanh(total) if kind == 0 else max(total, f32(0))
    elif kind == 2:
        reset, update, new, part = gates_of(h, gates)
        _sigmoids(x, y, gates[: 2 * h])
        copy(y[2 * h :], part)
        of_input = x[2 * h :]
        for i in range(h):
            new[i] = tanh(of_input[i] + reset[i] * part[i])
        for i in range(h):
            after[i] = new[i] + update[i] * (state[i] - new[i])
    else:
        _sigmoids(x, y, gates[: 3 * h])
        of_input, of_hidden = x[3 * h :], y[3 * h :]
        for i in range(h):
            new[i] = tanh(of_input[i] + of_hidden[i])
        for i in range(h):
            cell_after[i] = forget[i] * cell[i] + keep_in[i] * new[i]
        for i in range(h):
            after[i] = show[i] * tanh(cell_after[i])


@shared
def _begin(token, before, indices, weights, options, carried, embedded, states):
    """Recurrent states of rows, their tokens' embeddings, and each layer's states."""
    L, rows, h = states.shape
    width = _width(options.cell, h)
    for r in range(rows):
        row = weights.embedding[token[r]]
        for x in range(row.size):
            embedded[r, x] = row[x] * weights.embedding_scale
        copy(before[indices[r]], carried[r])
        for layer in range(L):
            copy(carried[r, layer * width : layer * width + h], states[layer, r])


@shared
def _advance_all(kind, inputs, weights, carried, states):
    """Advance all layers' states in place."""
    L, rows, h = states.shape
    width, G = _width(kind, h), weights.hidden.shape[1] * OUTPUTS
    of_inputs, of_hidden = np.empty((rows, G), f32), np.empty((rows, G), f32)
    gates = np.empty(4 * h, f32)
    for layer in range(L):
        below = inputs if layer == 0 else states[layer - 1]
        weight = weights.first if layer == 0 else weights.later[layer - 1]
        plain_rows(below, weight, weights.input_biases[layer], of_inputs)
        plain_rows(states[layer], weights.hidden[layer], weights.hidden_biases[layer], of_hidden)
        for r in range(rows):
            row = carried[r, layer * width : (layer + 1) * width]
            x, after, cell = of_inputs[r], row[:h], row[h:]
            advance_row(kind, x, of_hidden[r], states[layer, r], cell, after, cell, gates)
            copy(after, states[layer, r])


@shared
def _read(options, embedded, context, top, weights, answers):
    """Readout of a step: by maxout over pairs, by tanh, or by a linear map."""
    rows, h, E = len(top), top.shape[1], context.shape[1]
    joined = np.empty((rows, weights.readout.shape[1]), np.float32)
    mapped = np.empty((rows, weights.readout.shape[0] * OUTPUTS), np.float32)
    for r in range(rows):
        copy(top[r], joined[r, :h])
        if options.attends_before:
            copy(embedded[r], joined[r, h : joined.shape[1] - E])
        copy(context[r], joined[r, joined.shape[1] - E :])
    plain_rows(joined, weights.readout, weights.readout_bias, mapped)
    for r in range(rows):
        for c in range(answers.shape[1]):
            if options.attends_before:
                answers[r, c] = max(mapped[r, 2 * c], mapped[r, 2 * c + 1])
            elif options.attends_after:
                answers[r, c] = tanh(mapped[r, c])
            else:
                answers[r, c] = mapped[r, c]


@parallel
def step(
    first, stop, token, before, indices, sentences, weights, memory, options, after, answers, logits
):
    """A step of all layers, for a block of rows; logits without columns are left out."""
    rows, X = stop - first, weights.embedding.shape[1]
    L, _, h, _ = weights.layers.hidden.shape
    embedded = np.empty((rows, X), np.float32)
    inputs = np.empty((rows, weights.layers.first.shape[1]), np.float32)
    states = np.empty((L, rows, h), np.float32)
    context = np.empty((rows, memory.values.shape[2]), np.float32)
    carried, outputs = after[first:stop], answers[first:stop]
    row_indices, sources = indices[first:stop], sentences[first:stop]
    _begin(token[first:stop], before, row_indices, weights, options, carried, embedded, states)
    if options.attends_before:
        _attend(states[L - 1], weights, memory, sources, context)
        _copy_all(context, inputs[:, X:])
    elif options.attends_after:
        _copy_all(carried[:, carried.shape[1] - (inputs.shape[1] - X) :], inputs[:, X:])
    _copy_all(embedded, inputs[:, :X])
    _advance_all(options.cell, inputs, weights.layers, carried, states)
    if options.attends_after:
        _attend(states[L - 1], weights, memory, sources, context)
    if weights.readout.size:
        _read(options, embedded, context, states[L - 1], weights, outputs)
    else:
        _copy_all(states[L - 1], outputs)
    if options.attends_after:
        _copy_all(outputs, carried[:, carried.shape[1] - outputs.shape[1] :])
    if logits.shape[1]:
        plain_rows(outputs, weights.table, weights.table_bias, logits[first:stop])


@inlined
def _begins(lengths):
    """Offset of each position's rows, where sentences, longest first, lie position by position."""
    begins = np.zeros(lengths[0] + 1, np.int64)
    count = lengths.size
    for t in range(lengths[0]):
        while lengths[count - 1] <= t:
            count -= 1
        begins[t + 1] = begins[t] + count
    return begins


@shared
def _read_along(kind, way, begins, of_inputs, weight, bias, out):
    """One direction of one layer: 0 forwards, 1 backwards from each row's own last position."""
    T, rows, h = begins.size - 1, begins[1], weight.shape[1]
    states, cells = np.zeros((rows, h), np.float32), np.zeros((rows, h), np.float32)
    of_hidden, gates = np.empty((rows, weight.shape[0] * OUTPUTS), f32), np.empty(4 * h, f32)
    for iteration in range(T):
        t = T - 1 - iteration if way else iteration
        begin, real = begins[t], begins[t + 1] - begins[t]
        plain_rows(states[:real], weight, bias, of_hidden[:real])
        for r in range(real):
            x, after, cell = of_inputs[begin + r], out[begin + r, way * h : (way + 1) * h], cells[r]
            advance_row(kind, x, of_hidden[r], states[r], cell, after, cell, gates)
            copy(after, states[r])


@parallel
def encode(first, stop, inputs, lengths, order, weights, kind, states, last):
    """Read a block of sentences, longest first in ``order``, in both directions."""
    _, L, panels, h, _ = weights.hidden.shape
    sentences = order[first:stop]
    begins = _begins(lengths[sentences])
    total = begins[begins.size - 1]
    below = np.empty((total, inputs.shape[2]), np.float32)
    for t in range(begins.size - 1):
        for row in range(begins[t], begins[t + 1]):
            copy(inputs[sentences[row - begins[t]], t], below[row])
    of_inputs = np.empty((total, panels * OUTPUTS), np.float32)
    for layer in range(L):
        out = np.empty((total, 2 * h), np.float32)
        for way in range(2):
            weight = weights.first[way] if layer == 0 else weights.later[way, layer - 1]
            plain_rows(below, weight, weights.input_biases[way, layer], of_inputs)
            hidden, bias = weights.hidden[way, layer], weights.hidden_biases[way, layer]
            _read_along(kind, way, begins, of_inputs, hidden, bias, out)
        below = out
    for t in range(begins.size - 1):
        for row in range(begins[t], begins[t + 1]):
            copy(below[row], states[sentences[row - begins[t]], t])
    for sentence in sentences:
        copy(states[sentence, lengths[sentence] - 1, :h], last[sentence, :h])
        copy(states[sentence, 0, h:], last[sentence, h:])
