"""Compiled loops over rows that reorder and grow decoder states."""

from regard.attention.engine.kernels.compiling import compiled
from regard.attention.engine.kernels.vectors import copy


@compiled
def gather(first, stop, kept, ancestors, made):  # type: ignore[no-untyped-def]
    """Put what belongs to each row into a slot of its own.

    Args:
        first: The first row.
        stop: The row after the last.
        kept: What is in the slots there were, (L, S, T, W).
        ancestors: The slot of each row at each place, (R, t).
        made: Where it goes, (L, R, T', W).
    """
    for layer in range(kept.shape[0]):
        for r in range(first, stop):
            for t in range(ancestors.shape[1]):
                copy(kept[layer, ancestors[r, t], t], made[layer, r, t])
