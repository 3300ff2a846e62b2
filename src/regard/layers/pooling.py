"""A text of any length as one vector."""

from collections.abc import Callable

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from regard.attention import attend, weights
from regard.attention.masks.rules import lengths as visible
from regard.attention.observing import at
from regard.attention.scores import Dot
from regard.checks import check_count, choose
from regard.errors import SettingError
from regard.layers.attention import AdditiveAttention, AttentionPooling
from regard.layers.inputs import real_positions, valid_ids


def first(states: Float[Tensor, "B M C"], lengths: Int[Tensor, " B"]) -> Float[Tensor, "B C"]:
    """The first position's state, as of BERT's [CLS]."""
    return states[:, 0]


def mean(states: Float[Tensor, "B M C"], lengths: Int[Tensor, " B"]) -> Float[Tensor, "B C"]:
    """The mean over real positions: attention with equal weights."""
    # Not masked_fill(), which takes three times as long where one mask is for many columns.
    is_real = real_positions(lengths, states.shape[1])[..., None]
    real = torch.where(is_real, states, 0)
    # torch adds up every fourth row, and a remainder of rows by itself: without a
    # remainder, how much padding stands behind a text does not change its sum.
    return F.pad(real, (0, 0, 0, -real.shape[1] % 4)).sum(1) / lengths[:, None]


def maximum(states: Float[Tensor, "B M C"], lengths: Int[Tensor, " B"]) -> Float[Tensor, "B C"]:
    """The largest number over real positions, column by column: Collobert et al. (2011)."""
    is_real = real_positions(lengths, states.shape[1])[..., None]
    return torch.where(is_real, states, -torch.inf).amax(1)


class LearnedQuery(nn.Module):
    """Attention pooling by one learned query and scaled dot products with projected states."""

    def __init__(self, model_dim: int) -> None:
        super().__init__()
        self.pool = AttentionPooling(model_dim)

    def forward(
        self, states: Float[Tensor, "B M C"], lengths: Int[Tensor, " B"]
    ) -> Float[Tensor, "B C"]:
        """The states mixed by how well each matches the query."""
        with at("cross", 0):
            pooled: Tensor = self.pool(states, mask=visible(lengths))
        return pooled


class TanhQuery(nn.Module):
    """``tanh(Σ α_t h_t)``, ``α = softmax(w · tanh(h_t))``: Zhou et al. (2016), equations 9–12."""

    def __init__(self, model_dim: int) -> None:
        super().__init__()
        self.w = nn.Parameter(torch.empty(1, model_dim))
        nn.init.xavier_uniform_(self.w)

    def forward(
        self, states: Float[Tensor, "B M C"], lengths: Int[Tensor, " B"]
    ) -> Float[Tensor, "B C"]:
        """The states mixed by how well each, bent by tanh, matches w; the mix bent as well."""
        with at("cross", 0):
            query = self.w.to(states.dtype)
            mixed = attend(query, states.tanh(), states, score=Dot(), mask=visible(lengths))
        return mixed.squeeze(1).tanh()


class Structured(nn.Module):
    """The sentence matrix of Lin et al. (2017), arXiv:1703.03130; observers see a hop as a head."""

    def __init__(self, model_dim: int, num_hops: int, hidden_dim: int) -> None:
        super().__init__()
        check_count("num_hops", num_hops)
        check_count("hidden_dim", hidden_dim)
        self.key = nn.Linear(model_dim, hidden_dim, bias=False)
        self.queries = nn.Parameter(torch.empty(num_hops, hidden_dim))
        nn.init.xavier_uniform_(self.key.weight)
        nn.init.xavier_uniform_(self.queries)

    def forward(
        self, states: Float[Tensor, "B M C"], lengths: Int[Tensor, " B"]
    ) -> Float[Tensor, "B RC"]:
        """The states mixed by each hop, hop after hop."""
        queries, keys = self._queries_and_keys(states)
        with at("cross", 0):
            mixed = attend(queries, keys, states[:, None], score=Dot(), mask=visible(lengths))
        return mixed.flatten(1)

    def penalty(
        self, states: Float[Tensor, "B M C"], lengths: Int[Tensor, " B"]
    ) -> Float[Tensor, " B"]:
        """``‖A Aᵀ − I‖²``, Frobenius, of each text: equation 8, small where hops differ."""
        queries, keys = self._queries_and_keys(states)
        A = weights(queries, keys, score=Dot(), mask=visible(lengths)).squeeze(2)  # (B, R, M)
        one = torch.eye(len(self.queries), dtype=A.dtype, device=A.device)
        return (A @ A.mT - one).square().sum((1, 2))

    def _queries_and_keys(
        self, states: Tensor
    ) -> tuple[Float[Tensor, "B R 1 h"], Float[Tensor, "B 1 M h"]]:
        """The queries, a head each, and the keys that all of them look at."""
        queries = self.queries.to(states.dtype)[:, None].expand(states.shape[0], -1, -1, -1)
        keys = self.key(states).tanh().to(states.dtype)
        return queries, keys[:, None]


