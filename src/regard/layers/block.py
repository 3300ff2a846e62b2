"""Layers of an encoder or a decoder: attention and feed-forward, each with its residual."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import repeat
from typing import Literal, cast

from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from regard.attention.biases import PositionBias
from regard.attention.key_value_cache import KeyValueCache
from regard.attention.masks.base import Mask
from regard.attention.observing import at
from regard.attention.scores import ScaledDot, Score
from regard.checks import check_choice, check_count, choose
from regard.errors import SettingError
from regard.layers import NormKind
from regard.layers.heads import Packing
from regard.layers.multihead import MultiHeadAttention
from regard.layers.positions import RotaryPositions, ShawPositions
from regard.layers.residual import NormOrder, Residual

# Those of twice the width make one half the other's gate: Shazeer (2020),
# https://arxiv.org/abs/2002.05202, equation 6.
GATED = ("swiglu",)


def swiglu(inner: Float[Tensor, "*batch G"]) -> Float[Tensor, "*batch F"]:
    """``Swish(x W) * (x V)``, the two side by side in ``inner``."""
    gate, value = inner.chunk(2, dim=-1)
    return F.silu(gate) * value


ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "gelu": F.gelu,
    "gelu_tanh": partial(F.gelu, approximate="tanh"),
    "relu": F.relu,
    "silu": F.silu,
    "swiglu": swiglu,
}


class FeedForward(nn.Module):
    """Two linear maps with a nonlinearity between, the same at every position.

    ``activation(x W1 + b1) W2 + b2``: equation 2 of Vaswani et al. (2017),
    https://arxiv.org/abs/1706.03762. ``swiglu`` has a third matrix of the same size; two thirds of
    the width make as many weights.

    Args:
        model_dim: Width of the states, C.
        ffn_dim: Width in the middle, F.
        activation: ``relu`` as in the paper, ``gelu``, ``gelu_tanh`` (as GPT-2 approximates it),
            ``silu`` or ``swiglu``.

    Raises:
        SettingError: The activation is unknown.

    Example:
        >>> import torch
        >>> feed = FeedForward(model_dim=4, ffn_dim=16)
        >>> states = torch.randn(1, 3, 4)
        >>> out = feed(states)
        >>> out.shape, torch.allclose(out[:, 1], feed(states[:, 1]), atol=1e-6)
        (torch.Size([1, 3, 4]), True)
    """

    def __init__(self, model_dim: int, ffn_dim: int, *, activation: str = "relu") -> None:
        super().__init__()
        check_count("model_dim", model_dim)
        check_count("ffn_dim", ffn_dim)
        self.activation = choose("activation", activation, ACTIVATIONS)
        sides = 2 if activation in GATED else 1
        self.inner = nn.Linear(model_dim, sides * ffn_dim)
        self.outer = nn.Linear(ffn_dim, model_dim)
        for linear, parts in ((self.inner, sides), (self.outer, 1)):
            for matrix in linear.weight.data.chunk(parts):
                nn.init.xavier_uniform_(matrix)
            nn.init.zeros_(linear.bias)

    def forward(self, states: Float[Tensor, "*batch C"]) -> Float[Tensor, "*batch C"]:
        """The feed-forward transform of each position's state by itself."""
        change: Tensor = self.outer(self.activation(self.inner(states)))
        return change


