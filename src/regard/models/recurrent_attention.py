"""Attention of a recurrent decoder to the source, step by step: one class for each variant.

A variant takes the score's layer, the query and its own state; it gives a context, and whatever
else the step brought about.
"""

from dataclasses import dataclass
from math import log

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from regard.attention import Hard, attend, window
from regard.layers import ScoredAttention
from regard.layers.pointer import identity, mix
from regard.models.interfaces import DecodingState, SourceMemory


@dataclass(frozen=True)
class AttentionState(DecodingState):
    """Steps so far, and their sum: coverage (B, S), or positions of the bumps (B, K)."""

    step: int = 0
    past: Float[Tensor, "B ..."] | None = None

    def next(self, past: Tensor | None = None) -> "AttentionState":
        """Return the state after one step."""
        return AttentionState(self.step + 1, past)


@dataclass(frozen=True)
class AttentionOutput:
    """Context and state of one step; the rest where it is needed."""

    context: Float[Tensor, "B E"]
    state: AttentionState
    weights: Float[Tensor, "B S"] | None = None
    penalty: Float[Tensor, " B"] | None = None
    log_prob: Float[Tensor, " B"] | None = None


class Soft(nn.Module):
    """The weighted mean of all values: Bahdanau et al. (2015); Luong et al. (2015)'s *global*."""

    def __init__(self, *, shows_weights: bool = False) -> None:
        super().__init__()
        self.shows_weights = shows_weights

    def start(self, memory: SourceMemory) -> AttentionState:
        """Nothing is remembered."""
        return AttentionState()

    def forward(
        self, attention: ScoredAttention, query: Tensor, memory: SourceMemory, state: AttentionState
    ) -> AttentionOutput:
        if self.shows_weights:
            weights = attention(query, memory.keys, identity(memory.keys), mask=memory.mask)
            context = weights.to(memory.values.dtype).unsqueeze(1) @ memory.values
            return AttentionOutput(context.squeeze(1), state.next(), weights=weights)
        context = attention(query, memory.keys, memory.values, mask=memory.mask)
        return AttentionOutput(context, state.next())


class Covering(nn.Module):
    """Attention that knows its weights so far: See et al. (2017), equations 11 and 12."""

    def __init__(self, key_dim: int) -> None:
        super().__init__()
        self.w = nn.Parameter(torch.empty(key_dim))
        nn.init.uniform_(self.w, -(key_dim**-0.5), key_dim**-0.5)

    def start(self, memory: SourceMemory) -> AttentionState:
        """Nothing is covered."""
        return AttentionState(past=memory.keys.new_zeros(memory.keys.shape[:2]))

    def forward(
        self, attention: ScoredAttention, query: Tensor, memory: SourceMemory, state: AttentionState
    ) -> AttentionOutput:
        covered = state.past
        assert covered is not None
        keys = memory.keys + covered.unsqueeze(-1) * self.w
        log_weights = _log_weights(attention, query, keys, memory, memory.is_padding)
        context, weights = _mixed(log_weights, memory), log_weights.exp()
        return AttentionOutput(context, state.next(covered + weights), weights)

    @staticmethod
    def penalties(weights: Float[Tensor, "B T S"]) -> Float[Tensor, "B T"]:
        """Weight of each step on tokens that were looked at before: equation 12."""
        return torch.minimum(weights, weights.cumsum(1) - weights).sum(-1)


class Sampled(nn.Module):
    """Hard attention to a drawn position; in use the likeliest: Xu et al. (2015), section 4.1."""

    def __init__(self, *, mean_share: float = 0.5) -> None:
        super().__init__()
        self.mean_share = mean_share

    def start(self, memory: SourceMemory) -> AttentionState:
        """Draw the sentences that take the mean context at every step: ones in the state."""
        if not self.training:
            return AttentionState()
        lots = torch.rand(len(memory.values), device=memory.values.device)
        return AttentionState(past=(lots < self.mean_share).to(memory.values.dtype))

    def forward(
        self, attention: ScoredAttention, query: Tensor, memory: SourceMemory, state: AttentionState
    ) -> AttentionOutput:
        """Take a step; its penalty is the entropy, negative, in nats."""
        values = memory.values
        if not self.training:
            inputs = attention.ask(query).to(values.dtype).unsqueeze(1), memory.keys, values
            score = attention.score(values.dtype)
            context = attend(*inputs, score=score, mask=memory.mask, weighting=Hard())
            return AttentionOutput(context.squeeze(1), state.next())
        is_mean = state.past
        assert is_mean is not None
        log_weights = _log_weights(attention, query, memory.keys, memory, memory.is_padding)
        weights = log_weights.exp()
        index = draw(weights)
        drawn = values[torch.arange(len(values), device=values.device), index]
        mean = _mixed(log_weights, memory)
        log_prob = log_weights.gather(1, index[:, None]).squeeze(1)
        return AttentionOutput(
            torch.where(is_mean[:, None] > 0, mean, drawn),
            state.next(is_mean),
            penalty=(weights * log_weights.masked_fill(memory.is_padding, 0)).sum(-1),
            log_prob=log_prob * (1 - is_mean),  # the mean was no draw
        )


