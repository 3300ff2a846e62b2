"""Keys and values of the positions so far, which a decoder attends to again at every step."""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor


@dataclass(frozen=True, slots=True, eq=False)
class KeyValueCache:
    """The keys and values of the positions so far, batch first.

    Attributes:
        key: One vector per position and key head.
        value: The vector that each position contributes.

    Example:
        >>> cache = KeyValueCache.empty().append(torch.zeros(2, 4, 3, 8), torch.zeros(2, 4, 3, 8))
        >>> cache.append(torch.zeros(2, 4, 1, 8), torch.zeros(2, 4, 1, 8)).length
        4
        >>> cache.select(torch.tensor([1, 1, 0])).key.shape
        torch.Size([3, 4, 3, 8])
    """

    key: Float[Tensor, "B G T D"]
    value: Float[Tensor, "B G T E"]

    @classmethod
    def empty(cls) -> "KeyValueCache":
        """A cache of no positions, to begin a stream with: of any batch, heads, dtype and device.

        Example:
            >>> KeyValueCache.empty().length
            0
        """
        return cls(torch.empty(0, 0, 0, 0), torch.empty(0, 0, 0, 0))

    @property
    def length(self) -> int:
        """Number of cached positions, T."""
        return self.key.shape[-2]

    def append(
        self, key: Float[Tensor, "B G N D"], value: Float[Tensor, "B G N E"]
    ) -> "KeyValueCache":
        """A cache with these positions after the old ones."""
        if not self.key.shape[1]:  # no heads: it is ``empty()``
            return KeyValueCache(key, value)
        return KeyValueCache(
            torch.cat([self.key, key], dim=-2), torch.cat([self.value, value], dim=-2)
        )

    def select(self, rows: Int[Tensor, " K"]) -> "KeyValueCache":
        """The cache of these batch rows; a row may be taken more than once, or not at all."""
        if not self.key.shape[1]:
            return self
        return KeyValueCache(self.key.index_select(0, rows), self.value.index_select(0, rows))
