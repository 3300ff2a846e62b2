"""The loss of a language model over a whole text, in windows side by side; the same for all."""

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional as F

# Windows read at once.
_ROWS = 64


@torch.no_grad()
def whole_loss(logits_of: Callable[[Tensor], Tensor], ids: Tensor, *, context: int) -> float:
    """The mean nats of every token but the first.

    Windows do not overlap, so a token knows what is before it in its window and no more; the last
    window is shorter.
    """
    reads, labels = ids[:-1], ids[1:]
    full = len(reads) // context * context
    groups = [
        *zip(
            reads[:full].view(-1, context).split(_ROWS),
            labels[:full].view(-1, context).split(_ROWS),
            strict=True,
        )
    ]
    if full < len(reads):
        groups.append((reads[None, full:], labels[None, full:]))
    nats = sum(
        F.cross_entropy(
            logits_of(read).float().flatten(0, 1), label.flatten(), reduction="sum"
        ).item()
        for read, label in groups
    )
    return nats / len(reads)
