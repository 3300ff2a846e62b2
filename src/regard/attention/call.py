"""One call of ``attend``, and what its weights were."""

from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor

from regard.attention.biases import PositionBias
from regard.attention.engine.options import CallOptions
from regard.attention.engine.request import Request, make_weights_request
from regard.attention.inspect.rollout import transposed_of
from regard.attention.inspect.rows import Places, matrix_of, rows_of
from regard.attention.inspect.summarize import Queries, summary_of
from regard.attention.inspect.summary import Summary
from regard.attention.masks.base import Mask
from regard.attention.scores.base import Score
from regard.attention.weighting import Weighting


@dataclass(frozen=True, slots=True, eq=False)
class AttentionCall:
    """One call of ``attend``, as an observer is shown it: enough to work its weights out again.

    Attributes:
        kind: What attends to what: "encoder", "decoder" or "cross"; "" if no model said.
        layer: Which layer, from 0; -1 if no model said.
        query: The queries, as they were given.
        key: The keys.
        score: How they match.
        mask: Which keys were visible.
        bias: What was added to the scores.
        weighting: How scores became weights.

    Example:
        >>> import torch
        >>> from regard.attention import attend, observe
        >>> calls = []
        >>> with observe(calls.append):
        ...     _ = attend(torch.zeros(1, 4), torch.zeros(2, 4))
        >>> calls[0].weights()
        tensor([[0.5000, 0.5000]])
    """

    kind: str
    layer: int
    query: Float[Tensor, "*batch N D"]
    key: Float[Tensor, "*keys M K"]
    score: Score
    mask: Mask | None
    bias: Float[Tensor, "..."] | PositionBias | None
    weighting: Weighting

    def weights(self) -> Float[Tensor, "*b N M"]:
        """The whole matrix of its weights; see :func:`regard.attention.weights`."""
        return matrix_of(self._request())

    def rows(self, places: Places) -> Float[Tensor, "*b P M"]:
        """The weights of some queries; see :func:`regard.attention.rows`."""
        return rows_of(self._request(), places)

    def summary(
        self,
        *,
        top: int = 8,
        map: int = 64,  # noqa: A002  (what it is called everywhere else)
        queries: Queries | None = None,
        start: tuple[int, int] = (0, 0),
    ) -> Summary:
        """Summary of its weights; see :func:`regard.attention.summarize`.

        Args:
            top: How many keys of each query are named.
            map: How many rows and columns the pooled map has at most.
            queries: Which queries count in what keys receive and in the map: a slice, or True for
                those that do, broadcasting to (*batch, N). None counts all.
            start: The places of query 0 and key 0 where both are parts of a longer sequence.

        Raises:
            ShapeError: ``queries`` are neither a slice nor booleans of such a shape.
            SettingError: An option is out of range.

        Example:
            >>> import torch
            >>> from regard.attention import attend, observe, summarize_seen
            >>> calls = []
            >>> with observe(calls.append):
            ...     _ = attend(torch.ones(1, 1), torch.tensor([[0.0], [3.0]]))
            >>> seen = summarize_seen(calls[0], top=1)
            >>> seen.top_keys.tolist(), seen.top_weights
            ([[1]], tensor([[0.9526]]))
        """
        return summary_of(self._request(), top, map, queries, start)

    def transposed(self, states: Float[Tensor, "... N E"]) -> Float[Tensor, "*b M E"]:
        """Sums of the queries' states by key; see :func:`regard.attention.transposed`."""
        return transposed_of(self._request(), states)

    def _request(self) -> Request:
        options = CallOptions(self.score, self.mask, self.bias, self.weighting)
        return make_weights_request(self.query, self.key, options)


# The same as a function of the call.
summarize_seen = AttentionCall.summary
