"""Records attention during a search; weights are computed for the answers only.

A search keeps many beginnings and throws most away. Of every step this keeps the queries that look
at the source, and which earlier row each row goes on from: two small tensors. When the answers are
known, their queries are picked out and their weights worked out at once. So nothing is read or
decoded twice, and what the search does is not changed.
"""

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import Generic

import torch
from jaxtyping import Float, Int
from torch import Tensor

from regard.attention import AttentionCall
from regard.attention.observing import current_observer
from regard.decoding.coverage import source_calls
from regard.decoding.step import AskingState, RankingStep, StateT, Step
from regard.errors import SettingError
from regard.inference.look import mean_weights

# Above every token id: a row of the step before and a token in one number.
_IDS = 1 << 32


@dataclass(frozen=True, slots=True)
class Followed(Generic[StateT]):
    """A state, and the row of the step before that each of its rows goes on from."""

    state: StateT
    rows: Int[Tensor, " R"]

    def select(self, rows: Int[Tensor, " K"]) -> "Followed[StateT]":
        """The state of these rows, in this order."""
        return Followed(self.state.select(rows), self.rows[rows])


@dataclass(frozen=True, slots=True)
class _Step:
    """Attention inputs of one step."""

    token: Int[Tensor, " R"]
    parents: Int[Tensor, " R"]
    queries: dict[int, Float[Tensor, "R *heads 1 D"]]
    biases: dict[int, Float[Tensor, "R *heads 1 S"]]


class Trail(Generic[StateT]):
    """A model's step that notes what it looks at."""

    def __init__(
        self,
        step: Step[StateT],
        *,
        layers: Sequence[int] | None = None,
    ) -> None:
        self._step = step
        self.layers = layers
        self._steps: list[_Step] = []
        self._sources: dict[int, AttentionCall] = {}
        # Whether states say themselves what was asked, so that nobody need observe the steps.
        self._knows_queries = False

    @property
    def steps(self) -> Step[Followed[StateT]]:
        """Step function of a search; returns the likeliest tokens if the model's step does."""
        if isinstance(self._step, RankingStep):
            return _RankedTrail(self, self._step)
        return self.step

    def start(
        self, state: StateT, batch_size: int, *, device: torch.device | None = None
    ) -> Followed[StateT]:
        """The state to begin with, one row a sentence."""
        return Followed(state, torch.arange(batch_size, device=device))

    def step(
        self, token: Int[Tensor, " R"], followed: Followed[StateT]
    ) -> tuple[Float[Tensor, "R V"], Followed[StateT]]:
        """The model's step."""
        with source_calls(self.layers) as calls:
            log_probs, state = self._step(token, followed.state)
        return log_probs, self.recorded(token, followed, state, calls)

    @property
    def knows_queries(self) -> bool:
        """Whether the states say what was asked, so that no call need be observed."""
        return self._knows_queries and current_observer() is None

    def recorded(
        self,
        token: Int[Tensor, " R"],
        followed: Followed[StateT],
        state: StateT,
        calls: Sequence[AttentionCall],
    ) -> Followed[StateT]:
        """Keep what a step asked the source."""
        known: Mapping[int, Tensor] = state.asked if isinstance(state, AskingState) else {}
        if not self._steps:
            self._sources = {call.layer: call for call in calls}
            self._knows_queries = self._sources.keys() <= known.keys()
        queries = {call.layer: call.query for call in calls}
        if not calls:
            queries = {  # with an axis of heads where the calls have one
                layer: known[layer].reshape(-1, *call.query.shape[1:])
                for layer, call in self._sources.items()
            }
        biases = {call.layer: call.bias for call in calls if isinstance(call.bias, Tensor)}
        self._steps.append(_Step(token, followed.rows, queries, biases))
        return Followed(state, torch.arange(len(token), device=token.device))

    def weights(self, answers: Sequence[Sequence[int]]) -> Float[Tensor, "B T S"]:
        """Attention of each output token, averaged over heads and layers."""
        if not self._sources:
            raise SettingError(
                "The model must attend to the source to be looked at; this one does not"
                f"{'' if self.layers is None else f' in layers {_listed(self.layers)}'}."
            )
        paths = self._paths(answers)
        if not paths:
            key = next(iter(self._sources.values())).key
            return key.new_zeros(len(answers), 0, key.shape[-2])
        by_layer = []
        for layer, source in self._sources.items():
            steps = list(zip(self._steps, paths, strict=False))
            asking = [step.queries[layer][rows] for step, rows in steps]
            added = [step.biases[layer][rows] for step, rows in steps if layer in step.biases]
            bias = torch.cat(added, dim=-2) if added else source.bias
            query = torch.cat(asking, dim=-2)
            by_layer.append(mean_weights(replace(source, query=query, bias=bias)))
        return torch.stack(by_layer).mean(0)

    def _paths(self, answers: Sequence[Sequence[int]]) -> list[Int[Tensor, " B"]]:
        """For each step, the row that wrote the next token of each sentence's answer."""
        longest = max(map(len, answers), default=0)
        if not longest:
            return []
        first = self._steps[0]
        # Where an answer is over it follows whatever token 0 leads to, to keep the batch whole.
        tokens = torch.tensor(
            [[*answer, *[0] * (longest - len(answer))] for answer in answers],
            device=first.token.device,
        )
        rows = torch.arange(len(answers), device=first.token.device)
        paths = [rows]
        for number, step in enumerate(self._steps[1:longest], 1):
            # Beginnings differ, so that a row and the token after it name the next row.
            order = (step.parents * _IDS + step.token).sort()
            keys = rows * _IDS + tokens[:, number - 1]
            following = torch.searchsorted(order.values, keys).clamp_max(len(step.token) - 1)
            rows = order.indices[following]
            paths.append(rows)
        return paths


class _RankedTrail(Generic[StateT]):
    """Recorded step that also returns the likeliest tokens."""

    def __init__(self, trail: Trail[StateT], step: RankingStep[StateT]) -> None:
        self._trail, self._step = trail, step

    def __call__(
        self, token: Int[Tensor, " R"], followed: Followed[StateT]
    ) -> tuple[Float[Tensor, "R V"], Followed[StateT]]:
        return self._trail.step(token, followed)

    def best(
        self,
        token: Int[Tensor, " R"],
        followed: Followed[StateT],
        count: int,
        hidden: Sequence[int],
    ) -> tuple[Float[Tensor, "R J"], Int[Tensor, "R J"], Followed[StateT]]:
        layers: Sequence[int] | None = self._trail.layers
        unseen: list[AttentionCall] = []
        with nullcontext(unseen) if self._trail.knows_queries else source_calls(layers) as calls:
            values, tokens, state = self._step.best(token, followed.state, count, hidden)
        return values, tokens, self._trail.recorded(token, followed, state, calls)


def _listed(layers: Sequence[int]) -> str:
    return ", ".join(map(str, layers))
