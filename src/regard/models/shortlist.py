"""Lexical shortlist: target tokens by the tokens of the source."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Int, Int32, Int64
from torch import Tensor


@dataclass(frozen=True, eq=False)
class Shortlist:
    """The likeliest target tokens of each source token, and those that every answer may hold.

    A last layer of 32,000 tokens is most of a step; an answer is made of a few hundred that its
    source suggests: Jean et al. (2015), https://arxiv.org/abs/1412.2007, section 3.2.

    Attributes:
        likely: Target ids by source id; where there are fewer, some of ``always``.
        always: Target ids that any answer may hold.
        target_vocab: Number of target ids, V.

    Example:
        >>> likely = np.array([[3, 3], [3, 3], [3, 3], [3, 3], [5, 3], [6, 7]], np.int32)
        >>> shortlist = Shortlist(likely, np.array([0, 1, 2, 3]), 9)
        >>> mask = shortlist.of(torch.tensor([[4, 5], [4, 5]]), torch.tensor([2, 1]))
        >>> [row.nonzero()[0].tolist() for row in mask]
        [[0, 1, 2, 3, 5, 6, 7], [0, 1, 2, 3, 5]]
    """

    likely: Int32[np.ndarray, "U K"]
    always: Int64[np.ndarray, " A"]
    target_vocab: int

    def of(
        self, source: Int[Tensor, "B S"], source_lengths: Int[Tensor, " B"]
    ) -> Bool[np.ndarray, "B V"]:
        """Target tokens allowed for each source.

        Args:
            source: Ids, padded on the right.
            source_lengths: How many of them are real.
        """
        mask = np.zeros((len(source), self.target_vocab), bool)
        mask[:, self.always] = True
        is_real = np.arange(source.shape[1]) < source_lengths.numpy()[:, None]
        rows, places = is_real.nonzero()
        mask[rows[:, None], self.likely[source.numpy()[rows, places]]] = True
        return mask

    def adding(self, tokens: Iterable[int]) -> "Shortlist":
        """Return the shortlist with further tokens that every answer may hold."""
        more = np.fromiter(tokens, np.int64)
        return Shortlist(self.likely, np.union1d(self.always, more), self.target_vocab)

    def tensors(self) -> dict[str, Int[Tensor, "..."]]:
        """Return the shortlist as tensors."""
        return {
            "likely": torch.from_numpy(self.likely),
            "always": torch.from_numpy(self.always),
            "target_vocab": torch.tensor([self.target_vocab]),
        }

    @classmethod
    def of_tensors(cls, tensors: Mapping[str, Int[Tensor, "..."]]) -> "Shortlist":
        """The one that ``tensors`` was asked of."""
        return cls(
            tensors["likely"].numpy(), tensors["always"].numpy(), int(tensors["target_vocab"])
        )
