"""Steps of searches over likeliest tokens that are known, each in a compiled loop.

As operations on arrays of a few numbers, some twenty of them would take as long as the step of a
small model before them.
"""

import numpy as np

from regard.attention.engine.kernels.compiling import compiled, inlined


@inlined
def _next(sentence, totals, values, tokens, taken):  # type: ignore[no-untyped-def]
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
def extend(  # type: ignore[no-untyped-def]
    before, totals, values, tokens, eos_id, ends, origins, log_probs, going_origins, going, longer
):
    """The best extensions of each sentence's beginnings, and those that go on.

    Equal ones rank by the place of their beginning, then as they are given. Where there are too
    few, log-probabilities are −inf.

    Args:
        before: The beginnings, best first, (A, W, T).
        totals: Their log-probabilities, (A, W).
        values: Log-probabilities of what may follow each, likeliest first, (A W, N).
        tokens: What that is.
        eos_id: The token that ends an answer.
        ends: Which of the first K are ended, (A, K).
        origins: The beginning that each of the first K extends.
        log_probs: Of those.
        going_origins: The beginning that each of those that go on extends.
        going: Log-probabilities of those.
        longer: Those, (A, K, T + 1).
    """
    A, W, T = before.shape
    K = ends.shape[1]
    taken = np.empty(W, np.int64)  # of what may follow each beginning
    for a in range(A):
        taken[:] = 0
        kept = 0  # of those that go on
        for place in range(2 * K):
            total, origin, token = _next(a, totals, values, tokens, taken)
            is_end = token == eos_id
            if place < K:
                ends[a, place] = is_end and total != -np.inf
                origins[a, place] = origin
                log_probs[a, place] = total
            if kept < K and not is_end:
                going_origins[a, kept] = origin
                going[a, kept] = total
                for t in range(T):
                    longer[a, kept, t] = before[a, origin, t]
                longer[a, kept, T] = token
                kept += 1
        for k in range(kept, K):
            going_origins[a, k] = W - 1
            going[a, k] = -np.inf
            for t in range(T):
                longer[a, k, t] = before[a, W - 1, t]
            longer[a, k, T] = eos_id


@compiled
def take(  # type: ignore[no-untyped-def]
    place, values, best, eos_id, limits, answers, is_open, tokens, lengths, totals, finished, left
):
    """Take the likeliest token of each row into its answer.

    Args:
        place: Of the token.
        values: Their log-probabilities, (R, 1).
        best: What they are.
        eos_id: The token that ends an answer.
        limits: Most tokens of each answer, (A,).
        answers: Which answer each row writes, (R,).
        is_open: Which rows are not finished; of the others, nothing is taken.
        tokens: Of all answers, (A, T).
        lengths: Tokens taken of each answer, (A,).
        totals: Log-probabilities of those, added up.
        finished: Which answers are ended.
        left: How many rows are open after it, (1,).
    """
    left[0] = 0
    for r in range(answers.size):
        answer, value = answers[r], values[r, 0]
        if not is_open[r] or value == -np.inf:
            is_open[r] = False
            continue
        tokens[answer, place] = best[r, 0]
        lengths[answer] += 1
        totals[answer] += value
        finished[answer] = best[r, 0] == eos_id
        is_open[r] = not finished[answer] and limits[answer] > place + 1
        left[0] += is_open[r]
