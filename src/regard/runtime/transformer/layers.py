"""Parameters of Transformer layers, in the form of compiled loops."""

from collections.abc import Callable, Sequence

import numpy as np
import torch
from jaxtyping import Float32
from torch import Tensor, nn

from regard.attention.biases import alibi_slopes
from regard.attention.scores import Dot, ScaledDot
from regard.kernels import why_not
from regard.kernels.threads import parallel_rows
from regard.kernels.transformer import decoder as kernels
from regard.kernels.transformer.decoder import Options
from regard.layers import MultiHeadAttention
from regard.layers.block import TransformerBlock
from regard.layers.feedforward import ACTIVATIONS, swiglu
from regard.layers.positions import LearnedPositions, RotaryPositions, SinusoidalPositions
from regard.layers.residual import Residual
from regard.runtime.products.int8 import Int8Embedding, Int8Linear

# Weights up to so many bytes stay in the cache of a core while it goes through them for its rows.
MOST_BYTES = 2**25

NORMS = (nn.LayerNorm, nn.RMSNorm)


def why_not_prepared(blocks: Sequence[TransformerBlock]) -> str | None:
    """Reason why layers like these cannot be prepared, or None."""
    block = blocks[0]
    scores = [type(each.score) for each in attentions(block)]
    reasons = {
        "its positions are relative": block.distances is not None,
        "its score is no dot product": not {Dot, ScaledDot}.issuperset(scores),
        "its norm is that of a batch": not isinstance(residuals(block)[0].norm, NORMS),
        "it is not in float32 on a CPU": any(
            p.device.type != "cpu" or p.dtype != torch.float32 for p in block.parameters()
        ),
    }
    return why_not() or next((reason for reason, holds in reasons.items() if holds), None)


def attentions(block: TransformerBlock) -> list[MultiHeadAttention]:
    """Attentions of a layer: to itself, and to a memory."""
    return [block.attend] if block.look is None else [block.attend, block.look]


def residuals(block: TransformerBlock) -> list[Residual]:
    """Residual connections of a layer, in their order."""
    all_three = (block.attend_residual, block.look_residual, block.feed_residual)
    return [each for each in all_three if each is not None]


def options_of(blocks: Sequence[TransformerBlock], alibi_heads: int | None) -> Options:
    """Settings that layers share.

    Args:
        blocks: The layers.
        alibi_heads: How many heads have ALiBi's slopes; None is none.
    """
    attend, residual = attentions(blocks[0])[0], blocks[0].attend_residual
    first = residual.norm
    assert isinstance(first, NORMS)
    return Options(
        attend.num_heads,
        attend.num_key_heads,
        attend.head_dim,
        np.float32(attend.head_dim**-0.5 if isinstance(attend.score, ScaledDot) else 1.0),
        np.array([] if alibi_heads is None else alibi_slopes(alibi_heads), np.float32),
        np.float32(torch.finfo(torch.float32).eps if first.eps is None else first.eps),
        isinstance(first, nn.RMSNorm),
        residual.order == "pre",
        _place_of(blocks[0].feed.activation, kernels.ACTIVATIONS),
        attend.head_dim // 2 if _is_in_halves(attend.rotary) else 1,
    )


def activation_of(block: TransformerBlock, options: Options) -> Callable[[Tensor], Tensor]:
    """Activation between two maps; it may work in place.

    torch works out the last few numbers of all by another formula, which are those of one state
    or of another.
    """
    is_gated = block.feed.activation is swiglu
    if is_gated:
        options = options._replace(activation=kernels.ACTIVATIONS.index("silu"))
    if options.activation < 0:
        return block.feed.activation

    def activate(inner: Tensor) -> Tensor:
        (rows, width), numbers = inner.shape, inner.numpy()
        parallel_rows(rows, 8 * width, lambda *part: kernels.activate_rows(*part, numbers, options))
        return inner

    def gate(inner: Tensor) -> Tensor:
        gates, values = inner.chunk(2, dim=-1)
        return activate(gates.contiguous()) * values

    return gate if is_gated else activate


