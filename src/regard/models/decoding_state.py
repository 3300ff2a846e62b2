"""Decoder states between two tokens, and the memory that they attend to."""

from dataclasses import dataclass, fields, replace
from typing import TypeVar

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from regard.attention import KeyValueCache, Mask, lengths

T = TypeVar("T", bound="DecodingState")


@dataclass(frozen=True)
class DecodingState:
    """A tree of tensors whose first axis is the batch's, and of numbers that all rows share."""

    def select(self: T, rows: Int[Tensor, " K"]) -> T:
        """The state of these rows, in this order; a row may come twice."""
        chosen = {each.name: _rows_of(getattr(self, each.name), rows) for each in fields(self)}
        return replace(self, **chosen)


def _rows_of(part: object, rows: Int[Tensor, " K"]) -> object:
    if isinstance(part, Tensor):
        return part[rows]
    if isinstance(part, tuple):
        return tuple(_rows_of(each, rows) for each in part)
    return (
        part.select(rows)
        if isinstance(part, DecodingState | KeyValueCache | SourceMemory)
        else part
    )


@dataclass(frozen=True)
class SourceMemory:
    """Encoder states that attention looks at.

    Attributes:
        keys: The source states, projected for the score.
        values: What is mixed.
        lengths: How many of them are real.
        mask: The same as a mask, made once for all steps.
    """

    keys: Float[Tensor, "B S h"]
    values: Float[Tensor, "B S E"]
    lengths: Int[Tensor, " B"]
    mask: Mask

    def select(self, rows: Int[Tensor, " K"]) -> "SourceMemory":
        """The memory of these rows, in this order."""
        kept = self.lengths[rows]
        return SourceMemory(self.keys[rows], self.values[rows], kept, lengths(kept))

    @property
    def places(self) -> Float[Tensor, " S"]:
        """1 … S, as the papers count."""
        S = self.values.shape[1]
        return torch.arange(1, S + 1, dtype=self.values.dtype, device=self.values.device)

    @property
    def is_padding(self) -> Bool[Tensor, "B S"]:
        """Mask of the padded positions."""
        return self.places > self.lengths[:, None]
