"""Decoder states between two tokens, the memory that they attend to, and prompts before them."""

from dataclasses import dataclass, fields, replace
from typing import TypeVar

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from regard.attention import KeyValueCache, Mask
from regard.attention import lengths as lengths_mask
from regard.errors import ShapeError

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
        return SourceMemory(self.keys[rows], self.values[rows], kept, lengths_mask(kept))

    @property
    def places(self) -> Float[Tensor, " S"]:
        """1 … S, as the papers count."""
        S = self.values.shape[1]
        return torch.arange(1, S + 1, dtype=self.values.dtype, device=self.values.device)

    @property
    def is_padding(self) -> Bool[Tensor, "B S"]:
        """Mask of the padded positions."""
        return self.places > self.lengths[:, None]


@dataclass(frozen=True)
class AlignedPrompt:
    """Prompts without their last tokens, ended on one column.

    Attributes:
        aligned: All tokens of each row but its last, padded on the left.
        padding: How many columns of a row are padding.
        last: The last token of each row; None if the prompts have no columns.
        is_even: Whether there is no padding.

    Example:
        >>> AlignedPrompt.of(torch.tensor([[5, 6, 7], [8, 9, 0]]), torch.tensor([3, 2])).aligned
        tensor([[5, 6],
                [0, 8]])
    """

    aligned: Int[Tensor, "B T"]
    padding: Int[Tensor, " B"]
    last: Int[Tensor, " B"] | None
    is_even: bool

    @classmethod
    def of(cls, prompt: Int[Tensor, "B S"], lengths: Int[Tensor, " B"]) -> "AlignedPrompt":
        """Cut prompts that are padded on the right.

        Raises:
            ShapeError: A row is empty, or longer than it is wide.
        """
        S = prompt.shape[1]
        if not S or not len(prompt):
            return cls(prompt[:, :0], torch.zeros_like(lengths), None, True)
        shortest, longest = int(lengths.min()), int(lengths.max())
        if not 1 <= shortest <= longest <= S:
            raise ShapeError(
                f"prompt_lengths must be from 1 to S = {S}; got {shortest} to {longest}. "
                "Begin every prompt with a token that begins a text."
            )
        padding = longest - lengths
        columns = torch.arange(longest, device=prompt.device) - padding[:, None]
        # Padding reads as whatever the row holds: no state sees it.
        turned = prompt.gather(1, columns % longest)
        return cls(turned[:, :-1], padding, turned[:, -1], shortest == longest)
