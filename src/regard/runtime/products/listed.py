"""The last layer over the tokens of shortlists: its rows are gathered once for a batch.

What is gathered is what any sentence of the batch may need; of that, each row chooses among what
its own sentence may, so that its answer does not depend on the others.
"""

from collections.abc import Callable, Sequence

import numpy as np
import torch
from jaxtyping import Bool, Float, Int, Int64
from torch import Tensor

from regard.kernels.threads import by_rows
from regard.layers import TokenEmbedding
from regard.runtime.products.int8 import Int8Embedding
from regard.runtime.products.linear import Linear


class Listed:
    """Restricted vocabulary of a batch, with its part of the output layer.

    Args:
        mask: Which target tokens an answer to each source may be made of.
        output: The last layer.
        bias: Its bias.
    """

    def __init__(
        self,
        mask: Bool[np.ndarray, "B V"],
        output: TokenEmbedding | Int8Embedding,
        bias: Float[Tensor, " V"] | None,
    ) -> None:
        # Only here: what cannot be compiled cannot be imported.
        from regard.kernels.search.listed import best_listed

        self._best_listed = best_listed
        self._ids = ids = np.flatnonzero(mask.any(axis=0))
        self._size = mask.shape[1]
        self._mask = mask[:, ids]
        sentences, self._places = self._mask.nonzero()
        self._begins = np.searchsorted(sentences, np.arange(len(mask) + 1))
        self._logits_of = _some_of(output, bias, torch.from_numpy(ids))

    @property
    def lengths(self) -> Int64[np.ndarray, " B"]:
        """How many tokens each sentence may choose among."""
        lengths: np.ndarray = np.diff(self._begins)
        return lengths

    def log_probs(
        self, states: Float[Tensor, "R C"], sentences: Int64[np.ndarray, " R"]
    ) -> Float[Tensor, "R V"]:
        """Log-probabilities of all tokens: −inf of those that are not on a row's list.

        Args:
            states: What predicts.
            sentences: The source of each row.
        """
        is_hidden = torch.from_numpy(~self._mask[sentences])
        logits = self._logits_of(states).masked_fill_(is_hidden, -torch.inf)
        found = logits.new_full((len(states), self._size), -torch.inf)
        found[:, torch.from_numpy(self._ids)] = logits.log_softmax(dim=-1)
        return found

    def best(
        self,
        states: Float[Tensor, "R C"],
        sentences: Int64[np.ndarray, " R"],
        count: int,
        hidden: Sequence[int],
    ) -> tuple[Float[Tensor, "R J"], Int[Tensor, "R J"]]:
        """The likeliest tokens of each row's list; see ``RankingStep``."""
        logits, never = self._logits_of(states).numpy(), np.array(hidden, np.int64)
        values = np.empty((len(states), count), np.float32)
        tokens = np.empty((len(states), count), np.int64)

        def choose(first: int, stop: int) -> None:
            self._best_listed(
                first,
                stop,
                logits,
                sentences,
                self._ids,
                self._places,
                self._begins,
                never,
                values,
                tokens,
            )

        by_rows(len(states), 4 * logits.shape[1], choose)
        return torch.from_numpy(values), torch.from_numpy(tokens)


def _some_of(
    output: TokenEmbedding | Int8Embedding, bias: Tensor | None, ids: Int[Tensor, " U"]
) -> Callable[[Tensor], Tensor]:
    """Output layer of these tokens."""
    chosen = None if bias is None else bias.detach()[ids]
    if isinstance(output, Int8Embedding):
        return output.logits_of(ids, chosen)
    return Linear(output.weight.detach()[ids], chosen)
