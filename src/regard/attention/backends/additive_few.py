"""Additive attention of a few queries: a decoding step, in as few operations as can be.

The hidden units of so few queries are no more than the keys themselves, so they are held at once,
and worked out again for the gradient.
"""

import torch
from torch import Tensor

from regard.attention.engine import tiled
from regard.attention.engine.blocks import BlockPass, Inputs, Sizes
from regard.attention.engine.function_context import FunctionContext, Gradients
from regard.attention.engine.numerics import as_it_is, mix
from regard.attention.engine.request import Request
from regard.attention.weighting import Softmax

MOST_QUERIES = 3
# Hidden units held at once: 4 MB of float32.
_MOST_UNITS = 2**20
_SOFTMAX = Softmax()


def fits(request: Request) -> bool:
    """Whether the call is small and plain enough."""
    B, H, N, D = request.query.shape
    return (
        N <= MOST_QUERIES
        and B * H * N * request.key.shape[2] * D <= _MOST_UNITS
        and request.bias is None
        and not request.dropout
        and not request.return_lse
        and request.score.tensors()[0].shape == (D,)
    )


def run(request: Request) -> Tensor:
    """The mixed values (B, H, N, E)."""
    inputs = Inputs.of(request)
    floats = request.score.floats_per_pair(inputs.query.shape[-1])
    job = BlockPass.of(request, Sizes.of(request, floats, cuts_keys=False))
    hidden = None if request.mask is None else request.mask.whole_hidden
    out: Tensor = _Few.apply(  # type: ignore[no-untyped-call]
        job, hidden, inputs.query, inputs.key, inputs.value, *inputs.tensors
    )
    return out.to(request.query.dtype)


def _unsquashed(query: Tensor, key: Tensor) -> Tensor:
    """R = sigmoid(−2 (q + k)), so that tanh(q + k) = 1 − 2r: (B, H, N, M, D)."""
    return torch.add(query.mul(-2).unsqueeze(3), key.unsqueeze(2), alpha=-2).sigmoid_()


class _Few(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: FunctionContext,
        job: BlockPass,
        hidden: Tensor | None,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        w: Tensor,
    ) -> Tensor:
        r = _unsquashed(query, key)
        # Around ½, tanh = −2 (r − ½): sums of numbers that are near ½ would lose what differs.
        scores = torch.mv(r.sub_(0.5).flatten(0, -2), w.mul(-2)).view(r.shape[:-1])
        if hidden is not None:
            scores.masked_fill_(hidden, float("-inf"))
        weights = _SOFTMAX.rows(scores)
        ctx.job = job
        ctx.save_for_backward(query, key, value, w, weights)
        return mix(weights, value, hidden)

    @staticmethod
    @as_it_is
    def backward(ctx: FunctionContext, d_out: Tensor) -> Gradients:
        query, key, value, w, weights = ctx.saved_tensors
        wanted = ctx.needs_input_grad[2:]
        if torch.is_grad_enabled():
            inputs = Inputs(query, key, value, None, (w,))
            places = (*wanted[:3], False, wanted[3])
            d_lse = d_out.new_zeros(d_out.shape[:-1])
            grads = tiled.backward(ctx.job, inputs, places, d_out, d_lse)
            return (None, None, *grads[:3], grads[4])
        d_out = d_out.contiguous()
        d_weights = d_out @ value.transpose(-1, -2)
        d_scores = _SOFTMAX.gradient(weights, d_weights).masked_fill_(weights == 0, 0)
        r = _unsquashed(query, key)
        d_query = d_key = d_value = d_w = None
        if wanted[3]:
            d_w = torch.mv((r - 0.5).flatten(0, -2).t(), d_scores.flatten()).mul_(-2)
        if wanted[0] or wanted[1]:
            # tanh' = 4 (r − r²).
            r.addcmul_(r, r, value=-1).mul_(d_scores.mul(4).unsqueeze(-1)).mul_(w)
            d_query = r.sum(dim=3)
            d_key = r.squeeze(2) if r.shape[2] == 1 else r.sum(dim=2)
        if wanted[2]:
            d_value = weights.transpose(-1, -2) @ d_out
        return None, None, d_query, d_key, d_value, d_w