class Near(nn.Module):
    """Positions near p_t only: the *local* attention of Luong et al. (2015), section 3.2."""

    def __init__(self, query_dim: int, reach: int, *, is_predictive: bool) -> None:
        super().__init__()
        self.reach = reach
        self.is_predictive = is_predictive
        if is_predictive:
            self.inner = nn.Linear(query_dim, query_dim, bias=False)
            self.outer = nn.Linear(query_dim, 1, bias=False)

    def start(self, memory: SourceMemory) -> AttentionState:
        """Start at step 0; only the number of steps is remembered."""
        return AttentionState()

    def forward(
        self, attention: ScoredAttention, query: Tensor, memory: SourceMemory, state: AttentionState
    ) -> AttentionOutput:
        if not self.is_predictive:
            near = window(self.reach, self.reach, first=state.step) & memory.mask
            context = attention(query, memory.keys, memory.values, mask=near)
            return AttentionOutput(context, state.next())
        fraction = torch.sigmoid(self.outer(torch.tanh(self.inner(query)))).to(memory.values.dtype)
        distance = memory.positions - memory.lengths[:, None] * fraction  # (B, S)
        is_hidden = (distance.abs() > self.reach) | memory.is_padding
        align = _log_weights(attention, query, memory.keys, memory, is_hidden)
        log_weights = align - distance.square() / (2 * (self.reach / 2) ** 2)
        return AttentionOutput(_mixed(log_weights, memory), state.next())


class Mixture(nn.Module):
    """Bumps that only move forward: the window of Graves (2013), equations 46 to 51."""

    def __init__(self, query_dim: int, num_gaussians: int) -> None:
        super().__init__()
        self.num_gaussians = num_gaussians
        self.window = nn.Linear(query_dim, 3 * num_gaussians)
        # At first the mean of the bumps, each one position further with each step.
        nn.init.zeros_(self.window.bias)
        nn.init.constant_(self.window.bias.data[:num_gaussians], -log(num_gaussians))

    def start(self, memory: SourceMemory) -> AttentionState:
        """Place all bumps before the first position."""
        return AttentionState(past=memory.values.new_zeros(len(memory.values), self.num_gaussians))

    def forward(
        self,
        attention: ScoredAttention | None,
        query: Tensor,
        memory: SourceMemory,
        state: AttentionState,
    ) -> AttentionOutput:
        dtype = memory.values.dtype
        log_alpha, log_beta, log_move = self.window(query).to(dtype).chunk(3, dim=-1)
        assert state.past is not None
        kappa = state.past + log_move.exp()
        distance = kappa.unsqueeze(-1) - memory.positions  # (B, K, S)
        bumps = log_alpha.unsqueeze(-1) - log_beta.exp().unsqueeze(-1) * distance.square()
        log_weights = bumps.logsumexp(1).masked_fill(memory.is_padding, float("-inf"))
        return AttentionOutput(_mixed(log_weights, memory), state.next(kappa))


# How a decoder looks at the source.
AttentionVariant = Soft | Covering | Sampled | Near | Mixture


def reinforce(
    log_probs: Float[Tensor, "B T"], gains: Float[Tensor, "B T"], is_real: Bool[Tensor, "B T"]
) -> Float[Tensor, ""]:
    """REINFORCE loss of sampled positions, with the rest of the batch as baseline."""
    # ``−Σ_t (R_t − b_t) log p(a_t)`` with ``R_t = Σ_{t' ≥ t} log p(y_{t'})``, all that a draw can
    # change: Williams (1992); Xu et al. (2015), equation 12, without λ_r. The baseline b_t is the
    # gain of the batch's other sentences for each token left at that step, times the tokens left
    # here: no draw of a sentence's own is in it, so the gradient has no bias.
    tokens_left = is_real.flip(1).cumsum(1).flip(1)
    rewards = (gains * is_real).flip(1).cumsum(1).flip(1)
    batch_rewards, batch_tokens = rewards.sum(0) - rewards, tokens_left.sum(0) - tokens_left
    baseline = tokens_left * batch_rewards / batch_tokens.clamp_min(1)
    return -((rewards - baseline).detach() * log_probs * is_real).sum()


def draw(weights: Float[Tensor, "B S"]) -> Int[Tensor, " B"]:
    """A position for each row, drawn with the probability of its weight."""
    return torch.multinomial(weights, 1).squeeze(1)


def _log_weights(
    attention: ScoredAttention,
    query: Float[Tensor, "B Q"],
    keys: Float[Tensor, "B S h"],
    memory: SourceMemory,
    is_hidden: Bool[Tensor, "B S"],
) -> Float[Tensor, "B S"]:
    """The logarithm of a softmax over the positions that are not hidden."""
    dtype = memory.values.dtype
    score, queries = attention.score(dtype), attention.ask(query).to(dtype).unsqueeze(1)
    # As in ``attend``, automatic precision narrows nothing.
    with torch.autocast(queries.device.type, enabled=False):
        scores = score.tile(queries, keys, *score.tensors()).squeeze(1)
    return scores.masked_fill(is_hidden, float("-inf")).log_softmax(-1)


def _mixed(log_weights: Float[Tensor, "B S"], memory: SourceMemory) -> Float[Tensor, "B E"]:
    """The values mixed by given weights, where observers see them."""
    return mix(log_weights.unsqueeze(1), memory.values).squeeze(1)
