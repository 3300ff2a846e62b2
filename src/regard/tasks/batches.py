"""Samples, which are encoded examples by name, and padded batches of them."""

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import torch
from jaxtyping import Bool, Int, Int32
from torch import Tensor, nn

from regard.text import PAD_ID, UNK_ID
from regard.text.batches import lengths_of, padded

# Numbers, lists of ids, tensors and texts of one encoded example, by name.
Sample: TypeAlias = dict[str, Any]
# A batch of samples by the same names: tensors, batch first; or lists of texts and the like.
Batch: TypeAlias = dict[str, Any]


def collate(samples: Sequence[Sample], padding: Mapping[str, int] | None = None) -> Batch:
    """Pad samples by name, and add the ``lengths`` of ids; ``padding`` has fillers other than 0."""
    fillers = padding or {}
    batch: Batch = {
        name: _together([sample[name] for sample in samples], fillers.get(name, PAD_ID))
        for name in samples[0]
    }
    if "ids" in batch:
        batch["lengths"] = lengths_of([sample["ids"] for sample in samples])
    return batch


def boxed(rows: Sequence[Int32[Tensor, "_ _"]]) -> Tensor:
    """Pad matrices of ids, (N, L), on both axes to one tensor, (B, N, L)."""
    longest, most = (max(row.shape[axis] for row in rows) for axis in (0, 1))
    box = torch.full((len(rows), longest, most), PAD_ID)
    for index, row in enumerate(rows):
        box[index, : row.shape[0], : row.shape[1]] = row
    return box


def dropped(
    ids: Int[Tensor, "..."], may_be: Bool[Tensor, "..."], rate: float, generator: torch.Generator
) -> Int[Tensor, "..."]:
    """The ids, a random fraction of those that may be unknown made so."""
    drawn = torch.rand(ids.shape, generator=generator) < rate
    return ids.masked_fill(may_be & drawn, UNK_ID)


def _together(values: Sequence[Any], filler: int) -> Any:
    first = values[0]
    number = first[0] if isinstance(first, list) and first else first
    if isinstance(first, int | float) or isinstance(number, float):
        return torch.tensor(values)
    if isinstance(first, np.ndarray) and first.dtype.kind == "f":
        return nn.utils.rnn.pad_sequence([*map(torch.from_numpy, values)], batch_first=True)
    if isinstance(first, list | np.ndarray):
        return padded(values, filler)
    if isinstance(first, Tensor):
        return torch.stack(list(values)) if first.is_floating_point() else boxed(values)
    return list(values)
