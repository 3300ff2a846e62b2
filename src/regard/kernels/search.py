"""Steps of searches, each in a compiled loop: ranking of extensions, and sampling.

As operations on arrays of a few numbers, the ranking would take as long as the step of a small
model. A sample puts nothing in order: which tokens are likely enough is found by their bits, of
which twelve at a time give a class, and the sums of the classes the class of the least likely.

No record holds its figure.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float64, Int64

from regard.kernels.compiling import compiled, in_order, inlined
from regard.kernels.elementary import largest
from regard.kernels.team import parallel

i32 = np.int32

# Classes at a time, and where the bits that tell them begin, from the highest on.
_CLASSES = 4096
_SHIFTS = (20, 8, 0)


@inlined
def _next(sentence, totals, values, tokens, taken):
    """The best extension that is not taken: its log-probability, beginning and token."""
    W, N = totals.shape[1], values.shape[1]
    best, most = -1, -np.inf
    for w in range(W):
        if taken[w] < N:
            total = totals[sentence, w] + values[sentence * W + w, taken[w]]
            if best < 0 or total > most:
                best, most = w, total
    if best < 0:
        return most, W - 1, 0
    token = tokens[sentence * W + best, taken[best]]
    taken[best] += 1
    return most, best, token


@compiled
def extend(
    past, totals, values, tokens, eos_id, ends, origins, log_probs, rows, alive, longer, new, flags
):
    """The best extensions of each sentence's beginnings, and those to continue; −inf if too few."""
    A, W, T = past.shape
    # A log-probability is NaN; an answer ended; other beginnings continue, or in another order.
    flags[0] = flags[1] = flags[2] = False
    for r in range(A * W):
        flags[0] |= np.isnan(values[r, 0])
    K = ends.shape[1]
    taken = np.empty(W, np.int64)  # continuations of each beginning
    for a in range(A):
        taken[:] = 0
        going = 0  # of those that continue
        for rank in range(2 * K):
            total, origin, token = _next(a, totals, values, tokens, taken)
            is_end = token == eos_id
            if rank < K:
                ends[a, rank] = is_end and total != -np.inf
                flags[1] |= ends[a, rank]
                origins[a, rank] = origin
                log_probs[a, rank] = total
            if going < K and not is_end:
                rows[a, going] = a * W + origin
                alive[a, going] = total
                new[a, going] = token
                going += 1
        for k in range(going, K):
            rows[a, k] = a * W + W - 1
            alive[a, k] = -np.inf
            new[a, k] = eos_id
        for k in range(K):
            flags[2] |= rows[a, k] != a * K + k
            for t in range(T):
                longer[a, k, t] = past[a, rows[a, k] - a * W, t]
            longer[a, k, T] = new[a, k]


@compiled
def find_stops(sentences, alive, length, counts, scores, largest, limits, stops, flags):
    """Mark finished sentences: a full beam, no better answer possible, or the limit reached."""
    flags[0] = False
    for a in range(sentences.size):
        b = sentences[a]
        likeliest = -np.inf
        for k in range(alive.shape[1]):
            likeliest = max(likeliest, alive[a, k])
        is_beaten = scores[b, scores.shape[1] - 1] >= likeliest / largest[b]
        stops[a] = counts[b] >= alive.shape[1] or is_beaten or limits[b] <= length
        flags[0] |= stops[a]


class Written(NamedTuple):
    """Answers of a greedy search, and the rows that write them."""

    eos_id: int
    limits: Int64[np.ndarray, " B"]
    answers: Int64[np.ndarray, " R"]  # the one that each row writes
    is_open: Bool[np.ndarray, " R"]
    tokens: Int64[np.ndarray, "B T"]
    lengths: Int64[np.ndarray, " B"]
    totals: Float64[np.ndarray, " B"]
    finished: Bool[np.ndarray, " B"]
    counts: Int64[np.ndarray, "2"]  # open rows, and steps of the last loop


