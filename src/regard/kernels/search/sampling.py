"""A token drawn from a row of log-probabilities, in compiled loops that put nothing in order.

Which tokens are likely enough is found by their bits: twelve of each tell its class, the sums of
the classes say in which one the least likely of them is, and so on with the next twelve there.

Buys samples of top-k and top-p at the speed of greedy search:
``benchmarks/records/generation_speed.json``.
"""

import numpy as np

from regard.kernels.compiling import compiled, in_order
from regard.kernels.elementary import largest

i32 = np.int32

# Classes at a time, and where the bits that tell them begin, from the highest on.
_CLASSES = 4096
_SHIFTS = (20, 8, 0)


@in_order
def _least(keys, shares, wanted, sums):  # type: ignore[no-untyped-def]
    """The key of the last token that is needed for a sum, from the highest key on.

    Args:
        keys: One a token; they have the order of what is drawn from.
        shares: What each token adds to the sum.
        wanted: The sum to reach.
        sums: Room to work in.

    Returns:
        The key, and what all with higher ones add up to.
    """
    above, low, high = 0.0, i32(-(2**31)), i32(2**31 - 1)
    for shift in _SHIFTS:
        sums[:] = 0.0
        for v in range(keys.size):
            if low <= keys[v] <= high:
                sums[(keys[v] >> shift) - (low >> shift)] += shares[v]
        chosen = -1
        for each in range(_CLASSES - 1, -1, -1):
            if sums[each] > 0.0:
                if chosen >= 0:
                    above += sums[chosen]
                chosen = each
                if above + sums[each] >= wanted:
                    break
        low = i32(((low >> shift) + max(chosen, 0)) << shift)
        high = i32(low + (1 << shift) - 1)
    return low, above


@in_order
def _keys_of(log_probs, temperature, scaled, keys):  # type: ignore[no-untyped-def]
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
def _kept(scaled, top, least, keys, probs, ids):  # type: ignore[no-untyped-def]
    """Bring tokens from a key on to the front, with their shares of the likeliest's probability."""
    count, total = 0, 0.0
    for v in range(scaled.size):
        if keys[v] >= least:
            keys[count], ids[count] = keys[v], v
            probs[count] = np.exp(float(scaled[v]) - float(top))
            total += probs[count]
            count += 1
    return count, total


@in_order
def _to_nucleus(keys, probs, wanted, sums):  # type: ignore[no-untyped-def]
    """Take the probability of those that are not needed for a sum; gives what is left."""
    least, above = _least(keys, probs, wanted, sums)
    total = 0.0
    for v in range(keys.size):
        if keys[v] < least:
            probs[v] = 0.0
        elif keys[v] == least:
            before = above
            above += probs[v]
            if before >= wanted:
                probs[v] = 0.0
        total += probs[v]
    return total


@in_order
def _draw(log_probs, temperature, most, share, place, scaled, keys, probs, ids, sums):  # type: ignore[no-untyped-def]
    """See ``draw_tokens``, of one row: the token; −1 if a number is none."""
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
    count, total = _kept(scaled, top, least, keys, probs, ids)
    if share < 1.0:
        total = _to_nucleus(keys[:count], probs[:count], share * total, sums)
    wanted, passed, token = place * total, 0.0, V - 1
    for v in range(count):
        if probs[v] > 0.0:
            passed += probs[v]
            token = ids[v]
            if passed > wanted:
                break
    return token


@compiled
def draw_tokens(first, stop, log_probs, temperature, most, share, places, tokens):  # type: ignore[no-untyped-def]
    """A token of each row, as ``Draw`` chooses it.

    Args:
        first: The first row.
        stop: The row after the last.
        log_probs: (R, V).
        temperature: What they are divided by.
        most: Draw from so many likeliest tokens, and those as likely as the last of them.
        share: Draw from the fewest likeliest of them with this share of the probability.
        places: Where in the probabilities, added up from the first token on, each token lies.
        tokens: Those drawn; −1 of a row that has a NaN.
    """
    V = log_probs.shape[1]
    scaled, keys = np.empty(V, np.float32), np.empty(V, np.int32)
    probs, ids, sums = np.empty(V), np.empty(V, np.int32), np.empty(_CLASSES)
    for r in range(first, stop):
        tokens[r] = _draw(
            log_probs[r], temperature, most, share, places[r], scaled, keys, probs, ids, sums
        )