def norms_of(
    blocks: Sequence[TransformerBlock], last: nn.Module
) -> list[tuple[np.ndarray, np.ndarray]]:
    """The norms of all layers, in the order in which they are met; of pre-norm, with the last."""
    met = [each.norm for block in blocks for each in residuals(block)]
    is_pre = blocks[0].attend_residual.order == "pre"
    return [numbers_of(each) for each in [*met, *([last] if is_pre else [])]]


def numbers_of(norm: nn.Module) -> tuple[np.ndarray, np.ndarray]:
    """The weight and the bias of a norm; without entries it has none."""
    if isinstance(norm, nn.Identity):
        return (np.zeros(0, np.float32),) * 2
    assert isinstance(norm, NORMS)
    bias = getattr(norm, "bias", None)
    weight = norm.weight.detach().numpy()
    return weight, weight[:0] if bias is None else bias.detach().numpy()


def bytes_of(parts: Sequence[nn.Module | None]) -> int:
    """How much memory weights take in compiled loops."""
    total = 0
    for part in parts:
        if isinstance(part, Int8Linear):
            total += part.in_features * part.out_features
        elif isinstance(part, Int8Embedding):
            total += part.shape[0] * part.shape[1]
        elif part is not None:
            weight = part.weight
            assert isinstance(weight, Tensor)
            total += weight.nbytes
    return total


class PositionTable:
    """Position embeddings, computed as far as they are needed.

    Args:
        positions: What adds it; None adds nothing.
        width: Of the embeddings.
    """

    def __init__(
        self, positions: SinusoidalPositions | LearnedPositions | None, width: int
    ) -> None:
        self._positions = positions
        self._known = np.zeros((0, width), np.float32)

    @property
    def is_added(self) -> bool:
        """Whether it is anything."""
        return self._positions is not None

    def until(self, stop: int) -> Float32[np.ndarray, "P C"]:
        """Embeddings of positions before ``stop``, and of some after."""
        known = self._known  # of this thread: another may work out more meanwhile
        while len(known) < stop:
            known = self._known = np.concatenate([known, self._next(len(known))])
        return known

    def _next(self, first: int) -> Float32[np.ndarray, "P C"]:
        nothing = torch.zeros(1, max(first, 64), self._known.shape[1])
        if self._positions is None:
            return nothing[0].numpy()
        if isinstance(self._positions, LearnedPositions):
            nothing = nothing[:, : max(1, len(self._positions.table) - first)]
        more: np.ndarray = self._positions(nothing, first=first)[0].detach().numpy()
        return more


class RotaryTable:
    """Sines and cosines that rotate queries and keys of each position; none without rotation.

    Args:
        rotary: What turns them.
    """

    def __init__(self, rotary: RotaryPositions | None) -> None:
        self._rotary = rotary
        pairs = 0 if rotary is None else rotary.head_dim // 2
        self._known = np.zeros((0, 2, pairs), np.float32)

    def until(self, stop: int) -> Float32[np.ndarray, "P 2 p"]:
        """Sines and cosines of positions before ``stop``, and of some after."""
        known = self._known  # of this thread: another may work out more meanwhile
        while len(known) < stop:
            known = self._known = np.concatenate([known, self._next(len(known))])
        return known

    def _next(self, first: int) -> Float32[np.ndarray, "P 2 p"]:
        """They are what becomes of pairs of one and zero."""
        count = max(first, 64)
        if self._rotary is None:
            return np.zeros((count, 2, 0), np.float32)
        numbers = torch.arange(self._rotary.head_dim)
        is_first = numbers < len(numbers) // 2 if _is_in_halves(self._rotary) else numbers % 2 == 0
        given = is_first.float().expand(count, -1)
        turned = self._rotary(given, first=first).numpy()
        return np.stack([turned[:, ~is_first.numpy()], turned[:, is_first.numpy()]], axis=1)


def _is_in_halves(rotary: RotaryPositions | None) -> bool:
    return rotary is not None and rotary.pairs == "halves"


def _place_of(activation: Callable[[Tensor], Tensor], names: Sequence[str]) -> int:
    """Index of the activation's name; −1 for none."""
    known = [ACTIVATIONS[name] for name in names]
    return known.index(activation) if activation in known else -1
