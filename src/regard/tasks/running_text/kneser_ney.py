"""Interpolated Kneser-Ney: the n-gram model that neural ones are measured against."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64, Int64

from regard.checks import check_at_least

# An n-gram is one number, so that many are counted and looked up at once.
_BITS = 62


@dataclass(frozen=True, slots=True, eq=False)
class _Order:
    """Counts of the n-grams of one length."""

    grams: Int64[np.ndarray, " grams"]
    counts: Int64[np.ndarray, " grams"]
    contexts: Int64[np.ndarray, " contexts"]
    totals: Int64[np.ndarray, " contexts"]
    kinds: Int64[np.ndarray, " contexts"]
    discount: float


class KneserNey:
    """Interpolated Kneser-Ney: the probability of each token after the few before it.

    ``P(w | h) = max(c(h w) − D, 0) / c(h) + D · N(h ·) / c(h) · P(w | h′)`` with ``D = n₁ / (n₁ + 2
    n₂)``: Chen & Goodman (1999), https://doi.org/10.1006/csla.1999.0128.
    """

    def __init__(self, ids: Int64[np.ndarray, " ids"], *, vocab_size: int, order: int = 5) -> None:
        check_at_least("order", order, 1)
        self._size = vocab_size
        self.order = max(1, min(order, _BITS // max(1, (vocab_size - 1).bit_length())))
        grams, counts = np.unique(self._grams(ids, self.order), return_counts=True)
        self._orders: list[_Order] = []
        for length in range(self.order, 0, -1):
            self._orders.append(self._counted(grams, counts))
            grams, counts = np.unique(grams % vocab_size ** (length - 1), return_counts=True)

    def log_probs(self, ids: Int64[np.ndarray, " ids"]) -> Float64[np.ndarray, " predicted"]:
        """The log-probability of each token but the first, after as many as there are before it."""
        probabilities = np.full(len(ids) - 1, 1 / self._size)
        for length, order in enumerate(reversed(self._orders), 1):
            # The first tokens have fewer before them, and keep the probability of shorter n-grams.
            skipped = max(0, length - 2)
            grams = self._grams(ids, length)[1 if length == 1 else 0 :]
            probabilities[skipped:] = self._interpolated(order, grams, probabilities[skipped:])
        logs: Float64[np.ndarray, " n"] = np.log(probabilities)
        return logs

    def _interpolated(
        self, order: _Order, grams: Int64[np.ndarray, " n"], shorter: Float64[np.ndarray, " n"]
    ) -> Float64[np.ndarray, " n"]:
        counts = _looked_up(order.grams, order.counts, grams)
        contexts = grams // self._size
        totals = _looked_up(order.contexts, order.totals, contexts)
        kinds = _looked_up(order.contexts, order.kinds, contexts)
        denominators = np.maximum(totals, 1)
        mixed = (
            np.maximum(counts - order.discount, 0) / denominators
            + order.discount * kinds / denominators * shorter
        )
        return np.where(totals > 0, mixed, shorter)

    def _grams(self, ids: Int64[np.ndarray, " n"], length: int) -> Int64[np.ndarray, "_"]:
        """Every run of so many tokens, as a number."""
        last = len(ids) - length + 1
        if last < 1:
            return np.zeros(0, dtype=np.int64)
        grams = np.zeros(last, dtype=np.int64)
        for offset in range(length):
            grams = grams * self._size + ids[offset : offset + last]
        return grams

    def _counted(
        self, grams: Int64[np.ndarray, " grams"], counts: Int64[np.ndarray, " grams"]
    ) -> _Order:
        contexts, where = np.unique(grams // self._size, return_inverse=True)
        once, twice = int((counts == 1).sum()), int((counts == 2).sum())
        return _Order(
            grams,
            counts,
            contexts,
            np.bincount(where, weights=counts).astype(np.int64),
            np.bincount(where).astype(np.int64),
            once / (once + 2 * twice) if once else 0.5,
        )


def _looked_up(
    keys: Int64[np.ndarray, " keys"],
    values: Int64[np.ndarray, " keys"],
    queries: Int64[np.ndarray, " n"],
) -> Int64[np.ndarray, " n"]:
    """The value of each wanted key; 0 for one that is not there."""
    indices = np.searchsorted(keys, queries).clip(max=max(0, len(keys) - 1))
    if not len(keys):
        return np.zeros(len(queries), dtype=np.int64)
    return np.where(keys[indices] == queries, values[indices], 0)
