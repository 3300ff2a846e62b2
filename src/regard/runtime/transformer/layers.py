"""Parameters of Transformer layers, in the form of compiled loops."""

import sys
from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np
import torch
from jaxtyping import Float32
from torch import nn

from regard.attention.biases import alibi_slopes
from regard.attention.scores import Dot, ScaledDot
from regard.kernels.transformer import layers as kernels
from regard.kernels.transformer.layers import LayerOptions
from regard.layers.block import ACTIVATIONS, TransformerBlock
from regard.layers.positions import LearnedPositions, RotaryPositions, SinusoidalPositions
from regard.runtime.base import why_not_packed

NORMS = (nn.LayerNorm, nn.RMSNorm)
_KNOWN = [ACTIVATIONS[name] for name in kernels.ACTIVATIONS]


def why_not_prepared(blocks: Sequence[TransformerBlock]) -> str | None:
    """Reason why layers like these cannot be prepared, or None."""
    block = blocks[0]
    attentions = (block.attend, block.cross_attend)
    scores = {type(attention.score) for attention in attentions if attention is not None}
    reasons = {
        "its positions are relative": block.distances is not None,
        "its score is no dot product": not scores <= {Dot, ScaledDot},
        "its norm is that of a batch": not isinstance(block.attend_residual.norm, NORMS),
        "its activation is one of your own": block.feed.activation not in _KNOWN,
    }
    return why_not_packed(block.parameters(), reasons)


def options_of(blocks: Sequence[TransformerBlock], alibi_heads: int | None) -> LayerOptions:
    """Settings that layers share, with ALiBi's slopes of so many heads."""
    attend, residual = blocks[0].attend, blocks[0].attend_residual
    norm, rotary = residual.norm, attend.rotary
    assert isinstance(norm, NORMS)
    return LayerOptions(
        attend.num_heads,
        attend.num_key_heads,
        attend.head_dim,
        np.float32(attend.head_dim**-0.5 if isinstance(attend.score, ScaledDot) else 1.0),
        np.array([] if alibi_heads is None else alibi_slopes(alibi_heads), np.float32),
        np.float32(torch.finfo(torch.float32).eps if norm.eps is None else norm.eps),
        isinstance(norm, nn.RMSNorm),
        residual.order == "pre",
        _KNOWN.index(blocks[0].feed.activation),
        attend.head_dim // 2 if rotary is not None and rotary.pairs == "halves" else 1,
    )


def norms_of(blocks: Sequence[TransformerBlock], last: nn.Module) -> tuple[np.ndarray, np.ndarray]:
    """The norms of all layers, in the order they are applied; of pre-norm, with the last."""
    norms = [
        residual.norm
        for block in blocks
        for residual in (block.attend_residual, block.cross_attend_residual, block.feed_residual)
        if residual is not None
    ]
    if blocks[0].attend_residual.order == "pre":
        norms.append(last)
    weights, biases = zip(*map(weights_of, norms), strict=True)
    return np.stack(weights), np.stack(biases)


def weights_of(norm: nn.Module) -> tuple[np.ndarray, np.ndarray]:
    """The weight and the bias of a norm, without entries if it has none."""
    if isinstance(norm, nn.Identity):
        return (np.zeros(0, np.float32),) * 2
    assert isinstance(norm, NORMS)
    bias = getattr(norm, "bias", None)
    weight = norm.weight.detach().numpy()
    return weight, weight[:0] if bias is None else bias.detach().numpy()


class _Table(ABC):
    """A table with a row for each position, computed as far as it is needed."""

    _rows: Float32[np.ndarray, "P ..."]

    def until(self, stop: int) -> Float32[np.ndarray, "P ..."]:
        """The rows of positions before ``stop``, and of some after."""
        rows = self._rows  # of this thread: another may compute more meanwhile
        while len(rows) < stop:
            more = np.concatenate([rows, self._next(len(rows))])
            rows = self._rows = np.ascontiguousarray(more)  # loops are compiled for how it lies
        return rows

    @abstractmethod
    def _next(self, first: int) -> Float32[np.ndarray, "P ..."]: ...


class PositionTable(_Table):
    """Position embeddings; without positions, zeros."""

    def __init__(
        self, positions: SinusoidalPositions | LearnedPositions | None, width: int
    ) -> None:
        self._positions, self.is_added = positions, positions is not None
        self.width = width
        self._rows = np.zeros((0, width), np.float32)

    @property
    def most(self) -> int:
        """Positions that there are."""
        table = self._positions
        return len(table.table) if isinstance(table, LearnedPositions) else sys.maxsize

    def _next(self, first: int) -> Float32[np.ndarray, "P C"]:
        nothing = torch.zeros(1, max(first, 64), self.width)
        if self._positions is None:
            return nothing[0].numpy()
        if isinstance(self._positions, LearnedPositions):
            nothing = nothing[:, : max(1, len(self._positions.table) - first)]
        more: np.ndarray = self._positions(nothing, first=first)[0].detach().numpy()
        return more


class RotaryTable(_Table):
    """Sines and cosines that rotate queries and keys, (P, 2, pairs); no pairs without rotation."""

    def __init__(self, rotary: RotaryPositions | None) -> None:
        self._rotary = rotary
        pairs = 0 if rotary is None else rotary.head_dim // 2
        self._rows = np.zeros((0, 2, pairs), np.float32)

    def _next(self, first: int) -> Float32[np.ndarray, "P 2 p"]:
        """Rotate pairs of one and zero."""
        count = max(first, 64)
        if self._rotary is None:
            return np.zeros((count, 2, 0), np.float32)
        numbers, in_halves = torch.arange(self._rotary.head_dim), self._rotary.pairs == "halves"
        is_first = numbers < len(numbers) // 2 if in_halves else numbers % 2 == 0
        ones = is_first.float().expand(count, -1)
        rotated = self._rotary(ones, first=first).numpy()
        return np.stack([rotated[:, ~is_first.numpy()], rotated[:, is_first.numpy()]], axis=1)
