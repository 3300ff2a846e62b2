"""Attention with one head: layers that own the parameters of a score.

All but the pooling are used alike: ``prepare`` a memory once, then ask with any number of queries.
"""

from abc import ABC, abstractmethod
from math import sqrt

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from regard.attention.attend import attend
from regard.attention.masks.base import Mask
from regard.attention.scores import Additive, Bilinear, Dot, ScaledDot, Score
from regard.checks import check_count, check_fraction
from regard.errors import ShapeError


class ScoredAttention(nn.Module, ABC):
    """Single-head attention over a memory, with a score of one's choice.

    Args:
        dropout: The fraction of attention weights set to zero in training.

    Example:
        A layer for which the sizes of numbers count, and their signs do not:

        >>> class Unsigned(ScoredAttention):
        ...     def prepare(self, memory):
        ...         return memory.abs()
        ...     def ask(self, query):
        ...         return query.abs()
        ...     def score(self, dtype):
        ...         return Dot()
        >>> layer, memory = Unsigned(), torch.tensor([[[-3.0], [0.0]]])
        >>> layer(torch.tensor([[2.0]]), layer.prepare(memory), torch.tensor([[[1.0], [0.0]]]))
        tensor([[0.9975]])
    """

    def __init__(self, *, dropout: float = 0.0) -> None:
        super().__init__()
        check_fraction("dropout", dropout)
        self.dropout = dropout

    def prepare(self, memory: Float[Tensor, "B M K"]) -> Float[Tensor, "B M h"]:
        """The keys of a memory: compute them once, pass them to every step.

        Unless said, they are the memory itself.
        """
        return memory

    def ask(self, query: Float[Tensor, "*batch Q"]) -> Float[Tensor, "*batch h"]:
        """The queries as the score takes them; unless said, as they are."""
        return query

    @abstractmethod
    def score(self, dtype: torch.dtype) -> Score:
        """The score of queries and keys of this dtype."""

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
            values: The vectors that are mixed, usually the memory itself.
            mask: Which keys may be looked at; broadcasts to (B, N, M).

        Returns:
            The mixed values, with an axis of queries if there was one.
        """
        # Under autocast a projection is in half precision and the values are not: sums of many
        # terms through a tanh are worth float32.
        queries = self.ask(query).to(values.dtype)
        is_single = query.dim() == 2
        context = attend(
            queries.unsqueeze(1) if is_single else queries,
            keys,
            values,
            score=self.score(values.dtype),
            mask=mask,
            dropout=self.dropout if self.training else 0.0,
        )
        return context.squeeze(1) if is_single else context


class AdditiveAttention(ScoredAttention):
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
        super().__init__(dropout=dropout)
        check_count("query_dim", query_dim)
        check_count("key_dim", key_dim)
        check_count("hidden_dim", hidden_dim)
        self.query = nn.Linear(query_dim, hidden_dim, bias=False)
        self.key = nn.Linear(key_dim, hidden_dim)
        self.w = nn.Parameter(torch.empty(hidden_dim))
        nn.init.xavier_uniform_(self.query.weight)
        nn.init.xavier_uniform_(self.key.weight)
        nn.init.zeros_(self.key.bias)
        nn.init.uniform_(self.w, -sqrt(6 / (hidden_dim + 1)), sqrt(6 / (hidden_dim + 1)))

    def prepare(self, memory: Float[Tensor, "B M K"]) -> Float[Tensor, "B M h"]:
        keys: Tensor = self.key(memory)
        return keys.to(memory.dtype)

    def ask(self, query: Float[Tensor, "*batch Q"]) -> Float[Tensor, "*batch h"]:
        queries: Tensor = self.query(query)
        return queries

    def score(self, dtype: torch.dtype) -> Score:
        return Additive(self.w)


class DotAttention(ScoredAttention):
    """Attention by the dot product of a query and a memory state; nothing is learned.

    Luong et al. (2015), https://arxiv.org/abs/1508.04025, equation 8, *dot*; scaled, Vaswani et al.
    (2017), equation 1.

    Args:
        is_scaled: Whether scores are divided by the square root of the width.
        dropout: The fraction of attention weights set to zero in training.

    Example:
        >>> memory = torch.ones(2, 5, 6)
        >>> DotAttention()(torch.zeros(2, 6), memory, memory).shape
        torch.Size([2, 6])
    """

    def __init__(self, *, is_scaled: bool = True, dropout: float = 0.0) -> None:
        super().__init__(dropout=dropout)
        self.is_scaled = is_scaled

    def score(self, dtype: torch.dtype) -> Score:
        return ScaledDot() if self.is_scaled else Dot()


class BilinearAttention(ScoredAttention):
    """Attention by ``qᵀ W k``: Luong et al. (2015), equation 8, *general*.

    Args:
        query_dim: Width of a query.
        key_dim: Width of a memory state.
        dropout: The fraction of attention weights set to zero in training.

    Raises:
        SettingError: A width is not positive, or dropout is not below 1.

    Example:
        >>> layer = BilinearAttention(query_dim=3, key_dim=2)
        >>> layer.w.data = torch.tensor([[9.0, 0.0], [0.0, 9.0], [0.0, 0.0]])
        >>> memory = torch.eye(2)[None]
        >>> query = torch.tensor([[0.0, 1.0, 5.0]])
        >>> layer(query, layer.prepare(memory), memory).round(decimals=3).tolist()
        [[0.0, 1.0]]
    """

    def __init__(self, query_dim: int, key_dim: int, *, dropout: float = 0.0) -> None:
        super().__init__(dropout=dropout)
        check_count("query_dim", query_dim)
        check_count("key_dim", key_dim)
        self.w = nn.Parameter(torch.empty(query_dim, key_dim))
        nn.init.xavier_uniform_(self.w)

    def score(self, dtype: torch.dtype) -> Score:
        return Bilinear(self.w)


class LocationAttention(ScoredAttention):
    """Attention to positions: a query says which positions count, whatever stands there.

    ``softmax(W q)``: Luong et al. (2015), equation 9, *location*.

    Args:
        query_dim: Width of a query.
        max_length: The longest memory.
        dropout: The fraction of attention weights set to zero in training.

    Raises:
        SettingError: A size is not positive, or dropout is not below 1.

    Example:
        >>> layer = LocationAttention(query_dim=1, max_length=4)
        >>> layer.w.data = torch.tensor([[0.0], [9.0], [0.0], [0.0]])  # the second position
        >>> memory = torch.tensor([[[5.0], [6.0], [7.0]]])
        >>> layer(torch.tensor([[1.0]]), layer.prepare(memory), memory).round(decimals=2).tolist()
        [[6.0]]
    """

    def __init__(self, query_dim: int, max_length: int, *, dropout: float = 0.0) -> None:
        super().__init__(dropout=dropout)
        check_count("query_dim", query_dim)
        check_count("max_length", max_length)
        self.w = nn.Parameter(torch.empty(max_length, query_dim))
        nn.init.xavier_uniform_(self.w)

    def prepare(self, memory: Float[Tensor, "B M K"]) -> Float[Tensor, "B M Q"]:
        """The keys: for each position of the memory its row of W.

        Raises:
            ShapeError: The memory is longer than ``max_length``.
        """
        B, M, _ = memory.shape
        if len(self.w) < M:
            raise ShapeError(
                f"memory must be at most {len(self.w)} positions long; got {M}. "
                "Make the layer with a larger max_length."
            )
        return self.w[:M].to(memory.dtype).expand(B, M, -1)

    def score(self, dtype: torch.dtype) -> Score:
        return Dot()


class AttentionPooling(nn.Module):
    """A sequence of any length as one vector: the context of a learned query by scaled products."""

    def __init__(self, model_dim: int) -> None:
        super().__init__()
        check_count("model_dim", model_dim)
        self.queries = nn.Parameter(torch.empty(1, model_dim))
        self.key = nn.Linear(model_dim, model_dim)
        nn.init.normal_(self.queries)

    def forward(
        self, states: Float[Tensor, "B M C"], *, mask: Mask | Bool[Tensor, "..."] | None = None
    ) -> Float[Tensor, "B C"]:
        """The states mixed by how well each, projected, matches the query."""
        queries = self.queries.to(states.dtype).expand(states.shape[0], -1, -1)
        return attend(queries, self.key(states).to(states.dtype), states, mask=mask).squeeze(1)