class StateQuery(nn.Module):
    """Additive attention pooling by a query made of the text's mean state."""

    def __init__(self, model_dim: int) -> None:
        super().__init__()
        self.attention = AdditiveAttention(model_dim, model_dim, model_dim)

    def forward(
        self, states: Float[Tensor, "B M C"], lengths: Int[Tensor, " B"]
    ) -> Float[Tensor, "B C"]:
        """The states mixed by how well each matches their mean."""
        return _attend(self.attention, mean(states, lengths), states, lengths)


class AspectQuery(nn.Module):
    """Attention pooling by an aspect's learned query: Wang et al. (2016), aclanthology D16-1058."""

    def __init__(self, model_dim: int, num_aspects: int) -> None:
        super().__init__()
        check_count("num_aspects", num_aspects, cure="Pooling by aspect needs some.")
        self.queries = nn.Parameter(torch.randn(num_aspects, model_dim))
        self.attention = AdditiveAttention(model_dim, model_dim, model_dim)

    def forward(
        self, states: Float[Tensor, "B M C"], lengths: Int[Tensor, " B"], aspects: Int[Tensor, " B"]
    ) -> Float[Tensor, "B C"]:
        """The states mixed by how well each matches its text's aspect."""
        return _attend(
            self.attention,
            self.queries[valid_ids("aspects", aspects, len(self.queries))],
            states,
            lengths,
        )


POOLINGS: dict[str, Callable[..., Callable[..., Tensor]]] = {
    "first": lambda model_dim: first,
    "mean": lambda model_dim: mean,
    "maximum": lambda model_dim: maximum,
    "query": LearnedQuery,
    "tanh_query": TanhQuery,
    "structured": Structured,
    "state": StateQuery,
    "aspect": AspectQuery,
}


class Pooling(nn.Module):
    """A pooling of ``POOLINGS``, by name.

    Args:
        name: ``first``, ``mean``, ``maximum``, ``query`` (learned), ``tanh_query``, ``structured``
            (several), ``state`` (made of the text) or ``aspect`` (one for each aspect).
        model_dim: Width of the states, C.
        num_aspects: How many aspects there are, for ``aspect``.
        num_hops: How many queries look, for ``structured``.
        hidden_dim: Width of the vectors that they look at, for ``structured``.

    Attributes:
        output_dim: Width of a text's vector: C, or for ``structured`` C for each hop.

    Raises:
        SettingError: The name is unknown, ``aspect`` has no aspects, or a size is not positive.

    Example:
        >>> Pooling("mean", 1)(torch.tensor([[[1.0], [3.0], [9.0]]]), torch.tensor([2]))
        tensor([[2.]])
    """

    def __init__(
        self,
        name: str,
        model_dim: int,
        *,
        num_aspects: int = 0,
        num_hops: int = 5,
        hidden_dim: int = 128,
    ) -> None:
        super().__init__()
        self.name = name
        make = choose("pooling", name, POOLINGS)
        check_count("model_dim", model_dim)
        sizes = {"aspect": (num_aspects,), "structured": (num_hops, hidden_dim)}.get(name, ())
        self.pool = make(model_dim, *sizes)
        self.output_dim = model_dim * (num_hops if name == "structured" else 1)

    def forward(
        self,
        states: Float[Tensor, "B M C"],
        lengths: Int[Tensor, " B"],
        *,
        aspects: Int[Tensor, " B"] | None = None,
    ) -> Float[Tensor, "B Y"]:
        """The vector of each text, without its padding.

        Raises:
            SettingError: Aspects are missing where they are the query, or given where they are not.
        """
        if (aspects is None) == (self.name == "aspect"):
            received = "none" if aspects is None else "some"
            raise SettingError(
                f"aspects must be given with pooling 'aspect' alone; got {received} "
                f"with {self.name!r}."
            )
        pooled: Tensor = self.pool(states, lengths, *(() if aspects is None else (aspects,)))
        return pooled

    def penalty(
        self, states: Float[Tensor, "B M C"], lengths: Int[Tensor, " B"]
    ) -> Float[Tensor, " B"]:
        """Penalty for hops of ``structured`` that look alike; zero for all other poolings."""
        if not isinstance(self.pool, Structured):
            return states.new_zeros(len(states))
        return self.pool.penalty(states, lengths)


def _attend(attention: AdditiveAttention, query: Tensor, states: Tensor, lengths: Tensor) -> Tensor:
    with at("cross", 0):
        pooled: Tensor = attention(query, attention.prepare(states), states, mask=visible(lengths))
    return pooled
