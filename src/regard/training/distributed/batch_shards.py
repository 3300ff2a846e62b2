"""Shards of a batch in data-parallel training."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Int64


@dataclass(frozen=True, slots=True)
class BatchShard:
    """Shard of each batch for one process; an update has the same examples for any number."""

    # Of the batches of an update, as many as can be dealt out evenly go to one process each, whole;
    # every other one is split into stretches of about as many tokens.

    rank: int = 0
    size: int = 1
    accumulate: int = 1

    @property
    def is_all(self) -> bool:
        """Whether it is everything."""
        return self.size == 1

    def rows(self, place: int, tokens: Int64[np.ndarray, " n"]) -> slice:
        """This process's examples of a batch, by its number in the update and their costs."""
        if place < self.accumulate // self.size * self.size:
            return slice(0, len(tokens) if place % self.size == self.rank else 0)
        cuts = self._cuts(tokens)
        return slice(cuts[self.rank], cuts[self.rank + 1])

    def _cuts(self, tokens: Int64[np.ndarray, " n"]) -> list[int]:
        """Where each stretch begins, and the end: nearest to where equal ones would."""
        ends = np.concatenate([[0], np.cumsum(tokens)])
        wanted = ends[-1] * np.arange(self.size + 1) / self.size
        after = np.searchsorted(ends, wanted)
        before = np.maximum(after - 1, 0)
        is_nearer = wanted - ends[before] < ends[after] - wanted
        return [int(cut) for cut in np.where(is_nearer, before, after)]


WHOLE_BATCH = BatchShard()
