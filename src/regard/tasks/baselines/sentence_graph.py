"""TextRank: the sentences of a text that most others agree with."""

import math
from collections.abc import Sequence
from itertools import combinations

import numpy as np

from regard.metrics.rouge import words

# That a walk goes on along the edges, and does not begin anew.
DAMPING = 0.85


def text_rank(sentences: Sequence[str]) -> list[float]:
    """How central each sentence of a text is: Mihalcea and Tarau (2004), sections 2.2 and 4.

    https://aclanthology.org/W04-3252. Two sentences are joined by the words they share over the
    logarithms of their lengths, and the ranks solve ``r_i = (1 − d) + d Σ_j w_ij r_j / Σ_k w_jk``,
    without iteration. Words are those of ROUGE, so that Chinese is compared by characters; they are
    not filtered by their parts of speech.

    Args:
        sentences: In any order.

    Example:
        >>> text = ["A king had a son.", "It rained.", "The son of the king ran from the king."]
        >>> [round(rank, 2) for rank in text_rank(text)]
        [1.0, 0.15, 1.0]
    """
    count = len(sentences)
    cut = [words(sentence) for sentence in sentences]
    held = [set(each) for each in cut]
    weights = np.zeros((count, count))
    for i, j in combinations(range(count), 2):
        length = math.log(max(len(cut[i]), 1)) + math.log(max(len(cut[j]), 1))
        if length > 0:  # of two words alone it is not
            weights[i, j] = weights[j, i] = len(held[i] & held[j]) / length
    leaving = weights.sum(axis=0)
    shares = np.divide(weights, leaving, out=np.zeros_like(weights), where=leaving > 0)
    ranks = np.linalg.solve(np.eye(count) - DAMPING * shares, np.full(count, 1 - DAMPING))
    return [float(rank) for rank in ranks]
