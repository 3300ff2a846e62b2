"""The likeliest tokens among those that a row may choose, in compiled loops."""

import numpy as np

from regard.kernels.compiling import compiled
from regard.kernels.transformer.decoder import GROUP, best_of

f32 = np.float32


@compiled
def best_listed(  # type: ignore[no-untyped-def]
    first, stop, logits, sentences, ids, places, begins, hidden, values, tokens
):
    """The log-probabilities of the likeliest tokens of each row's list, and which they are.

    What is not on the list has no part in the sum of all.

    Args:
        first: The first row.
        stop: The row after the last.
        logits: Of the tokens that stand on any list, (R, U).
        sentences: The source of each row, (R,).
        ids: Which tokens those are, lowest first, (U,).
        places: For each source, the columns of its own tokens, one source after the other, (N,).
        begins: Where those of each source begin, and where the last end, (B + 1,).
        hidden: Tokens that are none to choose, though they count in the sum of all.
        values: The log-probabilities, (R, K); −inf where there are no more tokens.
        tokens: Their ids.
    """
    own = np.empty(ids.size, np.float32)
    tops = np.empty((ids.size + GROUP - 1) // GROUP, np.float32)
    unseen = np.empty(hidden.size, np.int64)
    for r in range(first, stop):
        begin = begins[sentences[r]]
        count = begins[sentences[r] + 1] - begin
        row, found = logits[r], 0
        for n in range(count):
            own[n] = row[places[begin + n]]
        for j in range(hidden.size):
            for n in range(count):
                if ids[places[begin + n]] == hidden[j]:
                    unseen[found] = n
                    found += 1
        groups = (count + GROUP - 1) // GROUP
        best_of(own[:count], unseen[:found], tops[:groups], values[r], tokens[r])
        for k in range(values.shape[1]):
            tokens[r, k] = ids[places[begin + tokens[r, k]]]
