"""A backend: one way to compute attention.

It says which calls it serves, what memory it takes, and the answer.

In the package: ``attention/backends/NAME.py``, and a line of BACKENDS in ``attention/plan.py``, the
fastest first.
"""

import torch

from regard.attention import ScaledDot, Softmax, explain
from regard.attention.backends.base import Backend
from regard.attention.plan import register_backend


class Naive(Backend):
    """Softmax attention by the whole matrix, of few keys."""

    def refuse(self, request):
        is_plain = type(request.score) is ScaledDot and type(request.weighting) is Softmax
        is_plain = is_plain and request.bias is None and request.position is None
        if not is_plain or request.dropout or request.query.shape[1] != request.key.shape[1]:
            return "it is for what is plain"
        return None if request.key.shape[2] < 100 else "there are too many keys"

    def bytes_beyond(self, request):
        return 4 * request.query.shape[:3].numel() * request.key.shape[2]

    def run(self, request):
        scores = request.score.tile(request.query, request.key)
        if request.mask is not None:
            scores = scores.masked_fill(~request.mask.dense(), float("-inf"))
        lse = scores.logsumexp(-1) if request.return_lse else None
        return scores.softmax(-1) @ request.value, lse


register_backend("naive", Naive())
print(explain(*torch.randn(3, 2, 3, 7, 8)).backend)
