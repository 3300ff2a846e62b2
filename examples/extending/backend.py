"""A backend: one way to compute attention.

It says which calls it serves, how, and what memory that takes.

In the package: ``attention/backends/NAME.py``, and a line of BACKENDS in
``attention/call/choice.py``, the fastest first.
"""

import torch

from regard.attention import Backend, Offer, Refusal, ScaledDot, Softmax, explain, register_backend


class Naive(Backend):
    """Softmax attention by the whole matrix, of few keys."""

    def offer(self, request):
        is_plain = type(request.score) is ScaledDot and type(request.weighting) is Softmax
        is_plain = is_plain and request.bias is None and request.position is None
        if not is_plain or request.dropout or request.query.shape[1] != request.key.shape[1]:
            return Refusal("it is for what is plain")
        if request.key.shape[2] >= 100:
            return Refusal("there are too many keys")
        return Offer(run, bytes=4 * request.query.shape[:3].numel() * request.key.shape[2])


def run(request):
    """The mixed values and the log-sum-exp, (B, H, N, E) and (B, H, N)."""
    scores = request.score.tile(request.query, request.key)
    if request.mask is not None:
        scores = scores.masked_fill(~request.mask.dense(), float("-inf"))
    return scores.softmax(-1) @ request.value, scores.logsumexp(-1)


register_backend("naive", Naive())
print(explain(*torch.randn(3, 2, 3, 7, 8)).backend)
