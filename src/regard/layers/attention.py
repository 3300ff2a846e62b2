"""Attention layers of recurrent models: they own the projections, the engine does the rest."""

from math import sqrt

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from regard.attention.attend import attend
from regard.attention.mask import Mask
from regard.attention.scores import Additive
from regard.checks import check_fraction, check_positive


class AdditiveAttention(nn.Module):
    """Additive attention: a small network says how well a query and a key match.

    ``score(s, h) = w · tanh(W s + U h)``: Bahdanau et al. (2015), https://arxiv.org/abs/1409.0473,
    appendix A.1.2. All queries may come at once (training with a known target) or one at a time
    (decoding); the N×M×h hidden units are never held together.

    Args:
        query_dim: Width of a query, such as a decoder's state.
        key_dim: Width of a memory state.
        hidden_dim: Hidden units of the network, h.
        dropout: The fraction of attention weights set to zero in training.

    Raises:
        SettingError: A width is not positive, or dropout is not below 1.

    Example:
        >>> layer = AdditiveAttention(query_dim=4, key_dim=6, hidden_dim=8)
        >>> memory = torch.ones(2, 5, 6)
        >>> keys = layer.prepare(memory)
        >>> layer(torch.zeros(2, 4), keys, memory).shape
        torch.Size([2, 6])
    """

    def __init__(
        self, query_dim: int, key_dim: int, hidden_dim: int, *, dropout: float = 0.0
    ) -> None:
        super().__init__()
        check_positive("query_dim", query_dim)
        check_positive("key_dim", key_dim)
        check_positive("hidden_dim", hidden_dim)
        check_fraction("dropout", dropout)
        self.dropout = dropout
        self.query = nn.Linear(query_dim, hidden_dim, bias=False)
        self.key = nn.Linear(key_dim, hidden_dim)
        self.w = nn.Parameter(torch.empty(hidden_dim))
        nn.init.xavier_uniform_(self.query.weight)
        nn.init.xavier_uniform_(self.key.weight)
        nn.init.zeros_(self.key.bias)
        nn.init.uniform_(self.w, -sqrt(6 / (hidden_dim + 1)), sqrt(6 / (hidden_dim + 1)))

    def prepare(self, memory: Float[Tensor, "B M K"]) -> Float[Tensor, "B M h"]:
        """The projected keys of a memory: compute them once, pass them to every step."""
        keys: Tensor = self.key(memory)
        return keys.to(memory.dtype)

    def forward(
        self,
        query: Float[Tensor, "B N Q"] | Float[Tensor, "B Q"],
        keys: Float[Tensor, "B M h"],
        values: Float[Tensor, "B M E"],
        *,
        mask: Mask | Bool[Tensor, "..."] | None = None,
    ) -> Float[Tensor, "B N E"] | Float[Tensor, "B E"]:
        """The context of each query.

        Args:
            query: One query a row, or several.
            keys: From ``prepare``.
            values: What is mixed, usually the memory itself.
            mask: Which keys may be looked at; broadcasts to (B, N, M).

        Returns:
            The mixed values, with an axis of queries if there was one.
        """
        single = query.dim() == 2
        # Under autocast the projection is in half precision and the keys are not: sums of h terms
        # through a tanh are worth float32.
        queries = self.query(query.unsqueeze(1) if single else query).to(values.dtype)
        context = attend(
            queries,
            keys,
            values,
            score=Additive(self.w),
            mask=mask,
            dropout=self.dropout if self.training else 0.0,
        )
        return context.squeeze(1) if single else context
