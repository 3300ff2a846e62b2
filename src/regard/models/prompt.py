"""A batch of prompts of different lengths, cut for a language model to go on from."""

from dataclasses import dataclass

import torch
from jaxtyping import Int
from torch import Tensor

from regard.errors import ShapeError


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
