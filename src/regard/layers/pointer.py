"""Given weights and copying: attention whose weights are mixed, read or pointed with.

The pointer-generator is that of See et al. (2017), https://arxiv.org/abs/1704.04368, section 2.2,
over one vocabulary that both sides share.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from regard.attention import Dot, Mask, ScaledDot, attend
from regard.attention.observing import is_edited, is_watched
from regard.attention.weighting import Weighting
from regard.errors import SettingError


class Pointer(nn.Module):
    """A softmax over the vocabulary, mixed with copies of the source's tokens."""

    # ``P(w) = g P_vocab(w) + (1 − g) Σ_{i: x_i = w} a_i`` with ``g = sigmoid(w · inputs + b)``:
    # equations 8 and 9. All that the mix needs is put side by side into one state, so that a loss
    # can make the logits of some rows at a time, as those of models that do not copy.

    def __init__(self, input_dim: int) -> None:
        super().__init__()
        self.gate = nn.Linear(input_dim, 1)
        nn.init.zeros_(self.gate.weight)
        nn.init.zeros_(self.gate.bias)

    def forward(
        self,
        readout: Float[Tensor, "*batch C"],
        inputs: Float[Tensor, "*batch X"],
        weights: Float[Tensor, "*batch S"],
        source: Int[Tensor, "*batch S"],
    ) -> Float[Tensor, "*batch Y"]:
        """States of width C + 1 + 2S: readout, gate, weights, and the ids that these are of."""
        # Floats hold ids exactly up to 2^24. The inputs of the gate are the context, the decoder's
        # state and the last token; padding of the source has no weight.
        wide = torch.promote_types(weights.dtype, torch.float32)
        parts = (readout, self.gate(inputs), weights, source)
        return torch.cat([part.to(wide) for part in parts], dim=-1)

    def logits(
        self,
        states: Float[Tensor, "*batch Y"],
        readout_dim: int,
        of_vocabulary: Callable[[Tensor], Tensor],
    ) -> Float[Tensor, "*batch V"]:
        """Logits of the mixture: the vocabulary's logits l, larger where a token is copied."""
        # ``P(w) Z / g = exp l_w + Z exp(−x) Σ a_i`` with Z the sum of all ``exp l_v`` and ``g =
        # sigmoid(x)``: only the source's tokens differ from the vocabulary's own logits, so only
        # for them is anything worked out.
        width = (states.shape[-1] - readout_dim - 1) // 2
        readout, gate, weights, ids = torch.split(states, [readout_dim, 1, width, width], dim=-1)
        logits, ids = of_vocabulary(readout).to(states.dtype), ids.long()
        nothing = torch.zeros_like(logits)
        copied = nothing.scatter_add(-1, ids, weights).gather(-1, ids)
        times = nothing.scatter_add(-1, ids, torch.ones_like(weights)).gather(-1, ids)
        # Not zero, whose logarithm has no gradient.
        copied = copied.clamp_min(torch.finfo(copied.dtype).tiny).log()
        log_sum_exp = logits.logsumexp(dim=-1, keepdim=True)
        gained = F.softplus(log_sum_exp - gate + copied - logits.gather(-1, ids))
        return logits.scatter_add(-1, ids, gained / times)  # once for a token that comes twice


class CopyAttention(nn.Module):
    """A further head over the source, whose weights say which tokens to copy."""

    # ``softmax(x W^Q (m W^K)ᵀ / √C)``.

    def __init__(self, model_dim: int) -> None:
        super().__init__()
        self.query = nn.Linear(model_dim, model_dim)
        self.key = nn.Linear(model_dim, model_dim)

    def forward(
        self,
        states: Float[Tensor, "B N C"],
        keys: Float[Tensor, "B S C"],
        *,
        mask: Mask | None = None,
    ) -> Float[Tensor, "B N S"]:
        """Weight of each state on each source token."""
        return attend(
            self.query(states).to(keys.dtype), keys, identity(keys), score=ScaledDot(), mask=mask
        )


def identity(keys: Float[Tensor, "B S K"]) -> Float[Tensor, "B S S"]:
    """Values whose mix is the weights themselves: the rows of the identity."""
    B, S, _ = keys.shape
    return torch.eye(S, dtype=keys.dtype, device=keys.device).expand(B, S, S)


def check_shared(name: str, is_shared: bool) -> None:
    """Raise unless both sides number the same tokens, without which none can be copied."""
    if not is_shared:
        raise SettingError(
            f"{name} must go with one vocabulary for both sides; got two. "
            "Set tokenizer.shared = true."
        )


@dataclass(frozen=True, slots=True)
class Exponential(Weighting):
    """A weighting: ``exp(score)``, as it is; rows need not sum to one."""

    def rows(self, scores: Float[Tensor, "*b n M"]) -> Float[Tensor, "*b n M"]:
        return scores.exp()

    def gradient(
        self, weights: Float[Tensor, "*b n M"], grad: Float[Tensor, "*b n M"]
    ) -> Float[Tensor, "*b n M"]:
        return weights * grad


def mix(
    log_weights: Float[Tensor, "B N M"], values: Float[Tensor, "B M E"]
) -> Float[Tensor, "B N E"]:
    """``exp(log_weights) · values``, as a call of ``attend`` that observers see."""
    # The scores of the call are zeros, its bias is ``log_weights``. Where nobody observes or edits,
    # there is no call: a step of a recurrent decoder would spend most of its time on it.
    bias = log_weights.to(values.dtype)
    if not (is_watched() or is_edited()):
        # As in ``attend``, automatic precision narrows nothing.
        with torch.autocast(values.device.type, enabled=False):
            return bias.exp() @ values
    B, N, M = bias.shape
    queries, keys = bias.new_zeros(B, N, 1), bias.new_zeros(B, M, 1)
    return attend(queries, keys, values, score=Dot(), bias=bias, weighting=Exponential())
