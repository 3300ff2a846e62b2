"""Rows of ids side by side."""

from collections.abc import Sequence

import numpy as np
import torch
from jaxtyping import Int, Shaped
from torch import Tensor

from regard.text.pieces import PAD_ID

# The ids, or other whole numbers, of one row.
Ids = Sequence[int] | Shaped[np.ndarray, " _"]


def padded(rows: Sequence[Ids], filler: int = PAD_ID) -> Int[Tensor, "B N"]:
    """Rows as one tensor, each filled up on the right to the longest.

    Example:
        >>> padded([[7, 8], [9]]).tolist(), padded([[7], []], -1).tolist()
        ([[7, 8], [9, 0]], [[7], [-1]])
    """
    # Row by row into one array: a tensor of each takes three times as long.
    made = np.full((len(rows), max(map(len, rows), default=0)), filler, dtype=np.int64)
    for place, row in zip(made, rows, strict=True):
        place[: len(row)] = row
    return torch.from_numpy(made)


def lengths_of(rows: Sequence[Ids]) -> Int[Tensor, " B"]:
    """How many ids are in each row.

    Example:
        >>> lengths_of([[7, 8], [9]]).tolist()
        [2, 1]
    """
    return torch.tensor([len(row) for row in rows], dtype=torch.long)
