"""Steps of searches over likeliest tokens that are known, each in a compiled loop.

As operations on arrays of a few numbers, some twenty of them would take as long as the step of a
small model before them.
"""

import numpy as np

from regard.kernels.compiling import compiled, inlined


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
    before,
    totals,
    values,
    tokens,
    eos_id,
    ends,
    origins,
    log_probs,
    rows,
    going,
    longer,
    added,
    told,
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
        rows: Which of all beginnings each of those that go on extends, (A, K).
        going: Log-probabilities of those.
        longer: Those, (A, K, T + 1).
        added: Their last tokens.
        told: Whether a log-probability is no number, whether any answer ended, and whether others
            go on than all beginnings in their order, (3,).
    """
    A, W, T = before.shape
    told[0] = told[1] = told[2] = False
    for r in range(A * W):
        told[0] |= np.isnan(values[r, 0])
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
                told[1] |= ends[a, place]
                origins[a, place] = origin
                log_probs[a, place] = total
            if kept < K and not is_end:
                rows[a, kept] = a * W + origin
                going[a, kept] = total
                added[a, kept] = token
                kept += 1
        for k in range(kept, K):
            rows[a, k] = a * W + W - 1
            going[a, k] = -np.inf
            added[a, k] = eos_id
        for k in range(K):
            told[2] |= rows[a, k] != a * K + k
            for t in range(T):
                longer[a, k, t] = before[a, rows[a, k] - a * W, t]
            longer[a, k, T] = added[a, k]


@compiled
def find_stops(sentences, going, length, counts, scores, largest, limits, stops, told):  # type: ignore[no-untyped-def]
    """Mark finished sentences: a full beam, no better answer possible, or the limit reached.

    Args:
        sentences: Which sentences those are that are searched, (A,).
        going: Log-probabilities of what goes on, (A, K).
        length: Tokens of that.
        counts: How many answers of each sentence have ended, (B,).
        scores: The best of their scores, (B, n_best).
        largest: What a log-probability is divided by at most, for each sentence.
        limits: Most tokens of each sentence's answers.
        stops: Which are done, (A,).
        told: Whether any is, (1,).
    """
    told[0] = False
    for a in range(sentences.size):
        b = sentences[a]
        likeliest = -np.inf
        for k in range(going.shape[1]):
            likeliest = max(likeliest, going[a, k])
        is_beaten = scores[b, scores.shape[1] - 1] >= likeliest / largest[b]
        stops[a] = counts[b] >= going.shape[1] or is_beaten or limits[b] <= length
        told[0] |= stops[a]


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
