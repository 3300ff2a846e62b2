"""A text of any length as one vector."""

from collections.abc import Callable
from typing import Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from regard.attention.masks import lengths as visible
from regard.attention.observing import at
from regard.checks import check_positive
from regard.choices import choose
from regard.errors import SettingError
from regard.layers.attention import AdditiveAttention, AttentionPooling

PoolingName = Literal["first", "mean", "maximum", "query", "state", "aspect"]


class First(nn.Module):
    """The first position's state, as of BERT's [CLS]; what stands there has seen all the others."""

    def forward(
        self, states: Float[Tensor, "B M C"], lengths: Int[Tensor, " B"]
    ) -> Float[Tensor, "B C"]:
        """The state at place 0."""
        return states[:, 0]


class Mean(nn.Module):
    """The mean over real positions: attention with equal weights."""

    def forward(
        self, states: Float[Tensor, "B M C"], lengths: Int[Tensor, " B"]
    ) -> Float[Tensor, "B C"]:
        """The states' mean."""
        return states.masked_fill(~_real(states, lengths), 0).sum(1) / lengths[:, None]


class Maximum(nn.Module):
    """The largest number over real positions, column by column: Collobert et al. (2011)."""

    def forward(
        self, states: Float[Tensor, "B M C"], lengths: Int[Tensor, " B"]
    ) -> Float[Tensor, "B C"]:
        """The states' largest numbers."""
        return states.masked_fill(~_real(states, lengths), -torch.inf).amax(1)


class LearnedQuery(nn.Module):
    """What one fixed, learned query gathers: Lin et al. (2017), https://arxiv.org/abs/1703.03130.

    Args:
        model_dim: Width of the states, C.
    """

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


class StateQuery(nn.Module):
    """What a query made of the text itself, of its mean state, gathers.

    ``w · tanh(W mean(h) + U h_t)``: the attention of Bahdanau et al. (2015) with the text in the
    place of the decoder's state, as of a person who reads it again knowing what it is about.

    Args:
        model_dim: Width of the states, C.
    """

    def __init__(self, model_dim: int) -> None:
        super().__init__()
        self.mean = Mean()
        self.look = AdditiveAttention(model_dim, model_dim, model_dim)

    def forward(
        self, states: Float[Tensor, "B M C"], lengths: Int[Tensor, " B"]
    ) -> Float[Tensor, "B C"]:
        """The states mixed by how well each matches their mean."""
        query = self.mean(states, lengths)
        return _look(self.look, query, states, lengths)


class AspectQuery(nn.Module):
    """What the query of an aspect gathers: Wang et al. (2016), https://aclanthology.org/D16-1058.

    The same text read for "service" or for "price" is another vector. An aspect is a number, and
    has a learned query.

    Args:
        model_dim: Width of the states, C.
        num_aspects: How many aspects there are.
    """

    def __init__(self, model_dim: int, num_aspects: int) -> None:
        super().__init__()
        check_positive("num_aspects", num_aspects, cure="Pooling by aspect needs some.")
        self.queries = nn.Parameter(torch.randn(num_aspects, model_dim))
        self.look = AdditiveAttention(model_dim, model_dim, model_dim)

    def forward(
        self,
        states: Float[Tensor, "B M C"],
        lengths: Int[Tensor, " B"],
        aspects: Int[Tensor, " B"],
    ) -> Float[Tensor, "B C"]:
        """The states mixed by how well each matches its text's aspect."""
        return _look(self.look, self.queries[aspects], states, lengths)


POOLINGS: dict[str, Callable[..., nn.Module]] = {
    "first": lambda model_dim: First(),
    "mean": lambda model_dim: Mean(),
    "maximum": lambda model_dim: Maximum(),
    "query": LearnedQuery,
    "state": StateQuery,
    "aspect": AspectQuery,
}


class Pooling(nn.Module):
    """One of ``POOLINGS``, by name.

    Args:
        name: ``first``, ``mean``, ``maximum``, ``query`` (learned), ``state`` (made of the text) or
            ``aspect`` (one for each aspect).
        model_dim: Width of the states, C.
        num_aspects: How many aspects there are, for ``aspect``.

    Raises:
        SettingError: The name is unknown, or ``aspect`` has no aspects.

    Example:
        >>> Pooling("mean", 1)(torch.tensor([[[1.0], [3.0], [9.0]]]), torch.tensor([2]))
        tensor([[2.]])
    """

    def __init__(self, name: str, model_dim: int, *, num_aspects: int = 0) -> None:
        super().__init__()
        self.name = name
        arguments = (model_dim, num_aspects) if name == "aspect" else (model_dim,)
        self.pool: nn.Module = choose("pooling", name, POOLINGS)(*arguments)

    def forward(
        self,
        states: Float[Tensor, "B M C"],
        lengths: Int[Tensor, " B"],
        *,
        aspects: Int[Tensor, " B"] | None = None,
    ) -> Float[Tensor, "B C"]:
        """Each text's vector; of padding nothing is in it.

        Raises:
            SettingError: Aspects are missing where they are the query, or given where they are not.
        """
        if (aspects is None) == (self.name == "aspect"):
            given = "none" if aspects is None else "some"
            raise SettingError(
                f"aspects must be given with pooling 'aspect' alone; got {given} "
                f"with {self.name!r}."
            )
        pooled: Tensor = self.pool(states, lengths, *(() if aspects is None else (aspects,)))
        return pooled


def _look(look: AdditiveAttention, query: Tensor, states: Tensor, lengths: Tensor) -> Tensor:
    with at("cross", 0):
        pooled: Tensor = look(query, look.prepare(states), states, mask=visible(lengths))
    return pooled


def _real(states: Tensor, lengths: Tensor) -> Tensor:
    """Which positions are no padding, (B, M, 1)."""
    return (torch.arange(states.shape[1], device=states.device) < lengths[:, None])[..., None]