class TransformerBlock(nn.Module):
    """A layer of an encoder or a decoder: Vaswani et al. (2017), section 3.1.

    Self-attention and feed-forward; in between, where there is a memory, attention to it. Under a
    causal mask and without a memory it is the layer of a language model (Radford et al., 2018).

    Args:
        kind: Kind of attention for observers: "encoder" or "decoder".
        layer: Which layer it is, from 0; for observers as well.
        model_dim: Width of the states, C.
        num_heads: Attention heads, H.
        ffn_dim: Width inside the feed-forward sublayer, F.
        num_key_heads: Heads of keys and values, G; None is H.
        dropout: Share dropped of each sublayer's output while training.
        attention_dropout: Share of the attention weights dropped while training.
        head_dropout: Share of the heads of attention to the memory left out for a query while
            training.
        norm: ``post`` or ``pre``.
        norm_kind: ``layer``, ``rms`` or ``batch``.
        norm_eps: Added to variances by the norms; None is the kind's own.
        activation: Of the feed-forward sublayer.
        rotary: Turns queries and keys of self-attention by their positions.
        max_distance: The largest distance of self-attention told apart by vectors of the layer's
            own (Shaw et al., 2018); None is to have none.
        score: Makes the score of each attention in it; the parameters of each are its own.
        has_memory: Whether it looks at a memory too.

    Raises:
        SettingError: A name is unknown, or a number out of range.

    Example:
        >>> import torch
        >>> from regard.attention import causal
        >>> block = TransformerBlock("decoder", 0, model_dim=8, num_heads=2, ffn_dim=16).eval()
        >>> states, other = torch.zeros(2, 1, 5, 8)
        >>> other[0, 4] = torch.arange(8)  # the last state is another
        >>> (one, _), (two, _) = (block(each, mask=causal()) for each in (states, other))
        >>> (one != two).any(dim=-1).tolist()
        [[False, False, False, False, True]]
    """

    def __init__(
        self,
        kind: str,
        layer: int,
        *,
        model_dim: int,
        num_heads: int,
        ffn_dim: int,
        num_key_heads: int | None = None,
        dropout: float = 0.0,
        attention_dropout: float = 0.0,
        head_dropout: float = 0.0,
        norm: NormOrder = "post",
        norm_kind: NormKind = "layer",
        norm_eps: float | None = 1e-5,
        activation: str = "gelu",
        rotary: RotaryPositions | None = None,
        max_distance: int | None = None,
        score: Callable[[], Score] = ScaledDot,
        has_memory: bool = False,
    ) -> None:
        super().__init__()
        check_choice("kind", kind, Literal["encoder", "decoder"])
        check_choice("norm_kind", norm_kind, NormKind)
        self.kind, self.layer = kind, layer
        self.attend = MultiHeadAttention(
            model_dim,
            num_heads,
            num_key_heads=num_key_heads,
            dropout=attention_dropout,
            score=score(),
            rotary=rotary,
        )
        self.distances: ShawPositions | None = None
        if max_distance is not None:
            self.distances = ShawPositions(model_dim // num_heads, max_distance=max_distance)
        self.cross_attend: MultiHeadAttention | None = None
        if has_memory:
            self.cross_attend = MultiHeadAttention(
                model_dim,
                num_heads,
                num_key_heads=num_key_heads,
                key_value_dim=model_dim,
                dropout=attention_dropout,
                head_dropout=head_dropout,
                score=score(),
            )
        self.feed = FeedForward(model_dim, ffn_dim, activation=activation)

        def residual() -> Residual:
            return Residual(model_dim, dropout=dropout, norm=norm, kind=norm_kind, eps=norm_eps)

        self.attend_residual = residual()
        self.cross_attend_residual = residual() if has_memory else None
        self.feed_residual = residual()

    def forward(
        self,
        states: Float[Tensor, "*positions C"],
        *,
        mask: Mask | None = None,
        bias: PositionBias | None = None,
        cache: KeyValueCache | None = None,
        memory: KeyValueCache | None = None,
        memory_mask: Mask | None = None,
        packing: Packing | None = None,
    ) -> tuple[Float[Tensor, "*positions C"], KeyValueCache | None]:
        """The states one layer further on, and the cache to pass with the states that follow.

        Args:
            states: (B, N, C), or (R, C) with a packing.
            mask: Which keys a state may look at; with a cache, keys count from its beginning.
            bias: Added to the scores, such as ``alibi()``; vectors of the layer's own replace it.
            cache: Its keys and values of earlier positions.
            memory: Its projection by :meth:`project_memory`.
            memory_mask: Which of its positions a state may look at.
            packing: Where the positions of packed states stand.
        """
        after: KeyValueCache | None = None
        if self.distances is not None:
            bias = self.distances()

        def self_attention(inputs: Tensor) -> Tensor:
            nonlocal after
            mixed: Tensor
            with at(self.kind, self.layer):
                mixed, after = self.attend(
                    inputs, mask=mask, bias=bias, cache=cache, packing=packing
                )
            return mixed

        def cross_attention(inputs: Tensor) -> Tensor:
            assert self.cross_attend is not None
            with at("cross", self.layer):
                mixed: Tensor
                mixed, _ = self.cross_attend(inputs, memory, mask=memory_mask, packing=packing)
            return mixed

        states = self.attend_residual(states, self_attention)
        if self.cross_attend_residual is not None:
            states = self.cross_attend_residual(states, cross_attention)
        return self.feed_residual(states, self.feed), after

    def project_memory(
        self, memory: Tensor, values: Tensor | None, *, packing: Packing | None
    ) -> KeyValueCache:
        """The keys and values of a memory; see :meth:`MultiHeadAttention.project_memory`."""
        assert self.cross_attend is not None
        return self.cross_attend.project_memory(memory, values, packing=packing)

    def empty_cache(self, batch: int) -> KeyValueCache:
        """Empty cache for ``batch`` rows."""
        return self.attend.empty_cache(batch)


class BlockStack(nn.ModuleList):
    """Layers one on the other, alike but for their weights.

    Args:
        num_layers: How many.
        block: Makes one, given its number from 0.

    Example:
        >>> import torch
        >>> def block(layer):
        ...     return TransformerBlock("decoder", layer, model_dim=8, num_heads=2, ffn_dim=16)
        >>> stack = BlockStack(3, block)
        >>> states, caches = stack(torch.zeros(2, 5, 8), past=stack.empty_caches(2))
        >>> states.shape, len(caches), [block.layer for block in stack]
        (torch.Size([2, 5, 8]), 3, [0, 1, 2])
    """

    def __init__(self, num_layers: int, block: Callable[[int], TransformerBlock]) -> None:
        check_count("num_layers", num_layers, 0)
        super().__init__(block(layer) for layer in range(num_layers))

    def __iter__(self) -> Iterator[TransformerBlock]:
        return cast(Iterator[TransformerBlock], super().__iter__())

    def forward(
        self,
        states: Float[Tensor, "*positions C"],
        *,
        mask: Mask | None = None,
        bias: PositionBias | None = None,
        past: Sequence[KeyValueCache] | None = None,
        memory: Iterable[KeyValueCache] | None = None,
        memory_mask: Mask | None = None,
        packing: Packing | None = None,
    ) -> tuple[Float[Tensor, "*positions C"], tuple[KeyValueCache, ...]]:
        """The states all layers further on, and a cache for each layer if there is a ``past``.

        Arguments are those of a layer's ``forward``, but for two: ``past`` has a cache for each
        layer, begins with ``empty_caches``, and where it is None nothing is kept or returned;
        ``memory`` has keys and values for cross-attention, those of a layer each.

        Raises:
            SettingError: There is not a cache for each layer.
        """
        if past is not None and len(past) != len(self):
            raise SettingError(
                f"past must have a cache for each of {len(self)} layers; got {len(past)}. "
                "Begin with empty_caches(batch)."
            )
        next_caches = []
        caches: Iterable[KeyValueCache | None] = repeat(None) if past is None else past
        memories: Iterable[KeyValueCache | None] = memory or repeat(None)
        for block, cache, projected in zip(self, caches, memories, strict=False):
            states, after = block(
                states,
                mask=mask,
                bias=bias,
                cache=cache,
                memory=projected,
                memory_mask=memory_mask,
                packing=packing,
            )
            if past is not None and after is not None:
                next_caches.append(after)
        return states, tuple(next_caches)

    def empty_caches(self, batch: int) -> tuple[KeyValueCache, ...]:
        """A past of no positions yet, for ``batch`` rows."""
        return tuple(block.empty_cache(batch) for block in self)

    def project_memory(
        self, memory: Tensor, values: Tensor | None, *, packing: Packing | None
    ) -> Iterator[KeyValueCache]:
        """Keys and values of a memory for each layer, projected as they are needed."""
        return (block.project_memory(memory, values, packing=packing) for block in self)
