"""Calls that repeat: what was found out about one is kept for the others of its kind."""

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import TypeVar

import torch
from torch import Tensor

from regard.attention.masks.bound import BoundMask, Said
from regard.attention.scores import Dot, ScaledDot, Score

K = TypeVar("K")
V = TypeVar("V")
# How many kinds are kept at once, and how many by each mask at its sizes.
_MOST = 256
# Scores that are equal where they score alike, and hold no tensors.
_PLAIN_SCORES = (ScaledDot, Dot)


@dataclass(slots=True, eq=False)
class Kind:
    """Calls whose queries, keys and values were checked, and differ in numbers alone.

    Attributes:
        leading: The shape of the answer before (N, E).
        heads: H, or None where the tensors have no axis of heads.
        said: What backends said of such calls without a mask or any option.
    """

    leading: tuple[int, ...]
    heads: int | None
    said: Said = field(default_factory=dict)

    def said_under(self, mask: BoundMask | None) -> Said:
        """What backends said of such calls under a mask, which keeps it."""
        if mask is None:
            return self.said
        said = mask.said.get(self)
        return keep(mask.said, self, {}) if said is None else said


# By signature.
KINDS: dict[Hashable, Kind] = {}


def signature_of(
    query: Tensor, key: Tensor, value: Tensor, score: Score, wants_grad: bool
) -> Hashable | None:
    """What is equal for calls of one kind and no others, without their tensors.

    None where nothing is to be kept: the score may hold tensors, or a graph is traced.
    """
    if type(score) not in _PLAIN_SCORES or torch.compiler.is_compiling():
        return None
    if not wants_grad and torch.is_grad_enabled():
        wants_grad = query.requires_grad or key.requires_grad or value.requires_grad
    return (
        query.shape,
        key.shape,
        value.shape,
        query.dtype,
        key.dtype,
        value.dtype,
        query.device,
        key.device,
        value.device,
        score,
        wants_grad,
    )


def keep(memory: dict[K, V], name: K, entry: V) -> V:
    """Enter something into a memory, which is emptied when it is full."""
    if len(memory) >= _MOST:
        memory.clear()
    memory[name] = entry
    return entry