def _take(position, values, best, written):
    """Append the likeliest token of each row to its answer."""
    eos_id, limits, answers, is_open, tokens, lengths, totals, finished, counts = written
    going = 0
    for r in range(answers.size):
        answer, value = answers[r], values[r, 0]
        if not is_open[r] or value == -np.inf:
            is_open[r] = False
            continue
        tokens[answer, position] = best[r, 0]
        lengths[answer] += 1
        totals[answer] += value
        finished[answer] = best[r, 0] == eos_id
        is_open[r] = not finished[answer] and limits[answer] > position + 1
        going += is_open[r]
    counts[0] = going


# As a part of the loop that found the tokens, and as a loop of its own.
take_likeliest, take = inlined(_take), compiled(_take)


@in_order
def _least(keys, shares, mass, sums):
    """The key of the last token needed for a sum from the highest key on, and the sum above it."""
    above, low, high = 0.0, i32(-(2**31)), i32(2**31 - 1)
    for shift in _SHIFTS:
        sums[:] = 0.0
        for v in range(keys.size):
            if low <= keys[v] <= high:
                sums[(keys[v] >> shift) - (low >> shift)] += shares[v]
        chosen = -1
        for bucket in range(_CLASSES - 1, -1, -1):
            if sums[bucket] > 0.0:
                if chosen >= 0:
                    above += sums[chosen]
                chosen = bucket
                if above + sums[bucket] >= mass:
                    break
        low = i32(((low >> shift) + max(chosen, 0)) << shift)
        high = i32(low + (1 << shift) - 1)
    return low, above


@in_order
def _keys_of(log_probs, temperature, scaled, keys):
    """Rank probabilities as ordered integers; returns how many of them are not a number."""
    missing = 0
    for v in range(log_probs.size):
        scaled[v] = log_probs[v] / temperature
        missing += np.isnan(scaled[v])
    bits = scaled.view(np.int32)
    for v in range(log_probs.size):
        keys[v] = bits[v] ^ ((bits[v] >> i32(31)) & i32(0x7FFFFFFF))
    return missing


@in_order
def _likely_tokens(scaled, top, least, keys, probs, ids):
    """Move tokens from key ``least`` on to the front, with probabilities over the likeliest's."""
    count, total = 0, 0.0
    for v in range(scaled.size):
        if keys[v] >= least:
            keys[count], ids[count] = keys[v], v
            probs[count] = np.exp(float(scaled[v]) - float(top))
            total += probs[count]
            count += 1
    return count, total


@in_order
def _to_nucleus(keys, probs, mass, sums):
    """Zero the probability of tokens not needed for a sum; returns the rest."""
    least, above = _least(keys, probs, mass, sums)
    total = 0.0
    for v in range(keys.size):
        if keys[v] < least:
            probs[v] = 0.0
        elif keys[v] == least:
            before = above
            above += probs[v]
            if before >= mass:
                probs[v] = 0.0
        total += probs[v]
    return total


@in_order
def _draw(log_probs, temperature, most, share, uniform, scaled, keys, probs, ids, sums):
    """``draw_tokens`` of one row."""
    V = log_probs.size
    if _keys_of(log_probs, temperature, scaled, keys):
        return -1
    top = largest(scaled)
    if top == -np.inf:
        return V - 1
    least = i32(-(2**31))
    if most < V:
        probs[:] = 1.0
        least, _ = _least(keys, probs, float(most), sums)
    count, total = _likely_tokens(scaled, top, least, keys, probs, ids)
    if share < 1.0:
        total = _to_nucleus(keys[:count], probs[:count], share * total, sums)
    mass, passed, token = uniform * total, 0.0, V - 1
    for v in range(count):
        if probs[v] > 0.0:
            passed += probs[v]
            token = ids[v]
            if passed > mass:
                break
    return token


@parallel
def draw_tokens(first, stop, log_probs, temperature, most, share, uniforms, tokens):
    """A token of each row, as ``Draw`` chooses it; −1 of a row that has a NaN."""
    V = log_probs.shape[1]
    scaled, keys = np.empty(V, np.float32), np.empty(V, np.int32)
    probs, ids, sums = np.empty(V), np.empty(V, np.int32), np.empty(_CLASSES)
    for r in range(first, stop):
        tokens[r] = _draw(
            log_probs[r], temperature, most, share, uniforms[r], scaled, keys, probs, ids, sums
        )
